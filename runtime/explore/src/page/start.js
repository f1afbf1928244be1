function start() {
  const views = { code: "Code", layouts: "Layouts", launch: "Launch", timeline: "Timeline", remarks: `Remarks${page.remarks.length ? ` (${page.remarks.length})` : ""}` };
  byId("views").append(...Object.entries(views).map(([view, title]) => element("button", { "data-view": view, onclick: () => show(view) }, title)));
  const go = start_code();
  start_launch();
  start_timeline();
  start_remarks();
  const wanted = new URLSearchParams(location.hash.slice(1));
  if (wanted.has("theme")) document.documentElement.dataset.theme = wanted.get("theme");
  if (wanted.has("layout")) state.layout = Number(wanted.get("layout")) || 0;
  const pass = page.passes.findIndex((each) => each.name === wanted.get("pass"));
  const place = page.places.findIndex(([file, line]) => file === Number(wanted.get("file") || 0) && line === Number(wanted.get("line")));
  front(wanted.get("pane") || "source");
  go(pass >= 0 ? pass : page.passes.length - 1);
  if (place >= 0) pick(place);
  show(wanted.get("view") in views ? wanted.get("view") : "code");
  byId("theme").addEventListener("click", () => {
    const is_dark = (document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
    document.documentElement.dataset.theme = is_dark ? "light" : "dark";
  });
  addEventListener("resize", () => { time_scale = null; if (state.view === "timeline") draw_timeline(); });
  document.addEventListener("keydown", (event) => {
    if (["INPUT", "SELECT"].includes(event.target.tagName)) return;
    if (event.key === "Escape") pick(null);
    if (state.view === "code" && event.key === "[") go((state.pass ?? 0) - 1);
    if (state.view === "code" && event.key === "]") go((state.pass ?? 0) + 1);
  });
  if (RELOADS) watch();
}

start();
