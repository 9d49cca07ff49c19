/** Everything is made and joined here; what each part does, it does in its own module. */

import { join } from "node:path";
import * as vscode from "vscode";
import { offerToAgents } from "./agentMode.ts";
import { documentCommands, served } from "./commands.ts";
import { Gateway } from "./gateway.ts";
import { newTopic, PERSON } from "./newTopic.ts";
import { OWN_SESSION } from "./options.ts";
import type { Requests, Sent } from "./protocol.ts";
import { SECTION } from "./settings.ts";
import { Status } from "./status.ts";
import { INSTALL, showTrouble } from "./trouble.ts";
import { MemoryView } from "./view.ts";

/** For other extensions that have agents: the contract on this window's own connection, where
 * `session/open` with `backend: "editor"` sees and changes what is open. Sessions end when the
 * gateway is restarted; `request` rejects then. */
export interface PinfoldApi {
  request<M extends keyof Requests>(
    method: M,
    params: Requests[M]["params"],
    token?: vscode.CancellationToken,
  ): Promise<Requests[M]["result"]>;
  readonly onDidChangeMemory: vscode.Event<Sent["memory/didChange"]["params"]>;
}

export function activate(context: vscode.ExtensionContext): PinfoldApi {
  const storage = (context.storageUri ?? context.globalStorageUri).fsPath;
  const record = join(storage, "record.jsonl");
  const gateway = new Gateway(record, served);
  const status = new Status(gateway, record, new Set([OWN_SESSION, PERSON]));
  const commands: Record<string, (...given: never[]) => unknown> = {
    ...documentCommands(gateway),
    "pinfold.restart": () => gateway.restart(),
    "pinfold.showOutput": () => gateway.output.show(),
    "pinfold.showDenials": () => status.showDenials(),
    "pinfold.showTrouble": () => showTrouble(gateway),
    "pinfold.copyInstallLine": () => vscode.env.clipboard.writeText(INSTALL),
    "pinfold.newTopic": () => newTopic(gateway),
  };
  context.subscriptions.push(
    gateway,
    status,
    new MemoryView(gateway),
    offerToAgents(gateway, join(storage, "agent-mode.json"), record),
    ...Object.entries(commands).map(([name, run]) => vscode.commands.registerCommand(name, run)),
    gateway.onDidChangeCondition(
      (now) => (now === "missing" || now === "failed") && void showTrouble(gateway),
    ),
    vscode.workspace.onDidChangeConfiguration(
      (change) => change.affectsConfiguration(SECTION) && gateway.restart(),
    ),
    vscode.workspace.onDidChangeWorkspaceFolders(() => gateway.restart()),
  );
  status.follow(record).catch((error) => gateway.output.warn(`the record: ${String(error)}`));
  void gateway.restart();
  return {
    request: (method, params, token) => gateway.request(method, params, token),
    onDidChangeMemory: gateway.onDidChangeMemory,
  };
}
