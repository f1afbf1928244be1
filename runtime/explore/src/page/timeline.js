const KINDS = { compute: "instructions", load: "load", store: "store", copy: "asynchronous copy", "copy-out": "copy out of shared memory", mma: "MMA", wait: "wait", barrier: "barrier" };
let time_scale = null;

/** The rows of each warp: what it issues and waits for, its copies by the buffer that they fill, and its MMAs. */
function time_rows(timeline) {
  const rows = [];
  for (let warp = 0; warp < timeline.warps; warp++) {
    const own = timeline.bars.filter((bar) => bar.warp === warp);
    if (!own.length) continue;
    const block = timeline.warps > timeline.warps_per_block ? `block ${Math.floor(warp / timeline.warps_per_block)}, ` : "";
    rows.push({ title: `${block}warp ${warp % timeline.warps_per_block}`, height: 14, bars: own.filter((bar) => ["compute", "wait", "barrier"].includes(bar.kind)) });
    const places = [...new Set(own.filter((bar) => bar.kind === "copy").map((bar) => bar.place ?? -1))];
    for (const place of places) {
      const copies = own.filter((bar) => bar.kind === "copy" && (bar.place ?? -1) === place);
      for (const stage of [...new Set(copies.map((bar) => bar.stage))].sort((a, b) => a - b))
        rows.push({ title: (place >= 0 ? place_text(place) : "copies") + (stage === undefined ? "" : innerWidth < 760 ? ` · ${stage}` : `, stage ${stage}`), height: 10, bars: copies.filter((bar) => bar.stage === stage), is_part: true });
    }
    for (const [kinds, title] of [[["mma"], "MMA"], [["load", "store", "copy-out"], "loads, stores"]]) {
      const bars = own.filter((bar) => kinds.includes(bar.kind));
      if (bars.length) rows.push({ title, height: 9, bars, is_part: true });
    }
  }
  return rows;
}

function bar_text(bar) {
  const parts = [`${KINDS[bar.kind]}, cycles ${count(bar.start)} to ${count(bar.end)} (${count(bar.end - bar.start)})`];
  if (bar.bytes) parts.push(bytes(bar.bytes));
  if (bar.events > 1) parts.push(`${bar.events} instructions`);
  if (bar.iteration !== undefined) parts.push(`iteration ${bar.iteration}`);
  if (bar.stage !== undefined) parts.push(`stage ${bar.stage} of the ring`);
  if (bar.for_iteration !== undefined) parts.push(`awaited in iteration ${bar.for_iteration}` + (bar.ahead !== undefined ? `, ${bar.ahead} ahead` : ""));
  parts.push((bar.place !== undefined ? place_text(bar.place) + ", " : "") + `PTX line ${bar.ptx_line}: ${(page.ptx[bar.ptx_line - 1]?.t || "").trim()}`);
  return parts.join(" · ");
}

function draw_timeline() {
  const time = byId("time");
  if (!time || !page.launch) return;
  const { timeline } = page.launch;
  const last = timeline.is_truncated ? Math.max(1, ...timeline.bars.map((bar) => bar.end)) : Math.max(1, timeline.cycles);
  // With several blocks, "block 10, warp 12".
  const narrow = timeline.warps > timeline.warps_per_block ? 108 : 84, label = innerWidth < 760 ? narrow : 120, room = Math.max(200, time.clientWidth - label - 4);
  time_scale ??= room / last;
  const width = Math.max(room, last * time_scale), x = (cycle) => label + cycle * time_scale;
  const rows = time_rows(timeline), gap = 2;
  const svg = element("svg", { width: label + width });
  let y = 20;
  const step = [1, 2, 5].flatMap((digit) => [1, 10, 100, 1000, 10000, 100000].map((ten) => digit * ten)).sort((a, b) => a - b).find((value) => value * time_scale > 80) || 1e6;
  const marks = element("g");
  svg.append(marks);
  for (const row of rows) {
    if (!row.is_part) y += 6;
    svg.append(element("rect", { class: "lane", x: label, y, width, height: row.height }));
    svg.append(element("text", { x: 2, y: y + row.height - 2, class: row.is_part ? "dim" : "", style: row.is_part ? "font-size: 9.5px" : "" }, row.title.slice(0, label / 5.4)));
    for (const bar of row.bars) {
      const long = Math.max(1, (bar.end - bar.start) * time_scale - (row.is_part ? 0.5 : 0));
      svg.append(element("rect", { class: bar.kind, x: x(bar.start), y, width: long, height: row.height, "data-bar": timeline.bars.indexOf(bar), "data-kind": bar.kind, "data-iteration": bar.iteration, "data-for": bar.for_iteration, "data-ahead": bar.ahead, "data-stage": bar.stage }));
      const text = bar.for_iteration ?? (bar.kind === "mma" ? bar.iteration : undefined);
      if (text !== undefined && long > 14) svg.append(element("text", { class: "on", x: x(bar.start) + 3, y: y + row.height - 1.5 }, text));
    }
    y += row.height + gap;
  }
  for (let cycle = 0; cycle <= last; cycle += step) {
    // The last number may have no room on the right of its line.
    const is_last = label + width - x(cycle) < 44;
    marks.append(element("line", { class: "axis", x1: x(cycle), x2: x(cycle), y1: 14, y2: y }), element("text", { class: "dim", x: x(cycle) + (is_last ? -2 : 2), y: 11, "text-anchor": is_last ? "end" : "start" }, count(cycle)));
  }
  svg.setAttribute("height", y + 4);
  time.replaceChildren(svg);
}

