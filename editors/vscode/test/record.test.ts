import assert from "node:assert/strict";
import { test } from "node:test";
import { type Entry, entries, Ledger, MOST_DENIALS, reason } from "../src/record.ts";

const line = (more: Partial<Entry> = {}): Entry => ({
  time: "2026-01-01T12:00:00.000Z",
  session: "agent",
  tool: "edit",
  path: "/m/pinned/a.md",
  realPath: "/m/pinned/a.md",
  rule: "pinned",
  match: "literal",
  outcome: "denied",
  ...more,
});

test("whole lines are entries, and what is none is passed over", () => {
  const good = line();
  const bad = [
    "",
    "not JSON",
    "null",
    "[]",
    "7",
    '{"time":"2026-01-01T12:00:00.000Z","lost":3}',
    JSON.stringify({ ...good, tool: 3 }),
    JSON.stringify({ ...good, path: ["a"] }),
  ];
  assert.deepEqual(entries([...bad, JSON.stringify(good), ...bad].join("\n")), [good]);
  assert.deepEqual(
    entries(JSON.stringify(line({ path: null, realPath: null, rule: null }))).length,
    1,
  );
});

test("a ledger counts calls and denials of each session, and nothing of the person's own", () => {
  const ledger = new Ledger(new Set(["editor"]));
  const found = [
    line({ outcome: "done" }),
    line(),
    line({ session: "editor" }),
    line({ session: "other", outcome: "failed:stale" }),
    line({ session: "third", outcome: "explained" }),
  ];
  assert.equal(ledger.add(found, false), 1);
  assert.deepEqual(Object.fromEntries(ledger.sessions), {
    agent: { calls: 2, denials: 1 },
    other: { calls: 1, denials: 0 },
  });
});

test("what was there before this window is remembered and counts for nothing", () => {
  const ledger = new Ledger(new Set());
  assert.equal(ledger.add([line({ path: "/old" })], true), 0);
  assert.equal(ledger.add([line({ path: "/1" }), line({ path: "/2" })], false), 2);
  assert.deepEqual(
    ledger.denials.map((each) => each.path),
    ["/2", "/1", "/old"],
  );
  assert.deepEqual([...ledger.sessions.values()], [{ calls: 2, denials: 2 }]);
});

test("only so many denials are remembered, the newest", () => {
  const ledger = new Ledger(new Set());
  const many = Array.from({ length: MOST_DENIALS + 7 }, (_, index) => line({ path: `/${index}` }));
  assert.equal(ledger.add(many, false), MOST_DENIALS + 7);
  assert.equal(ledger.denials.length, MOST_DENIALS);
  assert.equal(ledger.denials[0]?.path, `/${MOST_DENIALS + 6}`);
});

const REASONS: [Partial<Entry>, RegExp][] = [
  [{}, /^Pinned memory: .* never change it$/],
  [{ match: "resolved" }, /Pinned .*through a link/],
  [{ match: "identity" }, /Pinned .*another name/],
  [{ match: "hard-link" }, /Pinned .*hard link/],
  [{ rule: "outside-memory", match: null }, /^Outside of the memory/],
  [{ rule: "base-rule", match: null }, /^A rule/],
  [{ rule: "shell", match: null }, /command/],
  [{ rule: "unknown-tool", match: null }, /tool/],
  [{ rule: "of a later version", match: null }, /^Not allowed/],
  [{ rule: null, match: null }, /^Not allowed/],
];

for (const [more, expected] of REASONS) {
  test(`a reason in words: ${more.rule ?? "pinned"} ${more.match ?? ""}`, () => {
    assert.match(reason(line(more)), expected);
  });
}
