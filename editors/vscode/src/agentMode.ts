/** The gateway offered to VS Code's own agents, as an MCP server. */

import { createHash } from "node:crypto";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import * as vscode from "vscode";
import type { Gateway } from "./gateway.ts";
import { agentArguments, agentConfig } from "./options.ts";
import { projectFolder } from "./settings.ts";

const PROVIDER = "pinfold.agentMode";

/** Offer it as the setting says, and again when the settings change. `config` is where it finds its
 * roots, rules and record: a file of the person's, never of the project's. */
export function offerToAgents(gateway: Gateway, config: string, record: string): vscode.Disposable {
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.McpServerDefinitionProvider<vscode.McpStdioServerDefinition> = {
    onDidChangeMcpServerDefinitions: changed.event,
    provideMcpServerDefinitions: () => definitions(gateway, config, record),
    resolveMcpServerDefinition: async (definition) => {
      await write(config, agentConfig(gateway.settings, record));
      return definition;
    },
  };
  return vscode.Disposable.from(
    changed,
    gateway.onDidChangeCondition((condition) => condition === "running" && changed.fire()),
    vscode.lm.registerMcpServerDefinitionProvider(PROVIDER, provider),
  );
}

function definitions(
  gateway: Gateway,
  config: string,
  record: string,
): vscode.McpStdioServerDefinition[] {
  const { agentMode, command } = gateway.settings;
  if (agentMode === "off" || gateway.condition !== "running") return [];
  const args = agentArguments(agentMode, projectFolder(), config);
  // A server that runs by an older configuration is out of date.
  const text = agentConfig(gateway.settings, record);
  const version = createHash("sha256").update(text).digest("hex").slice(0, 12);
  return [new vscode.McpStdioServerDefinition("pinfold", command, args, {}, version)];
}

async function write(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, text, { mode: 0o600 });
  await chmod(path, 0o600);
}
