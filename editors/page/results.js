/** The result of a run at the lines of the source: heat beside them, findings below them. */
import { Decoration, EditorView, GutterMarker, WidgetType, gutter } from "@codemirror/view";
import { RangeSet, StateEffect, StateField } from "@codemirror/state";

class Heat extends GutterMarker {
  constructor(share, title) { super(); this.share = share; this.title = title; }
  eq(other) { return other.share === this.share && other.title === this.title; }
  toDOM() {
    const element = document.createElement("span");
    element.className = "cm-heat";
    element.title = this.title;
    element.textContent = this.share >= 0.005 ? Math.round(this.share * 100) + "%" : "";
    element.style.setProperty("--share", Math.round(this.share * 100) + "%");
    return element;
  }
}

/** Words between backquotes are code. */
const sentence = (text) => text.split("`").map((part, at) => {
  if (at % 2 === 0) return part;
  const code = document.createElement("code");
  code.className = "in";
  code.textContent = part;
  return code;
});

class Finding extends WidgetType {
  constructor(data) { super(); this.data = data; }
  eq(other) { return other.data.message === this.data.message && other.data.code === this.data.code; }
  toDOM() {
    const box = document.createElement("div");
    box.className = "cm-finding " + this.data.severity;
    const code = document.createElement("code");
    code.textContent = this.data.code;
    box.append(code, ...sentence(this.data.message));
    for (const note of this.data.notes) {
      const line = document.createElement("div");
      line.className = "note";
      line.append(...sentence(note));
      box.append(line);
    }
    return box;
  }
}

const set_result = StateEffect.define();
const NONE = { heat: RangeSet.empty, findings: Decoration.none };
const field = StateField.define({
  create: () => NONE,
  update(value, transaction) {
    for (const effect of transaction.effects) if (effect.is(set_result)) return effect.value;
    if (!transaction.docChanged) return value;
    return { heat: value.heat.map(transaction.changes), findings: value.findings.map(transaction.changes) };
  },
  provide: (field) => EditorView.decorations.from(field, (value) => value.findings),
});

export const results = [field, gutter({ class: "cm-heat-gutter", markers: (view) => view.state.field(field).heat })];

/** Shows the data of a run, or removes that of the last one. */
export function show_result(view, page) {
  const { doc } = view.state;
  const launch = page?.launch;
  if (!launch) { view.dispatch({ effects: set_result.of(NONE) }); return; }
  // The first file is the one in the editor.
  const line_of = (place) => page.places[place]?.[0] === 0 ? page.places[place][1] : undefined;
  const all = launch.heat.reduce((sum, each) => sum + each.warps, 0) || 1;
  const heat = [];
  for (const each of launch.heat) {
    const line = line_of(each.place);
    if (line === undefined || line > doc.lines) continue;
    const title = `${each.warps} instructions of warps` + (each.requests ? `, ${(each.sectors / each.requests).toFixed(1)} sectors for each request` : "") + (each.conflicts ? `, ${each.conflicts} bank conflicts` : "");
    heat.push(new Heat(each.warps / all, title).range(doc.line(line).from));
  }
  const findings = launch.findings.map((finding) => {
    const line = finding.places.map(line_of).find((line) => line !== undefined && line <= doc.lines) ?? 1;
    return Decoration.widget({ widget: new Finding(finding), block: true, side: 1 }).range(doc.line(line).to);
  });
  view.dispatch({ effects: set_result.of({ heat: RangeSet.of(heat, true), findings: Decoration.set(findings, true) }) });
}
