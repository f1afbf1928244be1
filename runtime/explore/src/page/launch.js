function meters(title, rows, text) {
  const most = Math.max(1, ...rows.map(([, value]) => value));
  return element("div", {}, element("h2", {}, title), element("table", {}, ...rows.map(([name, value, more]) => element("tr", {},
    element("td", {}, name), element("td", { class: "num" }, text(value)), element("td", { style: "width: 45%" }, element("span", { class: "meter", style: `width: ${100 * value / most}%` }), more ? element("span", { class: "dim" }, more) : undefined)))));
}

/** The roofline of a machine in logarithmic scales: operations in a second against operations for each byte. */
function roofline(launch, roof) {
  const [width, height, left, bottom, right, top] = [430, 250, 52, 34, 20, 12];
  const flops = launch.flops[0] + launch.flops[1], moved = launch.levels.at(-1).read + launch.levels.at(-1).written;
  const intensity = flops / Math.max(1, moved);
  const peak = launch.flops[0] > launch.flops[1] ? roof.matrix_flops : roof.thread_flops;
  const x_low = Math.min(-2, Math.floor(Math.log10(Math.max(intensity, 1e-4)))), x_high = Math.max(4, Math.ceil(Math.log10(Math.max(intensity, 1))));
  const y_high = Math.ceil(Math.log10(roof.matrix_flops)), y_low = Math.floor(Math.log10(roof.bytes) + x_low);
  const x = (value) => left + (Math.log10(value) - x_low) / (x_high - x_low) * (width - left - right);
  const y = (value) => height - bottom - (Math.log10(value) - y_low) / (y_high - y_low) * (height - bottom - top);
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, style: "width: 100%; max-width: 560px", role: "img", "aria-label": "roofline of an " + roof.machine });
  for (let at = x_low; at <= x_high; at++) svg.append(element("line", { class: "axis", x1: x(10 ** at), x2: x(10 ** at), y1: top, y2: height - bottom }), element("text", { class: "dim", x: x(10 ** at), y: height - bottom + 14, "text-anchor": "middle" }, at > 2 ? count(10 ** at) : String(+(10 ** at).toPrecision(1))));
  for (let at = y_low; at <= y_high; at += 2) svg.append(element("line", { class: "axis", x1: left, x2: width - right, y1: y(10 ** at), y2: y(10 ** at) }), element("text", { class: "dim", x: left - 5, y: y(10 ** at) + 4, "text-anchor": "end" }, ["1 G", "10 G", "100 G", "1 T", "10 T", "100 T", "1000 T"][at - 9] ?? `10^${at}`));
  for (const [rate, name] of [[roof.matrix_flops, "MMA"], [roof.thread_flops, "threads"]]) {
    const knee = rate / roof.bytes;
    svg.append(element("path", { class: "roof", d: `M${x(10 ** x_low)},${y(10 ** x_low * roof.bytes)}L${x(knee)},${y(rate)}L${width - right},${y(rate)}` }), element("text", { x: width - right, y: y(rate) + (name === "MMA" ? 13 : -4), "text-anchor": "end" }, `${name} ${(rate / 1e12).toFixed(0)} T/s`));
  }
  if (flops) {
    const reached = Math.min(intensity * roof.bytes, peak);
    svg.append(element("line", { class: "dash", x1: x(intensity), x2: x(intensity), y1: y(reached), y2: height - bottom }), element("circle", { class: "dot", cx: x(intensity), cy: y(reached), r: 5 }));
  }
  svg.append(element("text", { class: "dim", x: (left + width) / 2, y: height - 4, "text-anchor": "middle" }, "operations for each byte of device memory"), element("text", { class: "dim", x: 4, y: 10 }, "operations/s"));
  const [memory, matrix, threads] = roof.seconds;
  const longest = Math.max(memory, matrix, threads), bound = longest === memory ? "device memory" : longest === matrix ? "MMAs" : "arithmetic of threads";
  return element("div", {}, element("h2", {}, "Roofline, " + roof.machine), svg,
    element("p", {}, `At least ${seconds(longest)}, bound by ${bound}: memory ${seconds(memory)}, MMAs ${seconds(matrix)}, threads ${seconds(threads)}.`));
}

