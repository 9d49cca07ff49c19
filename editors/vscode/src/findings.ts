/** What is wrong with the documents of memory, asked of the language service; open ones or not. */

import { stat } from "node:fs/promises";
import * as vscode from "vscode";
import type { Gateway } from "./gateway.ts";
import type { Finding } from "./model.ts";

interface Report {
  items?: { severity?: number; message: string }[];
}

const MOST_DOCUMENTS = 400;
const AT_ONCE = 8;
const LEVELS: Record<number, Finding["level"]> = { 1: "error", 2: "warning" };

export class Findings {
  private readonly gateway: Gateway;
  private known = new Map<string, { stamp: string; findings: Finding[] }>();

  constructor(gateway: Gateway) {
    this.gateway = gateway;
  }

  /** By path, for documents that have any. `topics` have a stamp that changes with their bytes; what
   * is said of an index also depends on what it links to, so that is asked every time. */
  async of(
    topics: ReadonlyMap<string, string>,
    indexes: readonly string[],
  ): Promise<Map<string, Finding[]>> {
    const wanted = [...indexes.map((path) => [path, ""] as const), ...topics].slice(
      0,
      MOST_DOCUMENTS,
    );
    const found: typeof this.known = new Map();
    const work = wanted.values();
    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (const [path, stamp] of work) {
          const known = stamp && this.known.get(path);
          const same = known && known.stamp === stamp && !isOpen(path);
          found.set(path, same ? known : { stamp, findings: await this.ask(path) });
        }
      }),
    );
    this.known = found;
    return new Map([...found].map(([path, { findings }]) => [path, findings]));
  }

  private async ask(path: string): Promise<Finding[]> {
    const uri = vscode.Uri.file(path).toString();
    const told = await this.gateway.ask<Report>("textDocument/diagnostic", {
      textDocument: { uri },
    });
    return (told.items ?? []).flatMap(({ severity, message }) => {
      const level = LEVELS[severity ?? 0];
      return level ? [{ level, message }] : [];
    });
  }
}

function isOpen(path: string): boolean {
  return vscode.workspace.textDocuments.some(({ uri }) => uri.fsPath === path);
}

/** Those of the paths that are files now. */
export async function existing(paths: readonly string[]): Promise<string[]> {
  const there = await Promise.all(
    paths.map((path) =>
      stat(path).then(
        (found) => found.isFile(),
        () => false,
      ),
    ),
  );
  return paths.filter((_, index) => there[index]);
}
