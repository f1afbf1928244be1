/** The colors of the page, for light and dark. */
import { EditorView } from "@codemirror/view";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { tags } from "@lezer/highlight";

const style = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.controlKeyword, tags.definitionKeyword, tags.moduleKeyword], color: "var(--keyword)" },
  { tag: [tags.string, tags.docString], color: "var(--string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--number)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--comment)" },
  { tag: [tags.propertyName, tags.meta], color: "var(--name)" },
]);

const theme = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--bg)", color: "var(--text)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "ui-monospace, 'DejaVu Sans Mono', monospace", lineHeight: "20px" },
  ".cm-content": { caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "var(--bg)", color: "var(--dim)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--hover) 55%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--pick)" },
  ".cm-hint": { color: "var(--dim)", backgroundColor: "var(--panel)", borderRadius: "4px", padding: "0 3px", fontSize: "11.5px" },
  ".cm-heat-gutter": { minWidth: "42px" },
  ".cm-heat": { display: "block", width: "40px", height: "20px", textAlign: "right", paddingRight: "4px", fontSize: "11px", color: "var(--text)", boxSizing: "border-box", background: "linear-gradient(to left, var(--heat) var(--share), transparent var(--share))" },
  // As wide as the editor, not as its longest line.
  ".cm-finding": { whiteSpace: "normal", position: "sticky", left: "100px", maxWidth: "min(560px, calc(100cqw - 120px))", margin: "2px 8px 4px 16px", padding: "4px 8px", borderLeft: "3px solid var(--error)", background: "var(--panel)", font: "12.5px/1.4 system-ui, sans-serif" },
  ".cm-finding code.in": { color: "inherit", marginRight: 0 },
  ".cm-finding code:not(.in)": { color: "var(--error)", marginRight: "4px" },
  ".cm-finding .note": { color: "var(--dim)" },
  ".cm-tooltip": { backgroundColor: "var(--bg)", color: "var(--text)", border: "1px solid var(--line)", borderRadius: "6px", maxWidth: "min(560px, 92vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-lsp-documentation": { maxHeight: "50vh", overflow: "auto" },
  ".cm-lsp-documentation pre": { fontSize: "11.5px", lineHeight: "15px", overflowX: "auto" },
  ".cm-panels": { backgroundColor: "var(--panel)", color: "var(--text)", borderColor: "var(--line)" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
});

export const colors = [theme, syntaxHighlighting(style)];
