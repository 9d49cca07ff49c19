/** The record of decisions, read: lines in, denials and sessions out. Pure. */

/** One line of the record (docs/audit.md), as far as it is needed here. */
export interface Entry {
  time: string;
  session: string;
  tool: string;
  path: string | null;
  realPath: string | null;
  rule: string | null;
  match: string | null;
  outcome: string;
}

/** What one agent's session did. */
export interface Tally {
  calls: number;
  denials: number;
}

/** The most denials that are remembered. */
export const MOST_DENIALS = 100;

/** The entries in whole lines. What is no record is passed over, as other programs may write there. */
export function entries(text: string): Entry[] {
  return text.split("\n").flatMap((line) => {
    const found = parsed(line);
    return found ? [found] : [];
  });
}

function parsed(line: string): Entry | undefined {
  try {
    const found = JSON.parse(line);
    const texts = [found.time, found.session, found.tool, found.outcome];
    const optional = [found.path, found.realPath, found.rule, found.match];
    const whole =
      texts.every((each) => typeof each === "string") &&
      optional.every((each) => each == null || typeof each === "string");
    return whole ? found : undefined;
  } catch {
    return undefined;
  }
}

/** What agents did, told bit by bit. The person's own sessions are none of it. */
export class Ledger {
  readonly sessions = new Map<string, Tally>();
  private newest: Entry[] = [];
  private readonly own: ReadonlySet<string>;

  constructor(own: ReadonlySet<string>) {
    this.own = own;
  }

  /** Denials, newest first. */
  get denials(): readonly Entry[] {
    return this.newest;
  }

  /** Take in what was appended, oldest first. What was there `before` this window counts for no
   * session, and is remembered all the same. Returns how many new denials there were. */
  add(found: readonly Entry[], before: boolean): number {
    const relevant = found.filter(
      (each) => !this.own.has(each.session) && each.outcome !== "explained",
    );
    const denied = relevant.filter((each) => each.outcome === "denied");
    this.newest = [...denied.toReversed(), ...this.newest].slice(0, MOST_DENIALS);
    if (before) return 0;
    for (const each of relevant) {
      const tally = this.sessions.get(each.session) ?? { calls: 0, denials: 0 };
      tally.calls += 1;
      tally.denials += each.outcome === "denied" ? 1 : 0;
      this.sessions.set(each.session, tally);
    }
    return denied.length;
  }
}

const REASONS: Record<string, string> = {
  pinned: "Pinned memory: this session may read it, and never change it",
  "outside-memory": "Outside of the memory that this session is confined to",
  "base-rule": "A rule in the settings forbids it",
  shell: "Not a command that only reads",
  "unknown-tool": "Not a tool that pinfold knows",
};

const WAYS: Record<string, string> = {
  resolved: "reached through a link",
  identity: "reached by another name of it",
  "hard-link": "reached by a hard link",
};

/** Why a call was denied, for a person. */
export function reason(entry: Entry): string {
  const why = REASONS[entry.rule ?? ""] ?? "Not allowed in this session";
  const way = WAYS[entry.match ?? ""];
  return way && entry.rule === "pinned" ? `${why} (${way})` : why;
}
