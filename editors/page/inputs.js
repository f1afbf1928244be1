/** The inputs of a run: the specialization, the grid, and the values of the arguments. */
import { ask, setup } from "./server.js";

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

const FILLS = ["random", "zeros", "ones", "counting", "nan"];
const EXECUTORS = ["emulator", "interpreter"];

/** A form in `box`; `changed` is called when the user changes it. */
export function inputs(box, text, changed) {
  /** The specialization that the user wrote; null for the first that the file has. */
  let own = null;
  /** Values that the user wrote, by name. */
  const written = {};
  let grid = null;
  let shown = null;
  let use_launch = Boolean(setup.launch);
  /** What runs the kernel. */
  let executor = EXECUTORS[0];
  const set = (name, key) => (event) => { (written[name] ??= {})[key] = event.target.value; changed(); };

  function row(value) {
    const mine = written[value.name] || {};
    const cells = value.is_tensor
      ? [element("td", {}, element("input", { "aria-label": `elements of ${value.name}`, size: 9, placeholder: "as needed", value: mine.elements ?? value.elements, onchange: set(value.name, "elements") })),
         element("td", {}, element("select", { "aria-label": `content of ${value.name}`, onchange: set(value.name, "fill") }, ...FILLS.map((fill) => element("option", { selected: fill === (mine.fill ?? value.fill) }, fill))))]
      : [element("td", {}, element("input", { "aria-label": value.name, size: 9, value: mine.value ?? value.value, onchange: set(value.name, "value") })), element("td", {})];
    return element("tr", {}, element("td", { class: "mono" }, value.name), element("td", { class: "mono dim" }, value.type), ...cells);
  }

  function draw(found) {
    const launch = setup.launch ? element("label", {}, element("input", { type: "checkbox", checked: use_launch, onchange: (event) => { use_launch = event.target.checked; draw(found); changed(); } }), ` ${setup.launch}`) : "";
    const choices = element("datalist", { id: "choices" }, ...found.choices.map((choice) => element("option", { value: choice })));
    const line = element("input", { id: "specialization", class: "mono", list: "choices", "aria-label": "specialization", value: found.specialization, onchange: (event) => { own = event.target.value.trim() || null; changed(); } });
    const sizes = element("input", { id: "grid", class: "mono", "aria-label": "grid", size: 14, value: grid ?? found.grid, onchange: (event) => { grid = event.target.value.trim() || null; changed(); } });
    const head = ["argument", "type", "elements or value", "content"].map((name) => element("th", {}, name));
    const rest = use_launch ? [] : [element("label", { class: "wide" }, "specialization ", line, choices), element("label", {}, "grid ", sizes),
      found.error ? element("p", { class: "bad" }, found.error) : element("div", { class: "scroll" }, element("table", {}, element("tr", {}, ...head), ...found.values.map(row)))];
    const runs = element("select", { id: "executor", "aria-label": "runs in", onchange: (event) => { executor = event.target.value; changed(); } }, ...EXECUTORS.map((name) => element("option", { selected: name === executor }, name)));
    box.replaceChildren(launch, element("label", {}, "runs in the ", runs), ...rest);
  }

  return {
    /** Asks for the arguments of the specialization, after a change of the text or of the form. */
    async refresh() {
      const found = await ask("inputs", { text: text(), specialization: own }).catch(() => null);
      if (!found || JSON.stringify(found) === JSON.stringify(shown)) return;
      shown = found;
      // A field that is being written in stays.
      if (!box.contains(document.activeElement) || document.activeElement.tagName === "SELECT" || found.error) draw(found);
    },
    /** The form as the server takes it. */
    values() {
      if (use_launch || !shown) return { launch: use_launch, executor };
      const values = Object.fromEntries(shown.values.map((value) => [value.name, { ...value, ...written[value.name] }]));
      return { launch: false, executor, specialization: shown.specialization, grid: grid ?? shown.grid, values };
    },
  };
}
