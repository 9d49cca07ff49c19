import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import {
  agentArguments,
  agentConfig,
  asSettings,
  initializationOptions,
  type Settings,
} from "../src/options.ts";

const SETTINGS: Settings = {
  command: "pinfold",
  profile: "main",
  memory: {},
  rules: [],
  record: true,
  agentMode: "extraction",
};

test("what was not set is not sent", () => {
  assert.deepEqual(initializationOptions({ ...SETTINGS, record: false }, "/p", "/r"), {
    pinfold: { session: { sessionId: "editor", profile: "main", projectRoot: "/p" } },
  });
});

test("what was set is, and the record is bounded", () => {
  const rules = [{ decision: "deny" as const, tools: ["*"], paths: ["*.env"] }];
  const memory = { layout: "claude" as const };
  const { pinfold } = initializationOptions({ ...SETTINGS, rules, memory }, "/p", "/r");
  assert.deepEqual(pinfold.memory, { layout: "claude" });
  assert.deepEqual(pinfold.rules, rules);
  assert.deepEqual(pinfold.audit, { path: "/r", maxBytes: 1024 * 1024, keep: 1 });
});

test("what is of a wrong type is handed on, to be refused: a rule is never lost in silence", () => {
  const rule = { decision: "deny", tools: ["*"] };
  for (const wrong of [rule, "deny", 7, true, { 0: rule }]) {
    const settings = { ...SETTINGS, rules: wrong as never, memory: wrong as never };
    assert.deepEqual(initializationOptions(settings, "/p", "/r").pinfold.rules, wrong);
    assert.deepEqual(JSON.parse(agentConfig(settings, "/r")).memory, wrong);
  }
});

test("agent mode: the profile of the setting, and pinned documents protected in every one", () => {
  assert.deepEqual(agentArguments("dream", "/p", "/c"), [
    ..."serve --profile dream --project /p --config /c".split(" "),
  ]);
  for (const agentMode of ["main", "remember"] as const) {
    const config = JSON.parse(agentConfig({ ...SETTINGS, agentMode }, "/r"));
    assert.deepEqual(config.scope, { protectPinned: true });
    assert.equal(config.audit.path, "/r");
    assert.equal("session" in config, false);
  }
});

test("what is wrong with an option is told of the setting", () => {
  const message = "Invalid params: initializationOptions.pinfold.rules[0].path: is no member";
  assert.equal(asSettings(message), "pinfold.rules[0].path: is no member");
  assert.equal(asSettings("anything else"), "anything else");
});

test("no setting can come from a project, where an agent could write it", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const properties: Record<string, { scope: string }> =
    manifest.contributes.configuration.properties;
  assert.equal(Object.keys(properties).length, 6);
  for (const [name, { scope }] of Object.entries(properties)) assert.equal(scope, "machine", name);
});

test("every command of the manifest is one that is registered, and the other way round", () => {
  const manifest = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
  const named = manifest.contributes.commands.map((each: { command: string }) => each.command);
  const sources = ["extension", "commands"].map((name) =>
    readFileSync(new URL(`../src/${name}.ts`, import.meta.url), "utf8"),
  );
  const registered = sources.flatMap((text) =>
    [...text.matchAll(/^ {4}"(pinfold\.[\w.]+)":/gm)].map(([, name]) => name),
  );
  assert.deepEqual(named.toSorted(), registered.toSorted());
});
