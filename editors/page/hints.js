/** Inlay hints: types and shapes behind names. */
import { Decoration, ViewPlugin, WidgetType } from "@codemirror/view";
import { StateEffect, StateField } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

class Hint extends WidgetType {
  constructor(text) { super(); this.text = text; }
  eq(other) { return other.text === this.text; }
  toDOM() {
    const element = document.createElement("span");
    element.className = "cm-hint";
    element.textContent = this.text;
    return element;
  }
}

const set_hints = StateEffect.define();
const field = StateField.define({
  create: () => Decoration.none,
  update(hints, transaction) {
    for (const effect of transaction.effects) if (effect.is(set_hints)) return effect.value;
    return hints.map(transaction.changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Asks for the hints of the file after each change. */
export function hints(client, uri) {
  const asks = ViewPlugin.fromClass(class {
    constructor(view) { this.view = view; client.initializing.then(() => this.later(0)); }
    update(update) { if (update.docChanged) this.later(120); }
    destroy() { clearTimeout(this.timer); }
    later(pause) {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.ask(), pause);
    }
    async ask() {
      client.sync();
      const { doc } = this.view.state;
      const range = { start: { line: 0, character: 0 }, end: { line: doc.lines, character: 0 } };
      const found = await client.request("textDocument/inlayHint", { textDocument: { uri }, range }).catch(() => null);
      if (!found || this.view.state.doc !== doc) return;
      const places = found.filter((hint) => hint.position.line < doc.lines).map((hint) => {
        const line = doc.line(hint.position.line + 1);
        const at = Math.min(line.from + hint.position.character, line.to);
        return Decoration.widget({ widget: new Hint(hint.label), side: 1 }).range(at);
      });
      this.view.dispatch({ effects: set_hints.of(Decoration.set(places, true)) });
    }
  });
  return [field, asks];
}
