// A person's walk through the real VS Code. Each part goes on where the one before it ended.
import assert from "node:assert/strict";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { gatewayBelow, lines, makeHome, openWorkbench } from "./workbench.mjs";

const PINFOLD = process.env.PINFOLD;
const topic = (name, type, description, body = "") =>
  `---\nname: ${name}\ndescription: ${description}\ntype: ${type}\n---\n\n${body}`;
const memoryOf = (home) => `.qwen/projects/${join(home, "shop").replace(/[^A-Za-z0-9]/g, "-")}/memory`;
const exists = (path) => access(path).then(() => true, () => false);

/** The memory that the walk begins with. */
async function fill(home) {
  const files = {
    "MEMORY.md": `# Memory

- [The old importer](project/importer.md) — why it is still there
- [Releases on Tuesdays](pinned/releases.md) — never on a Friday
- [Tests before a push](feedback/tests.md) — all of them
`,
    "pinned/releases.md": topic("Releases on Tuesdays", "feedback", "never on a Friday", "Releases are cut on Tuesdays, after the stand-up.\n"),
    "feedback/tests.md": topic("Tests before a push", "feedback", "all of them", "Run them all before a push.\nA flaky test is a bug.\n"),
    "project/prices.md": topic("Prices are in cents", "project", "whole numbers everywhere", "A price is a whole number of cents.\n"),
    "project/stock.md": topic("Stock is counted at night", "projects", "by the warehouse", "At two o'clock.\n"),
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(home, memoryOf(home), name);
    await mkdir(join(path, ".."), { recursive: true });
    await writeFile(path, text);
  }
  return join(home, memoryOf(home));
}

/** A walk's steps: what follows one that failed means nothing, and its picture is kept. */
function steps(bench) {
  let failed = false;
  return (name, run) =>
    test(name, async (context) => {
      if (failed) return context.skip("an earlier step failed");
      try {
        return await run();
      } catch (error) {
        failed = true;
        await bench()?.picture(`failed-${name.replace(/\W+/g, "-").slice(0, 40)}`);
        throw error;
      }
    });
}

