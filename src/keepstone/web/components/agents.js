// The agents of a home: what each holds, and its purge.
export default {
  props: { agents: Array, purging: Boolean },
  emits: ["purge"],
  template: `
    <ul class="links agents" aria-label="Agents">
      <li v-for="agent in agents" :key="agent.slug">
        <a :href="agent.href" data-row :aria-current="agent.current ? 'true' : null">
          <span class="name" dir="auto">{{ agent.slug }}<small v-if="agent.current"> you are here</small></span>
          <span class="facts">
            <template v-if="agent.facts">
              <span>{{ agent.facts.sessions }}</span> <span>{{ agent.facts.entries }}</span>
              <time v-if="agent.facts.iso" :datetime="agent.facts.iso" :title="agent.facts.moment">{{ agent.facts.ago }}</time>
              <span class="size">{{ agent.facts.size }}</span>
            </template>
            <span v-else>{{ agent.trouble || 'Counting …' }}</span>
          </span>
        </a>
        <button v-if="purging" type="button" class="quiet danger" @click="$emit('purge', agent.slug)"
          :aria-label="'Purge agent ' + agent.slug">Purge</button>
      </li>
    </ul>`,
};
