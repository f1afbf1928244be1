const page = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

/** An element with attributes and children; text is never read as HTML. */
function element(tag, attributes = {}, ...children) {
  const is_svg = ["svg", "rect", "line", "path", "circle", "text", "g", "title"].includes(tag);
  const made = is_svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

const count = (value) => value < 10000 ? value.toLocaleString("en") : value < 1e6 ? (value / 1e3).toFixed(1) + " k"
  : value < 1e9 ? (value / 1e6).toFixed(1) + " M" : (value / 1e9).toFixed(2) + " G";
const bytes = (value) => value < 10240 ? value + " B" : value < 10485760 ? +(value / 1024).toFixed(1) + " KiB" : +(value / 1048576).toFixed(1) + " MiB";
const seconds = (value) => value < 1e-3 ? (value * 1e6).toFixed(2) + " µs" : (value * 1e3).toFixed(2) + " ms";

/** The state that the address keeps: view, pane of a narrow window, pass, place, layout. */
const state = { view: "code", pane: null, pass: null, place: null, layout: null, heat: "warps" };
function remember() {
  const parts = [];
  if (state.view !== "code") parts.push("view=" + state.view);
  if (state.place !== null) { const [file, line] = page.places[state.place]; parts.push((file ? `file=${file}&` : "") + "line=" + line); }
  if (state.pass !== null) parts.push("pass=" + page.passes[state.pass].name);
  if (state.pane && state.pane !== "source") parts.push("pane=" + state.pane);
  if (state.view === "layouts") parts.push("layout=" + state.layout);
  history.replaceState(null, "", parts.length ? "#" + parts.join("&") : location.pathname + location.search);
}

/** Where a place is, in words. */
function place_text(place) {
  const [file, line] = page.places[place];
  return (page.files.length > 1 ? page.files[file].name + ":" : "line ") + line;
}

/** A sentence, in which words between backquotes are code. */
const sentence = (text) => text.split("`").map((part, at) => at % 2 ? element("code", { class: "in" }, part) : part);

/** A remark of the compiler, or a finding. */
function remark(data, with_place) {
  const box = element("div", { class: "remark " + data.severity }, element("code", {}, data.code), " ", ...sentence(data.message));
  if (with_place && data.places.length)
    box.prepend(element("button", { onclick: () => { show("code"); pick(data.places[0]); } }, place_text(data.places[0])), " ");
  for (const note of data.notes) box.append(element("div", { class: "help" }, ...sentence(note)));
  if (data.help) box.append(element("div", { class: "help" }, "help: ", ...sentence(data.help)));
  return box;
}

/** The view that is shown. */
function show(view) {
  state.view = view;
  for (const section of document.querySelectorAll(".view")) section.hidden = section.id !== "view-" + view;
  for (const button of byId("views").children) button.setAttribute("aria-selected", button.dataset.view === view);
  if (view === "timeline") draw_timeline();
  if (view === "layouts") draw_layout();
  remember();
}

function tip(event, ...content) {
  const box = byId("tip");
  if (!content.length) { box.hidden = true; return; }
  box.replaceChildren(...content);
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  box.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8)) + "px";
  box.style.top = (event.clientY + 18 + height > innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 18) + "px";
}
