// The list of sessions: a table whose headings sort and whose names are links.
export default {
  props: { rows: Array, sort: String, descending: Boolean, readOnly: Boolean },
  emits: ["sort", "clear", "remove"],
  data: () => ({ columns: [["id", "Session"], ["modified", "Last change"], ["size", "Size"]] }),
  methods: {
    order(key) {
      return key !== this.sort ? "none" : this.descending ? "descending" : "ascending";
    },
    arrow(key) {
      return key !== this.sort ? "" : this.descending ? "↓" : "↑";
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
          <th v-if="!readOnly" scope="col" class="col-do"><span class="unseen">Actions</span></th>
        </tr>
      </thead>
      <tbody>
        <tr v-for="row in rows" :key="row.key">
          <td class="col-id"><a :href="row.href" data-row dir="auto">{{ row.shown }}</a></td>
          <td class="col-modified"><time :datetime="row.iso" :title="row.moment">{{ row.ago }}</time></td>
          <td class="col-size">{{ row.size }}</td>
          <td v-if="!readOnly" class="col-do">
            <button type="button" class="quiet" @click="$emit('clear', row.key)"
              :aria-label="'Clear session ' + row.shown">Clear</button>
            <button type="button" class="quiet danger" @click="$emit('remove', row.key)"
              :aria-label="'Delete session ' + row.shown">Delete</button>
          </td>
        </tr>
      </tbody>
    </table>`,
};
