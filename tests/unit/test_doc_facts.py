"""What the pages say of limits, tests and the network is what the code and the tests have."""

import ast
import json
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from pinfold import config, session
from pinfold.audit import recorder
from pinfold.backends import locks
from pinfold.doctor.tree import Limits as Look
from pinfold.doors import calling, mcp, native, process, rpc, slowly, wire, workers
from pinfold.doors.hook import events, judge, reads
from pinfold.doors.hook import flags as hook_flags
from pinfold.memory import documents, index
from pinfold.paths import known, literal, walk
from pinfold.policy.shell import tokens, tree
from pinfold.text import codec as text_codec
from pinfold.text import edit, frontmatter
from pinfold.upstream import mapping, peer
from pinfold_protocol import framing, memory
from pinfold_protocol.convert import wire_names
from pinfold_protocol.session import Limits
from support import SERVE, clean_env

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
LOOK = Look()

FIXED: list[tuple[str, tuple[object, ...]]] = [
    ("a header block", (framing.MAX_HEADER, framing.MAX_LENGTH)),
    ("nesting of a message", (slowly._MAX_DEPTH,)),
    ("requests under way", (rpc._MAX_RUNNING, rpc._MAX_HELD)),
    ("replies that the host has not read", (wire.CONGESTED, wire._FULL)),
    ("calls that run at once", (workers._WORKERS, workers._SESSION_WORKERS)),
    ("threads stuck", (workers._ABANDONED,)),
    ("questions asked for one call", (calling._MOST_QUESTIONS,)),
    ("another gateway's lock", (round(locks._TRIES * locks._PAUSE),)),
    ("`shutdown`", (native._PUBLISHING_SECONDS,)),
    ("the end of an MCP client's input", (mcp._END_SECONDS,)),
    ("asking an MCP client for its roots", (mcp._ROOTS_SECONDS,)),
    ("a path", (literal.MAX_BYTES,)),
    ("symbolic links on one way", (walk.MAX_LINKS,)),
    ("open descriptors", (process._DESCRIPTORS,)),
    ("places replaced", (edit.MANY,)),
    ("what is looked at to tell binary", (text_codec.BINARY_PROBE,)),
    ("files whose digest", (known.MOST,)),
    ("tags that a session remembers", (session.MOST_TAGS,)),
    ("the configuration file", (config._MOST_BYTES,)),
    ("documents in `memory/index`", (memory.DEFAULT_LIMIT,)),
    ("names looked at", (documents.MOST_NAMES,)),
    ("titles and descriptions", (index.MOST_TEXT >> 20,)),
    ("`skipped` by name", (index.MOST_SKIPPED,)),
    ("frontmatter", (frontmatter.MOST_BYTES,)),
    ("the doctor's look", (LOOK.entries, LOOK.links, LOOK.seconds)),
    ("a shell command", (tokens.LONGEST, tree._LONGEST, tokens._MOST_COMMANDS)),
    ("an event of a hook", (events.LONGEST, hook_flags.DEADLINE)),
    ("strings in the arguments", (judge.MOST_STRINGS,)),
    ("what hooks note", (reads.MOST_DOCUMENTS, reads.MOST_SESSIONS)),
    ("the start of an upstream", (peer.START_SECONDS,)),
    ("paths in one call of an upstream", (mapping.MOST_PATHS,)),
    ("restarts of an upstream", (peer._BACKOFF[-1],)),
    ("entries that wait for the record", (recorder.ROOM,)),
]
"""The beginning of each row of docs/operating.md that names a fixed limit, and its values there."""


def rows(page: str, heading: str) -> Iterator[list[str]]:
    """The cells of the tables below a heading of a page, without head and rule."""
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        for line in table.splitlines()[2:]:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def spellings(value: object) -> list[str]:
    """How a page may write a number: whole, with separators, or in a binary unit."""
    assert isinstance(value, int | float) and value == int(value)
    number = int(value)
    found = [f"{number:,}"]
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if number and number % (1 << shift) == 0:
            found.append(f"{number >> shift} {unit}")
    return found


def says(text: str, value: object) -> bool:
    """Whether a text names a value, as a number of its own."""
    return any(
        re.search(rf"(?<![\d,]){re.escape(each)}(?![\d,]*\d)", text) for each in spellings(value)
    )


@pytest.mark.parametrize(("text", "value", "said"), [
    ("64 MiB", 64 << 20, True), ("64 KiB", 64 << 20, False), ("2,000 links", 2000, True),
    ("12,000", 2000, False), ("20,000", 2000, False), ("5 seconds", 5.0, True), ("15", 5, False),
])  # fmt: skip
def test_numbers_are_told_apart(text: str, value: object, said: bool) -> None:
    assert says(text, value) is said


@pytest.mark.parametrize("field", msgspec.structs.fields(Limits), ids=lambda field: str(field.name))
def test_each_limit_that_can_be_set_has_its_default_in_the_page(
    field: msgspec.structs.FieldInfo,
) -> None:
    name = f"`{wire_names(Limits)[field.name]}`"
    row = next(cells for cells in rows("operating.md", "Limits") if cells[0] == name)
    assert says(row[1], field.default), row


