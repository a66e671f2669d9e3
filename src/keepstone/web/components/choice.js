// A choice of how this browser shows the pages. It is kept in the browser.
export default {
  props: { name: String, legend: String, options: Array },
  data: () => ({ value: "" }),
  created() {
    this.value = window.keepstoneSettings[this.name].get();
  },
  methods: {
    choose(value) {
      this.value = value;
      window.keepstoneSettings[this.name].set(value);
    },
  },
  template: `
    <fieldset class="radios">
      <legend>{{ legend }}</legend>
      <label v-for="[value, title] in options" :key="value">
        <input type="radio" :name="name" :value="value" :checked="value === $data.value" @change="choose(value)"> {{ title }}
      </label>
    </fieldset>`,
};
