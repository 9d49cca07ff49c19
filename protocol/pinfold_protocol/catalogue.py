"""What every error of the contract means, why it comes, and what to do: a row for each.

`schema.json` carries it for programs and `docs/errors.md` for people. Nothing that starts with
every spawn imports it. A test keeps its keys in step with `errors` and `decision`.
"""

import msgspec

from pinfold_protocol import errors


class Kind(msgspec.Struct, frozen=True):
    """One kind of error. `name`: its anchor in docs/errors.md, which stays; `means`: what happened
    and why; `then`: what to do next. Both are plain sentences."""

    name: str
    means: str
    then: str


def _tool(name: errors.ToolErrorKind, means: str, then: str) -> tuple[str, Kind]:
    return name, Kind(name, means, then)


TOOL_ERRORS: dict[str, Kind] = dict(
    (
        _tool(
            "denied",
            "The policy does not allow the call. Nothing was touched.",
            'Read the reason, and the rule that decided in `_meta["pinfold/decision"]`: below, '
            "there is a section for each rule. Trying another name of the same file does not help.",
        ),
        _tool(
            "not-found",
            "There is no file at the path, or a part of the path is no directory.",
            "Correct the path. If names in the same directory look alike, the message has them. To "
            "make a file, use `write_file`, or `edit` with an empty `old_string`.",
        ),
        _tool(
            "is-directory",
            "The path leads to a directory, and tools work on files.",
            "Give the path of a file in it.",
        ),
        _tool(
            "not-a-regular-file",
            "A FIFO, a socket or a device. It was not opened, since that could wait for ever.",
            "Use another path.",
        ),
        _tool(
            "binary",
            "The file is not text: a NUL byte in its first 8 KiB, or an image to be edited.",
            "Leave it alone, or change it with a program that knows its format. If it is text, as "
            "UTF-16 without a mark is, give `encoding`.",
        ),
        _tool(
            "undecodable",
            "Some bytes of the file are not valid in its encoding, UTF-8 unless something else is "
            "known. Nothing was replaced by question marks.",
            "Give `encoding` if you know it; the message may have a guess. ASCII text around such "
            "bytes can be edited without it.",
        ),
        _tool(
            "too-large",
            "The file, or what it would become, is over the limit `maxFileBytes`, or a text occurs "
            "too often to be replaced everywhere.",
            "Read it in parts, with `offset` and `limit`. Write less, or several files. The host "
            "can raise the limit.",
        ),
        _tool(
            "permission",
            "The system does not let this user do that, or the file's owner could not be kept.",
            "Ask the user to allow it (`ls -l` shows who may), or use another file.",
        ),
        _tool(
            "no-match",
            "`old_string` is not in the file, letter by letter. Nothing was changed.",
            "Look at the line and the first difference that the message names: white space, "
            "quotes, case, a line number. Else read the file again, and copy the text exactly.",
        ),
        _tool(
            "ambiguous-match",
            "`old_string` is in the file more than once. Nothing was changed.",
            "Give more of the text around the place that you mean, or `replace_all`.",
        ),
        _tool(
            "no-change",
            "`old_string` and `new_string` are the same.",
            "Say what is to be different, or leave it.",
        ),
        _tool(
            "already-exists",
            "A file cannot move to a name that is taken. Nothing was moved.",
            "Choose another name.",
        ),
        _tool(
            "stale",
            "The file is not what this session last saw, or not what `expected_sha256` says.",
            "Read it again, and decide anew what to change.",
        ),
        _tool(
            "not-read",
            "This session has to read a file before it changes it (`staleness: require-read`).",
            "Read it, then change it.",
        ),
        _tool(
            "invalid-path",
            "The path cannot name a file: it is empty, too long, a loop of links, or holds a NUL "
            "or half of a surrogate pair.",
            "Correct the path. It is taken as it stands: nothing is trimmed or decoded.",
        ),
        _tool(
            "invalid-arguments",
            "An argument is missing, not known, of a wrong type, or does not go with another.",
            "Correct the argument that the message names first; `tools/list` has the schemas.",
        ),
        _tool(
            "read-only-filesystem",
            "The file is on a volume that is mounted read-only.",
            "Write elsewhere, or ask the user to remount it.",
        ),
        _tool(
            "no-space",
            "The disk or the user's quota is full. The old content is whole.",
            "Ask the user to make room, then try again.",
        ),
        _tool(
            "changed-underfoot",
            "Another program changed the path, or kept its directory locked, between the decision "
            "and its effect. Nothing was changed.",
            "Try again. If it stays, find out which program is at work there.",
        ),
        _tool(
            "io",
            "The system failed in a way that has no kind of its own; the message has its name.",
            "Do what the message says. Where it names the disk (`EIO`), tell the user: that, or "
            "what it is mounted from, may be damaged.",
        ),
        _tool(
            "backend",
            "The editor or the file server that the session works through did not do it, or what "
            "it did is not known. `details.error.applied` is `false` where nothing was changed, "
            "and `null` where that is not known.",
            "Where it is not known, read the file before you go on. Else mend what the message "
            "names: the editor's document, or the command of the upstream.",
        ),
        _tool(
            "cancelled",
            "The contract keeps this word. No call is answered by it today: one that is cancelled "
            "before it took effect gets [-32800](#rpc-cancelled), and one that an upstream may "
            "have done is `backend`.",
            "Treat it as not done, and read the file if it matters.",
        ),
    )
)
"""By kind: what a model reads as a result with `isError: true`."""

