// The pinfold wire contract. Made from protocol/schema.json by `make generated`: do not edit.

export const PROTOCOL_VERSION = 1;

/** MCP's hints about a tool. */
export interface Annotations {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint?: boolean;
}

/** The record: one line for each decision, in a file of at most `maxBytes` (bytes) that is rotated, `keep` older ones being kept. `path` is absolute or begins with `~/`; without it, the user's directory for such things. */
export interface AuditOptions {
  path?: string | null;
  maxBytes?: number;
  keep?: number;
}

/** One thing that was cleared, by index in the history; `part` is null where a message is one result. `path` is there where the history records exactly one for it. */
export interface Cleared {
  message: number;
  part: number | null;
  kind: "tool" | "nested-media" | "media";
  callId?: string | null;
  path?: string | null;
}

/** What the rule did. `evictedPaths` lists files of which a result went, as the calls wrote them, but for those that a kept write of the whole file still shows; `unresolvedEvictions` counts results whose path is not known. `tokensSaved` is an estimate: a quarter of the characters, and 1600 for a piece of media. Only the size rule has the characters: of all that counts, before (with what is pending) and after (without it), and of what is pending. */
export interface CompactMeta {
  reason: "idle" | "force" | "size";
  toolsCleared: number;
  toolsKept: number;
  mediaCleared: number;
  mediaKept: number;
  keepRecent: number;
  tokensSaved: number;
  evictedPaths: (string)[];
  unresolvedEvictions: number;
  charsBefore?: number | null;
  charsAfter?: number | null;
  charsPending?: number | null;
}

/** `context/compact`. `history` is a list in the given format; `tags` maps the ids of calls to the retention tags that came with their results. */
export interface CompactParams {
  format: "gemini" | "openai" | "anthropic" | "records";
  history: (unknown)[];
  trigger: TurnTrigger | ResultsTrigger | ForceTrigger | PressureTrigger;
  sessionId?: string | null;
  settings?: CompactSettings | null;
  tags?: Record<string, RetentionTag> | null;
}

/** For whoever wants to know: how many results were preserved and how long their text is, which of them are out of date, and what was left alone because its shape is not known. */
export interface CompactReport {
  preserved: number;
  preservedChars: number;
  superseded: (Superseded)[];
  leftAlone: (LeftAlone)[];
}

/** The answer to `context/compact`. `meta` is null where no rule triggered. */
export interface CompactResult {
  history: (unknown)[];
  cleared: (Cleared)[];
  meta: CompactMeta | null;
  report: CompactReport;
}

/** What to keep. A null member has its default; a threshold of -1 is disabled. `keepRecent` (5): how many results stay whatever happens. `idleThresholdMinutes` (60). `sizeThresholdChars` (500,000; disabled where it is null and the idle threshold is negative). `clearAtLeastChars` (0): do nothing unless that much goes, 6,400 for each piece of media. `preservedCounts` (false): whether preserved text counts toward the size threshold and its low watermark. `clearable`: the names of the tools whose results may go, `"*"` for all. `reads`: the tools that read a file, and the argument that holds its path. */
export interface CompactSettings {
  keepRecent?: number | null;
  idleThresholdMinutes?: number | null;
  sizeThresholdChars?: number | null;
  clearAtLeastChars?: number | null;
  preservedCounts?: boolean | null;
  clearable?: (string)[] | "*" | null;
  reads?: Record<string, string> | null;
}

/** `initializationOptions.pinfold`. Without `audit` nothing is recorded. `session`: for a client with text documents only. `upstreams`: by the name that `session/open` gives as `backend`. */
export interface ConnectionOptions {
  memory?: MemoryOptions | null;
  limits?: Limits | null;
  rules?: (RuleSpec)[] | null;
  audit?: AuditOptions | null;
  session?: EditorSession | null;
  upstreams?: Record<string, UpstreamOptions> | null;
}

/** One decision as data. `path` is the literal path, `resolvedPath` the real one. `turnId` is there where `source` is a turn; `asked` where a question was, or would have been, put to the client. */
export interface Decision {
  decision: "allow" | "ask" | "deny";
  rule: "pinned" | "outside-memory" | "base-rule" | "shell" | "unknown-tool" | "default";
  reason: string;
  root?: "project" | "user" | "team" | null;
  match?: "literal" | "resolved" | "identity" | "hard-link" | null;
  path?: string | null;
  resolvedPath?: string | null;
  turnId?: string | null;
  asked?: "allow-once" | "allow-session" | "deny" | "no-approver" | "timeout" | null;
  source?: "profile" | "override" | "turn" | RuleSource | null;
}

