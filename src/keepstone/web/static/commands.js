// Completes slash commands in the field below [data-commands], which holds them as [name, argument, help].
(() => {
  let list, field, chosen = 0;

  function matching() {
    const line = field.closest("[data-commands]");
    if (!/^\/[a-z]*$/.test(field.value)) return [];
    return JSON.parse(line.dataset.commands).filter(([name]) => name.startsWith(field.value));
  }

  function close() {
    list?.remove();
    list = null;
    field?.removeAttribute("aria-activedescendant");
    field?.removeAttribute("aria-controls");
  }

  function draw() {
    const found = matching();
    close();
    if (!found.length || document.activeElement !== field) return;
    chosen = Math.min(chosen, found.length - 1);
    list = document.createElement("ul");
    list.id = "commands";
    list.className = "commands";
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Commands");
    found.forEach(([name, argument, help], at) => {
      const row = document.createElement("li");
      row.id = "command-" + at;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(at === chosen));
      const typed = document.createElement("kbd");
      typed.textContent = [name, argument].filter(Boolean).join(" ");
      row.append(typed, " " + help);
      row.addEventListener("mousedown", (event) => {
        event.preventDefault();
        take(name, argument);
      });
      list.append(row);
    });
    field.closest(".say").append(list);
    field.setAttribute("aria-controls", "commands");
    field.setAttribute("aria-activedescendant", "command-" + chosen);
  }

  // Sets the text as typing does, so that the page hears of it.
  function take(name, argument) {
    const proto = Object.getPrototypeOf(field);
    Object.getOwnPropertyDescriptor(proto, "value").set.call(field, name + (argument ? " " : ""));
    field.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  }

  document.addEventListener("input", (event) => {
    if (!event.target.closest?.("[data-commands]")) return;
    field = event.target;
    chosen = 0;
    draw();
  });
  document.addEventListener("focusout", (event) => event.target === field && close());

  document.addEventListener(
    "keydown",
    (event) => {
      if (!list || event.target !== field) return;
      const found = matching();
      const [name, argument] = found[chosen] || [];
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        chosen = (chosen + (event.key === "ArrowDown" ? 1 : -1) + found.length) % found.length;
        draw();
      } else if (event.key === "Escape") close();
      else if (event.key === "Tab" || (event.key === "Enter" && field.value !== name)) take(name, argument);
      else return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    true,
  );
})();
