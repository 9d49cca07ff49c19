/** A new topic, asked of the person and written through the gateway, as any change of memory. */

import * as vscode from "vscode";
import type { Gateway } from "./gateway.ts";
import { indexOf, ROOT_NAMES } from "./model.ts";
import { OWN_SESSION } from "./options.ts";
import type { Root, ToolResult } from "./protocol.ts";
import { projectFolder } from "./settings.ts";
import { documentFor, entryFor, placeFor, type Wish, withEntry } from "./topic.ts";

/** The session under which this extension writes what the person asked for. */
export const PERSON = "person";

const TYPES = [
  { type: "feedback", label: "Feedback", detail: "How you want work to be done" },
  {
    type: "project",
    label: "Project",
    detail: "What is true of this project, and is not in the code",
  },
  { type: "reference", label: "Reference", detail: "Where to look things up" },
  { type: "user", label: "User", detail: "Who you are, and what you know" },
] as const;

/** Ask, write, and open what was written. Nothing happens where a question is left. */
export async function newTopic(gateway: Gateway): Promise<void> {
  try {
    const { roots } = await gateway.request("memory/roots", { sessionId: OWN_SESSION });
    const root = await askRoot(roots.filter((each) => each.kind !== "team"));
    const wish = root && (await askWish(root));
    if (root && wish) await open(await write(gateway, root, wish));
  } catch (error) {
    void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
  }
}

async function askRoot(roots: readonly Root[]): Promise<Root | undefined> {
  const items = roots.map((root) => ({ label: ROOT_NAMES[root.kind], detail: root.path, root }));
  if (items.length < 2) return items[0]?.root;
  const title = "New topic (1/3): for this project, or for all of yours?";
  return (await vscode.window.showQuickPick(items, { title }))?.root;
}

async function askWish(root: Root): Promise<Wish | undefined> {
  const title = "New topic (2/3): what is it about?";
  const picked = await vscode.window.showQuickPick(TYPES, { title });
  if (!picked) return undefined;
  const { type } = picked;
  const told = await vscode.window.showInputBox({
    title: "New topic (3/3): a title that tells an agent when to read it",
    placeHolder: "Releases are cut on Tuesdays",
    validateInput: (text) =>
      text.trim() && {
        message: `Becomes ${root.path}/${placeFor({ type, title: text })}`,
        severity: vscode.InputBoxValidationSeverity.Info,
      },
  });
  return told?.trim() ? { type, title: told } : undefined;
}

async function write(gateway: Gateway, root: Root, wish: Wish): Promise<string> {
  await session(gateway);
  const path = `${root.path}/${placeFor(wish)}`;
  // An empty `old_string` makes a file, and never replaces one.
  await call(gateway, "edit", { file_path: path, old_string: "", new_string: documentFor(wish) });
  const index = indexOf(root);
  const before = await call(gateway, "read_file", { file_path: index }, "not-found");
  await call(gateway, "write_file", {
    file_path: index,
    content: withEntry(before?.text ?? "", entryFor(wish)),
    ...(before && { expected_sha256: before.sha256 }),
  });
  return path;
}

/** Its changes go through what is open, as those of an agent in this editor. */
async function session(gateway: Gateway): Promise<void> {
  const { sessions } = await gateway.request("session/list", {});
  if (sessions.some(({ sessionId }) => sessionId === PERSON)) return;
  await gateway.request("session/open", {
    sessionId: PERSON,
    profile: gateway.settings.profile,
    projectRoot: projectFolder(),
    backend: "editor",
  });
}

interface Outcome {
  text: string;
  sha256: string | null;
}

/** A call of a tool. Undefined where it failed as `tolerated` says; throws any other failure. */
async function call(
  gateway: Gateway,
  name: string,
  args: Record<string, unknown>,
  tolerated?: string,
): Promise<Outcome | undefined> {
  const params = { sessionId: PERSON, name, arguments: args };
  const result = await gateway.request("tools/call", params);
  const details = result._meta["pinfold/details"] as Details | undefined;
  if (!result.isError) return { text: textOf(result), sha256: details?.sha256 ?? null };
  if (tolerated && details?.error?.kind === tolerated) return undefined;
  throw new Error(textOf(result));
}

interface Details {
  sha256?: string | null;
  error?: { kind: string };
}

function textOf({ content }: ToolResult): string {
  const [first] = content as { text?: unknown }[];
  return typeof first?.text === "string" ? first.text : "";
}

async function open(path: string): Promise<void> {
  const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path));
  const end = document.lineAt(document.lineCount - 1).range.end;
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(end, end) });
}
