/** The tree of memory: the gateway's answers in, nodes out. Pure. */

import type { MemoryDocument, Root, SkippedDocument } from "./protocol.ts";

/** Something that is wrong with a document, in the gateway's words. */
export interface Finding {
  level: "error" | "warning";
  message: string;
}

export interface RootNode {
  kind: "root";
  root: Root;
  children: Node[];
}

export interface TypeNode {
  kind: "type";
  label: string;
  children: TopicNode[];
}

export interface IndexNode {
  kind: "index";
  path: string;
  findings: Finding[];
}

export interface TopicNode {
  kind: "topic";
  topic: MemoryDocument;
  path: string;
  /** Only in these roots does `pinned/` mean something. */
  pinnable: boolean;
  findings: Finding[];
}

export interface SkippedNode {
  kind: "skipped";
  skipped: SkippedDocument;
  path: string;
}

export type Node = RootNode | TypeNode | IndexNode | TopicNode | SkippedNode;

/** What the gateway told. `findings`: by absolute path; `indexes`: the paths of `MEMORY.md`s. */
export interface Memory {
  roots: Root[];
  topics: MemoryDocument[];
  skipped: SkippedDocument[];
  indexes: string[];
  findings: ReadonlyMap<string, Finding[]>;
}

const TYPES: Record<MemoryDocument["type"], string> = {
  user: "About the person",
  feedback: "Feedback",
  project: "About the project",
  reference: "References",
};

export const ROOT_NAMES: Record<Root["kind"], string> = {
  project: "Project memory",
  user: "Your memory",
  team: "Team memory",
};

/** The roots that hold anything; none of them is what the welcome is for. */
export function tree(memory: Memory): RootNode[] {
  return memory.roots
    .map((root): RootNode => ({ kind: "root", root, children: children(memory, root) }))
    .filter((each) => each.children.length > 0);
}

function children(memory: Memory, root: Root): Node[] {
  const told = (path: string) => memory.findings.get(path) ?? [];
  const index = indexOf(root);
  const types = Object.entries(TYPES).map(
    ([type, label]): TypeNode => ({
      kind: "type",
      label,
      children: memory.topics
        .filter((each) => each.kind === root.kind && each.type === type)
        .toSorted((a, b) => Number(b.pinned) - Number(a.pinned))
        .map((topic) => ({
          kind: "topic",
          topic,
          path: topic.path,
          pinnable: root.kind !== "team",
          findings: told(topic.path),
        })),
    }),
  );
  const skipped = memory.skipped
    .filter((each) => each.kind === root.kind)
    .map((each): SkippedNode => ({ kind: "skipped", skipped: each, path: each.path }));
  return [
    ...(memory.indexes.includes(index)
      ? [{ kind: "index", path: index, findings: told(index) } satisfies IndexNode]
      : []),
    ...types.filter((each) => each.children.length > 0),
    ...skipped,
  ];
}

/** The path of a root's index. */
export function indexOf(root: Root): string {
  return `${root.path}/MEMORY.md`;
}

/** How many things are wrong: what the badge counts. */
export function count(nodes: readonly Node[]): number {
  return nodes.reduce((sum, each) => sum + own(each), 0);
}

function own(node: Node): number {
  switch (node.kind) {
    case "root":
    case "type":
      return count(node.children);
    case "skipped":
      return 1;
    default:
      return node.findings.length;
  }
}

/** The node of a document, and those above it, the root first; [] if it is not in the tree. */
export function wayTo(nodes: readonly Node[], path: string): Node[] {
  for (const node of nodes) {
    if ("path" in node && node.path === path) return [node];
    const below = "children" in node ? wayTo(node.children, path) : [];
    if (below.length > 0) return [node, ...below];
  }
  return [];
}
