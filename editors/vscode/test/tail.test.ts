import assert from "node:assert/strict";
import { appendFile, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Tail } from "../src/tail.ts";

async function file(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "pinfold-tail-"));
  context.after(() => rm(folder, { recursive: true }));
  return join(folder, "record.jsonl");
}

test("what is appended is read once, and a line only when it is whole", async (context) => {
  const path = await file(context);
  const tail = new Tail(path);
  assert.equal(await tail.next(), "");
  await writeFile(path, "a\nb");
  assert.equal(await tail.next(), "a\n");
  assert.equal(await tail.next(), "");
  await appendFile(path, "c\nd\n");
  assert.equal(await tail.next(), "bc\nd\n");
});

test("a rotation loses nothing", async (context) => {
  const path = await file(context);
  const tail = new Tail(path);
  await writeFile(path, "a\n");
  assert.equal(await tail.next(), "a\n");
  await appendFile(path, "b\n");
  await rename(path, `${path}.1`);
  await writeFile(path, "c\n");
  assert.equal(await tail.next(), "b\nc\n");
  assert.equal(await tail.next(), "");
});

test("a rotation that left no new file yet", async (context) => {
  const path = await file(context);
  const tail = new Tail(path);
  await writeFile(path, "a\n");
  assert.equal(await tail.next(), "a\n");
  await appendFile(path, "b\n");
  await rename(path, `${path}.1`);
  assert.equal(await tail.next(), "b\n");
  await writeFile(path, "c\n");
  assert.equal(await tail.next(), "c\n");
});

test("a file that was emptied begins anew", async (context) => {
  const path = await file(context);
  const tail = new Tail(path);
  await writeFile(path, "a long line\n");
  await tail.next();
  await writeFile(path, "b\n");
  assert.equal(await tail.next(), "b\n");
});

test("of a large file only the end is read at first", async (context) => {
  const path = await file(context);
  await writeFile(path, `${"x".repeat(99)}\n`.repeat(5000));
  assert.equal(Math.ceil((await new Tail(path).next()).length / 1024), 256);
});

test("looks at the same time read each line once", async (context) => {
  const path = await file(context);
  const tail = new Tail(path);
  await writeFile(path, "a\nb\n");
  const found = await Promise.all([tail.next(), tail.next(), tail.next()]);
  assert.equal(found.join(""), "a\nb\n");
});
