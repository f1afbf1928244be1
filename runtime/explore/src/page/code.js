/** Rows of each pane by place, and what the pane shows. */
const panes = [];
const WORDS = {
  source: /(#.*$)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(def|for|while|if|elif|else|return|in|not|and|or|is|import|from|as|with|assert|pass|True|False|None|range)\b|(\b\d[\w.]*)|(@[\w.]+|\btl(?:\.\w+)+)/g,
  ir: /(\/\/.*$)|("(?:[^"\\]|\\.)*")|\b(kernel|phase|warps|loop|for|if|if_else|while|yields?|ret|reduce|scan)\b|(\b\d[\w.]*)|(%[\w.]+|#[ls]\d+)/g,
  ptx: /(\/\/.*$)|("(?:[^"\\]|\\.)*")|^(\s*(?:@!?%\w+\s+)?[a-z][\w.:]*)|(\b\d[\w.]*)|(%[\w.]+)/g,
};
/** The layouts of the pass that is shown, by the name in its text. */
let layout_names = {};
let value_types = {};

function colored(text, words) {
  const out = [];
  let last = 0;
  for (const match of text.matchAll(words)) {
    if (match.index > last) out.push(text.slice(last, match.index));
    const kind = match[1] ? "c" : match[2] ? "s" : match[3] ? "k" : match[4] ? "d" : "n";
    const attributes = { class: kind };
    if (words === WORDS.ir && kind === "n") attributes[match[0][0] === "%" ? "data-name" : "data-layout"] = match[0].slice(match[0][0] === "%" ? 1 : 0);
    out.push(element("span", attributes, match[0]));
    last = match.index + match[0].length;
  }
  if (last < text.length) out.push(text.slice(last));
  return out;
}

function make_pane(name, title, ...head) {
  const code = element("div", { class: "code", tabindex: 0 });
  const pane = { name, title, code, rows: new Map(), box: element("div", { class: "pane", id: "pane-" + name }, element("div", { class: "head" }, element("b", {}, title), ...head), code) };
  code.addEventListener("click", (event) => {
    const layout = event.target.dataset?.layout, row = event.target.closest(".row");
    if (layout in layout_names) { state.layout = layout_names[layout]; show("layouts"); return; }
    if (row?.places?.length) pick(row.places.at(-1), name);
  });
  code.addEventListener("mouseover", (event) => {
    near(event.target.closest(".row")?.places?.at(-1));
    describe(event);
  });
  code.addEventListener("mouseleave", () => { near(); tip(); });
  panes.push(pane);
  byId("panes").append(pane.box);
  byId("panes-tabs").append(element("button", { "data-pane": name, onclick: () => front(name) }, title));
  return pane;
}

/** Fills a pane with lines: `{t, p}` and a class. */
function fill(pane, lines, words) {
  pane.rows = new Map();
  const rows = element("div", { class: "rows" });
  lines.forEach((line, index) => {
    const number = line.number === undefined ? index + 1 : line.number;
    const row = element("div", { class: "row" + (line.kind ? " " + line.kind : "") + (line.p?.length ? " linked" : "") },
      element("span", { class: "no" }, number), line.heat, element("span", {}, ...colored(line.t, words)));
    row.places = line.p || [];
    row.is_hot = line.is_hot;
    for (const place of row.places) {
      if (!pane.rows.has(place)) pane.rows.set(place, []);
      pane.rows.get(place).push(row);
    }
    rows.append(row, ...(line.below || []));
  });
  pane.code.replaceChildren(rows);
}

/** Lights up what belongs to a place while the pointer is on it. */
let lit = [];
function near(place) {
  for (const row of lit) row.classList.remove("near");
  lit = place === undefined ? [] : panes.flatMap((pane) => pane.rows.get(place) || []);
  for (const row of lit) row.classList.add("near");
}

