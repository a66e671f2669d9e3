// Entries as a conversation: who said it, what kind of thing it is, what it is worth, and its earlier versions.
export default {
  props: { entries: Array, versions: Object, plain: Boolean, target: String },
  emits: ["history", "whole"],
  watch: {
    entries: { handler: "seek", flush: "post" },
  },
  methods: {
    // Brings the entry that the address names into sight, once.
    seek() {
      const there = this.target && !this.sought && document.getElementById("e-" + this.target);
      if (!there) return;
      this.sought = true;
      there.scrollIntoView({ block: "center" });
    },
  },
  mounted() {
    this.seek();
  },
  template: `
    <ol class="entries">
      <li v-for="entry in entries" :key="entry.key" :class="['entry', 'by-' + entry.side, { sought: target && entry.key === target }]" :id="'e-' + entry.key">
        <h2 v-if="entry.day" class="day">{{ entry.day }}</h2>
        <article>
          <header>
            <span class="who" v-if="entry.who" dir="auto">{{ entry.who }}</span>
            <span v-if="entry.type !== 'message' || !entry.who" :class="['kind', entry.tone]">{{ entry.type }}</span>
            <span class="pin" v-if="entry.pinned">pinned</span>
            <span class="tag" v-for="tag in entry.tags" :key="tag" dir="auto">#{{ tag }}</span>
            <span class="fill"></span>
            <span class="worth" v-if="entry.worth" :title="entry.worthTitle">
              <span class="meter" aria-hidden="true"><i :style="{ width: entry.worthWidth }"></i></span>
              <span class="unseen">{{ entry.worthTitle }}</span>{{ entry.worth }}
            </span>
            <time :datetime="entry.iso" :title="entry.moment">{{ entry.time }}</time>
          </header>
          <p class="text" dir="auto">{{ entry.text }}</p>
          <button v-if="entry.clipped" type="button" class="quiet" @click="$emit('whole', entry.key)">Show all</button>
          <footer v-if="!plain">
            <code class="id">{{ entry.id }}</code>
            <button type="button" class="quiet" :aria-expanded="!!versions[entry.key]"
              @click="$emit('history', entry.key)">{{ versions[entry.key] ? 'Hide history' : 'History' }}</button>
          </footer>
          <ol v-if="versions[entry.key]" class="versions">
            <li v-for="(version, at) in versions[entry.key]" :key="at">
              <header><time>{{ version.moment }}</time> <strong>{{ version.what }}</strong></header>
              <p class="text" dir="auto">{{ version.text }}</p>
            </li>
          </ol>
        </article>
      </li>
    </ol>`,
};
