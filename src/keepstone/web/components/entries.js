// Entries as a conversation: who said it, what kind of thing it is, what it is worth, and its earlier versions.
export default {
  components: { "entry-menu": window.KeepstoneMenu },
  props: { entries: Array, versions: Object, plain: Boolean, target: String, readOnly: Boolean, selecting: Boolean, chosen: Array },
  emits: ["history", "whole", "act", "choose", "restore", "tag"],
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
      <li v-for="entry in entries" :key="entry.key" :class="['entry', 'by-' + entry.side, entry.state, { sought: target && entry.key === target }]" :id="'e-' + entry.key">
        <h2 v-if="entry.day" class="day">{{ entry.day }}</h2>
        <article :tabindex="plain ? null : -1" :data-row="plain ? null : ''">
          <header>
            <input v-if="selecting && !entry.state" type="checkbox" :checked="(chosen || []).includes(entry.key)"
              :aria-label="'Select ' + entry.text.slice(0, 40)" @change="$emit('choose', entry.key)">
            <span class="who" v-if="entry.who" dir="auto">{{ entry.who }}</span>
            <span v-if="entry.type !== 'message' || !entry.who" :class="['kind', entry.tone]">{{ entry.type }}</span>
            <span class="kind state" v-if="entry.state">{{ entry.state }}</span>
            <span class="pin" v-if="entry.pinned">pinned</span>
            <span class="kind" v-if="entry.note">{{ entry.note }}</span>
            <a v-for="tag in entry.tags" :key="tag.name" class="tag" :href="tag.href" dir="auto">#{{ tag.name }}</a>
            <a v-if="entry.where" class="from" :href="entry.href" dir="auto">{{ entry.where }}</a>
            <span class="fill"></span>
            <span class="worth" v-if="entry.worth" :title="entry.worthTitle">
              <span class="meter" aria-hidden="true"><i :style="{ width: entry.worthWidth }"></i></span>
              <span class="unseen">{{ entry.worthTitle }}</span>{{ entry.worth }}
            </span>
            <time :datetime="entry.iso" :title="entry.moment">{{ entry.time }}</time>
          </header>
          <p class="text" dir="auto"><template v-if="entry.parts && entry.parts.length"><component v-for="(part, n) in entry.parts" :key="n"
            :is="part.href ? 'a' : 'span'" :href="part.href || null">{{ part.text }}</component></template><template v-else>{{ entry.text }}</template></p>
          <dl v-if="entry.rest && entry.rest.length" class="rest">
            <div v-for="one in entry.rest" :key="one.key"><dt dir="auto">{{ one.key }}</dt><dd dir="auto">{{ one.value }}</dd></div>
          </dl>
          <button v-if="entry.clipped" type="button" class="quiet" @click="$emit('whole', entry.key)">Show all</button>
          <footer v-if="!plain">
            <code class="id">{{ entry.id }}</code>
            <button v-if="entry.state === 'deleted' && !readOnly" type="button" class="quiet"
              @click="$emit('restore', { entry: entry.key })">Restore</button>
            <button v-if="entry.state" type="button" class="quiet" :aria-expanded="!!versions[entry.key]"
              @click="$emit('history', entry.key)">{{ versions[entry.key] ? 'Hide history' : 'History' }}</button>
            <entry-menu v-else :entry="entry" :read-only="readOnly" @act="$emit('act', $event)">
              <button type="button" class="quiet" :aria-expanded="!!versions[entry.key]"
                @click="$emit('history', entry.key)">{{ versions[entry.key] ? 'Hide history' : 'History' }}</button>
            </entry-menu>
          </footer>
          <ol v-if="versions[entry.key]" class="versions">
            <li v-for="version in versions[entry.key]" :key="version.at">
              <header><time>{{ version.moment }}</time> <strong>{{ version.what }}</strong>
                <button v-if="version.restorable && !readOnly" type="button" class="quiet"
                  @click="$emit('restore', { entry: entry.key, at: version.at })">Restore this version</button></header>
              <p class="text" dir="auto"><component v-for="(part, n) in version.parts" :key="n"
                :is="part.kind || 'span'">{{ part.text }}</component></p>
            </li>
          </ol>
        </article>
      </li>
    </ol>`,
};
