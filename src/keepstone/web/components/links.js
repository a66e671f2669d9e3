// A list of links, each with a word about it: files, bars of a chart, what the finder found.
export default {
  props: { items: Array, label: String, picks: Boolean },
  emits: ["chosen"],
  methods: {
    // Where one is picked, the page is not left.
    choose(event, item) {
      if (this.picks) event.preventDefault();
      this.$emit("chosen", item.href);
    },
  },
  template: `
    <ul class="links" :aria-label="label">
      <li v-for="item in items" :key="item.href">
        <a :href="item.href" data-row @click="choose($event, item)" :aria-current="item.current ? 'true' : null">
          <span class="name" dir="auto">{{ item.name }}</span><span class="detail">{{ item.detail }}</span>
        </a>
      </li>
    </ul>`,
};
