/** The status item: what agents did, and what they were denied. Quiet until something is. */

import { type FSWatcher, watch } from "node:fs";
import { mkdir } from "node:fs/promises";
import { basename, dirname } from "node:path";
import * as vscode from "vscode";
import type { Condition, Gateway } from "./gateway.ts";
import { type Entry, entries, Ledger, reason, type Tally } from "./record.ts";
import { Tail } from "./tail.ts";

/** How many names of a path are shown. */
const SHOWN = 3;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem(
    "pinfold.status",
    vscode.StatusBarAlignment.Right,
    90,
  );
  private readonly gateway: Gateway;
  private readonly ledger: Ledger;
  private readonly tail: Tail;
  private readonly subscription: vscode.Disposable;
  private watcher: FSWatcher | undefined;
  private unseen = 0;
  private first = true;

  /** `record`: the file of decisions; `own`: the sessions that are no agent's. */
  constructor(gateway: Gateway, record: string, own: ReadonlySet<string>) {
    this.gateway = gateway;
    this.ledger = new Ledger(own);
    this.tail = new Tail(record);
    this.item.name = "pinfold";
    this.subscription = gateway.onDidChangeCondition(() => this.draw());
    this.draw();
    this.item.show();
  }

  /** Look at what is recorded already, then follow it. */
  async follow(record: string): Promise<void> {
    const folder = dirname(record);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await this.look();
    this.watcher = watch(folder, (_, name) => {
      if (!name || name.startsWith(basename(record))) void this.look();
    });
    this.watcher.on("error", (error) => this.gateway.output.warn(`the record: ${error.message}`));
  }

  /** The last denials with their reasons. Choosing one opens the document. */
  async showDenials(): Promise<void> {
    await this.look();
    const shown = this.unseen;
    const picked = await vscode.window.showQuickPick(denialItems(this.ledger.denials), {
      title: "What agents were denied, newest first",
      placeHolder: this.ledger.denials.length ? "Choose one to open the document" : this.nothing(),
      matchOnDescription: true,
      matchOnDetail: true,
    });
    this.unseen = Math.max(0, this.unseen - shown);
    this.draw();
    if (picked?.path)
      await vscode.commands.executeCommand("vscode.open", vscode.Uri.file(picked.path));
  }

  dispose(): void {
    this.watcher?.close();
    this.subscription.dispose();
    this.item.dispose();
  }

  private async look(): Promise<void> {
    try {
      const found = entries(await this.tail.next());
      this.unseen += this.ledger.add(found, this.first);
      this.first = false;
      if (found.length > 0) this.draw();
    } catch (error) {
      this.gateway.output.warn(`the record could not be read: ${String(error)}`);
    }
  }

  private nothing(): string {
    return this.gateway.settings.record
      ? "Nothing was denied"
      : "Not recorded: the setting pinfold.record is off";
  }

  private draw(): void {
    const trouble = TROUBLES[this.gateway.condition];
    const { item, unseen } = this;
    item.text = trouble ? `$(shield) pinfold: ${trouble}` : working(this.ledger, unseen);
    item.command = trouble ? "pinfold.showTrouble" : "pinfold.showDenials";
    const warn = unseen > 0 && !trouble;
    item.backgroundColor = warn
      ? new vscode.ThemeColor("statusBarItem.warningBackground")
      : undefined;
    item.tooltip = trouble ? "Show what is wrong" : tooltip(this.ledger);
    item.accessibilityInformation = { label: `pinfold, ${trouble ?? item.tooltip}` };
  }
}

const TROUBLES: Partial<Record<Condition, string>> = {
  missing: "not installed",
  failed: "does not start",
  stopped: "stopped",
};

function working({ sessions }: Ledger, unseen: number): string {
  const running = sessions.size ? ` ${plural(sessions.size, "session")}` : "";
  return `$(shield)${running}${unseen ? `  $(circle-slash) ${unseen} denied` : ""}`;
}

function tooltip({ sessions }: Ledger): string {
  if (sessions.size === 0) return "pinfold: no agent has asked for anything in this window yet";
  const told = [...sessions].map(([name, tally]) => `${nameOf(name)}: ${inWords(tally)}`);
  return ["pinfold: agents in this window", ...told, "Click for what was denied, and why"].join(
    "\n",
  );
}

function inWords({ calls, denials }: Tally): string {
  return `${plural(calls, "call")}, ${denials} denied`;
}

function plural(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? "" : "s"}`;
}

/** What the gateway calls the one session of an MCP connection. */
const AGENT_MODE = "connection";

function nameOf(session: string): string {
  return session === AGENT_MODE ? "agent mode" : session;
}

interface DenialItem extends vscode.QuickPickItem {
  path?: string | undefined;
}

function denialItems(denials: readonly Entry[]): DenialItem[] {
  return denials.map((each) => {
    const path = each.realPath ?? each.path ?? undefined;
    const when = new Date(each.time).toLocaleTimeString();
    return {
      label: `$(circle-slash) ${each.tool} ${each.path ? short(each.path) : ""}`,
      description: `${nameOf(each.session)}, ${when}`,
      detail: reason(each),
      path,
    };
  });
}

/** The end of a path, which tells more than its beginning. */
function short(path: string): string {
  const parts = path.split("/");
  return parts.length > SHOWN + 1 ? `…/${parts.slice(-SHOWN).join("/")}` : path;
}
