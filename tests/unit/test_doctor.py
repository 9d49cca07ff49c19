"""`pinfold doctor`: layouts and what is found in them, statuses, and rules that are tried out."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fronts import runs, started, upstream
from pinfold.app import Gateway
from pinfold.config import load as load_config
from pinfold.doctor import Case, Limits, as_json, examine, is_wrong
from pinfold.doctor.examine import never_matches
from pinfold.doctor.finding import KINDS, MOST_SPOTS, finding
from pinfold.doctor.mounts import Mount, mount_of, mounts_below
from pinfold.doctor.tree import LIMITS, take
from pinfold.doctor.volume import probe
from pinfold.flags import Flags
from pinfold.paths.kernel import platform
from pinfold.rulefile import load
from pinfold_protocol.convert import structure
from pinfold_protocol.decision import RuleSpec
from pinfold_protocol.errors import RpcError
from pinfold_protocol.session import SessionOpenParams, SessionResult
from support import clean_env, snapshot, write
from unit.test_cli import pinfold

DOCS = Path(__file__).parents[2] / "docs" / "doctor.md"


class Patient:
    """A project with memory, made to be examined."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = base / "project"
        self.project.mkdir()
        self.env = {"QWEN_CODE_MEMORY_BASE_DIR": f"{base}/memory", "HOME": f"{base}/home"}
        _, opened = self.open("dream", {}, None)
        self.memory, self.user, self.team = (root.path for root in opened.roots)

    def healthy(self) -> "Patient":
        write(f"{self.memory}/pinned/rules.md", "curated")
        write(f"{self.memory}/topics/topic.md", "ordinary")
        write(f"{self.user}/pinned/habits.md", "curated")
        write(f"{self.team}/team.md", "shared")
        return self

    def open(
        self, profile: str, scope: dict[str, Any], rules: list[Any] | None
    ) -> tuple[Gateway, SessionResult]:
        raw = {"profile": profile, "projectRoot": str(self.project), "scope": scope}
        gateway = Gateway(self.env, cwd=str(self.base))
        more = {} if rules is None else {"rules": rules}
        return gateway, gateway.open_session(structure(raw | more, SessionOpenParams))

    def examine(
        self,
        profile: str = "dream",
        scope: dict[str, Any] | None = None,
        rules: list[Any] | None = None,
        limits: Limits = LIMITS,
    ) -> list[dict[str, Any]]:
        def opener(given: list[Any] | None) -> tuple[Gateway, SessionResult]:
            return self.open(profile, scope or {}, given)

        return as_json(examine(Case(opener, self.env, rules, limits)))