RPC_ERRORS: dict[int, Kind] = {
    errors.PARSE_ERROR: Kind(
        "rpc-parse-error",
        "What came is not JSON, nested too deeply, or stands behind a header without a valid "
        "`Content-Length`. Only the last ends the connection.",
        "Send UTF-8 JSON, and count its bytes, not its characters.",
    ),
    errors.INVALID_REQUEST: Kind(
        "rpc-invalid-request",
        "It is JSON, and no request: not an object, a batch, a wrong `jsonrpc` or `id`, an id that "
        "is in flight, or out of order (a second `initialize`, anything after `shutdown`).",
        "Correct the envelope; use every id once at a time.",
    ),
    errors.METHOD_NOT_FOUND: Kind(
        "rpc-method-not-found",
        "There is no method of that name here.",
        "Correct the name in `data.method`. The answer to `initialize` lists the methods. An "
        "editor's methods are there for clients that say what LSP wants.",
    ),
    errors.INVALID_PARAMS: Kind(
        "rpc-invalid-params",
        "A member of the params is missing, not known, of a wrong type, or cannot be. The same "
        "texts come from the command line and from configuration files, without the first words.",
        "Correct the member that `data.path` names; `data.problem` says what is wrong with it.",
    ),
    errors.INTERNAL_ERROR: Kind(
        "rpc-internal-error",
        "A mistake in pinfold, never in what was asked.",
        "Look for `data.errorId` in the gateway's log (stderr), and report what stands there.",
    ),
    errors.SERVER_NOT_INITIALIZED: Kind(
        "rpc-not-initialized",
        "A request came before `initialize`. To an MCP client of an older version the same number "
        "says that there is no such resource.",
        "Send `initialize` first, once. For a resource, list the resources again.",
    ),
    errors.REQUEST_CANCELLED: Kind(
        "rpc-cancelled",
        "The request was cancelled before it took effect, or too many are under way.",
        "Nothing to mend after a cancel. Else wait for some answers, and send it again.",
    ),
    errors.REQUEST_FAILED: Kind(
        "rpc-request-failed",
        "An editor asked for something that was understood and cannot be done, such as a move.",
        "Do what the message says; it is meant for the person at the editor.",
    ),
    errors.UNKNOWN_SESSION: Kind(
        "rpc-unknown-session",
        "No session of that id is open: it was never opened, or is closed.",
        "Open one with `session/open`, and use the id that it answers.",
    ),
    errors.MESSAGE_TOO_LARGE: Kind(
        "rpc-message-too-large",
        "The message is over the limit `maxMessageBytes`. It was read to its end and dropped.",
        "Send less at once, or let the host raise the limit.",
    ),
    errors.UNSUPPORTED_VERSION: Kind(
        "rpc-unsupported-version",
        "MCP: the client named a version of the protocol that is not spoken here.",
        "Use one of those in `data.supported`.",
    ),
}
"""By code: what a host reads."""

DENIALS: dict[str, Kind] = {
    "pinned": Kind(
        "denied-pinned",
        "The call would change something that is pinned. `match` says how that was found: by the "
        "path as it was given, by where it leads, by the identity of a directory on the way, or "
        "since the file is a hard link to a pinned one.",
        "Leave it as it is. What is new goes into a topic outside of `pinned/`. A person who wants "
        "to change it does so in a session of profile `main`.",
    ),
    "outside-memory": Kind(
        "denied-outside-memory",
        "The session is confined to its memory roots, and the path leads elsewhere, or to what is "
        "no memory inside of one (a git directory, the gateway's own record).",
        "Use a path inside the roots that the reason names; `memory/roots` lists them.",
    ),
    "base-rule": Kind(
        "denied-base-rule",
        "A rule of the host or of the user denies it, or asks and got no leave.",
        "Go on without it, and tell the user. The number in `source` says which rule it was, and "
        "`asked` what became of the question.",
    ),
    "shell": Kind(
        "denied-shell",
        "The session may run no shell commands, or only such as are proven to read only, and this "
        "one is not. The reason quotes the part that could not be proven harmless.",
        "Say it more simply: one plain command, without what the reason quotes. Or use the tools.",
    ),
    "unknown-tool": Kind(
        "denied-unknown-tool",
        "The session protects or confines something, and what this tool or argument changes is not "
        "known.",
        "Use a tool that the session lists. For an upstream, `upstreams.NAME.tools` can say what "
        "its tools do.",
    ),
}
"""By the rule of a decision that is not `allow`; `default` never denies."""
