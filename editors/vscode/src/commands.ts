/** What a person can do to a document, from the tree, a lens, the palette or an editor. */

import * as vscode from "vscode";
import type { Middleware } from "vscode-languageclient/node";
import type { Gateway } from "./gateway.ts";
import type { Node } from "./model.ts";
import type { Decision } from "./protocol.ts";

const PIN = "pinfold.pin";
const UNPIN = "pinfold.unpin";
const EXPLAIN = "pinfold.explain";

interface Explanation {
  path: string;
  profiles: Record<string, Decision>;
}

/** The server's commands, wherever they come from: refusals are shown with their reason, and what
 * `explain` answers as a list, since a message has no lines here. */
export const served: Middleware["executeCommand"] = async (command, args, next) => {
  try {
    if (command !== EXPLAIN) return await next(command, args);
    const told: Explanation = await next(command, [{ ...args[0], show: false }]);
    await showExplanation(told);
    return told;
  } catch (error) {
    void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
    return undefined;
  }
};

async function showExplanation({ path, profiles }: Explanation): Promise<void> {
  const items = Object.entries(profiles).map(([name, { decision, reason }]) => ({
    label: `$(${decision === "allow" ? "check" : "circle-slash"}) ${name}`,
    description: decision === "allow" ? "may change it" : "may not change it",
    ...(decision !== "allow" && { detail: reason }),
  }));
  const title = `Who may change ${path.slice(path.lastIndexOf("/") + 1)}?`;
  await vscode.window.showQuickPick(items, { title, placeHolder: "By the profile of the session" });
}

/** Our commands by name. Each takes a node of the tree; without one it is about the open document. */
export function documentCommands(gateway: Gateway): Record<string, (node?: Node) => unknown> {
  const ask = (command: string) => (node?: Node) => onDocument(gateway, command, node);
  return {
    "pinfold.memory.pin": ask(PIN),
    "pinfold.memory.unpin": ask(UNPIN),
    "pinfold.memory.explain": ask(EXPLAIN),
    "pinfold.memory.reveal": reveal,
  };
}

async function onDocument(gateway: Gateway, command: string, node?: Node): Promise<void> {
  const uri = uriOf(node);
  if (!uri) {
    void vscode.window.showInformationMessage("Open a memory document first.");
  } else if (gateway.condition === "running") {
    await vscode.commands.executeCommand(command, { uri: uri.toString() });
  } else {
    await vscode.commands.executeCommand("pinfold.showTrouble");
  }
}

function uriOf(node?: Node): vscode.Uri | undefined {
  if (node) return "path" in node ? vscode.Uri.file(node.path) : undefined;
  return vscode.window.activeTextEditor?.document.uri;
}

/** In the explorer where it is in a folder that is open, else in the system's file manager; a browser
 * has none, and gets the path. */
async function reveal(node?: Node): Promise<void> {
  const uri = node?.kind === "root" ? vscode.Uri.file(node.root.path) : uriOf(node);
  if (!uri) return;
  if (vscode.workspace.getWorkspaceFolder(uri)) {
    await vscode.commands.executeCommand("revealInExplorer", uri);
  } else if (vscode.env.uiKind === vscode.UIKind.Desktop && !vscode.env.remoteName) {
    await vscode.commands.executeCommand("revealFileInOS", uri);
  } else {
    await vscode.env.clipboard.writeText(uri.fsPath);
    void vscode.window.showInformationMessage(
      `Outside of this workspace; path copied: ${uri.fsPath}`,
    );
  }
}
