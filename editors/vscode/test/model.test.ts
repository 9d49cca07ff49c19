import assert from "node:assert/strict";
import { test } from "node:test";
import { count, type Memory, tree, wayTo } from "../src/model.ts";
import type { MemoryDocument, Root } from "../src/protocol.ts";

const root = (kind: Root["kind"]): Root => ({
  kind,
  path: `/${kind}`,
  realPath: `/${kind}`,
  writePath: `/${kind}`,
  exists: true,
  included: true,
  pinned: [`/${kind}/pinned`],
});

const topic = (kind: Root["kind"], name: string, more: Partial<MemoryDocument> = {}) => ({
  kind,
  path: `/${kind}/${name}`,
  relativePath: name,
  type: "feedback" as const,
  title: name,
  description: "",
  pinned: false,
  sizeBytes: 1,
  modified: "2026-01-01T00:00:00Z",
  ...more,
});

const memory = (more: Partial<Memory>): Memory => ({
  roots: [root("project"), root("user"), root("team")],
  topics: [],
  skipped: [],
  indexes: [],
  findings: new Map(),
  ...more,
});

test("nothing at all is an empty tree, for the welcome", () => {
  assert.deepEqual(tree(memory({})), []);
});

test("roots that hold something; the index, then types, then what is no topic", () => {
  const nodes = tree(
    memory({
      topics: [
        topic("project", "b.md", { type: "project" }),
        topic("project", "a.md"),
        topic("project", "pinned/c.md", { pinned: true }),
        topic("team", "t.md"),
      ],
      skipped: [{ kind: "project", path: "/project/x.md", reason: "no type" }],
      indexes: ["/project/MEMORY.md"],
    }),
  );
  assert.deepEqual(
    nodes.map((each) => each.root.kind),
    ["project", "team"],
  );
  const [project, team] = nodes;
  assert.deepEqual(
    project?.children.map((each) => (each.kind === "type" ? each.label : each.kind)),
    ["index", "Feedback", "About the project", "skipped"],
  );
  const feedback = project?.children[1];
  assert.ok(feedback?.kind === "type");
  assert.deepEqual(
    feedback.children.map((each) => each.path),
    ["/project/pinned/c.md", "/project/a.md"],
  );
  const shared = team?.children[0];
  assert.ok(shared?.kind === "type" && shared.children[0]?.pinnable === false);
});

test("the badge counts findings, and what agents do not read", () => {
  const findings = new Map([
    ["/project/MEMORY.md", [{ level: "error" as const, message: "dead" }]],
    ["/project/a.md", [{ level: "warning" as const, message: "twice" }]],
  ]);
  const nodes = tree(
    memory({
      topics: [topic("project", "a.md")],
      skipped: [{ kind: "user", path: "/user/x.md", reason: "no type" }],
      indexes: ["/project/MEMORY.md"],
      findings,
    }),
  );
  assert.equal(count(nodes), 3);
});

test("the way to a document, for what is selected", () => {
  const nodes = tree(memory({ topics: [topic("user", "a.md")] }));
  assert.deepEqual(
    wayTo(nodes, "/user/a.md").map((each) => each.kind),
    ["root", "type", "topic"],
  );
  assert.deepEqual(wayTo(nodes, "/user/other.md"), []);
});