@pytest.fixture(autouse=True)
def state(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever whoever runs this has for a record is none of our business."""
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")


@pytest.fixture
def patient(tmp_path: Path) -> Patient:
    return Patient(tmp_path).healthy()


def not_ok(found: list[dict[str, Any]]) -> dict[str, str]:
    """The ids of what is not ok, with their levels."""
    return {each["id"]: each["level"] for each in found if each["level"] != "ok"}


def one(found: list[dict[str, Any]], name: str) -> dict[str, Any]:
    (only,) = [each for each in found if each["id"] == name]
    return only


def paths(found: list[dict[str, Any]], name: str) -> list[tuple[str, str | None]]:
    return [
        (spot["path"], spot["to"]) for each in found if each["id"] == name for spot in each["paths"]
    ]


def test_health(patient: Patient) -> None:
    before = snapshot(patient.base)
    found = patient.examine()
    assert not_ok(found) == {}
    assert [each["id"] for each in found] == [
        *("walk", "memory-base", "session"),
        *("root", "root-volume", "pinned", "entries"),
        *("root", "root-volume", "pinned", "entries"),
        *("root", "root-volume", "entries", "record"),
    ]
    assert [each["title"] for each in found if each["id"] == "pinned"] == [
        "pinned/ is there, with 1 document"
    ] * 2
    assert snapshot(patient.base) == before


def test_a_new_machine_is_healthy(tmp_path: Path) -> None:
    found = Patient(tmp_path).examine()
    assert not_ok(found) == {"root-missing": "note"}
    assert sum(each["id"] == "root-missing" for each in found) == 3


# Layouts → what is found. `R` is the project root, `U` the user root, `T` the team root, `B` the
# base of all; paths are given as the finding has them, `path` or `path → to`.


def link(at: str, to: str) -> Callable[[Patient], None]:
    def make(patient: Patient) -> None:
        path = spelt(patient, at)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.isdir(path):
            for name in os.listdir(path):
                os.unlink(f"{path}/{name}")
            os.rmdir(path)
        os.symlink(spelt(patient, to), path)

    return make


def hard(at: str, to: str) -> Callable[[Patient], None]:
    return lambda patient: os.link(spelt(patient, to), spelt(patient, at))


def files(*at: str) -> Callable[[Patient], None]:
    def make(patient: Patient) -> None:
        for path in at:
            write(spelt(patient, path), "x")

    return make


def mode(at: str, bits: int) -> Callable[[Patient], None]:
    return lambda patient: os.chmod(spelt(patient, at), bits)


def owner(at: str, number: int) -> Callable[[Patient], None]:
    return lambda patient: os.chown(spelt(patient, at), number, number)


def gone(at: str) -> Callable[[Patient], None]:
    def make(patient: Patient) -> None:
        path = spelt(patient, at)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    return make


def both(*makers: Callable[[Patient], None]) -> Callable[[Patient], None]:
    def make(patient: Patient) -> None:
        for each in makers:
            each(patient)

    return make


def spelt(patient: Patient, path: str) -> str:
    roots = {"R": patient.memory, "U": patient.user, "T": patient.team, "B": str(patient.base)}
    head, slash, rest = path.partition("/")
    return f"{roots[head]}{slash}{rest}" if head in roots else path


LAYOUTS: list[tuple[Callable[[Patient], None], dict[str, str], str]] = [
    # pinned
    (gone("R/pinned"), {"pinned-missing": "note"}, ""),
    (both(gone("R/pinned"), files("R/pinned")), {"pinned-not-directory": "wrong"}, "R/pinned"),
    (link("R/pinned", "B/elsewhere"), {"pinned-dangling": "wrong"}, "R/pinned → B/elsewhere"),
    (link("R/pinned", "pinned"), {"pinned-dangling": "wrong"}, "R/pinned"),
    (link("R/pinned", "."), {"pinned-whole-root": "wrong"}, "R/pinned → R"),
    (link("R/pinned", ".."), {"pinned-whole-root": "wrong"}, ""),
    (link("R/pinned", "topics"), {"pinned-link": "note"}, "R/pinned → R/topics"),
    (both(files("B/out/a.md"), link("R/pinned", "B/out")), {"pinned-link": "note"}, "R/pinned → B/out"),
    (link("R/pinned", "topics/topic.md"), {"pinned-not-directory": "wrong"}, "R/pinned → R/topics/topic.md"),
    (files("R/Pinned/a.md"), {"pinned-alias": "wrong"}, "R/Pinned"),
    (files("R/pin\u200bned/a.md"), {"pinned-alias": "wrong"}, "R/pin\u200bned"),
    (both(gone("R/pinned"), files("R/PINNED/a")), {"pinned-alias": "wrong", "pinned-missing": "note"}, "R/PINNED"),
    (files("R/pinned.md", "R/pinned-notes/a", "R/.pinned/a"), {}, ""),
    (files("R/topics/pinned/a.md"), {"pinned-nested": "wrong"}, "R/topics/pinned"),
    (files("R/a/b/PINNED/a.md"), {"pinned-nested": "wrong"}, "R/a/b/PINNED"),
    (files("T/pinned/a.md"), {"pinned-nested": "wrong"}, "T/pinned"),
    (files("R/pinned/pinned/a.md", "R/topics/pinned"), {}, ""),
    (both(files("R/x/a"), link("R/topics/pinned", "../x")), {"pinned-nested": "wrong", "links-inside": "note"}, "R/topics/pinned → R/x"),
    (link("R/topics/pinned", "topic.md"), {"links-inside": "note"}, "R/topics/pinned → R/topics/topic.md"),
    (link("R/topics/pinned", "../pinned"), {"links-to-pinned": "note"}, "R/topics/pinned → R/pinned"),
    (link("R/pinned/l.md", "../topics/topic.md"), {"pinned-link-out": "wrong"}, "R/pinned/l.md → R/topics/topic.md"),
    (link("R/pinned/l.md", "rules.md"), {"links-to-pinned": "note"}, "R/pinned/l.md → R/pinned/rules.md"),
    (link("R/pinned/l.md", "/etc/passwd"), {"links-outside": "note"}, "R/pinned/l.md → /etc/passwd"),
    # Other names of one file
    (hard("R/topics/twin.md", "R/pinned/rules.md"), {"pinned-hard-links": "note"}, "R/topics/twin.md → R/pinned/rules.md"),
    (hard("U/twin.md", "R/pinned/rules.md"), {"pinned-hard-links": "note"}, "U/twin.md → R/pinned/rules.md"),
    (hard("R/pinned/twin.md", "R/pinned/rules.md"), {}, ""),
    (hard("U/pinned/twin.md", "R/pinned/rules.md"), {}, ""),
    (hard("B/twin.md", "R/pinned/rules.md"), {"pinned-names-elsewhere": "note"}, "R/pinned/rules.md"),
    (hard("R/topics/twin.md", "R/topics/topic.md"), {}, ""),
    # Links
    (link("R/l", "topics"), {"links-inside": "note"}, "R/l → R/topics"),
    (link("R/l", "U/pinned/new.md"), {"links-to-pinned": "note"}, "R/l → U/pinned/new.md"),
    (link("R/l", "B/project"), {"links-outside": "note"}, "R/l → B/project"),
    (link("T/l", "/etc"), {"links-outside": "note"}, "T/l → /etc"),
    (link("R/l", "nowhere"), {"links-dangling": "note"}, "R/l → R/nowhere"),
    (link("R/l", "l"), {"links-broken": "note"}, "R/l"),
    # The root itself
    (both(gone("R"), files("R")), {"root-not-directory": "wrong"}, ""),
    (both(gone("R"), link("R", "R")), {"root-unresolved": "wrong", "pinned-unknown": ""}, ""),
    (mode("R", 0o777), {"root-others": "wrong"}, "R"),
    (mode("R", 0o1777), {"root-others": "wrong"}, "R"),
    (mode("T", 0o777), {"root-others": "note"}, "T"),
    (mode("U", 0o775), {"root-group": "note"}, "U"),
    (mode("B/memory", 0o1777), {}, ""),
    (mode("B/memory", 0o777), {"root-others": "wrong"}, "B/memory"),
    (both(files("B/o/pinned/a"), gone("R"), link("R", "B/o")), {"root-untrusted": "wrong"}, ""),
    (both(files("B/o/pinned/a"), gone("U"), link("U", "B/o")), {}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected", "spot"), LAYOUTS, ids=range(len(LAYOUTS)))
def test_what_is_found(
    patient: Patient, make: Callable[[Patient], None], expected: dict[str, str], spot: str
) -> None:
    make(patient)
    before = snapshot(patient.base)
    found = patient.examine()
    assert not_ok(found) == {name: level for name, level in expected.items() if level}
    if spot:
        path, _, to = spot.partition(" → ")
        wanted = (spelt(patient, path), spelt(patient, to) if to else None)
        assert wanted in paths(found, next(iter(expected)))
    assert snapshot(patient.base) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
@pytest.mark.parametrize(("at", "level"), [("R", "wrong"), ("B/memory", "wrong"), ("T", "note")])
def test_what_belongs_to_somebody_else(patient: Patient, at: str, level: str) -> None:
    owner(at, 65534)(patient)
    assert not_ok(patient.examine()) == {"root-others": level}


@pytest.mark.parametrize(
    ("profile", "scope", "expected"),
    [
        ("dream", {}, {}),
        ("main", {}, {"session-unprotected": "note"}),
        ("main", {"protectPinned": True}, {"session-unconfined": "note"}),
        ("dream", {"hardLinks": "ignore"}, {"hard-links-ignored": "note"}),
    ],
)
def test_what_the_session_leaves_open(
    patient: Patient, profile: str, scope: dict[str, Any], expected: dict[str, str]
) -> None:
    assert not_ok(patient.examine(profile, scope)) == expected


def test_other_names_are_wrong_where_nobody_looks_for_them(patient: Patient) -> None:
    hard("R/topics/twin.md", "R/pinned/rules.md")(patient)
    found = patient.examine(scope={"hardLinks": "ignore"})
    assert not_ok(found)["pinned-hard-links"] == "wrong"


def test_a_document_elsewhere_is_open_to_a_session_that_writes_anywhere(patient: Patient) -> None:
    link("R/pinned/l.md", "/etc/passwd")(patient)
    assert not_ok(patient.examine("main"))["pinned-link-out"] == "wrong"


@pytest.mark.parametrize(
    ("variables", "expected", "words"),
    [
        ({"QWEN_CODE_MEMORY_LOCAL": "1"}, {}, "set by QWEN_CODE_MEMORY_BASE_DIR, QWEN_CODE_MEMORY_LOCAL"),
        ({"QWEN_CODE_MEMORY_LOCAL": "true"}, {"variable-ignored": "note"}, "QWEN_CODE_MEMORY_BASE_DIR)"),
        ({"QWEN_CODE_MEMORY_PROJECT_SCOPE": " Workspace "}, {}, "PROJECT_SCOPE"),
        ({"QWEN_CODE_MEMORY_PROJECT_SCOPE": "repo"}, {"variable-ignored": "note"}, ""),
        ({"QWEN_CODE_MEMORY_BASE_DIR": "", "HOME": "/h"}, {}, "/h/.qwen (qwen layout; no variable"),
        ({"QWEN_CODE_MEMORY_BASE_DIR": "~/m"}, {}, "home/m"),
        ({"QWEN_HOME": "rel"}, {"variable-relative": "note"}, "QWEN_CODE_MEMORY_BASE_DIR"),
    ],
)  # fmt: skip
def test_where_memory_is_and_why(
    patient: Patient, variables: dict[str, str], expected: dict[str, str], words: str
) -> None:
    patient.env |= variables
    found = patient.examine()
    told = not_ok(found)
    for name in ("root-missing", "pinned-missing"):
        told.pop(name, None)
    assert told == expected
    assert words in one(found, "memory-base")["title"]


def test_roots_in_one_another_and_a_project_in_a_root(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.env["QWEN_CODE_MEMORY_BASE_DIR"] = f"{patient.team}/base"
    assert not_ok(patient.examine())["roots-overlap"] == "note"
    patient.env["QWEN_CODE_MEMORY_BASE_DIR"] = str(tmp_path)
    patient.project = tmp_path / "memories" / "project"
    patient.project.mkdir(parents=True)
    found = patient.examine()
    assert not_ok(found)["project-in-root"] == "wrong"
    assert paths(found, "project-in-root") == [(str(patient.project), None)]


def test_a_root_inside_another_protects_its_own(tmp_path: Path) -> None:
    patient = Patient(tmp_path)
    patient.env["QWEN_CODE_MEMORY_BASE_DIR"] = f"{patient.team}/base"
    pinned = write(f"{patient.team}/base/memories/pinned/a.md", "curated")
    os.link(pinned, pinned.replace("a.md", "b.md"))
    assert not_ok(patient.examine()) == {"roots-overlap": "note", "root-missing": "note"}


def test_the_way_as_it_is_written_counts_too(patient: Patient) -> None:
    (patient.base / "open").mkdir()
    (patient.base / "open").chmod(0o777)
    os.symlink(patient.base / "memory", patient.base / "open" / "memory")
    patient.env["QWEN_CODE_MEMORY_BASE_DIR"] = f"{patient.base}/open/memory"
    found = patient.examine()
    assert not_ok(found) == {"root-others": "wrong"}
    assert paths(found, "root-others") == [(f"{patient.base}/open", None)] * 2


# Bounds


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(entries=100), "after 100 entries"),
        (Limits(links=5), "after 5 links"),
        (Limits(seconds=0), "after 0 seconds"),
        (Limits(linked=0), "after 0 files with several names"),
    ],
)
def test_a_look_ends_and_says_so(patient: Patient, limits: Limits, words: str) -> None:
    for number in range(300):
        os.symlink("topic.md", f"{patient.memory}/topics/{number}")
    hard("R/topics/twin.md", "R/topics/topic.md")(patient)
    found = patient.examine(limits=limits)
    assert words in one(found, "stopped")["title"] and not is_wrong(
        [finding(each["id"], "", "", level=each["level"]) for each in found]
    )
    assert one(patient.examine(), "links-inside")["more"] == 300 - MOST_SPOTS


@pytest.mark.slow
def test_a_large_directory_is_listed_to_its_end(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    for number in range(5_000):
        os.mknod(f"{number}.md", dir_fd=directory)
    os.close(directory)
    census = take(str(tmp_path), True)
    assert (census.entries, census.stopped) == (5_000, None)


def test_a_tree_deeper_than_any_path_is_told(patient: Patient) -> None:
    here = os.open(patient.memory, os.O_RDONLY)
    for _ in range(50):
        os.mkdir("d" * 100, dir_fd=here)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert not_ok(patient.examine()) == {"unreadable": "note"}


# Permissions

UNPRIVILEGED = """
import json, os, sys
sys.path[:0] = sys.argv[2:]
from pathlib import Path
from pinfold.paths.kernel import platform
from unit.test_doctor import Patient
base = Path(sys.argv[1])
Path.mkdir = lambda *_, **__: None
platform.prepare()
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps([Patient(base).examine(profile) for profile in ("dream", "main")]))
"""


@pytest.fixture
def reachable() -> Iterator[Patient]:
    """Where others come to: whichever pytest starts next closes its own place for them."""
    with tempfile.TemporaryDirectory(prefix="pinfold-doctor-") as base:
        yield Patient(Path(base).resolve()).healthy()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can lose permissions here")
@pytest.mark.parametrize(
    ("closed", "bits", "expected"),
    [
        ("R", 0o000, {"pinned-unknown": "wrong", "root-unreadable": "wrong"}),
        ("R", 0o555, {"root-read-only": "wrong"}),
        ("T", 0o555, {"root-read-only": "note"}),
        ("R/topics", 0o000, {"unreadable": "note"}),
        ("R/pinned", 0o000, {"unreadable": "wrong"}),
        ("B/memory/projects", 0o000, {"pinned-unknown": "wrong", "root-unresolved": "wrong"}),
    ],
)
def test_what_may_not_be_looked_at(
    reachable: Patient, closed: str, bits: int, expected: dict[str, str]
) -> None:
    for directory, _, names in os.walk(reachable.base):
        for name in ("", *names):
            os.chown(os.path.join(directory, name), 65534, 65534)
    os.chmod(spelt(reachable, closed), bits)
    result = subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(reachable.base), *sys.path],
        capture_output=True, text=True, env=clean_env(), timeout=50, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    for examined in json.loads(result.stdout):
        found = not_ok(examined)
        assert found.pop("session-unprotected", "note") == "note"
        assert found == expected


# What is mounted


def test_a_path_is_on_the_innermost_mount_and_the_last_one_there() -> None:
    table = (
        Mount("/", "ext4"),
        Mount("/m", "tmpfs"),
        Mount("/m", "nfs4"),
        Mount("/m/in", "fuse.x"),
    )
    assert [mount_of(path, table) for path in ("/a", "/m/a", "/mm", "/m/in")] == [
        table[0], table[2], table[0], table[3],
    ]  # fmt: skip
    assert [each.remote for each in table] == [False, False, True, True]
    assert mounts_below("/m", table) == ["/m/in"]


MOUNTING = """
set -e
mkdir -p "$1/pinned/sub" "$1/seen" "$1/other" "$1/whole"
mount --bind "$1/pinned" "$1/whole"
mount --bind "$1/pinned/sub" "$1/seen"
mount -t tmpfs none "$1/other"
shift; exec "$@"
"""


def test_a_second_door_to_pinned_is_found(patient: Patient, tmp_path: Path) -> None:
    unshare = ["unshare", "--mount", "bash", "-c", MOUNTING, "-", patient.memory]
    command = [
        sys.executable,
        "-m",
        "pinfold",
        "doctor",
        "--json",
        "--project",
        str(patient.project),
    ]
    env = clean_env(**patient.env)
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    result = subprocess.run(
        [*unshare, *command], capture_output=True, text=True, env=env, check=False
    )
    found = json.loads(result.stdout)
    assert not_ok(found) == {"pinned-second-door": "wrong", "mounts-inside": "note"}
    assert paths(found, "pinned-second-door") == [
        (f"{patient.memory}/seen", f"{patient.memory}/pinned/sub")
    ]
    assert paths(found, "mounts-inside") == [
        (f"{patient.memory}/{name}", None) for name in ("other", "seen", "whole")
    ]


def test_a_volume_is_tried_without_a_trace(tmp_path: Path) -> None:
    handle = os.open(tmp_path, os.O_PATH)
    try:
        means = probe(handle, writable=True)
        assert (means.folding, means.exchange, means.locks) == (False, True, True)
        assert probe(handle, writable=False).folding is None  # nothing to tell it by
    finally:
        os.close(handle)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("does", ["rename", "nothing"])
def test_a_volume_that_only_says_that_it_exchanges_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str
) -> None:
    def exchange(directory: int, a: bytes, b: bytes) -> None:
        if does == "rename":
            os.rename(a, b, src_dir_fd=directory, dst_dir_fd=directory)

    monkeypatch.setattr(platform, "exchange", exchange)
    handle = os.open(tmp_path, os.O_PATH)
    try:
        assert probe(handle, writable=True).exchange is False
    finally:
        os.close(handle)
    assert os.listdir(tmp_path) == []


# Rules

GOOD = {"decision": "deny", "tools": ["edit"], "paths": ["*.key"]}
UPWARDS = {"decision": "deny", "tools": ["edit"], "paths": ["../x"]}
PATHLESS = {"decision": "deny", "tools": ["run_shell_command"], "paths": ["*.sh"]}
ODD = {"decision": "denny", "tools": ["*"]}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], ["rules"]),
        ([GOOD, GOOD], ["rules"]),
        ([GOOD, UPWARDS], ["rules[1].paths[0]: "]),
        ([ODD, PATHLESS, GOOD, UPWARDS], ["rules[0].decision: ", "rules[1].paths: ", "rules[3].paths[0]: "]),
        ([7, {"decision": "deny"}], ["rules[0]: ", "rules[1].tools: "]),
    ],
)  # fmt: skip
def test_every_bad_rule_is_told_by_its_member(
    patient: Patient, rules: list[Any], expected: list[str]
) -> None:
    found = [each for each in patient.examine(rules=rules) if each["about"] == "rules"]
    if expected == ["rules"]:
        assert [each["id"] for each in found] == expected
        return
    assert all(each["level"] == "wrong" for each in found)
    assert len(found) == len(expected)
    assert all(each["title"].startswith(start) for each, start in zip(found, expected))


@pytest.mark.parametrize(
    ("tools", "given", "never"),
    [
        (["run_shell_command"], ["*.sh"], True),
        (["run_shell_command"], None, False),
        (["run_shell_command", "edit"], ["*.sh"], False),
        (["*"], ["*.sh"], False),
        (["grep_search"], ["*.sh"], False),
    ],
)
def test_a_rule_about_paths_needs_a_tool_with_one(
    tools: list[str], given: list[str] | None, never: bool
) -> None:
    assert never_matches(RuleSpec("deny", tools, given)) is never


# The command


def memory_of(tmp_path: Path) -> str:
    made: str = json.loads(pinfold(tmp_path, "roots", "--json").stdout)["roots"][0]["path"]
    write(f"{made}/pinned/a.md", "curated")
    return made


def test_statuses_and_what_people_see(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    result = pinfold(tmp_path, "doctor")
    assert result.returncode == 0 and result.stderr == ""
    assert len(result.stdout.splitlines()) <= 24 and "✗" not in result.stdout
    assert result.stdout.endswith("Nothing is wrong, 2 things to know.\n")
    write(f"{memory}/topics/pinned/a.md", "not protected")
    os.symlink("/etc", f"{memory}/a\x1b[31mb\n\u202ec")
    os.chmod(memory, 0o775)
    sick = pinfold(tmp_path, "doctor", COLUMNS="40")
    assert sick.returncode == 1 and "\x1b" not in sick.stdout
    assert "✗ A pinned/ below the first level is not protected" in sick.stdout
    assert "      topics/pinned " in sick.stdout and r"a\x1b[31mb\n\u202ec → /etc" in sick.stdout
    assert f"      {memory}  drwxrwxr-x, owner {os.geteuid()}" in sick.stdout
    assert sick.stdout.endswith("1 thing is wrong, 4 things to know.\n")


def test_as_data(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    raw = os.fsencode(memory) + b"/\xff\x1b"
    os.symlink(b"/etc", raw)
    result = pinfold(tmp_path, "doctor", "--json")
    assert result.returncode == 0 and result.stdout.isascii()
    spots = [spot for each in json.loads(result.stdout) for spot in each["paths"]]
    assert spots == [{"path": f"{memory}/\udcff\x1b", "to": "/etc", "said": None}]


def test_many_paths_are_cut_for_people(tmp_path: Path) -> None:
    memory = memory_of(tmp_path)
    for number in range(30):
        os.symlink("/etc", f"{memory}/{number}")
    assert "… and 20 more" in pinfold(tmp_path, "doctor").stdout


@pytest.mark.parametrize(
    ("kind", "status", "name"),
    [("none", 0, "record"), ("file", 0, "record"), ("directory", 1, "record-unusable"), ("link", 1, "record-unusable")],
)  # fmt: skip
def test_the_place_of_the_record(tmp_path: Path, kind: str, status: int, name: str) -> None:
    place = tmp_path / "state" / "pinfold" / "audit.jsonl"
    place.parent.mkdir(parents=True)
    if kind == "file":
        place.touch()
    elif kind == "directory":
        place.mkdir()
    elif kind == "link":
        place.symlink_to("/dev/null")
    result = pinfold(tmp_path, "doctor", "--json", XDG_STATE_HOME=str(tmp_path / "state"))
    assert result.returncode == status
    assert [each["id"] for each in json.loads(result.stdout) if each["about"] == "the record"] == [
        name
    ]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file"),
        (b"[", "not JSON"),
        (b"\xff", "not UTF-8 (byte 0)"),
        (b"{}", "must be a list"),
        (b"[" * 100_000, "nested too deeply, or with too long a number"),
        (b"[" + b"9" * 5000 + b"]", "nested too deeply, or with too long a number"),
        (b" " * (1 << 24) + b"[]", "bytes long"),
    ],
    ids=range(7),
)
def test_a_file_that_holds_no_rules(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = str(tmp_path / "rules.json")
    if content is not None:
        write(path, content)
    with pytest.raises(RpcError) as caught:
        load(path)
    assert f"--rules: {path}: " in caught.value.message and words in caught.value.message


@pytest.mark.parametrize("command", [["doctor"], ["explain", "x"]])
def test_without_rules_in_it_a_file_is_two(tmp_path: Path, command: list[str]) -> None:
    result = pinfold(tmp_path, *command, "--rules", "none.json")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "pinfold: --rules: none.json: No such file or directory\n"


@pytest.mark.parametrize(
    "arguments", [["--project", "nowhere"], ["--scope", "protectPined=true"], ["--layout", "no"]]
)
def test_what_cannot_be_examined_is_two(tmp_path: Path, arguments: list[str]) -> None:
    result = pinfold(tmp_path, "doctor", *arguments)
    assert result.returncode == 2 and result.stdout == "" and "Traceback" not in result.stderr


def test_rules_are_tried_out_by_both_commands(tmp_path: Path) -> None:
    path = write(tmp_path / "rules.json", json.dumps([GOOD]))
    denied = pinfold(tmp_path, "explain", "a.key", "--profile", "main", "--rules", path)
    assert denied.returncode == 1 and "rules[0] of the session" in denied.stdout
    other = pinfold(tmp_path, "explain", "a.txt", "--profile", "main", "--rules", path)
    assert other.returncode == 0
    assert pinfold(tmp_path, "doctor", "--rules", path).returncode == 0
    write(path, json.dumps([GOOD, UPWARDS]))
    refused = pinfold(tmp_path, "explain", "x", "--rules", path)
    assert refused.returncode == 2 and refused.stderr.startswith(
        f"pinfold: {path}: rules[1].paths[0]: "
    )
    examined = pinfold(tmp_path, "doctor", "--rules", path)
    assert examined.returncode == 1 and "✗ rules[1].paths[0]: " in examined.stdout


def test_every_id_is_documented() -> None:
    rows = [
        line.split("|") for line in DOCS.read_text("utf-8").splitlines() if line.startswith("| `")
    ]
    documented = {row[1].strip(" `"): row[2].strip() for row in rows if len(row) > 3}
    levels = {name: kind.level for name, kind in KINDS.items()}
    assert {name: level.split()[0] for name, level in documented.items()} == levels


# Upstreams

UPSTREAMS: list[tuple[dict[str, Any] | str, dict[str, str]]] = [
    ({}, {}),
    ({"upstreams": {}}, {}),
    ({"upstreams": {"up": {"command": "/nowhere"}}}, {"upstream-fails": "No such file"}),
    ({"upstreams": {"up": "BAD"}}, {"upstream-unmapped": "1 tool: odd"}),
    (
        {"upstreams": {"up": "MISNAMED"}},
        {"upstream-unmapped": "odd", "upstream-no-such-tool": "od"},
    ),
    ({"upstreams": {"up": "WHOLE"}}, {"upstream": "6 tools"}),
]


@pytest.mark.parametrize(("config", "right"), UPSTREAMS)
def test_upstreams_in_the_configuration(tmp_path: Path, config: Any, right: dict[str, str]) -> None:
    bad = upstream(tmp_path / "log")
    kinds: dict[str, Any] = {"BAD": {}, "MISNAMED": {"od": {}}, "WHOLE": {"odd": {}}}
    for name, each in (config.get("upstreams") or {}).items():
        if isinstance(each, str):
            up = {**bad, "tools": {**bad["tools"], **kinds[each]}}
            config = {"upstreams": {name: up}}
    path = write(tmp_path / "config.json", json.dumps(config))
    patient = Patient(tmp_path).healthy()
    settings = load_config(Flags(config=path))

    def opener(rules: list[Any] | None) -> tuple[Gateway, SessionResult]:
        gateway, opened = patient.open("dream", {}, rules)
        gateway.set_options(settings.connection)
        return gateway, opened

    case = Case(
        opener,
        patient.env,
        settings=settings,
    )
    found = {each["id"]: each["title"] for each in as_json(examine(case))}
    about = {k: v for k, v in found.items() if k.startswith("upstream")}
    assert set(about) == set(right)
    assert all(right[name] in title for name, title in about.items()), about
    log = tmp_path / "log"
    assert not any(map(runs, started(log) if log.exists() else []))
