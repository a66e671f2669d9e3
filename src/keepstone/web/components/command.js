// A command or a program with a button that copies it.
export default {
  props: { text: String, label: String },
  components: { KeepstoneCommand: window.KeepstoneCommand },
  template: `<keepstone-command :text="text" :label="label" />`,
};
