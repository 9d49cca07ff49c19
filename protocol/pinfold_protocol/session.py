"""Sessions, scopes and memory roots (sections 2, 3 and 7 of the contract)."""

from typing import ClassVar, Literal

import msgspec

from pinfold_protocol.decision import RootKind, RuleSpec
from pinfold_protocol.wire import Wire

Profile = Literal["main", "extraction", "dream", "remember"]
Shell = Literal["deny", "read-only", "unscoped"]
HardLinks = Literal["deny", "ignore"]
Staleness = Literal["detect", "require-read", "off"]
LayoutName = Literal["qwen", "claude"]


class Scope(Wire, frozen=True):
    """What a session may do. The effective scope of a session is always whole."""

    confine_writes: bool
    confine_reads: bool
    project_memory: bool
    user_memory: bool
    protect_pinned: bool
    shell: Shell
    bypass_ask: bool
    hard_links: HardLinks = "deny"
    staleness: Staleness = "detect"


PROFILES: dict[Profile, Scope] = {
    "main": Scope(False, False, True, True, False, "unscoped", False),
    "extraction": Scope(True, False, True, True, True, "read-only", False),
    "dream": Scope(True, False, True, False, True, "read-only", False),
    "remember": Scope(True, True, True, True, False, "deny", True),
}


class ScopePatch(Wire, frozen=True):
    """Members that differ from the profile's. A null resets the member to the profile's."""

    # Tells one that was null from one that was absent.
    given_in: ClassVar[str | None] = "given"

    confine_writes: bool | None = None
    confine_reads: bool | None = None
    project_memory: bool | None = None
    user_memory: bool | None = None
    protect_pinned: bool | None = None
    shell: Shell | None = None
    bypass_ask: bool | None = None
    hard_links: HardLinks | None = None
    staleness: Staleness | None = None
    given: tuple[str, ...] = ()


class MemoryOptions(Wire, frozen=True):
    """Where the roots are: a named layout, and roots that replace it (absolute, or `~/`)."""

    layout: LayoutName | None = None
    project_root: str | None = None
    user_root: str | None = None
    team_root: str | None = None


class Limits(Wire, frozen=True):
    """Sizes in bytes, but for `read_lines`; `ask_seconds` is how long a question waits,
    `editor_seconds` how long an edit of an open document may take to be seen. Defaults for all
    sessions of a connection."""

    max_message_bytes: int = 64 * 1024 * 1024
    max_file_bytes: int = 64 * 1024 * 1024
    read_lines: int = 2000
    read_bytes: int = 256 * 1024
    ask_seconds: int = 120
    editor_seconds: int = 10


class AuditOptions(Wire, frozen=True):
    """The record: one line for each decision, in a file of at most `max_bytes` (bytes) that is
    rotated, `keep` older ones being kept.

    `path` is absolute or begins with `~/`; without it, the user's directory for such things.
    """

    path: str | None = None
    max_bytes: int = 10 * 1024 * 1024
    keep: int = 3


PathUse = Literal["read", "write", "create", "delete", "move-from", "move-to"]
ServedTool = Literal["read_file", "write_file", "edit"]


class ToolMapping(Wire, frozen=True):
    """What is known of one tool of an upstream.

    `paths`: its arguments that are a path, or a list of them, and what the tool does there.
    `arguments`: what else it takes. `serves`: the tool of ours that it stands for (`read_file` is
    `read_memory` too), and `words` our arguments in its words: `file_path` → `path`; with
    `edits`, also `edits.old_string` and `edits.new_string`.
    """

    paths: dict[str, PathUse] = msgspec.field(default_factory=dict)
    arguments: list[str] = msgspec.field(default_factory=list)
    serves: ServedTool | None = None
    words: dict[str, str] = msgspec.field(default_factory=dict)


class UpstreamOptions(Wire, frozen=True):
    """A file server that speaks MCP on stdio. `env` is laid over the gateway's own environment,
    `cwd` is absolute or begins with `~/`; `tools` says what is not known of its tools anyway."""

    command: str
    args: list[str] = msgspec.field(default_factory=list)
    env: dict[str, str] | None = None
    cwd: str | None = None
    tools: dict[str, ToolMapping] | None = None


