// The hits of a recall: how relevant each is, a sentence on why it was found, and the parts of its score on request.
export default {
  components: { "entry-menu": window.KeepstoneMenu },
  props: { hits: Array, readOnly: Boolean, tested: Boolean },
  emits: ["act", "expect"],
  methods: {
    open(event, hit) {
      if (hit.shared || event.target.closest("a, button, summary, details") || String(getSelection())) return;
      event.currentTarget.focus({ preventScroll: true });
      this.$emit("act", { verb: "details", entry: hit.entryKey, session: hit.sessionKey });
    },
  },
  template: `
    <ol class="hits">
      <li v-for="(hit, at) in hits" :key="hit.key">
        <article tabindex="0" data-row @click="open($event, hit)">
          <header>
            <span class="place">{{ at + 1 }}</span>
            <span class="who" v-if="hit.who" dir="auto">{{ hit.who }}</span>
            <span v-if="hit.type !== 'message' || !hit.who" :class="['kind', hit.tone]">{{ hit.type }}</span>
            <span v-if="hit.shared" dir="auto">{{ hit.session }}</span>
            <a v-else :href="hit.href" dir="auto">{{ hit.session }}</a>
            <span class="pin" v-if="hit.pinned">pinned</span>
            <span class="kind" v-if="hit.note">{{ hit.note }}</span>
            <a v-for="tag in hit.tags" :key="tag.name" class="tag" :href="tag.href" dir="auto">#{{ tag.name }}</a>
            <span class="fill"></span>
            <time :datetime="hit.iso">{{ hit.moment }}</time>
          </header>
          <p class="text" dir="auto"><component v-for="(part, n) in hit.marked" :key="n" :is="part.kind || 'span'">{{ part.text }}</component></p>
          <dl v-if="hit.rest.length" class="rest">
            <div v-for="one in hit.rest" :key="one.key"><dt dir="auto">{{ one.key }}</dt><dd dir="auto">{{ one.value }}</dd></div>
          </dl>
          <div class="why">
            <p class="relevance">
              <strong title="Relevance, from 0 to 1, on one scale for all questions">{{ hit.sureness }} {{ hit.relevance }}</strong>
              <span :class="['scale', hit.sureness]" aria-hidden="true"><i :style="{ width: hit.length }"></i></span>
              <span class="said" dir="auto"><component v-for="(part, n) in hit.said" :key="n" :is="part.kind || 'span'">{{ part.text }}</component></span>
            </p>
          </div>
          <div class="why more">
            <details><summary>Parts of the score</summary><ul>
              <li class="score">Score {{ hit.score }}</li>
              <li><div class="bar" role="img" :aria-label="hit.sum">
                <i v-for="part in hit.parts" :key="part.name" :class="'part-' + part.tone"
                  :style="{ width: part.width }" :title="part.label"></i>
              </div></li>
              <li v-for="part in hit.parts" :key="part.name"><i :class="'part-' + part.tone"></i>{{ part.label }}</li>
              <li v-for="detail in hit.details" :key="detail" dir="auto">{{ detail }}</li>
            </ul></details>
          <details v-if="hit.before.length || hit.after.length">
            <summary>Around it</summary>
            <ol class="around">
              <li v-for="near in hit.before" :key="near.key" dir="auto">{{ near.text }}</li>
              <li class="self" dir="auto">{{ hit.text }}</li>
              <li v-for="near in hit.after" :key="near.key" dir="auto">{{ near.text }}</li>
            </ol>
          </details>
            <p v-if="tested && !hit.shared" class="expected">
              <button type="button" class="quiet" title="Adds a test of memory" @click="$emit('expect', { entry: hit.entryKey, found: true })">This should have been found</button>
              <button type="button" class="quiet" title="Adds a test of memory" @click="$emit('expect', { entry: hit.entryKey, found: false })">This should not</button>
            </p>
          </div>
          <entry-menu v-if="!hit.shared" :entry="hit" :read-only="readOnly" @act="$emit('act', $event)"></entry-menu>
        </article>
      </li>
    </ol>`,
};
