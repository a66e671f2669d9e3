// Sends a file that was dropped or chosen to the server, piece by piece, and says how far it is.
const PIECE = 4 << 20;
export default {
  props: { page: String, address: String, largest: Number, tooLarge: String },
  emits: ["received"],
  data: () => ({ over: false, busy: false, told: "", trouble: "" }),
  methods: {
    drop(event) {
      this.over = false;
      const files = event.dataTransfer.files;
      if (files.length > 1) this.trouble = "One file at a time: pack several into a ZIP file.";
      else if (files.length) this.send(files[0]);
    },
    choose(event) {
      const [file] = event.target.files;
      event.target.value = "";
      if (file) this.send(file);
    },
    async send(file) {
      if (this.busy) return;
      this.trouble = file.size > this.largest ? this.tooLarge : "";
      if (this.trouble) return;
      this.busy = true;
      // The second secret of a browser session, without which the server changes nothing.
      const secret = localStorage.getItem("keepstone-page");
      const headers = { "x-keepstone-receiver": this.page, ...(secret && { "x-keepstone-page": secret }) };
      try {
        for (let at = 0; at === 0 || at < file.size; at += PIECE) {
          this.told = `Sending ${file.name}: ${Math.round((100 * at) / (file.size || 1))} %`;
          const where = `${this.address}?${new URLSearchParams({ at, name: file.name })}`;
          const body = file.slice(at, at + PIECE);
          const answer = await fetch(where, { method: "PUT", headers, body });
          if (!answer.ok) throw new Error(await answer.text());
        }
        this.$emit("received", file.name);
      } catch (error) {
        this.trouble = "The file was not received: " + error.message;
      }
      this.told = "";
      this.busy = false;
    },
  },
  template: `
    <div class="upload">
      <label :class="{ over }" @dragover.prevent="over = true" @dragleave="over = false" @drop.prevent="drop">
        <span>Drop a file here, or</span> <span class="plain">choose one</span>
        <input type="file" class="unseen" aria-label="File to import" :disabled="busy" @change="choose">
      </label>
      <p role="status" class="hint">{{ told }}</p>
      <p v-if="trouble" role="alert" class="told">{{ trouble }}</p>
    </div>`,
};
