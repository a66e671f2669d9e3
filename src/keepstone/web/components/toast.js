// What happened, at the bottom of the page, with a button that takes it back. Its time stands still while the pointer
// or the focus is on it. A new one takes the place of the old one.
export default {
  props: { words: String, links: Array, number: Number, undoable: Boolean, seconds: Number },
  emits: ["undo"],
  data: () => ({ open: false, timer: 0 }),
  watch: {
    number() {
      this.open = true;
      this.start();
    },
  },
  mounted() {
    if (this.number) {
      this.open = true;
      this.start();
    }
  },
  beforeUnmount() {
    this.stop();
  },
  methods: {
    start() {
      this.stop();
      this.timer = setTimeout(this.close, 1000 * this.seconds);
    },
    stop() {
      clearTimeout(this.timer);
    },
    leave() {
      const here = this.$refs.toast;
      if (here && !here.matches(":hover") && !here.contains(document.activeElement)) this.start();
    },
    close() {
      this.stop();
      this.open = false;
    },
    undo() {
      this.close();
      this.$emit("undo", this.number);
    },
  },
  template: `
    <div role="status" aria-live="polite">
      <div v-if="open" class="toast" ref="toast" @mouseenter="stop" @focusin="stop" @mouseleave="leave" @focusout="$nextTick(leave)" @keydown.esc="close">
        <span dir="auto">{{ words }}</span>
        <a v-for="link in links" :key="link.href" class="conflict" :href="link.href">{{ link.text }}</a>
        <button v-if="undoable" type="button" data-undo @click="undo">Undo <kbd>Ctrl+Z</kbd></button>
        <button type="button" aria-label="Close" @click="close">×</button>
      </div>
    </div>`,
};