/** `edit`: one replacement, or several in `edits`, applied in order, all or none. */
export interface EditArguments {
  file_path: string;
  old_string?: string | null;
  new_string?: string | null;
  replace_all?: boolean | null;
  edits?: (Replacement)[] | null;
  encoding?: string | null;
  expected_sha256?: string | null;
  dry_run?: boolean | null;
}

/** What `edit` did; `replacements` counts the places that were replaced. */
export interface EditDetails {
  path: string;
  created: boolean;
  changed: boolean;
  encoding: string;
  bom: boolean;
  lineEnding: "lf" | "crlf" | "cr" | "mixed" | null;
  sizeBytes: number;
  sha256: string;
  diff: string;
  otherLinks?: number;
  source?: "disk" | "buffer" | null;
  version?: number | null;
  replacements?: number;
}

/** The editor's own session: what its language service sees, and under which renames and code actions are decided. Members are those of `session/open`. `projectRoot` is by default the first workspace folder, else the root that `initialize` names, else the directory in which the gateway was started. */
export interface EditorSession {
  profile?: "main" | "extraction" | "dream" | "remember";
  projectRoot?: string | null;
  sessionId?: string;
  scope?: ScopePatch | null;
  memory?: MemoryOptions | null;
  rules?: (RuleSpec)[] | null;
}

/** `pinfold/details.error`; further members depend on the kind. */
export interface ErrorDetails {
  kind: "denied" | "not-found" | "is-directory" | "not-a-regular-file" | "binary" | "undecodable" | "too-large" | "permission" | "no-match" | "ambiguous-match" | "no-change" | "already-exists" | "stale" | "not-read" | "invalid-path" | "invalid-arguments" | "read-only-filesystem" | "no-space" | "changed-underfoot" | "io" | "backend" | "cancelled";
  message: string;
}

/** `policy/explain`: decide as a call would be decided, touching nothing. */
export interface ExplainParams {
  sessionId: string;
  name: string;
  arguments?: Record<string, unknown>;
}

/** `file/didChange`: a call of this session, whose backend is the editor, changed a file on disk, since the file was not open there. `uri` names its real path. */
export interface FileDidChangeParams {
  sessionId: string;
  uri: string;
  kind: "created" | "changed";
}

/** On request: everything that is not recent goes, whatever the thresholds. */
export interface ForceTrigger {
  kind?: "force";
}

/** An image item; MCP's shape. `data` is base64. */
export interface ImageContent {
  data: string;
  mimeType: string;
  type?: "image";
}

/** What a read of an image gave. */
export interface ImageDetails {
  path: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  source?: "disk" | "buffer" | null;
  version?: number | null;
}

/** Something in the history whose shape is not known, and what about it. */
export interface LeftAlone {
  message: number;
  part: number | null;
  problem: string;
}

/** Sizes in bytes, but for `readLines`; `askSeconds` is how long a question waits, `editorSeconds` how long an edit of an open document may take to be seen. Defaults for all sessions of a connection. */
export interface Limits {
  maxMessageBytes?: number;
  maxFileBytes?: number;
  readLines?: number;
  readBytes?: number;
  askSeconds?: number;
  editorSeconds?: number;
}

/** `memory/didChange`: a call of this session changed a file below a root. `root` is the root's kind, `path` the real path. */
export interface MemoryDidChangeParams {
  sessionId: string;
  root: "project" | "user" | "team";
  path: string;
  kind: "created" | "changed" | "deleted";
}

/** One valid topic. `path` is absolute, below the root as it is configured; `relativePath` the same from the root on. `title` and `description` stand as in the file. `pinned`: a session that protects pinned memory may not change it under this name. `sizeBytes` is of the whole file, `modified` RFC 3339 in UTC. */
export interface MemoryDocument {
  kind: "project" | "user" | "team";
  path: string;
  relativePath: string;
  type: "user" | "feedback" | "project" | "reference";
  title: string;
  description: string;
  pinned: boolean;
  sizeBytes: number;
  modified: string;
}

