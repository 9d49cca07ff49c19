/** The tree of memory: what it shows, and when it looks again. */

import { isDeepStrictEqual } from "node:util";
import * as vscode from "vscode";
import { existing, Findings } from "./findings.ts";
import type { Gateway } from "./gateway.ts";
import {
  count,
  indexOf,
  type Memory,
  type Node,
  ROOT_NAMES,
  type RootNode,
  tree,
  wayTo,
} from "./model.ts";
import { OWN_SESSION } from "./options.ts";
import type { Root } from "./protocol.ts";

export const VIEW = "pinfold.memory";
const PAUSE_MILLISECONDS = 150;
const MOST_TOPICS = 2000;

export class MemoryView implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  private roots: Root[] = [];
  private nodes: RootNode[] = [];
  private readonly gateway: Gateway;
  private readonly findings: Findings;
  private readonly view: vscode.TreeView<Node>;
  private readonly changed = new vscode.EventEmitter<undefined>();
  readonly onDidChangeTreeData = this.changed.event;
  private readonly subscriptions: vscode.Disposable[] = [];
  private watchers: vscode.Disposable[] = [];
  private watched = "";
  private timer: NodeJS.Timeout | undefined;
  private looking = Promise.resolve();

  constructor(gateway: Gateway) {
    this.gateway = gateway;
    this.findings = new Findings(gateway);
    this.view = vscode.window.createTreeView(VIEW, { treeDataProvider: this });
    const soon = () => this.soon();
    this.subscriptions.push(
      this.view,
      gateway.onDidChangeCondition(() => this.refresh()),
      gateway.onDidChangeMemory(soon),
      vscode.workspace.onDidSaveTextDocument(({ uri }) => this.isMemory(uri) && soon()),
      vscode.languages.onDidChangeDiagnostics(
        ({ uris }) => uris.some((uri) => this.isMemory(uri)) && soon(),
      ),
      vscode.window.onDidChangeActiveTextEditor(() => this.follow()),
      this.view.onDidChangeVisibility(() => this.follow()),
    );
  }

  /** Look again: a change of what is there is seen when this is over. */
  refresh(): Promise<void> {
    this.looking = this.looking.catch(() => undefined).then(() => this.look());
    return this.looking;
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return itemOf(node);
  }

  getChildren(node?: Node): Node[] {
    if (!node) return this.nodes;
    return "children" in node ? node.children : [];
  }

  getParent(node: Node): Node | undefined {
    const path = "path" in node ? node.path : undefined;
    if (path !== undefined) return wayTo(this.nodes, path).at(-2);
    return this.nodes.find(({ children }) => children.includes(node));
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const each of [...this.watchers, ...this.subscriptions]) each.dispose();
  }

  private isMemory({ scheme, fsPath }: vscode.Uri): boolean {
    return scheme === "file" && this.roots.some(({ path }) => fsPath.startsWith(`${path}/`));
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refresh(), PAUSE_MILLISECONDS);
  }

  private async look(): Promise<void> {
    const { condition } = this.gateway;
    if (condition === "running") {
      try {
        this.show(await this.gather());
        this.view.message = undefined;
      } catch (error) {
        this.view.message = `Memory could not be listed. ${messageOf(error)}`;
        this.gateway.output.warn(this.view.message);
      }
    } else if (condition !== "starting") {
      this.show({ roots: [], topics: [], skipped: [], indexes: [], findings: new Map() });
    }
    await vscode.commands.executeCommand("setContext", "pinfold.condition", condition);
  }

  private async gather(): Promise<Memory> {
    const sessionId = OWN_SESSION;
    const [{ roots }, index] = await Promise.all([
      this.gateway.request("memory/roots", { sessionId }),
      this.gateway.request("memory/index", { sessionId, limit: MOST_TOPICS }),
    ]);
    this.roots = roots;
    this.watch();
    const { documents: topics, skipped } = index;
    const indexes = await existing(roots.map(indexOf));
    const stamps = new Map(topics.map((each) => [each.path, `${each.modified} ${each.sizeBytes}`]));
    const findings = await this.findings.of(stamps, indexes);
    return { roots, topics, skipped, indexes, findings };
  }

  private show(memory: Memory): void {
    const nodes = tree(memory);
    if (isDeepStrictEqual(nodes, this.nodes)) return;
    this.nodes = nodes;
    const wrong = count(this.nodes);
    this.view.badge = wrong
      ? {
          value: wrong,
          tooltip: wrong === 1 ? "1 finding in memory" : `${wrong} findings in memory`,
        }
      : undefined;
    this.changed.fire(undefined);
    this.follow();
  }

  /** Other programs write there too. A root need not exist to be watched. */
  private watch(): void {
    const paths = this.roots.map((each) => each.path);
    if (paths.join("\n") === this.watched) return;
    this.watched = paths.join("\n");
    for (const each of this.watchers) each.dispose();
    this.watchers = paths.flatMap((path) => {
      const pattern = new vscode.RelativePattern(vscode.Uri.file(path), "**/*.md");
      const watcher = vscode.workspace.createFileSystemWatcher(pattern);
      const soon = () => this.soon();
      return [
        watcher,
        watcher.onDidCreate(soon),
        watcher.onDidChange(soon),
        watcher.onDidDelete(soon),
      ];
    });
  }

  /** The document that is edited is the one that is selected. */
  private follow(): void {
    const path = vscode.window.activeTextEditor?.document.uri.fsPath;
    const node = path && this.view.visible ? wayTo(this.nodes, path).at(-1) : undefined;
    if (node)
      this.view.reveal(node, { select: true, focus: false }).then(undefined, () => undefined);
  }
}

