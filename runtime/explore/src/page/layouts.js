/** XOR of the bases of the bits of a number. */
function apply(bases, number, rank) {
  const at = new Array(rank).fill(0);
  (bases || []).forEach((basis, bit) => { if (number >> bit & 1) basis.forEach((value, axis) => at[axis] ^= value); });
  return at;
}

/** The owners of each element in row-major order: `[register, lane, warp]`, or for shared memory the offset. */
function owners(layout) {
  const rank = layout.shape.length, total = layout.shape.reduce((a, b) => a * b, 1);
  const all = Array.from({ length: total }, () => []);
  const index = (at) => at.reduce((sum, value, axis) => sum * layout.shape[axis] + value, 0);
  const xor = (...list) => list.reduce((a, b) => a.map((value, axis) => value ^ b[axis]));
  if (layout.offset) {
    for (let offset = 0; offset < 1 << layout.offset.length; offset++) all[index(apply(layout.offset, offset, rank))]?.push(offset);
    return all;
  }
  const [registers, lanes, warps] = [layout.register, layout.lane, layout.warp].map((bases) => {
    return Array.from({ length: 1 << (bases || []).length }, (_, number) => apply(bases, number, rank));
  });
  warps.forEach((w, warp) => lanes.forEach((l, lane) => registers.forEach((r, register) => all[index(xor(w, l, r))]?.push([register, lane, warp]))));
  return all;
}

/** Rows and columns of a picture: the last two sizes; earlier ones go below each other. */
function grid(layout) {
  const shape = layout.shape.length ? layout.shape : [1];
  const columns = shape.at(-1);
  const rows = shape.slice(0, -1).reduce((a, b) => a * b, 1);
  return { rows, columns };
}

function color(layout, owner, by) {
  if (by === "bank") { const bank = Math.floor(owner * layout.bits / 32) % 32; return `hsl(${bank * 11.25} 65% ${62 - (bank % 2) * 6}%)`; }
  if (by === "row") return `hsl(${Math.floor(owner * layout.bits / 1024) * 47 % 360} 60% 62%)`;
  const [register, lane, warp] = owner;
  if (by === "warp") return `hsl(${warp * 137.5 % 360} 60% 60%)`;
  if (by === "register") { const most = Math.max(1, (1 << (layout.register || []).length) - 1); return `hsl(${210 + 110 * register / most} 62% ${78 - 38 * register / most}%)`; }
  return `hsl(${lane * 11.25} 62% ${70 - (warp % 4) * 8}%)`;
}

const owner_text = (layout, owner) => layout.offset
  ? `byte ${owner * layout.bits / 8}, bank ${Math.floor(owner * layout.bits / 32) % 32}`
  : `warp ${owner[2]}, lane ${owner[1]}, register ${owner[0]}`;

/** Paints a layout no wider than so many pixels; gives the size of a cell. */
function paint_layout(canvas, layout, by, width) {
  const { rows, columns } = grid(layout);
  const shown = Math.min(rows, 256);
  const cell = Math.max(1, Math.min(36, Math.floor(width / columns)));
  const height = rows <= 4 ? Math.max(cell, Math.min(24, width / 8)) : cell;
  const scale = window.devicePixelRatio || 1;
  canvas.width = columns * cell * scale;
  canvas.height = shown * height * scale;
  canvas.style.width = columns * cell + "px";
  canvas.style.height = shown * height + "px";
  const context = canvas.getContext("2d"), all = owners(layout);
  context.scale(scale, scale);
  context.font = "9px system-ui, sans-serif";
  context.textAlign = "center";
  const gap = cell >= 6 && height >= 6 ? 1 : 0;
  for (let row = 0; row < shown; row++)
    for (let column = 0; column < columns; column++) {
      const owner = all[row * columns + column][0];
      if (owner === undefined) continue;
      context.fillStyle = color(layout, owner, by);
      context.fillRect(column * cell, row * height, cell - gap, height - gap);
      if (cell < 24 || height < 14) continue;
      context.fillStyle = "#111";
      const label = layout.offset ? owner : by === "register" ? "r" + owner[0] : by === "warp" ? "w" + owner[2] : owner[1];
      context.fillText(label, column * cell + cell / 2, row * height + height / 2 + 3);
    }
  return { cell, height, all, columns };
}