class EditorSession(Wire, frozen=True):
    """The editor's own session: what its language service sees, and under which renames and code
    actions are decided. Members are those of `session/open`.

    `project_root` is by default the first workspace folder, else the root that `initialize` names,
    else the directory in which the gateway was started.
    """

    profile: Profile = "main"
    project_root: str | None = None
    session_id: str = "editor"
    scope: ScopePatch | None = None
    memory: MemoryOptions | None = None
    rules: list[RuleSpec] | None = None


class ConnectionOptions(Wire, frozen=True):
    """`initializationOptions.pinfold`. Without `audit` nothing is recorded. `session`: for a client
    with text documents only. `upstreams`: by the name that `session/open` gives as `backend`."""

    memory: MemoryOptions | None = None
    limits: Limits | None = None
    rules: list[RuleSpec] | None = None
    audit: AuditOptions | None = None
    session: EditorSession | None = None
    upstreams: dict[str, UpstreamOptions] | None = None


class Root(Wire, frozen=True):
    """One memory root as it lies on the disk now. Paths are absolute.

    `path` is as configured; `real_path` what it resolves to (null if that cannot be said);
    `write_path` is what confinement trusts; `pinned` holds `path/pinned` and its target if a link.
    """

    kind: RootKind
    path: str
    real_path: str | None
    write_path: str | None
    exists: bool
    included: bool
    pinned: list[str]


class SessionOpenParams(Wire, frozen=True):
    """`session/open`. `project_root` is an absolute path or a `file:` URI; `backend` is `local`
    (the default) or a configured upstream's name."""

    profile: Profile
    project_root: str
    session_id: str | None = None
    scope: ScopePatch | None = None
    memory: MemoryOptions | None = None
    backend: str | None = None
    rules: list[RuleSpec] | None = None


class SessionResult(Wire, frozen=True):
    """The answer to `session/open` and `session/configure`; `scope` is the whole effective one."""

    session_id: str
    profile: Profile
    scope: Scope
    roots: list[Root]
    tools: list[str]
    prompt_rules: list[str]


class SessionConfigureParams(Wire, frozen=True):
    """`session/configure`: `scope` merges over the current one, `rules` replaces the session's own
    (an empty list takes them away)."""

    session_id: str
    scope: ScopePatch | None = None
    rules: list[RuleSpec] | None = None


class TurnBeginParams(Wire, frozen=True):
    """`turn/begin`: narrow the session for one turn, to a profile or by single members. What would
    widen it has no effect."""

    session_id: str
    profile: Profile | None = None
    scope: ScopePatch | None = None
    turn_id: str | None = None


class TurnResult(Wire, frozen=True):
    """The answer to `turn/begin`; `scope` is the effective one while the turn lasts."""

    turn_id: str
    scope: Scope
    prompt_rules: list[str]


class TurnEndParams(Wire, frozen=True):
    """`turn/end`."""

    session_id: str
    turn_id: str


class TurnEndResult(Wire, frozen=True):
    """The answer to `turn/end`: what is effective now."""

    scope: Scope
    prompt_rules: list[str]


class SessionParams(Wire, frozen=True):
    """The params of methods that only name a session."""

    session_id: str


class SessionCloseResult(Wire, frozen=True):
    """How many calls the session made and how many of them were denied."""

    calls: int
    denials: int


class SessionListParams(Wire, frozen=True):
    """`session/list`."""


class SessionSummary(Wire, frozen=True):
    """One open session."""

    session_id: str
    profile: Profile
    project_root: str
    turns: list[str]
    calls: int
    denials: int


class SessionListResult(Wire, frozen=True):
    """All open sessions of this connection, in the order in which they were opened."""

    sessions: list[SessionSummary]


class MemoryDidChangeParams(Wire, frozen=True):
    """`memory/didChange`: a call of this session changed a file below a root. `root` is the root's
    kind, `path` the real path."""

    session_id: str
    root: RootKind
    path: str
    kind: Literal["created", "changed", "deleted"]


class FileDidChangeParams(Wire, frozen=True):
    """`file/didChange`: a call of this session, whose backend is the editor, changed a file on
    disk, since the file was not open there. `uri` names its real path."""

    session_id: str
    uri: str
    kind: Literal["created", "changed"]


class RootsResult(Wire, frozen=True):
    """`memory/roots`."""

    roots: list[Root]