function itemOf(node: Node): vscode.TreeItem {
  const { None, Expanded } = vscode.TreeItemCollapsibleState;
  switch (node.kind) {
    case "root": {
      const item = new vscode.TreeItem(ROOT_NAMES[node.root.kind], Expanded);
      item.id = node.root.kind;
      item.tooltip = node.root.path;
      item.contextValue = "root";
      return item;
    }
    case "type": {
      const item = new vscode.TreeItem(node.label, Expanded);
      item.contextValue = "type";
      return item;
    }
    case "index":
      return document(new vscode.TreeItem("MEMORY.md", None), node.path, "index", node.findings, {
        icon: "list-unordered",
        told: "what agents are shown first",
      });
    case "skipped": {
      const item = new vscode.TreeItem(basename(node.path), None);
      const finding = { level: "error", message: node.skipped.reason } as const;
      return document(item, node.path, "skipped", [finding], { icon: "note", told: "" });
    }
    case "topic": {
      const { topic, pinnable } = node;
      const context = pinnable ? (topic.pinned ? "topic.pinned" : "topic.free") : "topic.team";
      return document(new vscode.TreeItem(topic.title, None), node.path, context, node.findings, {
        icon: topic.pinned ? "pinned" : "note",
        told: topic.description === topic.title ? "" : topic.description,
        more: topic.pinned ? "Pinned: automated maintenance can read it and cannot change it." : "",
      });
    }
  }
}

interface Looks {
  icon: string;
  told: string;
  more?: string;
}

function document(
  item: vscode.TreeItem,
  path: string,
  context: string,
  findings: readonly { level: string; message: string }[],
  looks: Looks,
): vscode.TreeItem {
  const [worst] = findings.toSorted((a, b) => a.level.localeCompare(b.level));
  const wrong = worst && new vscode.ThemeColor(`list.${worst.level}Foreground`);
  item.contextValue = context;
  item.description = worst ? worst.message : looks.told;
  item.iconPath = wrong
    ? new vscode.ThemeIcon(worst.level, wrong)
    : new vscode.ThemeIcon(looks.icon);
  const lines = [path, looks.more, ...findings.map((each) => each.message)];
  item.tooltip = lines.filter(Boolean).join("\n\n");
  item.command = {
    command: "vscode.open",
    title: "Open",
    arguments: [vscode.Uri.file(path), { preview: true }],
  };
  return item;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function basename(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