let layout_by = null;
function draw_layout() {
  const view = byId("view-layouts");
  state.layout ??= largest_layout();
  const layout = page.layouts[state.layout];
  if (!layout) { view.replaceChildren(element("p", { class: "dim" }, "The values of this kernel have no layouts.")); return; }
  const kinds = layout.offset ? { bank: "bank", row: "row of 128 bytes" } : { lane: "thread", warp: "warp", register: "register" };
  if (!(layout_by in kinds)) layout_by = Object.keys(kinds)[0];
  const choose = element("select", { id: "layout-choice", "aria-label": "layout", onchange: () => { state.layout = Number(choose.value); draw_layout(); remember(); } },
    ...page.layouts.map((each, at) => element("option", { value: at, selected: at === state.layout }, `${each.offset ? "shared " : ""}[${each.shape.join(" × ")}] ${users(at)[0] || ""}`)));
  choose.style.maxWidth = "100%";
  const by = element("select", { "aria-label": "color", onchange: () => { layout_by = by.value; draw_layout(); } },
    ...Object.entries(kinds).map(([name, title]) => element("option", { value: name, selected: name === layout_by }, title)));
  const canvas = element("canvas", { id: "layout" });
  const detail = element("p", { id: "element", class: "mono" }, "Point at an element.");
  view.replaceChildren(element("div", { class: "bar" }, choose, element("label", {}, "color by ", by)),
    element("p", {}, layout.words), element("div", { class: "scroll" }, canvas), detail,
    element("p", { class: "dim" }, "values: " + (users(state.layout).slice(0, 24).join(", ") || "of earlier passes")),
    element("p", { class: "mono dim" }, layout.text), gallery());
  const drawn = paint_layout(canvas, layout, layout_by, Math.min(640, view.clientWidth - 24));
  canvas.addEventListener("mousemove", (event) => {
    const at = Math.floor(event.offsetY / drawn.height) * drawn.columns + Math.floor(event.offsetX / drawn.cell);
    const found = drawn.all[at];
    if (!found) return;
    let rest = at;
    const place = layout.shape.map((size) => size).reverse().map((size) => { const value = rest % size; rest = Math.floor(rest / size); return value; }).reverse();
    const copies = found.length > 1 ? `, and ${found.length - 1} cop${found.length > 2 ? "ies" : "y"}` : "";
    detail.textContent = `element [${place.join(", ")}]: ${found.length ? owner_text(layout, found[0]) : "none"}${copies}`;
  });
}

/** The layout of the largest tile that the last pass has in registers: of a matrix multiplication, the accumulator. */
function largest_layout() {
  let found = 0, most = 0;
  for (const id of page.passes.at(-1).lines)
    for (const [, type] of page.lines[id].v || []) {
      const { layout, shape, slots } = page.types[type];
      const size = shape.reduce((a, b) => a * b, 1);
      if (layout !== undefined && !slots && size > most) [found, most] = [layout, size];
    }
  return found;
}

/** All layouts, small. */
function gallery() {
  const cards = page.layouts.map((layout, at) => {
    const canvas = element("canvas");
    paint_layout(canvas, layout, layout.offset ? "bank" : "lane", 156);
    return element("button", { "aria-pressed": at === state.layout, title: layout.words, onclick: () => { state.layout = at; draw_layout(); remember(); byId("view-layouts").scrollTop = 0; } },
      canvas, `${layout.offset ? "shared " : ""}[${layout.shape.join(" × ")}] ${users(at).slice(0, 2).join(", ")}`);
  });
  return element("div", { class: "gallery" }, ...cards);
}

/** Names of values with a layout, after the last pass that has them. */
function users(layout) {
  const names = new Set();
  for (const pass of [...page.passes].reverse()) {
    for (const id of pass.lines) for (const [name, type] of page.lines[id].v || []) if (page.types[type].layout === layout) names.add("%" + name);
    if (names.size) break;
  }
  return [...names];
}
