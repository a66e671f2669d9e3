// All about one entry, beside the list that it is in. Esc gives the focus back to its row.
export default {
  components: { "entry-menu": window.KeepstoneMenu },
  props: { entry: Object, content: Array, links: Array, origin: Array, versions: Array, hit: Object, readOnly: Boolean, asked: Number, part: String },
  emits: ["act", "restore", "close"],
  data: () => ({ from: null, open: {} }), // Images are loaded when they are opened.
  watch: {
    asked: {
      handler() {
        const here = this.$refs.panel;
        if (!here) return;
        if (!here.contains(document.activeElement)) this.from = document.activeElement;
        const history = this.part === "history" && here.querySelector(".history");
        (history || here).focus({ preventScroll: true });
        history ? history.scrollIntoView({ block: "start" }) : (here.scrollTop = 0);
      },
      flush: "post",
    },
  },
  methods: {
    close() {
      this.$emit("close");
      this.from?.isConnected && this.from.focus({ preventScroll: true });
    },
    restore(at) {
      this.$emit("restore", { entry: this.entry.entryKey, session: this.entry.sessionKey, at });
    },
  },
  template: `
    <div><aside v-if="entry" class="panel" ref="panel" aria-label="Details" tabindex="-1" @keydown.esc.stop="close">
      <header>
        <span class="who" v-if="entry.who" dir="auto">{{ entry.who }}</span>
        <span :class="['kind', entry.tone]">{{ entry.type }}</span>
        <span class="kind state" v-if="entry.state">{{ entry.state }}</span>
        <span class="pin" v-if="entry.pinned">pinned</span>
        <span class="kind" v-if="entry.note">{{ entry.note }}</span>
        <span class="fill"></span>
        <button type="button" class="quiet" aria-label="Close details" title="Esc" @click="close">×</button>
      </header>
      <template v-if="content.length"><template v-for="(part, n) in content" :key="n">
        <p v-if="part.kind === 'text'" class="text" dir="auto">{{ part.text }}</p>
        <details v-else-if="part.kind === 'file' && part.image" class="image" @toggle="open[part.image] = $event.target.open">
          <summary><span class="chip">{{ part.text }}</span></summary>
          <img v-if="open[part.image]" :src="part.image" :alt="part.text"></details>
        <p v-else-if="part.kind === 'file'"><span class="chip">{{ part.text }}</span></p>
        <details v-else-if="part.kind === 'reasoning'"><summary>Reasoning</summary><p class="text" dir="auto">{{ part.text }}</p></details>
        <div v-else class="tool"><strong>{{ part.kind === 'call' ? 'calls ' + part.name : part.name }}</strong>
          <dl v-if="part.arguments" class="rest"><div v-for="one in part.arguments" :key="one.key"><dt dir="auto">{{ one.key }}</dt><dd dir="auto">{{ one.value }}</dd></div></dl>
          <p v-else class="text" dir="auto">{{ part.text }}</p></div>
      </template></template>
      <p v-else class="text" dir="auto">{{ entry.text }}</p>
      <dl v-if="entry.rest.length" class="rest"><div v-for="one in entry.rest" :key="one.key"><dt dir="auto">{{ one.key }}</dt><dd dir="auto">{{ one.value }}</dd></div></dl>
      <entry-menu v-if="!entry.state" :entry="entry" :read-only="readOnly" inside @act="$emit('act', $event)"></entry-menu>
      <button v-else-if="!readOnly" type="button" class="plain" @click="restore(null)">Restore</button>
      <section v-if="hit"><h3>Relevance</h3>
        <p>{{ hit.sureness }} {{ hit.relevance }}: <component v-for="(part, n) in hit.said" :key="n" :is="part.kind || 'span'">{{ part.text }}</component></p></section>
      <dl class="about">
        <dt>Made</dt><dd>{{ entry.moment }}</dd>
        <dt>Id</dt><dd><code>{{ entry.id }}</code></dd>
        <dt>Session</dt><dd><a :href="entry.href" dir="auto">{{ entry.session }}</a></dd>
        <template v-if="entry.worth"><dt>Priority</dt><dd>{{ entry.worth }}</dd></template>
        <template v-if="entry.tags.length"><dt>Tags</dt><dd><a v-for="tag in entry.tags" :key="tag.name" class="tag" :href="tag.href" dir="auto">#{{ tag.name }}</a></dd></template>
      </dl>
      <section v-for="[title, rows] in [['Origin and trust', origin], ['Links', links]]" :key="title">
        <h3>{{ title }}</h3>
        <ul class="tree"><li v-for="(row, n) in rows" :key="n" :style="{ marginLeft: 14 * row.depth + 'px' }">
          <span class="hint">{{ row.label }}</span>
          <a v-if="row.href" :href="row.href" :title="row.moment" dir="auto">{{ row.text }}</a><span v-else dir="auto">{{ row.text }}</span></li></ul>
        <p v-if="!rows.length" class="hint">None.</p>
      </section>
      <section class="history" tabindex="-1"><h3>History</h3>
        <ol class="versions">
          <li v-for="version in versions" :key="version.at">
            <header><time>{{ version.moment }}</time> <strong>{{ version.what }}</strong>
              <button v-if="version.restorable && !readOnly" type="button" class="quiet" @click="restore(version.at)">Restore this version</button></header>
            <p v-if="versions.length > 1" class="text" dir="auto"><component v-for="(part, n) in version.parts" :key="n" :is="part.kind || 'span'">{{ part.text }}</component></p>
          </li>
        </ol>
      </section>
    </aside></div>`,
};
