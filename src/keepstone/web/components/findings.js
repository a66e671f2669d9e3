// What the doctor found: prose as prose, commands on lines of their own.
const Pieces = {
  props: { pieces: Array },
  components: { KeepstoneCommand: window.KeepstoneCommand },
  template: `
    <template v-for="(piece, at) in pieces" :key="at">
      <keepstone-command v-if="piece.kind === 'command'" :text="piece.text" />
      <p v-else dir="auto">{{ piece.text }}</p>
    </template>`,
};
export default {
  props: { findings: Array },
  emits: ["fix"],
  components: { Pieces },
  template: `
    <ul class="findings">
      <li v-for="(finding, at) in findings" :key="at" :class="finding.level">
        <strong class="level">{{ finding.level }}</strong>
        <span class="subject" dir="auto">{{ finding.subject }}</span>
        <div class="text"><pieces :pieces="finding.message" /></div>
        <p class="cost" v-if="finding.cost" dir="auto"><strong>If ignored:</strong> {{ finding.cost }}</p>
        <div class="remedy" v-if="finding.remedy.length">
          <strong>What to do</strong>
          <pieces :pieces="finding.remedy" />
          <button v-if="finding.fix" type="button" class="plain" @click="$emit('fix', finding.fix)"
            :aria-label="'Fix ' + finding.subject">Fix</button>
        </div>
      </li>
    </ul>`,
};
