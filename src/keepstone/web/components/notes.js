// The notes of one file. Each can be edited in place; what is being edited stays when the list changes,
// even if its note goes.
export default {
  props: { notes: Array, readOnly: Boolean, label: String },
  emits: ["save", "remove"],
  data: () => ({ editing: null, draft: "" }),
  computed: {
    rows() {
      const notes = this.notes ?? [];
      const gone = this.editing !== null && !notes.some((note) => note.content === this.editing.content);
      return gone ? [...notes, { ...this.editing, gone }] : notes;
    },
  },
  methods: {
    begin(note) {
      this.editing = note;
      this.draft = note.content;
      this.$nextTick(() => this.$el.querySelector("textarea")?.focus());
    },
    save(note) {
      this.$emit("save", { content: note.content, line: note.line, text: this.draft });
      this.editing = null;
    },
  },
  template: `
    <ul v-if="rows.length" class="notes" :aria-label="label">
      <li v-for="note in rows" :key="note.key">
        <form v-if="editing !== null && editing.content === note.content" @submit.prevent="save(note)" @keydown.esc.prevent="editing = null">
          <p v-if="note.gone" class="gone">This note was deleted elsewhere. If you save it, it is a new one.</p>
          <textarea v-model="draft" rows="3" aria-label="The note" required
            @keydown.enter.ctrl.prevent="save(note)" @keydown.enter.meta.prevent="save(note)"></textarea>
          <button type="submit" class="main">Save</button>
          <button type="button" @click="editing = null">Cancel</button>
        </form>
        <template v-else>
          <p class="text" dir="auto">{{ note.shown }}</p>
          <span class="line">line {{ note.line }}</span>
          <span class="do" v-if="!readOnly">
            <button type="button" class="quiet" @click="begin(note)" :aria-label="'Edit: ' + note.start">Edit</button>
            <button type="button" class="quiet danger" @click="$emit('remove', note)"
              :aria-label="'Delete: ' + note.start">Delete</button>
          </span>
        </template>
      </li>
    </ul>`,
};
