/** What the settings become: options for the connection, and the configuration of agent mode. */

import type { AuditOptions, MemoryOptions, RuleSpec, ScopePatch } from "./protocol.ts";

export type Profile = "main" | "extraction" | "dream" | "remember";

/** The settings as a person made them. None of them can come from a project. */
export interface Settings {
  command: string;
  profile: Profile;
  memory: MemoryOptions;
  rules: RuleSpec[];
  record: boolean;
  agentMode: Profile | "off";
}

/** The person's own session, as the gateway calls it. */
export const OWN_SESSION = "editor";

const RECORD: AuditOptions = { maxBytes: 1024 * 1024, keep: 1 };

interface Shared {
  memory?: MemoryOptions;
  rules?: RuleSpec[];
  audit?: AuditOptions;
}

/** What both doors are told: roots, rules, and where the record is, if there is one. VS Code does not
 * keep anybody from settings of a wrong type. They are handed on as they are: the gateway refuses them,
 * and a rule that is misspelt is not a rule less. */
function shared({ memory, rules, ...settings }: Settings, record: string): Shared {
  return {
    ...(!isEmpty(memory) && { memory }),
    ...(!isEmpty(rules) && { rules }),
    ...(settings.record && { audit: { path: record, ...RECORD } }),
  };
}

function isEmpty(value: unknown): boolean {
  return value == null || (typeof value === "object" && Object.keys(value).length === 0);
}

/** `initializationOptions`. `folder`: the absolute path of the project. */
export function initializationOptions(settings: Settings, folder: string, record: string) {
  const session = { sessionId: OWN_SESSION, profile: settings.profile, projectRoot: folder };
  return { pinfold: { ...shared(settings, record), session } };
}

/** The arguments of `pinfold` for agent mode; `config` is the path of the file below. */
export function agentArguments(profile: Profile, folder: string, config: string): string[] {
  return ["serve", "--profile", profile, "--project", folder, "--config", config];
}

/** The text of the configuration of agent mode. The profile says where it may write; `pinned/` it
 * may change in none, since the person pins and unpins here. */
export function agentConfig(settings: Settings, record: string): string {
  const scope: ScopePatch = { protectPinned: true };
  return `${JSON.stringify({ ...shared(settings, record), scope }, null, 2)}\n`;
}

/** What the gateway says of our options, said of the settings that they came from. */
export function asSettings(message: string): string {
  return message
    .replace(/^Invalid params: /, "")
    .replace("initializationOptions.pinfold.", "pinfold.");
}
