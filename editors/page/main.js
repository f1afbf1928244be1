/** The page of `rtc explore --serve --edit`: an editor, the inputs of a run, and its result. */
import { EditorView, keymap, lineNumbers, highlightActiveLine, highlightActiveLineGutter, drawSelection } from "@codemirror/view";
import { EditorState } from "@codemirror/state";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { bracketMatching, indentOnInput, indentUnit } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { pythonLanguage } from "@codemirror/lang-python";
import { ask, setup } from "./server.js";
import { language_client } from "./language.js";
import { hints } from "./hints.js";
import { results, show_result } from "./results.js";
import { inputs } from "./inputs.js";
import { colors } from "./colors.js";

const by_id = (id) => document.getElementById(id);
/** Typing that goes on for longer than this many milliseconds ago has ended. */
const PAUSE = 300;

let saved = setup.text;
let timer = null;
/** The number of the last run that was begun: answers of earlier ones are not shown. */
let run_number = 0;
/** Times in milliseconds, for tests: the last answer to a key, the last run. */
export const times = { key: null, run: null };

const client = language_client((milliseconds) => { times.key = milliseconds; });
const form = inputs(by_id("inputs"), () => view.state.doc.toString(), () => later());

const view = new EditorView({
  parent: by_id("editor"),
  state: EditorState.create({
    doc: setup.text,
    extensions: [
      lineNumbers(), highlightActiveLineGutter(), highlightActiveLine(), history(), drawSelection(), indentOnInput(),
      bracketMatching(), autocompletion(), lintGutter(), pythonLanguage, indentUnit.of("    "),
      keymap.of([
        { key: "Mod-s", run: () => { save(); return true; }, preventDefault: true },
        { key: "Mod-Enter", run: () => { run(); return true; } },
        ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap,
        indentWithTab,
      ]),
      client.plugin(setup.uri, "python"), hints(client, setup.uri), results, colors,
      EditorView.contentAttributes.of({ "aria-label": setup.name }),
      EditorView.updateListener.of((update) => { if (update.docChanged) changed(); }),
    ],
  }),
});

function state(text, kind = "") {
  by_id("state").textContent = text;
  by_id("state").className = "chip " + kind;
}

function changed() {
  // At once: the answer is made in a few milliseconds.
  client.sync();
  by_id("save").disabled = view.state.doc.toString() === saved;
  later();
}

/** Runs when the typing pauses. */
function later() {
  clearTimeout(timer);
  timer = setTimeout(async () => {
    await form.refresh();
    if (by_id("live").checked) run();
  }, PAUSE);
}

/** Runs the kernel as it is in the editor, and shows the result. */
async function run() {
  clearTimeout(timer);
  const number = ++run_number;
  const text = view.state.doc.toString();
  const began = performance.now();
  state("running …");
  const answer = await ask("run", { text, ...form.values() }).catch((error) => ({ error: error.message }));
  if (number !== run_number) return;
  times.run = performance.now() - began;
  const is_current = text === view.state.doc.toString();
  by_id("problem").hidden = !answer.error;
  if (answer.error) {
    state("not run", "error");
    by_id("problem").textContent = answer.error;
    show_result(view, null);
    return;
  }
  const launch = answer.launch;
  const findings = launch ? launch.findings.length : 0;
  state(`${findings ? `${findings} finding${findings > 1 ? "s" : ""}` : launch?.fault ? "fault" : launch ? "ran" : "compiled"} · ${(times.run / 1000).toFixed(2)} s`,
    findings || launch?.fault ? "error" : "ok");
  if (is_current) show_result(view, answer);
  // The view, pass and line that are shown stay.
  const frame = by_id("result"), { hash } = frame.contentWindow.location;
  frame.contentWindow.location.replace(`result?token=${setup.token}&run=${number}${hash}`);
}

/** Writes the text to the file: the only time that anything is written. */
async function save() {
  const text = view.state.doc.toString();
  const answer = await ask("save", { text }).catch((error) => ({ error: error.message }));
  by_id("problem").hidden = !answer.error;
  if (answer.error) { by_id("problem").textContent = answer.error; return; }
  saved = text;
  by_id("save").disabled = view.state.doc.toString() === saved;
}

function front(tab) {
  document.body.dataset.front = tab;
  for (const button of by_id("tabs").children) button.setAttribute("aria-selected", button.dataset.tab === tab);
}

by_id("run").addEventListener("click", run);
by_id("save").addEventListener("click", save);
for (const button of by_id("tabs").children) button.addEventListener("click", () => front(button.dataset.tab));
const wanted = new URLSearchParams(location.hash.slice(1));
const set_theme = (theme) => {
  document.documentElement.dataset.theme = theme;
  const frame = by_id("result").contentDocument;
  if (frame?.documentElement) frame.documentElement.dataset.theme = theme;
};
by_id("result").addEventListener("load", () => {
  // The button of the editor is for both.
  by_id("result").contentDocument.getElementById("theme")?.remove();
  if (document.documentElement.dataset.theme) set_theme(document.documentElement.dataset.theme);
});
by_id("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  set_theme(now === "dark" ? "light" : "dark");
});
if (wanted.has("theme")) set_theme(wanted.get("theme"));
front(wanted.get("tab") || "editor");
addEventListener("beforeunload", (event) => { if (view.state.doc.toString() !== saved) event.preventDefault(); });

/** For tests, which have no keyboard. */
window.rtc = { view, run, times, client, form };
by_id("save").disabled = true;
client.initializing.then(() => form.refresh()).then(run);