/** `memory/index`. `kinds`: of which roots, all of them where it is null. `limit`: how many documents of each root at most, at least 1 (200 where it is null). */
export interface MemoryIndexParams {
  sessionId: string;
  kinds?: ("project" | "user" | "team")[] | null;
  limit?: number | null;
}

/** The documents root by root (project, user, team): newest first, of the team's by path. `truncated`: some root has more of them than the limit let through. */
export interface MemoryIndexResult {
  documents: (MemoryDocument)[];
  truncated: boolean;
  skipped: (SkippedDocument)[];
}

/** Where the roots are: a named layout, and roots that replace it (absolute, or `~/`). */
export interface MemoryOptions {
  layout?: "qwen" | "claude" | null;
  projectRoot?: string | null;
  userRoot?: string | null;
  teamRoot?: string | null;
}

/** `permission/request`: the question that a base rule asks. `decision` says which rule, the path that was given and where it really leads. */
export interface PermissionParams {
  sessionId: string;
  tool: string;
  arguments: Record<string, unknown>;
  decision: Decision;
  callId?: string | null;
}

/** The answer: `allow-session` is for exactly this tool and real path, in this session. */
export interface PermissionResult {
  outcome: "allow-once" | "allow-session" | "deny";
}

/** The host is short of memory: the idle rule at any gap, else the size rule. */
export interface PressureTrigger {
  kind?: "pressure";
}

/** What a read showed: `startLine` inclusive, `endLine` exclusive, both from 0. `truncated` says that a limit of the gateway cut the text; `nextOffset` and `nextColumn` say where the rest begins, null where nothing is left. `sizeBytes` and `sha256` are the file's. With an editor, `source` says where that was read: in its open document, of which it is then the `version`, or on the disk. */
export interface ReadDetails {
  path: string;
  startLine: number;
  endLine: number;
  totalLines: number | null;
  truncated: boolean;
  nextOffset: number | null;
  nextColumn: number | null;
  encoding: string;
  bom: boolean;
  lineEnding: "lf" | "crlf" | "cr" | "mixed" | null;
  sizeBytes: number;
  sha256: string | null;
  source?: "disk" | "buffer" | null;
  version?: number | null;
}

/** `read_file` and `read_memory`. Lines count from 0 and include their endings. */
export interface ReadFileArguments {
  file_path: string;
  offset?: number | null;
  limit?: number | null;
  column?: number | null;
  encoding?: string | null;
}

/** One replacement: `old_string` must match exactly once, unless `replace_all`. */
export interface Replacement {
  old_string: string;
  new_string: string;
  replace_all?: boolean | null;
}

/** A document of managed memory that the session had read. `path` is the real path. */
export interface Reread {
  path: string;
  scope: "project" | "user" | "team";
  pinned: boolean;
}

/** The answer to `context/reset`: what the session had read of managed memory, oldest first. */
export interface ResetResult {
  reread: (Reread)[];
}

/** Before tool results are sent back: the size rule. `pending` is what is about to be sent, one message or a list of them, in the format of the history; it counts, and is never cleared. */
export interface ResultsTrigger {
  pending?: unknown;
  kind?: "results";
}

/** On a successful read whose real path is inside a memory root; describes what was read. `path` is the real path, `sha256` the hex digest of the whole file, null where it was streamed. */
export interface RetentionTag {
  scope: "project" | "user" | "team";
  pinned: boolean;
  complete: boolean;
  path: string;
  sha256: string | null;
  preserve?: boolean;
  reason?: "managed-memory";
}

/** One memory root as it lies on the disk now. Paths are absolute. `path` is as configured; `realPath` what it resolves to (null if that cannot be said); `writePath` is what confinement trusts; `pinned` holds `path/pinned` and its target if a link. */
export interface Root {
  kind: "project" | "user" | "team";
  path: string;
  realPath: string | null;
  writePath: string | null;
  exists: boolean;
  included: boolean;
  pinned: (string)[];
}

/** `memory/roots`. */
export interface RootsResult {
  roots: (Root)[];
}

/** A base rule: its place in the list that it came in, counted from 0. */
export interface RuleSource {
  rule: number;
  of: "connection" | "session";
}