describe("a project with memory", () => {
  let bench, memory, told;
  const step = steps(() => bench);
  const outcome = (name) => bench.until(`what came of ${name}`, async () => (await lines(told)).find((each) => each.name === name), 60_000);
  const disk = (name) => readFile(join(memory, name), "utf8");

  before(async () => {
    const home = await makeHome({ ".qwen/memories/editor.md": topic("Works in the evening", "user", "answers come late", "\n") });
    memory = await fill(home);
    told = join(home, "agent.jsonl");
    const env = { AGENT_OUT: told, AGENT_PINNED: join(memory, "pinned/releases.md") };
    bench = await openWorkbench(home, { "pinfold.command": PINFOLD }, env);
  }, { timeout: 120_000 });
  after(() => bench?.close());

  step("the tree shows roots, types and topics, pinned ones first, and counts what is wrong", async () => {
    await bench.memory();
    await bench.row("Releases on Tuesdays").waitFor();
    await bench.row("Works in the evening").waitFor();
    const shown = await bench.rows();
    const expected = ["Project memory", "MEMORY.md", "Feedback", "Releases on", "Tests before", "About the project", "Prices are", "stock.md", "Your memory", "About the person", "Works in"];
    assert.equal(shown.length, expected.length);
    for (const [index, text] of expected.entries()) assert.ok(shown[index].startsWith(text), shown[index]);
    await bench.until("a badge for two findings", async () => /\b2\b/.test(await bench.page.locator(".activitybar .badge:visible").first().innerText()));
    await bench.picture("tree");
  });

  step("an index shows its dead link, and a hover tells what an entry leads to", async () => {
    await bench.row("MEMORY.md").click();
    await bench.page.locator(".squiggly-error").first().waitFor();
    await bench.page.locator(".view-line span span", { hasText: "feedback/tests.md" }).last().hover();
    const hover = bench.page.locator(".monaco-hover-content", { hasText: "Tests before a push" });
    await hover.waitFor();
    assert.match(await hover.innerText(), /all of them/);
    await bench.picture("index");
    await bench.page.keyboard.press("Escape");
  });

  step("a pinned document has its hint and its lens", async () => {
    await bench.row("Releases on Tuesdays").click();
    await bench.page.locator(".codelens-decoration", { hasText: "Unpin" }).waitFor();
    await bench.page.locator(".squiggly-hint, .squiggly-info").first().waitFor({ state: "attached" });
    await bench.picture("pinned");
  });

  step("explain says who may change it", async () => {
    await bench.menu("Releases on Tuesdays", "Who May Change It?");
    const dream = bench.page.locator(".quick-input-list .monaco-list-row", { hasText: "dream" });
    await dream.waitFor();
    assert.match(await dream.innerText(), /may not change it/);
    await bench.picture("explain");
    await bench.page.keyboard.press("Escape");
  });

  step("pin, by the tree: the file is moved and the index follows, saved", async () => {
    await bench.menu("Tests before a push", /^Pin$/);
    await bench.until("the file below pinned/", () => exists(join(memory, "pinned/feedback/tests.md")));
    await bench.until("the index on the disk", async () => (await disk("MEMORY.md")).includes("(pinned/feedback/tests.md)"));
    await bench.row("Tests before a push").locator(".custom-view-tree-node-item-icon.codicon-pinned").waitFor();
    assert.equal(await exists(join(memory, "feedback/tests.md")), false);
  });

  step("unpin, by the lens", async () => {
    await bench.row("Tests before a push").click();
    await bench.page.locator(".codelens-decoration a", { hasText: "Unpin" }).click();
    await bench.until("the file back", () => exists(join(memory, "feedback/tests.md")));
    await bench.row("Tests before a push").locator(".codicon-note").waitFor();
    await bench.until("the index on the disk", async () => (await disk("MEMORY.md")).includes("(feedback/tests.md)"));
  });

  step("an agent edits what is not saved, undo takes just that back, and the disk is as it was", async () => {
    await bench.row("Tests before a push").click();
    await bench.page.locator(".codelens-decoration a", { hasText: /^Pin$/ }).waitFor();
    await bench.page.locator(".view-line", { hasText: "A flaky test" }).click();
    await bench.page.keyboard.press("Control+End");
    await bench.page.keyboard.type("Typed, and not saved.");
    await bench.command("Agent: Edit the Open Document");
    const { isError, _meta, error } = await outcome("agent.edit");
    assert.equal(isError, false, error);
    assert.equal(_meta["pinfold/details"].source, "buffer");
    await bench.until("the edit in the editor", async () => /Run the fast ones before a push/.test(await bench.text()));
    assert.match(await bench.text(), /Typed, and not saved\./);
    assert.match(await disk("feedback/tests.md"), /Run them all/);
    assert.doesNotMatch(await disk("feedback/tests.md"), /Typed/);
    await bench.picture("buffer");
    await bench.page.locator(".view-line", { hasText: "A flaky test" }).click();
    await bench.page.keyboard.press("Control+z");
    await bench.until("what was there before", async () => /Run them all before a push/.test(await bench.text()));
    assert.match(await bench.text(), /Typed, and not saved\./);
  });

  step("a denial arrives in the status item, and a click says why", async () => {
    await bench.command("Agent: Change a Pinned Document");
    const { isError, _meta } = await outcome("agent.intrude");
    assert.equal(isError, true);
    assert.equal(_meta["pinfold/details"].error.kind, "denied");
    assert.match(await disk("pinned/releases.md"), /Tuesdays/);
    await bench.until("1 denied", async () => /1 session.*1 denied/s.test(await bench.status().innerText()));
    await bench.picture("status");
    await bench.status().click();
    const first = bench.page.locator(".quick-input-list .monaco-list-row").first();
    await first.waitFor();
    assert.match(await first.innerText(), /edit .*pinned\/releases\.md[\s\S]*dream[\s\S]*Pinned memory/);
    await bench.page.mouse.move(700, 400);
    await bench.picture("denials");
    await bench.page.keyboard.press("Escape");
    await bench.until("quiet again", async () => !/denied/.test(await bench.status().innerText()));
  });

  step("agent mode has the tools, scoped; its denials arrive too", async () => {
    await bench.command("MCP: List Servers");
    await bench.pick("pinfold");
    await bench.pick("Start Server");
    await bench.page.locator(".panel .view-line", { hasText: "Discovered 4 tools" }).waitFor();
    await bench.command("Agent: Use the Tools of Agent Mode");
    const said = await bench.until("what agent mode did", async () => {
      for (const name of ["Trust", "Allow", "Continue", "Yes"]) {
        const button = bench.page.locator(".monaco-dialog-box .monaco-button", { hasText: name }).first();
        if (await button.isVisible()) await button.click();
      }
      return (await lines(told)).find((each) => each.name === "agent.mode");
    }, 60_000);
    assert.equal(said.error, undefined);
    assert.match(said.read, /Releases are cut on Tuesdays/);
    assert.match(said.denied, /Denied/);
    assert.match(await disk("pinned/releases.md"), /Tuesdays/);
    await bench.until("its denial", async () => /2 sessions.*1 denied/s.test(await bench.status().innerText()));
    await bench.picture("agent-mode");
  });

  step("a gateway that dies is started again", async () => {
    const { pid } = await bench.until("the gateway", () => gatewayBelow(bench.pid));
    process.kill(pid, "SIGKILL");
    await bench.until("another one", async () => (await gatewayBelow(bench.pid, pid)) !== undefined);
    await writeFile(join(memory, "project/late.md"), topic("Written by another program", "project", "and seen"));
    await bench.row("Written by another program").waitFor();
  });

  step("restart: everything is there again", async () => {
    await bench.command("pinfold: Restart");
    await bench.row("Prices are in cents").waitFor();
    await bench.row("Prices are in cents").click();
    await bench.page.locator(".codelens-decoration a", { hasText: /^Pin$/ }).waitFor();
  });
});

