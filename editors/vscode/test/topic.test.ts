import assert from "node:assert/strict";
import { test } from "node:test";
import { documentFor, entryFor, nameFor, placeFor, withEntry } from "../src/topic.ts";

const NAMES: [string, string][] = [
  ["Releases are cut on Tuesdays", "releases-are-cut-on-tuesdays.md"],
  ["  ../../etc/passwd  ", "etc-passwd.md"],
  ["C++ & Rust!", "c-rust.md"],
  ["Größe in Zoll", "größe-in-zoll.md"],
  ["日本語のメモ", "日本語のメモ.md"],
  ["…", "topic.md"],
  ["MEMORY", "memory.md"],
  ["a".repeat(200), `${"a".repeat(60)}.md`],
  ["😀 smile\u0000\n", "smile.md"],
];

for (const [title, expected] of NAMES) {
  test(`a name for ${JSON.stringify(title).slice(0, 40)}`, () =>
    assert.equal(nameFor(title), expected));
}

test("a document is valid: frontmatter of single lines, whatever the title", () => {
  const text = documentFor({ type: "feedback", title: "two\nlines\n---\ntype: evil" });
  assert.equal(
    text,
    "---\nname: two lines --- type: evil\ndescription: two lines --- type: evil\ntype: feedback\n---\n\n",
  );
});

test("an entry is one link, whatever the title", () => {
  const wish = { type: "user", title: "a [b](c)\nd" } as const;
  assert.equal(entryFor(wish), `- [a (b)(c) d](${placeFor(wish)})`);
});

const INDEXES: [string, string][] = [
  ["", "E\n"],
  ["# M\n", "# M\nE\n"],
  ["# M", "# M\nE\n"],
];

for (const [before, after] of INDEXES) {
  test(`an entry goes to the end of ${JSON.stringify(before)}`, () =>
    assert.equal(withEntry(before, "E"), after));
}