/** A base rule. `tools`: names, or `"*"` for all. `paths`: gitignore patterns, a later one beating an earlier one; anchored at the file system's root with a leading `/`, at home with `~/`, else at the project root. Without `paths` it also covers calls that have no path. */
export interface RuleSpec {
  decision: "allow" | "ask" | "deny";
  tools: (string)[];
  paths?: (string)[] | null;
}

/** What a session may do. The effective scope of a session is always whole. */
export interface Scope {
  confineWrites: boolean;
  confineReads: boolean;
  projectMemory: boolean;
  userMemory: boolean;
  protectPinned: boolean;
  shell: "deny" | "read-only" | "unscoped";
  bypassAsk: boolean;
  hardLinks?: "deny" | "ignore";
  staleness?: "detect" | "require-read" | "off";
}

/** Members that differ from the profile's. A null resets the member to the profile's. */
export interface ScopePatch {
  confineWrites?: boolean | null;
  confineReads?: boolean | null;
  projectMemory?: boolean | null;
  userMemory?: boolean | null;
  protectPinned?: boolean | null;
  shell?: "deny" | "read-only" | "unscoped" | null;
  bypassAsk?: boolean | null;
  hardLinks?: "deny" | "ignore" | null;
  staleness?: "detect" | "require-read" | "off" | null;
}

/** How many calls the session made and how many of them were denied. */
export interface SessionCloseResult {
  calls: number;
  denials: number;
}

/** `session/configure`: `scope` merges over the current one, `rules` replaces the session's own (an empty list takes them away). */
export interface SessionConfigureParams {
  sessionId: string;
  scope?: ScopePatch | null;
  rules?: (RuleSpec)[] | null;
}

/** `session/list`. */
export type SessionListParams = Record<string, never>;

/** All open sessions of this connection, in the order in which they were opened. */
export interface SessionListResult {
  sessions: (SessionSummary)[];
}

/** `session/open`. `projectRoot` is an absolute path or a `file:` URI; `backend` is `local` (the default) or a configured upstream's name. */
export interface SessionOpenParams {
  profile: "main" | "extraction" | "dream" | "remember";
  projectRoot: string;
  sessionId?: string | null;
  scope?: ScopePatch | null;
  memory?: MemoryOptions | null;
  backend?: string | null;
  rules?: (RuleSpec)[] | null;
}

/** The params of methods that only name a session. */
export interface SessionParams {
  sessionId: string;
}

/** The answer to `session/open` and `session/configure`; `scope` is the whole effective one. */
export interface SessionResult {
  sessionId: string;
  profile: "main" | "extraction" | "dream" | "remember";
  scope: Scope;
  roots: (Root)[];
  tools: (string)[];
  promptRules: (string)[];
}

/** One open session. */
export interface SessionSummary {
  sessionId: string;
  profile: "main" | "extraction" | "dream" | "remember";
  projectRoot: string;
  turns: (string)[];
  calls: number;
  denials: number;
}

/** What looked like a topic and is none, or could not be looked at: why, without any of its content. A byte of a name that is no UTF-8 is U+FFFD here. */
export interface SkippedDocument {
  kind: "project" | "user" | "team";
  path: string;
  reason: string;
}

/** A preserved read that is no longer what its file holds, as far as is known: `sha256` is of what was read, `current` of what was read or written last. */
export interface Superseded {
  message: number;
  part: number | null;
  path: string;
  sha256: string;
  current: string;
}

/** A text item; MCP's shape. */
export interface TextContent {
  text: string;
  type?: "text";
}

/** One tool as a model sees it; `inputSchema` is a flat JSON Schema object. An upstream's own tool may have a title and an `outputSchema`. */
export interface Tool {
  name: string;
  description: string;
  inputSchema: Record<string, unknown>;
  annotations: Annotations;
  title?: string | null;
  outputSchema?: Record<string, unknown> | null;
}

/** What is known of one tool of an upstream. `paths`: its arguments that are a path, or a list of them, and what the tool does there. `arguments`: what else it takes. `serves`: the tool of ours that it stands for (`read_file` is `read_memory` too), and `words` our arguments in its words: `file_path` → `path`; with `edits`, also `edits.old_string` and `edits.new_string`. */
export interface ToolMapping {
  paths?: Record<string, "read" | "write" | "create" | "delete" | "move-from" | "move-to">;
  arguments?: (string)[];
  serves?: "read_file" | "write_file" | "edit" | null;
  words?: Record<string, string>;
}

