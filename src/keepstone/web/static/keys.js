// Keys for those who like them, and the choice between light and dark.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => localStorage.getItem("keepstone-theme") || "system";
  const isDark = () => (chosen() === "system" ? system.matches : chosen() === "dark");

  function paint() {
    root.dataset.theme = isDark() ? "dark" : "light";
    window.Quasar?.Dark?.set(isDark());
  }
  paint();
  system.addEventListener("change", paint);
  window.addEventListener("load", () => setTimeout(settle, 0));

  // The parts that are beside a wide page, and fold above a narrow one; others fold on phones only.
  const screens = { wide: matchMedia("(min-width: 1400px)"), roomy: matchMedia("(min-width: 761px)") };
  const unfold = () => {
    for (const [name, screen] of Object.entries(screens)) {
      if (screen.matches) document.querySelectorAll(`details[data-${name}]`).forEach((one) => (one.open = true));
    }
  };
  Object.values(screens).forEach((screen) => screen.addEventListener("change", unfold));

  function settle() {
    paint();
    unfold();
    obey();
  }

  // On a phone the navigation is a drawer. It closes when the focus or a click goes elsewhere.
  const opener = () => document.querySelector(".open-menu");
  function toggleMenu(open) {
    if (opener()?.getAttribute("aria-expanded") !== String(!open)) return;
    opener().setAttribute("aria-expanded", String(open));
    if (open) document.querySelector(".drawer :is(a, button)")?.focus();
  }
  document.addEventListener("click", (event) => {
    const isOpener = opener()?.contains(event.target);
    if (isOpener) toggleMenu(opener().getAttribute("aria-expanded") !== "true");
    else if (!event.target.closest?.(".drawer")) toggleMenu(false);
  });
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest?.(".drawer, .open-menu")) toggleMenu(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || opener()?.getAttribute("aria-expanded") !== "true") return;
    toggleMenu(false);
    opener().focus();
  });

  window.keepstoneTheme = () => {
    localStorage.setItem("keepstone-theme", isDark() ? "light" : "dark");
    paint();
  };

  // The browser's own settings. The server formats times, so it is told the zone in a cookie.
  const ZONE = "keepstone-zone";
  window.keepstoneSettings = {
    theme: {
      get: chosen,
      set(value) {
        value === "system" ? localStorage.removeItem("keepstone-theme") : localStorage.setItem("keepstone-theme", value);
        paint();
      },
    },
    times: {
      get: () => (document.cookie.includes(`${ZONE}=`) ? "local" : "utc"),
      set(value) {
        const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
        const age = value === "local" ? 31536000 : 0;
        document.cookie = `${ZONE}=${encodeURIComponent(zone)}; path=/; max-age=${age}; samesite=strict`;
        location.reload();
      },
    },
  };

  const typing = (target) =>
    target.closest?.("input:not([type=checkbox], [type=radio], [type=file]), textarea, select, [contenteditable], [role=dialog]");

  // Where the focus was last in the list: of a row that is gone, its place is where moving goes on.
  let last = -1;
  const listed = () => [...document.querySelectorAll("[data-row]")].filter((row) => row.offsetParent);
  document.addEventListener("focusin", (event) => {
    const at = listed().findIndex((row) => row.contains(event.target));
    last = at < 0 && event.target.closest("[role=dialog], .panel, .toast") ? last : at;
  });

  function move(step) {
    const rows = listed();
    const at = rows.findIndex((row) => row.contains(document.activeElement));
    const next = at >= 0 ? at + step : last >= 0 ? Math.min(last, rows.length - 1) : step > 0 ? 0 : rows.length - 1;
    rows[next]?.focus();
  }

  // The key of an action of the entry that has the focus. Enter on a control inside it is the control's.
  function button(event) {
    const row = event.target.closest?.("[data-row], .panel");
    const own = event.key !== "Enter" || event.target === row;
    return own && row?.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  }

  // Arrows go from one choice to the next where a choice is asked for.
  function choose(event) {
    const choices = [...(event.target.closest?.(".options")?.querySelectorAll("button") || [])];
    const at = choices.indexOf(event.target);
    if (at < 0) return;
    event.preventDefault();
    choices.at((at + (/Down|Right/.test(event.key) ? 1 : -1)) % choices.length).focus();
  }

  const actions = {
    "/": () => {
      const field = document.querySelector("[data-search] :is(input, textarea), input[data-search]");
      field ? field.focus() : document.querySelector("[data-find]")?.click();
    },
    "?": () => document.querySelector("[data-help]")?.click(),
    n: () => {
      const start = document.querySelector("[data-new]") || document.querySelector("[data-go=c]");
      const field = start?.querySelector("input");
      field ? field.focus() : start?.click();
    },
    j: () => move(1),
    k: () => move(-1),
  };

  // What each key presses while Ctrl is held.
  const held = { k: "[data-find]", s: "[data-save]", z: "[data-undo]" };
  window.keepstoneKeys = { plain: Object.keys(actions), held: Object.keys(held) };

  // A command of the finder is a link that names after # what to do on its page.
  const commands = { "#new": actions.n, "#shortcuts": actions["?"], "#theme": window.keepstoneTheme };
  function obey() {
    const act = commands[location.hash];
    if (!act) return;
    history.replaceState(null, "", location.pathname + location.search);
    act();
  }
  addEventListener("hashchange", obey);

  let leader = 0;

  addEventListener("beforeunload", (event) => {
    if (document.querySelector("[data-unsaved]")) event.preventDefault();
  });

  // The focus returns to where it was before a dialog, also where the dialog is gone before it has closed.
  let before = null;
  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("[role=dialog]")) before = event.target;
  });
  const isDialog = (node) => node.id?.startsWith("q-portal--dialog");
  const restore = (changes) => {
    const isGone = changes.some((change) => [...change.removedNodes].some(isDialog));
    const isLost = document.activeElement === document.body && !document.querySelector("[role=dialog]");
    if (isGone && isLost && before?.isConnected) before.focus({ preventScroll: true });
  };
  window.addEventListener("load", () => new MutationObserver(restore).observe(document.body, { childList: true }));

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) {
      const found = held[event.key] && document.querySelector(held[event.key]);
      if (!found || (event.key === "z" && typing(event.target))) return;
      event.preventDefault();
      found.click();
      return;
    }
    if (event.altKey || typing(event.target)) return;
    const link = Date.now() - leader < 1500 && document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
    leader = event.key === "g" ? Date.now() : 0;
    if (event.key.startsWith("Arrow")) choose(event);
    const pressed = link || button(event);
    const act = pressed ? () => pressed.click() : actions[event.key];
    if (act) {
      event.preventDefault();
      act();
    }
  });

  // An element between a select's list box and its options takes the focus; ARIA allows only a group there.
  const groups = new MutationObserver((changes) => {
    for (const node of changes.flatMap((one) => [...one.addedNodes])) {
      if (node.parentElement === document.body) groups.observe(node, { childList: true, subtree: true });
      const lists = node.querySelectorAll?.("[role=listbox] > .q-virtual-scroll__content") ?? [];
      lists.forEach((one) => one.setAttribute("role", "group"));
    }
  });
  window.addEventListener("load", () => groups.observe(document.body, { childList: true }));
})();
