// Entries: in a chat, plain, as a conversation; elsewhere a line each, with what can be done on hover and focus.
export default {
  components: { "entry-menu": window.KeepstoneMenu },
  props: { entries: Array, plain: Boolean, target: String, readOnly: Boolean, selecting: Boolean, chosen: Array },
  emits: ["act", "choose", "restore"],
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
    // A click on a row shows its details, unless it was on a control or selected some text.
    open(event, entry) {
      if (this.plain || event.target.closest("a, button, input, summary") || String(getSelection())) return;
      event.currentTarget.focus({ preventScroll: true });
      this.$emit("act", { verb: "details", entry: entry.entryKey, session: entry.sessionKey });
    },
  },
  mounted() {
    this.seek();
  },
  template: `
    <ol :class="['entries', plain ? 'talked' : 'rows']">
      <li v-for="entry in entries" :key="entry.key" :class="['entry', 'by-' + entry.side, entry.state, { sought: target && entry.key === target }]" :id="'e-' + entry.key">
        <h2 v-if="entry.day" class="day">{{ entry.day }}</h2>
        <article :tabindex="plain ? null : 0" :data-row="plain ? null : ''" @click="open($event, entry)">
          <header>
            <input v-if="selecting && !entry.state" type="checkbox" :checked="(chosen || []).includes(entry.key)"
              :aria-label="'Select ' + entry.text.slice(0, 40)" @change="$emit('choose', entry.key)">
            <span class="by">
              <span class="who" v-if="entry.who" dir="auto">{{ entry.who }}</span>
              <span v-if="entry.type !== 'message' || !entry.who" :class="['kind', entry.tone]">{{ entry.type }}</span>
            </span>
            <span class="kind state" v-if="entry.state">{{ entry.state }}</span>
            <span class="pin" v-if="entry.pinned">pinned</span>
            <span class="kind" v-if="entry.note">{{ entry.note }}</span>
            <a v-for="tag in entry.tags" :key="tag.name" class="tag" :href="tag.href" dir="auto">#{{ tag.name }}</a>
            <a v-if="entry.where" class="from" :href="entry.href" dir="auto">{{ entry.where }}</a>
            <span class="fill"></span>
            <time :datetime="entry.iso" :title="entry.moment">{{ entry.time }}</time>
          </header>
          <div class="body">
            <p class="text" dir="auto"><template v-if="entry.parts && entry.parts.length"><component v-for="(part, n) in entry.parts" :key="n"
              :is="part.href ? 'a' : 'span'" :href="part.href || null">{{ part.text }}</component></template><template v-else>{{ entry.text }}</template></p>
            <p v-if="entry.chips && entry.chips.length" class="chips"><span v-for="(chip, n) in entry.chips" :key="n" class="chip">{{ chip }}</span></p>
            <dl v-if="entry.rest && entry.rest.length" class="rest">
              <div v-for="one in entry.rest" :key="one.key"><dt dir="auto">{{ one.key }}</dt><dd dir="auto">{{ one.value }}</dd></div>
            </dl>
            <div v-if="!plain && entry.state === 'deleted' && !readOnly" class="acts">
              <button type="button" class="quiet" @click="$emit('restore', { entry: entry.entryKey, session: entry.sessionKey })">Restore</button></div>
            <entry-menu v-else-if="!plain && !entry.state" :entry="entry" :read-only="readOnly" @act="$emit('act', $event)"></entry-menu>
          </div>
        </article>
      </li>
    </ol>`,
};