function start_timeline() {
  const view = byId("view-timeline"), timeline = page.launch?.timeline;
  if (!timeline) { view.append(element("p", { class: "dim" }, "The timeline is that of a launch: rtc explore FILE --launch LAUNCH.json")); return; }
  if (page.launch.executor === "interpreter") { view.append(element("p", { class: "dim" }, "The interpreter runs one program at a time and has no clock. The timeline is that of a run in the emulator.")); return; }
  const zoom = (factor) => {
    const time = byId("time"), middle = (time.scrollLeft + time.clientWidth / 2) / (time_scale || 1);
    time_scale = factor ? time_scale * factor : null;
    draw_timeline();
    time.scrollLeft = middle * time_scale - time.clientWidth / 2;
  };
  const key = (kind) => element("span", { class: "key" }, element("svg", {}, element("rect", { class: kind, width: 12, height: 12 })), KINDS[kind]);
  const used = Object.keys(KINDS).filter((kind) => timeline.bars.some((bar) => bar.kind === kind));
  const rings = timeline.rings.map((ring) => {
    const [least, most] = ring.ahead, many = least === most ? `${most}` : `${least} to ${most}`;
    return element("li", { "data-ring": place_text(ring.place), "data-ahead": many, "data-stages": ring.stages },
      `Copies of ${place_text(ring.place)} fill ${ring.stages} buffers in turn; in the loop they are issued ${many} iteration${many === "1" ? "" : "s"} ahead of the wait for them.`);
  });
  const { recording } = timeline, blocks = recording?.blocks === 1 ? "block" : `${recording?.blocks} blocks`;
  const source = recording
    ? `Recorded on ${recording.device}: the first ${blocks}, ${count(timeline.cycles)} cycles of the SM's clock. The records take time themselves, and a copy or an MMA ends where a warp has waited for it.` + (recording.lost ? ` ${count(recording.lost)} of ${count(recording.events)} events are lost, as the memory for records was full.` : "")
    : `The first ${timeline.warps > timeline.warps_per_block ? "cluster" : "block"}: ${count(timeline.cycles)} cycles by the model of ${timeline.model}. Order and overlap are those of the program in the emulator, lengths are estimates of a simple model.`;
  view.append(element("p", {}, source + (timeline.is_truncated && !recording?.lost ? " Later events are left out." : "")),
    ...(rings.length ? [element("ul", {}, ...rings)] : []),
    element("div", { class: "bar" }, element("span", {}, element("button", { onclick: () => zoom(2), title: "zoom in" }, "+"), " ", element("button", { onclick: () => zoom(0.5), title: "zoom out" }, "−"), " ", element("button", { onclick: () => zoom(0) }, "all")), ...used.map(key)),
    element("div", { id: "time" }), element("p", { id: "detail", class: "dim" }, "Numbers on copies and MMAs are iterations of the loop: a copy has the one in which it is awaited. Point at a bar; a click shows its line."));
  byId("time").addEventListener("mouseover", (event) => {
    const bar = timeline.bars[event.target.dataset?.bar];
    if (bar) byId("detail").textContent = bar_text(bar);
  });
  byId("time").addEventListener("click", (event) => {
    const bar = timeline.bars[event.target.dataset?.bar];
    if (bar?.place !== undefined) { show("code"); pick(bar.place); }
  });
}
