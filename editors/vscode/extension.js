// Starts `rtc lsp` for kernel files.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("rtc");
  const documents = [{ language: "rtc" }];
  if (settings.get("python")) {
    documents.push({ language: "python" });
  }
  const server = { command: settings.get("path"), args: ["lsp"] };
  client = new LanguageClient("rtc", "rtc", server, {
    documentSelector: documents,
    // Files that kernels import, and launch files.
    synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/*.{rt,py,json}") },
  });
  try {
    await client.start();
  } catch (problem) {
    client = undefined;
    vscode.window.showErrorMessage(`${server.command} lsp does not start: ${problem.message}. Set rtc.path.`);
  }
}

async function stop() {
  const running = client;
  client = undefined;
  if (running) {
    await running.stop();
  }
}

async function restart() {
  await stop();
  await start();
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("rtc.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("rtc.path") || change.affectsConfiguration("rtc.python")) {
        return restart();
      }
    }),
  );
  await start();
}

module.exports = { activate, deactivate: stop };
