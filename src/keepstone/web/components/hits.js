// The hits of a recall: what was found, and what each score is the sum of, drawn to one scale.
export default {
  props: { hits: Array },
  template: `
    <ol class="hits">
      <li v-for="(hit, at) in hits" :key="hit.key">
        <article>
          <header>
            <span class="place">{{ at + 1 }}</span>
            <span :class="['kind', hit.tone]">{{ hit.type }}</span>
            <a :href="hit.href" data-row dir="auto">{{ hit.session }}</a>
            <span class="fill"></span>
            <time :datetime="hit.iso">{{ hit.moment }}</time>
          </header>
          <p class="text" dir="auto">{{ hit.text }}</p>
          <div class="why">
            <div class="bar" role="img" :aria-label="hit.sum">
              <i v-for="part in hit.parts" :key="part.name" :class="'part-' + part.tone"
                :style="{ width: part.width }" :title="part.label"></i>
            </div>
            <ul>
              <li class="score">Score {{ hit.score }}</li>
              <li v-for="part in hit.parts" :key="part.name"><i :class="'part-' + part.tone"></i>{{ part.label }}</li>
              <li v-for="reason in hit.reasons" :key="reason" dir="auto">{{ reason }}</li>
            </ul>
          </div>
          <details v-if="hit.before.length || hit.after.length">
            <summary>Around it in the session</summary>
            <ol class="around">
              <li v-for="near in hit.before" :key="near.key" dir="auto">{{ near.text }}</li>
              <li class="self" dir="auto">{{ hit.text }}</li>
              <li v-for="near in hit.after" :key="near.key" dir="auto">{{ near.text }}</li>
            </ol>
          </details>
        </article>
      </li>
    </ol>`,
};
