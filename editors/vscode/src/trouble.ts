/** What a person is told when there is no gateway, and what can be done about it. */

import * as vscode from "vscode";
import type { Gateway } from "./gateway.ts";
import { SECTION } from "./settings.ts";

/** The line that installs it, in the folder of its sources. It is in no registry under its name yet,
 * and whoever takes that name there must not be what people install because of us. */
export const INSTALL = "pipx install .";

/** Told once for each time that it goes wrong; what can be done about it stays in the tree. */
export async function showTrouble(gateway: Gateway): Promise<void> {
  const { condition, settings } = gateway;
  if (condition === "missing") await missing(settings.command);
  else if (condition === "failed" || condition === "stopped") await failed(gateway);
}

async function missing(command: string): Promise<void> {
  const message = `pinfold is not installed: there is no program "${command}". In the folder of its sources: ${INSTALL}`;
  const copy = "Copy This Line";
  const set = "Set Its Path";
  const again = "Try Again";
  const chosen = await vscode.window.showErrorMessage(message, copy, set, again);
  if (chosen === copy) await vscode.env.clipboard.writeText(INSTALL);
  if (chosen === set) await openSettings("command");
  if (chosen === again) await vscode.commands.executeCommand("pinfold.restart");
}

async function failed(gateway: Gateway): Promise<void> {
  const show = "Show Output";
  const set = "Open Settings";
  const again = "Restart";
  const message = `pinfold does not run: ${gateway.problem || "its output may say why"}`;
  const chosen = await vscode.window.showErrorMessage(message, show, set, again);
  if (chosen === show) gateway.output.show();
  if (chosen === set) await openSettings("");
  if (chosen === again) await vscode.commands.executeCommand("pinfold.restart");
}

function openSettings(name: string): Thenable<unknown> {
  const query = name ? `${SECTION}.${name}` : SECTION;
  return vscode.commands.executeCommand("workbench.action.openSettings", query);
}
