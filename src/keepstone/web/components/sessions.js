// The list of sessions: a table whose headings sort and whose titles are links.
export default {
  props: { rows: Array, sort: String, descending: Boolean, readOnly: Boolean },
  emits: ["sort", "clear", "remove", "rename", "move"],
  data: () => ({ columns: [["id", "Session"], ["entries", "Entries"], ["modified", "Last change"], ["size", "Size"]] }),
  methods: {
    order(key) {
      return key !== this.sort ? "none" : this.descending ? "descending" : "ascending";
    },
    arrow(key) {
      return key !== this.sort ? "" : this.descending ? "↓" : "↑";
    },
    act(event, verb, key) {
      const menu = event.target.closest("details");
      menu.open = false;
      menu.querySelector("summary").focus();
      this.$emit(verb, key);
    },
    close(event) {
      const menu = event.target.closest("details");
      menu.open = false;
      menu.querySelector("summary").focus();
    },
    leave(event) {
      if (!event.currentTarget.contains(event.relatedTarget)) event.currentTarget.open = false;
    },
  },
  template: `
    <table class="list sessions">
      <thead>
        <tr>
          <th v-for="[key, title] in columns" :key="key" :class="'col-' + key" :aria-sort="order(key)" scope="col">
            <button type="button" @click="$emit('sort', key)">{{ title }}
              <span class="arrow" aria-hidden="true">{{ arrow(key) }}</span></button>
          </th>
          <th scope="col" class="col-do"><span class="unseen">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        <tr v-for="row in rows" :key="row.key">
          <td class="col-id"><a :href="row.href" data-row dir="auto"><span v-if="row.chat" class="kind chat-mark">chat</span> {{ row.title || row.shown }}</a>
            <span v-if="row.title" class="name" dir="auto">{{ row.shown }}</span>
            <span v-if="row.preview" class="latest" dir="auto">{{ row.preview }}</span></td>
          <td class="col-entries">{{ row.entries }}</td>
          <td class="col-modified"><time :datetime="row.iso" :title="row.moment">{{ row.ago }}</time></td>
          <td class="col-size">{{ row.size }}</td>
          <td class="col-do">
            <details class="menu" @focusout="leave" @keydown.esc="close">
              <summary class="quiet" :aria-label="'Actions for session ' + row.shown">More</summary>
              <div class="menu-items">
                <a :href="row.exported" download @click="close" :aria-label="'Export session ' + row.shown">Export</a>
                <template v-if="!readOnly">
                  <button type="button" @click="act($event, 'rename', row.key)" :aria-label="'Rename session ' + row.shown">Rename</button>
                  <button type="button" @click="act($event, 'move', row.key)" :aria-label="'Move session ' + row.shown">Move to another agent</button>
                  <button type="button" @click="act($event, 'clear', row.key)" :aria-label="'Clear session ' + row.shown">Clear</button>
                  <button type="button" class="danger" @click="act($event, 'remove', row.key)"
                    :aria-label="'Delete session ' + row.shown">Delete</button>
                </template>
              </div>
            </details>
          </td>
        </tr>
      </tbody>
    </table>`,
};