describe("a person without any memory", () => {
  let bench, home;
  const step = steps(() => bench);
  before(async () => {
    home = await makeHome({});
    bench = await openWorkbench(home, { "pinfold.command": PINFOLD });
  }, { timeout: 120_000 });
  after(() => bench?.close());

  step("the empty tree says what memory is, and makes a first topic", async () => {
    await bench.memory();
    const button = bench.page.locator(".sidebar .welcome-view .monaco-button", { hasText: "Write a First Topic" });
    await button.waitFor();
    await bench.picture("first-run");
    await button.click();
    await bench.pick("Project memory");
    await bench.pick("Feedback");
    await bench.page.locator(".quick-input-widget input.input").fill("Short commit messages");
    await bench.page.locator(".quick-input-message", { hasText: "feedback/short-commit-messages.md" }).waitFor();
    await bench.picture("first-topic");
    await bench.page.keyboard.press("Enter");
    const memory = join(home, memoryOf(home));
    await bench.until("the topic", () => exists(join(memory, "feedback/short-commit-messages.md")));
    await bench.row("Short commit messages").waitFor();
    assert.match(await readFile(join(memory, "MEMORY.md"), "utf8"), /- \[Short commit messages\]\(feedback\/short-commit-messages\.md\)/);
    await bench.page.locator(".codelens-decoration a", { hasText: /^Pin$/ }).waitFor();
    assert.equal(await bench.page.locator(".squiggly-error, .squiggly-warning").count(), 0);
    await bench.picture("first-topic-made");
  });
});

describe("a gateway that does not start", () => {
  let bench;
  const step = steps(() => bench);
  before(async () => {
    const rules = [{ decision: "deny", tools: ["*"], path: ["*.env"] }];
    bench = await openWorkbench(await makeHome({}), { "pinfold.command": PINFOLD, "pinfold.rules": rules });
  }, { timeout: 120_000 });
  after(() => bench?.close());

  step("says so, and its output says why", async () => {
    await bench.until("trouble", async () => /does not start/.test(await bench.status().innerText()));
    const toast = bench.page.locator(".notification-toast", { hasText: "pinfold.rules[0].path" });
    await toast.waitFor();
    assert.equal(await bench.page.locator(".notification-toast").count(), 1);
    await bench.picture("does-not-start");
    await toast.locator(".monaco-button", { hasText: "Show Output" }).click();
    await bench.page.locator(".panel .view-line", { hasText: "initializationOptions.pinfold.rules[0]" }).first().waitFor();
  });
});

describe("a machine without pinfold", () => {
  let bench;
  const step = steps(() => bench);
  before(async () => {
    bench = await openWorkbench(await makeHome({}), { "pinfold.command": "/nowhere/pinfold" });
  }, { timeout: 120_000 });
  after(() => bench?.close());

  step("is told so, with the line that installs it", async () => {
    const toast = bench.page.locator(".notification-toast", { hasText: "pinfold is not installed" });
    await toast.waitFor();
    assert.match(await toast.innerText(), /pipx install \./);
    assert.match(await bench.status().innerText(), /not installed/);
    await bench.memory();
    await bench.page.locator(".sidebar .welcome-view", { hasText: "pipx install ." }).waitFor();
    await bench.picture("missing");
  });
});
