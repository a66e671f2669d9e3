// A command or a program on lines of its own, with a button that copies it. Copying needs no server.
window.KeepstoneCommand = {
  props: { text: String, label: String },
  data: () => ({ told: "" }),
  methods: {
    async copy() {
      try {
        await navigator.clipboard.writeText(this.text);
        this.told = "Copied";
      } catch {
        this.told = "The browser does not allow copying";
      }
      setTimeout(() => (this.told = ""), 2500);
    },
  },
  template: `
    <div class="command">
      <pre tabindex="0" :aria-label="label || 'Command'">{{ text }}</pre>
      <span class="told-small" role="status">{{ told }}</span>
      <button type="button" class="quiet" @click="copy" :aria-label="'Copy ' + (label || text)">Copy</button>
    </div>`,
};
