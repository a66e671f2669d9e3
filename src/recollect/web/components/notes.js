// The notes of one file. Each can be edited where it stands; what is being edited stays when the list changes.
export default {
  props: { notes: Array, readOnly: Boolean, label: String },
  emits: ["save", "remove"],
  data: () => ({ editing: null, draft: "" }),
  methods: {
    begin(note) {
      this.editing = note.content;
      this.draft = note.content;
      this.$nextTick(() => this.$el.querySelector("textarea")?.focus());
    },
    save(note) {
      this.$emit("save", { content: note.content, line: note.line, text: this.draft });
      this.editing = null;
    },
  },
  template: `
    <ul class="notes" :aria-label="label">
      <li v-for="note in notes" :key="note.key">
        <form v-if="editing === note.content" @submit.prevent="save(note)" @keydown.esc.prevent="editing = null">
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