@pytest.mark.parametrize(("begins", "values"), FIXED, ids=[begins for begins, _ in FIXED])
def test_each_fixed_limit_is_what_the_page_says(begins: str, values: tuple[object, ...]) -> None:
    (row,) = [cells for cells in rows("operating.md", "Limits") if cells[0].startswith(begins + " ")
              or cells[0].split(",")[0] == begins]  # fmt: skip
    assert all(says(row[1] + row[0], value) for value in values), (row, values)


def test_every_guarantee_names_tests_that_are_there() -> None:
    guarantees = list(rows("threat-model.md", "What is defended"))
    assert len(guarantees) > 10
    for guarantee, _, shown in guarantees:
        assert re.findall(r"`(tests/[^`]+\.py)`", shown), guarantee


def test_tests_that_pages_name_are_there() -> None:
    for page in DOCS.rglob("*.md"):
        for named in re.findall(r"tests/[\w/]+\.(?:py|mjs)", page.read_text(encoding="utf-8")):
            assert (REPOSITORY / named).is_file(), (page.name, named)


def explained(tmp_path: Path) -> str:
    """What `pinfold explain` says of a call that a rule denies."""
    rule = [{"decision": "deny", "tools": ["write_file"], "paths": ["docs/**"]}]
    (tmp_path / "rules.json").write_text(json.dumps(rule), encoding="utf-8")
    asked = "explain docs/a.md --tool write_file --profile main --rules rules.json"
    return subprocess.run(
        [*SERVE[:-1], *asked.split()],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=clean_env(HOME=str(tmp_path)),
        cwd=tmp_path,
        timeout=50,
        check=False,
    ).stdout


def test_the_denials_by_which_a_symptom_is_found_are_said_so(tmp_path: Path) -> None:
    """Each part between the dots of a row's text stands in the list of errors, or is printed."""
    said = (DOCS / "errors.md").read_text(encoding="utf-8") + explained(tmp_path)
    found = list(rows("troubleshooting.md", 'The agent says "Denied: …"'))
    assert len(found) > 5
    for _, like, _ in found:
        parts = [each.strip() for each in like.replace("rules[N]", "rules[0]").split("…")]
        assert any(parts) and all(each in said for each in parts), like


NETWORK = {"socket", "ssl", "http", "ftplib", "smtplib", "socketserver", "xmlrpc", "urllib.request"}
CONNECTING = {"open_connection", "start_server", "create_connection", "create_server"}


def reaching(source: str) -> list[str]:
    """What in a module could reach a network."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module or "", *(f"{node.module}.{each.name}" for each in node.names)]
        elif isinstance(node, ast.Attribute) and node.attr in CONNECTING:
            found.append(node.attr)
    return [each for each in found if each in CONNECTING | NETWORK or each.split(".")[0] in NETWORK]


def test_nothing_of_ours_reaches_a_network() -> None:
    assert reaching("from urllib import request") and reaching("import http.client")
    assert reaching("asyncio.open_connection()") and not reaching("import urllib.parse")
    sources = [*(REPOSITORY / "gateway").rglob("*.py"), *(REPOSITORY / "protocol").rglob("*.py")]
    assert len(sources) > 100
    for path in sources:
        assert reaching(path.read_text(encoding="utf-8")) == [], path


HOSTS = sorted(path.name for path in (DOCS / "hosts").glob("*.md"))
FENCE = re.compile(r"^```(json|toml|yaml|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def entries(page: str) -> Iterator[list[str]]:
    """The arguments with which each entry on a host's page starts `pinfold`."""
    for language, text in FENCE.findall((DOCS / "hosts" / page).read_text(encoding="utf-8")):
        if language == "json":
            yield from started(json.loads(text))
        elif language == "toml":
            yield from started(tomllib.loads(text))
        elif language == "yaml":  # there is no parser of it at hand
            for words in re.findall(r"args: \[(.*)\]", text):
                yield words.split(", ")
        elif command := re.search(r"-- pinfold (serve .*)", text):
            yield command[1].split()


def started(value: object) -> Iterator[list[str]]:
    """Every list of arguments in a configuration that begins with `serve`."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if isinstance(value, list) and "serve" in value:
        yield value[value.index("serve") :]
    for each in inner:
        yield from started(each)


@pytest.mark.parametrize("page", HOSTS)
def test_each_entry_for_a_host_starts_a_server_with_tools(page: str, tmp_path: Path) -> None:
    found = list(entries(page))
    assert found, page
    for arguments in found:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}}
        asked = [
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ]
        ran = subprocess.run(
            [*SERVE[:-1], *arguments],
            input="".join(json.dumps(each) + "\n" for each in asked),
            capture_output=True,
            text=True,
            encoding="utf-8",
            env=clean_env(HOME=str(tmp_path)),
            cwd=tmp_path,
            timeout=50,
            check=False,
        )
        tools = json.loads(ran.stdout.splitlines()[-1])["result"]["tools"]
        assert len(tools) == 4 and ran.returncode == 0, (arguments, ran)
