/** The settings, read. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import type { Settings } from "./options.ts";

export const SECTION = "pinfold";

/** As they stand. All are of the person or the machine, none of a workspace (package.json). */
export function readSettings(): Settings {
  const found = vscode.workspace.getConfiguration(SECTION);
  const command = String(found.get("command") ?? "").trim() || "pinfold";
  return {
    command: command.startsWith("~/") ? homedir() + command.slice(1) : command,
    profile: found.get("profile", "main"),
    memory: found.get("memory", {}),
    rules: found.get("rules", []),
    record: found.get("record", true),
    agentMode: found.get("agentMode.profile", "extraction"),
  };
}

/** The project: the first folder on this machine. Without one, home, for the person's own memory. */
export function projectFolder(): string {
  const folder = vscode.workspace.workspaceFolders?.find((each) => each.uri.scheme === "file");
  return folder?.uri.fsPath ?? homedir();
}
