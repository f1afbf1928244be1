/** The language server over requests of the page: diagnostics, hover, completion, signatures, rename. */
import { LSPClient, hoverTooltips, jumpToDefinitionKeymap, renameKeymap, serverCompletion, serverDiagnostics, signatureHelp } from "@codemirror/lsp-client";
import { keymap } from "@codemirror/view";
import { ask } from "./server.js";

/** Elements that documentation consists of; all others, and all attributes but classes, are removed. */
const ALLOWED = new Set(["P", "PRE", "CODE", "EM", "STRONG", "UL", "OL", "LI", "SPAN", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "H1", "H2", "H3", "H4", "BR", "HR", "BLOCKQUOTE", "A"]);

/** A docstring is a text of the file, which may be from elsewhere: none of it becomes active. */
export function sanitize(html) {
  const { body } = new DOMParser().parseFromString(html, "text/html");
  for (const element of [...body.querySelectorAll("*")]) {
    if (!ALLOWED.has(element.tagName)) { element.replaceWith(document.createTextNode(element.textContent)); continue; }
    for (const { name } of [...element.attributes]) if (name !== "class") element.removeAttribute(name);
  }
  return body.innerHTML;
}

/** Messages in the order in which they are sent: each request waits for the answer to the one before. */
function transport(timed) {
  let handlers = [];
  let queue = Promise.resolve();
  return {
    send(message) {
      const began = performance.now();
      queue = queue.then(async () => {
        try {
          const answers = await ask("lsp", message);
          if (message.includes("didChange")) timed(performance.now() - began);
          for (const answer of answers) handlers.forEach((handler) => handler(JSON.stringify(answer)));
        } catch { /* The server is gone. */ }
      });
    },
    subscribe(handler) { handlers.push(handler); },
    unsubscribe(handler) { handlers = handlers.filter((each) => each !== handler); },
  };
}

/** A client; `timed` is called with the milliseconds of each answer to a change. */
export function language_client(timed) {
  const keys = keymap.of([...renameKeymap, ...jumpToDefinitionKeymap]);
  const extensions = [serverCompletion(), hoverTooltips(), signatureHelp(), serverDiagnostics(), keys];
  return new LSPClient({ extensions, sanitizeHTML: sanitize, timeout: 10000 }).connect(transport(timed));
}
