/** An agent in TypeScript: `node main.ts [COMMAND…]`; the command is `pinfold serve` by default. */

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SessionResult } from "../../editors/vscode/src/protocol.ts";
import { Client } from "./client.ts";

type Call = { type: "tool_use"; id: string; name: string; input: Record<string, unknown> };
type Block = Call | { type: "text"; text: string };
type Result = { type: "tool_result"; tool_use_id: string; content: unknown; is_error: boolean };
type Message = { role: "assistant"; content: Block[] } | { role: "user"; content: unknown[] };
type Model = (system: string, messages: Message[]) => Promise<Block[]>;

const MOST_STEPS = 20;
const SETTINGS = { keepRecent: 1, sizeThresholdChars: 4000 };
const RULES = "---\nname: Releases\ntype: feedback\n---\n\nReleases happen on Tuesdays.\n";

/** One user message, and all messages after the model's answer. */
async function say(
  client: Client,
  session: SessionResult,
  model: Model,
  text: string,
): Promise<Message[]> {
  const { sessionId } = session;
  const system = ["You are a careful programmer.", ...session.promptRules].join("\n");
  let messages: Message[] = [{ role: "user", content: [{ type: "text", text }] }];
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const content = await model(system, messages);
    messages.push({ role: "assistant", content });
    const calls = content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return messages;
    const results = await Promise.all(calls.map((call) => run(client, sessionId, call)));
    const pending: Message = { role: "user", content: results };
    const made = await client.request("context/compact", {
      sessionId,
      format: "anthropic",
      history: messages,
      trigger: { kind: "results", pending },
      settings: SETTINGS,
    });
    messages = [...(made.history as Message[]), pending];
  }
  throw new Error(`the model still calls tools after ${MOST_STEPS} steps`);
}

async function run(client: Client, sessionId: string, call: Call): Promise<Result> {
  const { name, input, id: callId } = call;
  const result = await client.request("tools/call", { sessionId, name, arguments: input, callId });
  const { content, isError: is_error } = result;
  return { type: "tool_result", tool_use_id: callId, content, is_error };
}

/** Plays a script, one step for each request; then it is done. */
function scripted(steps: [string, Record<string, unknown>][], last: string): Model {
  let step = -1;
  return async () => {
    step += 1;
    const [name, input] = steps[step] ?? [];
    if (name === undefined || input === undefined) return [{ type: "text", text: last }];
    return [{ type: "tool_use", id: `toolu_${step}`, name, input }];
  };
}

async function story(base: string, command: string[]): Promise<void> {
  const [project, memory] = [join(base, "project"), join(base, "memory")];
  const [rules, source, settings] = [
    join(memory, "pinned/releases.md"),
    join(project, "part.py"),
    join(project, "settings.env"),
  ];
  mkdirSync(project);
  mkdirSync(join(memory, "pinned"), { recursive: true });
  writeFileSync(rules, RULES);
  writeFileSync(source, "part = 0\n".repeat(400));
  writeFileSync(settings, "MODE=test\n");

  const asked: string[] = [];
  const client = await Client.spawn(command, async (question) => {
    asked.push(question.decision.resolvedPath ?? "");
    return { outcome: "allow-once" }; // a real host asks a person
  });
  const session = await client.request("session/open", {
    profile: "main",
    projectRoot: project,
    scope: { protectPinned: true },
    memory: { projectRoot: memory, userRoot: join(base, "user") },
    rules: [{ decision: "ask", tools: ["write_file", "edit"], paths: ["*.env"] }],
  });
  const model = scripted(
    [
      ["read_memory", { file_path: rules }],
      ["write_file", { file_path: rules, content: "Any day.\n" }],
      ["edit", { file_path: settings, old_string: "test", new_string: "live" }],
      ["read_file", { file_path: source }],
      ["read_file", { file_path: source, limit: 100 }],
      ["read_file", { file_path: source, offset: 100 }],
    ],
    "On Tuesdays.",
  );
  const messages = await say(client, session, model, "When do we release? Then go live.");

  const all = messages.flatMap((message) => message.content as (Block | Result)[]);
  const results = all.filter((block) => block.type === "tool_result");
  const last = all.at(-1);
  assert.ok(last?.type === "text");
  console.log(last.text);
  assert.deepEqual(results.map((each) => each.is_error), [false, true, false, false, false, false]);
  assert.deepEqual(results[0]?.content, [{ type: "text", text: RULES }], "memory was lost");
  assert.match(JSON.stringify(results[3]?.content), /Old tool result content cleared/);
  assert.equal(readFileSync(rules, "utf8"), RULES);
  assert.equal(readFileSync(settings, "utf8"), "MODE=live\n");
  assert.deepEqual(asked, [settings]);
  console.log("the pinned document is unharmed; its read survived a compaction");
  const counts = await client.request("session/close", { sessionId: session.sessionId });
  assert.deepEqual(counts, { calls: 6, denials: 1 });
  assert.equal(await client.close(), 0);
  console.log(`${counts.calls} calls, ${counts.denials} denied, 1 question`);
}

const given = process.argv.slice(2);
const base = realpathSync(mkdtempSync(join(tmpdir(), "pinfold-example-")));
try {
  await story(base, given.length > 0 ? given : ["pinfold", "serve"]);
} finally {
  rmSync(base, { recursive: true });
}
