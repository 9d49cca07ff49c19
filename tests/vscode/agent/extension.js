// Plays an agent: by the API that the extension offers, and by the tools of VS Code's agent mode.
// What came of it goes to the file that AGENT_OUT names, one JSON object a line.
const vscode = require("vscode");
const { appendFileSync } = require("node:fs");

const tell = (found) => appendFileSync(process.env.AGENT_OUT, `${JSON.stringify(found)}\n`);

function command(name, run) {
  return vscode.commands.registerCommand(name, async () => {
    try {
      tell({ name, ...(await run()) });
    } catch (error) {
      tell({ name, error: error.message });
    }
  });
}

async function call(profile, name, args) {
  const { request } = vscode.extensions.getExtension("pinfold.pinfold").exports;
  const { sessions } = await request("session/list", {});
  if (!sessions.some((each) => each.sessionId === profile)) {
    const projectRoot = vscode.workspace.workspaceFolders[0].uri.fsPath;
    await request("session/open", { sessionId: profile, profile, projectRoot, backend: "editor" });
  }
  return request("tools/call", { sessionId: profile, name, arguments: args });
}

async function mode() {
  const ours = () => vscode.lm.tools.filter((tool) => /pinfold/.test(tool.name));
  const token = new vscode.CancellationTokenSource().token;
  const invoke = async (name, input) => {
    const tool = ours().find((each) => each.name.endsWith(name));
    const found = await vscode.lm.invokeTool(tool.name, { input, toolInvocationToken: undefined }, token);
    return found.content.map((part) => part.value ?? "").join("");
  };
  await new Promise((resolve) => {
    if (ours().length > 0) return resolve();
    const again = setInterval(() => ours().length > 0 && (clearInterval(again), resolve()), 100);
  });
  const file_path = process.env.AGENT_PINNED;
  const read = await invoke("read_memory", { file_path });
  const change = { file_path, old_string: "Tuesdays", new_string: "Fridays" };
  const denied = await invoke("edit", change).catch((error) => error.message);
  return { tools: ours().map((tool) => tool.name), read, denied };
}

exports.activate = (context) => {
  const active = () => vscode.window.activeTextEditor.document.uri.fsPath;
  context.subscriptions.push(
    command("agent.edit", () =>
      call("dream", "edit", { file_path: active(), old_string: "Run them all", new_string: "Run the fast ones" }),
    ),
    command("agent.intrude", () =>
      call("dream", "edit", { file_path: process.env.AGENT_PINNED, old_string: "Tuesdays", new_string: "Fridays" }),
    ),
    command("agent.mode", mode),
  );
};
