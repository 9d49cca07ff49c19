"""Pure: which tool of an upstream is which of ours, and what it does to which of its arguments.

What a tool says of itself (annotations, descriptions) is not believed: it is only a hint. A mapping
is the user's, or stands in the table here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from pinfold_protocol.errors import ToolError
from pinfold_protocol.session import PathUse, ServedTool, ToolMapping, UpstreamOptions

MOST_PATHS = 128
"""How many paths one call may name: each is opened and held while it is decided."""
TREES: frozenset[PathUse] = frozenset({"read", "write", "delete", "move-from", "move-to"})
"""What takes along all that is below a path. Making a directory that is there does nothing."""
ENTRIES: frozenset[PathUse] = frozenset({"delete", "move-from", "move-to"})
"""What is about the name itself, not about where it may lead."""

_EDIT_WORDS = {
    "file_path": "path",
    "edits": "edits",
    "edits.old_string": "oldText",
    "edits.new_string": "newText",
    "dry_run": "dryRun",
}
FILESYSTEM: dict[str, ToolMapping] = {
    "read_file": ToolMapping({"path": "read"}, ["head", "tail"]),
    "read_text_file": ToolMapping(
        {"path": "read"}, ["head", "tail"], "read_file", {"file_path": "path", "limit": "head"}
    ),
    "read_media_file": ToolMapping({"path": "read"}),
    "read_multiple_files": ToolMapping({"paths": "read"}),
    "write_file": ToolMapping(
        {"path": "write"}, ["content"], "write_file", {"file_path": "path", "content": "content"}
    ),
    "edit_file": ToolMapping({"path": "write"}, ["edits", "dryRun"], "edit", _EDIT_WORDS),
    "create_directory": ToolMapping({"path": "create"}),
    "list_directory": ToolMapping({"path": "read"}),
    "list_directory_with_sizes": ToolMapping({"path": "read"}, ["sortBy"]),
    "directory_tree": ToolMapping({"path": "read"}, ["excludePatterns"]),
    "move_file": ToolMapping({"source": "move-from", "destination": "move-to"}),
    "search_files": ToolMapping({"path": "read"}, ["pattern", "excludePatterns"]),
    "get_file_info": ToolMapping({"path": "read"}),
    "list_allowed_directories": ToolMapping(),
}
"""`@modelcontextprotocol/server-filesystem`, up to 2026.8.31."""
_FILESYSTEM_NAME = "secure-filesystem-server"
_FILESYSTEM_SIGN = frozenset({"read_text_file", "write_file", "edit_file", "move_file"})

_OURS: dict[ServedTool, tuple[str, ...]] = {
    "read_file": ("read_file", "read_memory"),
    "write_file": ("write_file",),
    "edit": ("edit",),
}
_NEEDED: dict[ServedTool, tuple[tuple[str, ...], ...]] = {
    "read_file": (("file_path",),),
    "write_file": (("file_path", "content"),),
    "edit": (
        ("file_path", "old_string", "new_string"),
        ("file_path", "edits", "edits.old_string", "edits.new_string"),
    ),
}
"""Which of our arguments must have a word, one row being enough."""
_USES: dict[ServedTool, PathUse] = {"read_file": "read", "write_file": "write", "edit": "write"}
"""What ours do to `file_path`. Said otherwise, a change would be decided as a read."""


class PathArgument(msgspec.Struct, frozen=True):
    """One path in a call, as it was given: in the argument `name`, at `index` of a list."""

    name: str
    index: int | None
    raw: str
    use: PathUse


class Plan(msgspec.Struct, frozen=True):
    """A call in the upstream's words. `known`: whether there is a mapping; `unmapped`: an argument
    that it does not name; `ours`: the tool of ours that was called, if it was one; `absent`: a path
    that was left out, so that the upstream would choose one."""

    tool: str
    arguments: dict[str, Any]
    paths: tuple[PathArgument, ...] = ()
    known: bool = True
    unmapped: str | None = None
    ours: str | None = None
    absent: str | None = None

    @property
    def changes(self) -> bool:
        """Whether anything may be changed; for all one can say, where nothing is known."""
        return not self.known or any(each.use != "read" for each in self.paths)

    def with_paths(self, real: Iterable[str]) -> dict[str, Any]:
        """The arguments with other paths, in the order of `paths`."""
        arguments = dict(self.arguments)
        for argument, path in zip(self.paths, real, strict=True):
            if argument.index is None:
                arguments[argument.name] = path
            else:
                arguments[argument.name] = [*arguments[argument.name]]
                arguments[argument.name][argument.index] = path
        return arguments


def problem_of(options: UpstreamOptions) -> tuple[str, str] | None:
    """What is wrong with the mappings that somebody wrote: the member, and why; None if nothing."""
    served: dict[str, str] = {}
    for tool, mapping in (options.tools or {}).items():
        if mapping.serves is None:
            if mapping.words:
                return f"tools.{tool}.words", "goes with serves"
            continue
        if mapping.serves in served:
            return f"tools.{tool}.serves", f"{served[mapping.serves]} serves {mapping.serves} too"
        served[mapping.serves] = tool
        if not any(set(row) <= set(mapping.words) for row in _NEEDED[mapping.serves]):
            needed = " or ".join(", ".join(row) for row in _NEEDED[mapping.serves])
            return f"tools.{tool}.words", f"must give a word for {needed}"
        path, use = mapping.words["file_path"], _USES[mapping.serves]
        if mapping.paths.get(path) != use:
            return f"tools.{tool}.paths.{path}", f'must be "{use}" in what serves {mapping.serves}'
        outer = [theirs for ours, theirs in mapping.words.items() if "." not in ours]
        if len(set(outer)) < len(outer):
            return f"tools.{tool}.words", "has one word for two arguments"
        named = {*mapping.paths, *mapping.arguments}
        for ours, theirs in mapping.words.items():
            if "." not in ours and theirs not in named:
                return f"tools.{tool}.words", f"{theirs} is in neither paths nor arguments"
    return None


class Catalog:
    """The tools of one upstream, as far as they are known. `listed`: as it lists them."""

    def __init__(
        self, upstream: str, name: str, listed: Iterable[dict[str, Any]], options: UpstreamOptions
    ) -> None:
        self.upstream = upstream
        self.listed: dict[str, dict[str, Any]] = {tool["name"]: tool for tool in listed}
        builtin: Mapping[str, ToolMapping] = {}
        if name == _FILESYSTEM_NAME or set(self.listed) >= _FILESYSTEM_SIGN:
            builtin = FILESYSTEM
        known = {**builtin, **(options.tools or {})}
        self.mapped = {tool: known[tool] for tool in self.listed if tool in known}
        self._serving: dict[str, str] = {}
        # Whoever wrote a mapping knows better than our table: theirs come last.
        for tool in sorted(self.mapped, key=lambda tool: tool in (options.tools or {})):
            if serves := self.mapped[tool].serves:
                self._serving |= dict.fromkeys(_OURS[serves], tool)

    @property
    def served(self) -> list[str]:
        """Our tools that it serves, in our order."""
        return [name for names in _OURS.values() for name in names if name in self._serving]

    @property
    def unmapped(self) -> list[str]:
        """Its tools of which nothing is known."""
        return [tool for tool in self.listed if tool not in self.mapped]

    def own(self, *, scoped: bool) -> list[str]:
        """Its own tools under their own names, as they are offered: in a scoped session those that
        are known; never one that has the name of ours."""
        tools = self.mapped if scoped else self.listed
        return [tool for tool in self.listed if tool in tools and tool not in self._serving]

    def words(self, ours: str) -> list[str]:
        """Which arguments of a tool of ours can be said in its words."""
        mapping = self.mapped[self._serving[ours]]
        names = [name for name in mapping.words if "." not in name]
        if "edits.old_string" in mapping.words:
            names += ["old_string", "new_string"]
        return names

    def has(self, name: str) -> bool:
        """Whether there is such a tool, ours or its own."""
        return name in self._serving or name in self.listed

    def is_ours(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether a call is meant in our words: the name of ours, and not in its own words where
        it has a tool of that name too."""
        return name in self._serving and ("file_path" in arguments or name not in self.listed)

    def plan(self, name: str, arguments: Mapping[str, Any]) -> Plan:
        """A call in its own words. Raises ToolError for a path that is none."""
        mapping = self.mapped.get(name)
        if mapping is None:
            return Plan(name, dict(arguments), known=False)
        named = {*mapping.paths, *mapping.arguments}
        unmapped = next((each for each in arguments if each not in named), None)
        absent = next((each for each in mapping.paths if arguments.get(each) is None), None)
        paths = tuple(
            path
            for argument, use in mapping.paths.items()
            if arguments.get(argument) is not None
            for path in _paths(argument, arguments[argument], use)
        )
        if len(paths) > MOST_PATHS:
            raise ToolError(
                "invalid-arguments",
                f"at most {MOST_PATHS} paths may be given at once. Give them in several calls.",
            )
        return Plan(name, dict(arguments), paths, unmapped=unmapped, absent=absent)

    def plan_ours(self, name: str, arguments: Mapping[str, Any]) -> Plan:
        """A call of a tool of ours, its arguments already checked, in the upstream's words.

        Raises ToolError `invalid-arguments` for what it has no word for.
        """
        tool = self._serving[name]
        words = self.mapped[tool].words
        theirs: dict[str, Any] = {}
        for argument, value in _normal(arguments, words).items():
            if value is None or (value is False and argument not in words):
                continue
            if argument not in words:
                raise self._untranslatable(name, argument)
            if argument == "old_string" and value == "":
                raise _nothing_to_replace()
            theirs[words[argument]] = (
                self._edits(name, value, words) if argument == "edits" else value
            )
        return msgspec.structs.replace(self.plan(tool, theirs), ours=name)

    def _edits(self, name: str, edits: Any, words: Mapping[str, str]) -> list[dict[str, Any]]:
        translated = []
        for edit in edits:
            if edit.get("old_string") == "":
                raise _nothing_to_replace()
            if edit.get("replace_all") and "edits.replace_all" not in words:
                raise self._untranslatable(name, "replace_all")
            translated.append(
                {
                    words[f"edits.{argument}"]: value
                    for argument, value in _given(edit)
                    if f"edits.{argument}" in words
                }
            )
        return translated

    def _untranslatable(self, name: str, argument: str) -> ToolError:
        problem = f"the file server behind this session ({self.upstream}) has nothing like it"
        takes = ", ".join(self.words(name))
        message = f"{argument}: {problem}; {name} takes {takes} here."
        return ToolError("invalid-arguments", message, path=argument)


def _nothing_to_replace() -> ToolError:
    message = "old_string: is empty; to create a file here, use write_file."
    return ToolError("invalid-arguments", message, path="old_string")


def _given(edit: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The members of one replacement that were given."""
    return [(name, value) for name, value in edit.items() if value is not None]


def _normal(arguments: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    """One replacement becomes a list of one, for whom knows only lists."""
    given = {name: value for name, value in arguments.items() if value is not None}
    if "old_string" not in given or "old_string" in words or "edits" not in words:
        return given
    single = ("old_string", "new_string", "replace_all")
    edit = {name: given.pop(name) for name in single if name in given}
    return {**given, "edits": [edit]}


def _paths(argument: str, value: Any, use: PathUse) -> list[PathArgument]:
    if isinstance(value, str):
        return [PathArgument(argument, None, value, use)]
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return [PathArgument(argument, index, each, use) for index, each in enumerate(value)]
    message = f"{argument}: must be a path, or a list of paths."
    raise ToolError("invalid-arguments", message, path=argument)
