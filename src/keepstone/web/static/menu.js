// What can be done with an entry, where it is shown. Copying needs no server.
window.KeepstoneMenu = {
  props: { entry: Object, readOnly: Boolean, inside: Boolean },
  emits: ["act"],
  data: () => ({ told: "" }),
  methods: {
    act(verb) {
      this.close();
      this.$emit("act", { verb, entry: this.entry.entryKey, session: this.entry.sessionKey });
    },
    close() {
      const menu = this.$refs.menu;
      if (menu?.open) {
        menu.open = false;
        menu.querySelector("summary").focus();
      }
    },
    async copy(what, text) {
      this.close();
      try {
        await navigator.clipboard.writeText(text);
        this.told = what + " copied";
      } catch {
        this.told = "The browser does not allow copying";
      }
      setTimeout(() => (this.told = ""), 2500);
    },
    copyLink() {
      return this.copy("Link", new URL(this.entry.href, location).href); // A template knows no URL.
    },
    leave(event) {
      const menu = event.currentTarget; // Its component may be gone: the focus also leaves what is removed.
      if (!menu.contains(event.relatedTarget)) menu.open = false;
    },
  },
  template: `
    <div class="acts">
      <span class="told-small" role="status">{{ told }}</span>
      <template v-if="!readOnly">
        <button type="button" class="quiet" data-key="e" title="E" @click="act('edit')">Edit</button>
        <button type="button" class="quiet" data-key="p" title="P" :aria-pressed="entry.pinned" @click="act('pin')">{{ entry.pinned ? 'Unpin' : 'Pin' }}</button>
        <button type="button" class="quiet danger" data-key="Backspace" title="Backspace" @click="act('delete')">Delete</button>
      </template>
      <button type="button" class="quiet" data-key="h" title="H" @click="act('history')">History</button>
      <details class="menu" ref="menu" @keydown.esc="close" @focusout="leave">
        <summary class="quiet">More</summary>
        <div class="menu-items">
          <button v-if="!inside" type="button" data-key="Enter" title="Enter" @click="act('details')">Details</button>
          <template v-if="!readOnly">
            <button type="button" data-key="s" title="S" @click="act('supersede')">Supersede with a newer fact</button>
            <button type="button" @click="act('link')">Link to another entry</button>
            <button type="button" @click="act('vouch')">I confirm this</button>
            <button type="button" @click="act('move')">Move to another agent</button>
          </template>
          <button type="button" @click="copy('Text', entry.text)">Copy text</button>
          <button type="button" @click="copy('Id', JSON.parse(entry.entryKey))">Copy id</button>
          <button type="button" @click="copyLink">Copy link</button>
          <button type="button" @click="act('raw')">Show raw line</button>
          <button v-if="!readOnly" type="button" class="danger" @click="act('purge')">Purge</button>
        </div>
      </details>
    </div>`,
};