function start_launch() {
  const view = byId("view-launch"), launch = page.launch;
  if (!launch) { view.append(element("p", { class: "dim" }, "Counters, findings and the timeline are those of a launch: rtc explore FILE --launch LAUNCH.json")); return; }
  view.append(element("p", {}, `Grid ${launch.grid.join(" × ")}, ` + (launch.executor === "interpreter" ? "in the interpreter of the tile IR. Counts, rooflines and the timeline are those of a run in the emulator." : launch.executor === "program" ? `${page.resources.threads} threads per block, recorded by a program on ${launch.timeline.recording.device}. Counts, findings and rooflines are those of a launch in the emulator: rtc explore FILE --launch LAUNCH.json` : `${page.resources.threads} threads per block, in the emulator. The counts are the same in every run.`)));
  if (launch.fault) view.append(remark({ severity: "error", code: "fault", message: launch.fault, places: [], notes: [] }));
  launch.findings.forEach((data) => view.append(remark(data, true)));
  if (launch.outputs.length) view.append(element("h2", {}, "Tensors after the launch"), element("div", { class: "scroll" }, element("table", { id: "outputs", style: "width: auto" }, ...launch.outputs.map((output) => element("tr", {},
    element("td", { class: "mono" }, output.name), element("td", { class: "mono dim" }, `${output.dtype}[${output.shape.join(", ")}]`), element("td", { class: "mono" }, output.first.join("  ") + (output.shape.reduce((a, b) => a * b, 1) > output.first.length ? "  .." : "")))))));
  if (!is_counted()) return;
  const columns = element("div", { class: "columns" });
  const split = (level) => `read ${bytes(level.read)}, written ${bytes(level.written)}`;
  columns.append(meters("Bytes moved by each level", launch.levels.map((level) => [level.name, level.read + level.written, split(level)]), bytes));
  columns.append(meters("Instructions of warps by class", launch.instructions.map(([name, warps]) => [name, warps]).sort((a, b) => b[1] - a[1]), count));
  columns.append(element("div", {}, element("h2", {}, "Accesses"), element("div", { class: "scroll" }, element("table", {}, element("tr", {}, ...["", "requests", "sectors or cycles", "each", "bytes"].map((name, at) => element("th", { class: at ? "num" : "" }, name))),
    ...launch.traffic.map((row) => element("tr", {}, element("td", {}, row.name), ...[count(row.requests), count(row.sectors), (row.sectors / row.requests).toFixed(2), bytes(row.bytes)].map((text) => element("td", { class: "num" }, text)))))),
    element("p", { class: "dim" }, `${count(launch.branches[0])} conditional jumps, ${count(launch.branches[1])} of them divergent; ${count(launch.flops[0])} operations of MMAs, ${count(launch.flops[1])} of threads.`)));
  const hottest = [...launch.heat].sort((a, b) => b.warps - a.warps).slice(0, 12);
  columns.append(element("div", {}, element("h2", {}, "Lines with most instructions"), element("div", { class: "scroll" }, element("table", {}, element("tr", {}, ...["line", "", "instructions", "sectors each", "conflicts"].map((name, at) => element("th", { class: at > 1 ? "num" : "" }, name))),
    ...hottest.map((heat) => {
      const [file, line] = page.places[heat.place];
      return element("tr", {}, element("td", {}, element("button", { onclick: () => { show("code"); pick(heat.place); } }, place_text(heat.place).replace("line ", ""))), element("td", { class: "mono short" }, (page.files[file].text[line - 1] || "").trim()),
        element("td", { class: "num" }, count(heat.warps)), element("td", { class: "num" }, heat.requests ? (heat.sectors / heat.requests).toFixed(1) : ""), element("td", { class: "num" }, heat.conflicts ? count(heat.conflicts) : ""));
    })))));
  launch.rooflines.forEach((roof) => columns.append(roofline(launch, roof)));
  view.append(columns);
}

function start_remarks() {
  const view = byId("view-remarks"), own = page.resources;
  const rows = [["registers per thread", `${own.registers}${own.registers_are_estimated ? " (an estimate: no ptxas found)" : ""}`], ["shared memory per block", bytes(own.shared_bytes)], ["threads per block", own.threads], ["occupancy", `${own.blocks_per_sm} block${own.blocks_per_sm === 1 ? "" : "s"} per SM, limited by ${own.limited_by.join(" and ")}`]];
  if (own.spilled !== null) rows.splice(1, 0, ["spilled", bytes(own.spilled)]);
  view.append(element("h2", {}, "Resources"), element("table", { style: "width: auto" }, ...rows.map(([name, value]) => element("tr", {}, element("td", { class: "dim" }, name), element("td", {}, value)))), element("h2", {}, "Remarks"));
  page.remarks.forEach((data) => view.append(remark(data, true)));
  if (!page.remarks.length) view.append(element("p", { class: "dim" }, "None."));
  byId("resources").append(...[`${own.registers_are_estimated ? "≈ " : ""}${own.registers} registers`, `${bytes(own.shared_bytes)} shared`, `${own.blocks_per_sm} block${own.blocks_per_sm === 1 ? "" : "s"}/SM`].map((text) => element("span", { class: "chip" }, text)));
}