/** The answer to `tools/call`; MCP's shape. What an upstream adds beyond these members (`structuredContent` and others) stands beside them as it came. */
export interface ToolResult {
  content: (TextContent | ImageContent | Record<string, unknown>)[];
  isError: boolean;
  _meta: Record<string, unknown>;
}

/** `tools/call`. `arguments` stay as they came until the tool's own types are known. */
export interface ToolsCallParams {
  sessionId: string;
  name: string;
  arguments?: Record<string, unknown>;
  callId?: string | null;
  workDoneToken?: number | string | null;
}

/** `tools/didChange`: an upstream has other tools now; `backend` is its name. A host that wants to know which asks `tools/list` again. */
export interface ToolsDidChangeParams {
  backend: string;
}

/** `tools/list`. */
export interface ToolsListParams {
  sessionId?: string | null;
}

/** The tools offered; with a session, the ones that this session may call. */
export interface ToolsListResult {
  tools: (Tool)[];
}

/** `turn/begin`: narrow the session for one turn, to a profile or by single members. What would widen it has no effect. */
export interface TurnBeginParams {
  sessionId: string;
  profile?: "main" | "extraction" | "dream" | "remember" | null;
  scope?: ScopePatch | null;
  turnId?: string | null;
}

/** `turn/end`. */
export interface TurnEndParams {
  sessionId: string;
  turnId: string;
}

/** The answer to `turn/end`: what is effective now. */
export interface TurnEndResult {
  scope: Scope;
  promptRules: (string)[];
}

/** The answer to `turn/begin`; `scope` is the effective one while the turn lasts. */
export interface TurnResult {
  turnId: string;
  scope: Scope;
  promptRules: (string)[];
}

/** Before a user message: the idle rule, else the size rule. `idleSeconds`: since the last request to the model was answered; null if none was yet. */
export interface TurnTrigger {
  idleSeconds?: number | null;
  kind?: "turn";
}

/** A file server that speaks MCP on stdio. `env` is laid over the gateway's own environment, `cwd` is absolute or begins with `~/`; `tools` says what is not known of its tools anyway. */
export interface UpstreamOptions {
  command: string;
  args?: (string)[];
  env?: Record<string, string> | null;
  cwd?: string | null;
  tools?: Record<string, ToolMapping> | null;
}

/** What `write_file` did; sizes, digest and line ending are those of the outcome. With an editor, `source` says where that is: in its open document, not saved yet, the first of whose versions that shows the change is `version`, or on the disk. */
export interface WriteDetails {
  path: string;
  created: boolean;
  changed: boolean;
  encoding: string;
  bom: boolean;
  lineEnding: "lf" | "crlf" | "cr" | "mixed" | null;
  sizeBytes: number;
  sha256: string;
  diff: string;
  otherLinks?: number;
  source?: "disk" | "buffer" | null;
  version?: number | null;
}

/** `write_file`: the whole new content. */
export interface WriteFileArguments {
  file_path: string;
  content: string;
  encoding?: string | null;
  expected_sha256?: string | null;
  dry_run?: boolean | null;
}

export interface Requests {
  "session/open": { params: SessionOpenParams; result: SessionResult };
  "session/configure": { params: SessionConfigureParams; result: SessionResult };
  "session/close": { params: SessionParams; result: SessionCloseResult };
  "session/list": { params: SessionListParams; result: SessionListResult };
  "turn/begin": { params: TurnBeginParams; result: TurnResult };
  "turn/end": { params: TurnEndParams; result: TurnEndResult };
  "memory/roots": { params: SessionParams; result: RootsResult };
  "memory/index": { params: MemoryIndexParams; result: MemoryIndexResult };
  "tools/list": { params: ToolsListParams; result: ToolsListResult };
  "tools/call": { params: ToolsCallParams; result: ToolResult };
  "policy/explain": { params: ExplainParams; result: Decision };
  "context/compact": { params: CompactParams; result: CompactResult };
  "context/reset": { params: SessionParams; result: ResetResult };
}

export interface Sent {
  "tools/didChange": { params: ToolsDidChangeParams; result: undefined };
  "memory/didChange": { params: MemoryDidChangeParams; result: undefined };
  "file/didChange": { params: FileDidChangeParams; result: undefined };
  "permission/request": { params: PermissionParams; result: PermissionResult };
}