/** Selects a place: its lines light up in all panes, and come into sight in those but `from`. */
function pick(place, from) {
  state.place = place;
  for (const row of document.querySelectorAll(".row.picked")) row.classList.remove("picked");
  for (const pane of panes) {
    const rows = place === null ? [] : pane.rows.get(place) || [];
    rows.forEach((row) => row.classList.add("picked"));
    const tab = document.querySelector(`#panes-tabs [data-pane=${pane.name}]`);
    tab.textContent = pane.title + (rows.length && pane.name !== "source" ? ` · ${rows.length}` : "");
    if (rows.length && pane.name !== from) {
      // Lines that were executed are of more interest than those of another path.
      const top = (rows.find((row) => row.is_hot) || rows[0]).offsetTop - pane.code.offsetTop;
      if (top < pane.code.scrollTop || top > pane.code.scrollTop + pane.code.clientHeight - 60) pane.code.scrollTop = Math.max(0, top - pane.code.clientHeight / 3);
    }
  }
  remember();
}

/** The pane that a narrow window shows. */
function front(name) {
  state.pane = name;
  for (const pane of panes) pane.box.classList.toggle("front", pane.name === name);
  for (const tab of byId("panes-tabs").children) tab.setAttribute("aria-selected", tab.dataset.pane === name);
  if (state.place !== null) pick(state.place);
}

function describe(event) {
  const { name, layout } = event.target.dataset || {};
  if (name in value_types) {
    const type = page.types[value_types[name]];
    const facts = [element("code", {}, `%${name}`), element("div", {}, type.text)];
    if (type.slots > 1) facts.push(element("div", { class: "dim" }, `ring of ${type.slots} buffers`));
    if (type.layout !== undefined) facts.push(...layout_tip(page.layouts[type.layout]));
    tip(event, ...facts);
  } else if (layout in layout_names) tip(event, element("code", {}, layout), ...layout_tip(page.layouts[layout_names[layout]]));
  else tip(event);
}

function layout_tip(layout) {
  const canvas = element("canvas");
  paint_layout(canvas, layout, layout.offset ? "bank" : "lane", 300);
  return [element("div", { class: "dim" }, layout.words), canvas];
}

/** Whether the launch was counted: that of another program, or of the interpreter, was not. */
const is_counted = () => page.launch?.executor === "emulator";

const HEATS = {
  warps: ["instructions", (heat) => heat.warps, count],
  sectors: ["sectors per request", (heat) => heat.requests ? heat.sectors / heat.requests : 0, (value) => value.toFixed(1)],
  conflicts: ["bank conflicts", (heat) => heat.conflicts, count],
  divergent: ["divergent jumps", (heat) => heat.divergent, count],
  lanes: ["idle lanes", (heat) => heat.warps ? 32 - heat.threads / heat.warps : 0, (value) => value.toFixed(1)],
};

function draw_source(pane) {
  const heats = new Map((page.launch?.heat || []).map((heat) => [heat.place, heat]));
  const [, value, text] = HEATS[state.heat];
  const most = Math.max(1e-9, ...[...heats.values()].map(value));
  const places = new Map(page.places.map(([file, line], index) => [file + ":" + line, index]));
  const remarks = [...(page.launch?.findings || []), ...page.remarks];
  const lines = [];
  page.files.forEach((file, number) => {
    if (page.files.length > 1) lines.push({ t: "# " + file.name, number: "" });
    file.text.forEach((t, at) => {
      const place = places.get(number + ":" + (at + 1));
      const heat = heats.get(place);
      const share = heat ? value(heat) : 0;
      const shade = share ? `background: color-mix(in srgb, var(--heat) ${Math.round(15 + 75 * share / most)}%, transparent)` : undefined;
      lines.push({
        t, p: place === undefined ? [] : [place], number: at + 1,
        heat: is_counted() ? element("span", { class: "heat", style: shade, title: heat ? heat_text(heat) : undefined }, share ? text(share) : "") : undefined,
        below: place === undefined ? [] : remarks.filter((data) => data.places[0] === place).map((data) => remark(data)),
      });
    });
  });
  fill(pane, lines, WORDS.source);
}

