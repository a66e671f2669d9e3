// What the doctor found.
export default {
  props: { findings: Array },
  template: `
    <ul class="findings">
      <li v-for="(finding, at) in findings" :key="at" :class="finding.level">
        <strong class="level">{{ finding.level }}</strong>
        <span class="subject" dir="auto">{{ finding.subject }}</span>
        <p class="text" dir="auto">{{ finding.message }}</p>
        <p class="remedy" v-if="finding.remedy">What to do: <span>{{ finding.remedy }}</span></p>
      </li>
    </ul>`,
};
