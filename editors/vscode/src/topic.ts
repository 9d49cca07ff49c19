/** A first topic: what a person says of it in, a document and its entry out. Pure. */

import type { MemoryDocument } from "./protocol.ts";

export interface Wish {
  type: MemoryDocument["type"];
  title: string;
}

const LONGEST_NAME = 60;

/** A file name for a title: letters and digits of any script, the rest as hyphens. */
export function nameFor(title: string): string {
  const plain = title
    .toLowerCase()
    .replace(/[^\p{Letter}\p{Mark}\p{Number}]+/gu, "-")
    .replace(/^-+|-+$/g, "");
  const short = [...plain].slice(0, LONGEST_NAME).join("").replace(/-+$/, "");
  return `${short || "topic"}.md`;
}

/** The path of a new topic in its root. */
export function placeFor(wish: Wish): string {
  return `${wish.type}/${nameFor(wish.title)}`;
}

/** A title as frontmatter can hold it: one line. */
function oneLine(title: string): string {
  return title.replace(/\s+/g, " ").trim();
}

/** The whole document, with the place where the person goes on writing. */
export function documentFor(wish: Wish): string {
  const title = oneLine(wish.title);
  return `---\nname: ${title}\ndescription: ${title}\ntype: ${wish.type}\n---\n\n`;
}

/** Its entry in `MEMORY.md`, without a line ending. */
export function entryFor(wish: Wish): string {
  const title = oneLine(wish.title).replace(/\[/g, "(").replace(/\]/g, ")");
  return `- [${title}](${placeFor(wish)})`;
}

/** An index with one entry more, its own line ending kept. */
export function withEntry(index: string, entry: string): string {
  const gap = index === "" || index.endsWith("\n") ? "" : "\n";
  return `${index}${gap}${entry}\n`;
}