function heat_text(heat) {
  const parts = [`${count(heat.warps)} instructions of warps (${heat.classes.slice(0, 4).map(([name, n]) => `${name} ${count(n)}`).join(", ")})`];
  if (heat.requests) parts.push(`${count(heat.sectors)} sectors in ${count(heat.requests)} requests: ${(heat.sectors / heat.requests).toFixed(1)} each`);
  if (heat.shared_cycles) parts.push(`${count(heat.shared_cycles)} cycles of shared memory, ${count(heat.conflicts)} by bank conflicts`);
  if (heat.divergent) parts.push(`${count(heat.divergent)} divergent jumps`);
  return parts.join("\n");
}

/** The tile IR after a pass, with the lines that the pass removed. */
function draw_ir(pane, with_changes) {
  const index = state.pass ?? page.passes.length - 1, pass = page.passes[index];
  value_types = {};
  layout_names = {};
  const texts = new Map(page.layouts.map((layout, at) => [layout.text, at]));
  for (const id of pass.lines) {
    const line = page.lines[id];
    for (const [name, type] of line.v || []) value_types[name] = type;
    const named = line.t.match(/^(#[ls]\d+) = (.*)$/);
    if (named && texts.has(named[2])) layout_names[named[1]] = texts.get(named[2]);
  }
  const lines = [];
  const add = (id, kind, number) => lines.push({ ...page.lines[id], kind, number });
  if (!with_changes || !pass.changes.length) pass.lines.forEach((id) => add(id));
  else {
    const before = page.passes[index - 1].lines;
    let old = 0, now = 0;
    for (const [kind, length] of pass.changes)
      for (let i = 0; i < length; i++) {
        if (kind === 1) add(before[old++], "removed", "−");
        else { add(pass.lines[now], kind === 2 ? "added" : undefined, now + 1); now++; if (kind === 0) old++; }
      }
  }
  fill(pane, lines, WORDS.ir);
}

function start_code() {
  const heat = element("select", { "aria-label": "counts by line", onchange: () => { state.heat = heat.value; draw_source(source); pick(state.place, "source"); } },
    ...Object.entries(HEATS).map(([name, [title]]) => element("option", { value: name }, title)));
  const source = make_pane("source", "Source", is_counted() ? heat : undefined);
  draw_source(source);

  const last = page.passes.length - 1;
  const changed = (pass) => pass.changes.filter(([kind]) => kind).reduce((sum, [, length]) => sum + length, 0);
  const passes = element("select", { id: "pass", "aria-label": "pass", onchange: () => go(Number(passes.value)) },
    ...page.passes.map((pass, at) => element("option", { value: at }, pass.name + (at ? ` ±${changed(pass)}` : ""))));
  const changes = element("input", { type: "checkbox", id: "changes", checked: true, onchange: () => go(Number(passes.value)) });
  const back = element("button", { title: "the pass before", onclick: () => go(Number(passes.value) - 1) }, "‹");
  const on = element("button", { title: "the next pass", onclick: () => go(Number(passes.value) + 1) }, "›");
  const ir = make_pane("ir", "Tile IR", element("span", {}, back, on), passes, element("label", {}, changes, " changes"));
  const go = (index) => {
    state.pass = Math.max(0, Math.min(last, index));
    passes.value = state.pass;
    back.disabled = state.pass === 0;
    on.disabled = state.pass === last;
    draw_ir(ir, changes.checked);
    pick(state.place, "source");
  };
  window.go_to_pass = go;

  const ptx = make_pane("ptx", "PTX");
  const counts = new Map(page.launch?.ptx_heat || []);
  fill(ptx, page.ptx.map((line, at) => ({ ...line, is_hot: counts.has(at + 1), heat: is_counted() ? element("span", { class: "heat dim" }, counts.has(at + 1) ? count(counts.get(at + 1)) : "") : undefined })), WORDS.ptx);
  if (page.sass) fill(make_pane("sass", "SASS"), page.sass, WORDS.ptx);
  return go;
}
