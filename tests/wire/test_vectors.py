"""The shared expectations, asked of a real process: policy.json and retention.json."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Layout, Raw, cases, clean_env, details, wiped

Server = Callable[[Layout], Raw]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Server]]:
    """One base directory, one process for all cases with the usual environment."""
    base = tmp_path_factory.mktemp("vectors").resolve() / "base"
    running: dict[str, Raw] = {}

    def serve(layout: Layout) -> Raw:
        key = repr(sorted(layout.env.items()))
        if key not in running:
            env = clean_env(**layout.env)
            running[key] = Raw(env).initialize()
        return running[key]

    yield base, serve
    for raw in running.values():
        with raw:
            pass


def opened(layout: Layout, raw: Raw, **more: Any) -> str:
    """A session on a layout that is laid as the vectors say."""
    layout.prepare()
    before = raw.open(layout.project)
    layout.name_roots(before["roots"])
    layout.lay(layout.case.get("layout", {}))
    session: str = raw.open(layout.project, **more)["sessionId"]
    layout.lay(layout.case.get("layoutLate", {}))
    return session


@pytest.mark.parametrize("case", cases("policy.json"), ids=lambda case: str(case["name"]))
def test_policy_decides_as_the_vectors_say(
    case: dict[str, Any], server: tuple[Path, Server]
) -> None:
    with wiped(server[0]) as base:
        layout = Layout(base, case)
        raw = server[1](layout)
        session = opened(layout, raw, scope=case["scope"], rules=case.get("rules"))
        arguments = {
            k: layout.path(v) if k.endswith("path") else v for k, v in case["arguments"].items()
        }
        if case["arguments"].get("file_path", "").endswith("/"):
            assert arguments["file_path"].endswith("/")
        params = {"sessionId": session, "name": case["tool"], "arguments": arguments}
        decision = raw.result("policy/explain", params)
        got = {member: decision[member] for member in case["expect"]}
        assert got == case["expect"], decision["reason"]


@pytest.mark.parametrize("case", cases("retention.json"), ids=lambda case: str(case["name"]))
def test_managed_memory_is_told_and_only_what_was_read_is_tagged(
    case: dict[str, Any], server: tuple[Path, Server]
) -> None:
    with wiped(server[0]) as base:
        layout = Layout(base, case)
        raw = server[1](layout)
        session = opened(layout, raw)
        path = layout.path(case["path"])
        params = {"sessionId": session, "name": "read_file", "arguments": {"file_path": path}}
        managed = raw.result("policy/explain", params)["root"] is not None
        assert managed is case["expect"]["managed"]
        result = raw.result("tools/call", params)
        tagged = "pinfold/retention" in result["_meta"]
        if result["isError"]:
            assert not tagged and details(result)["error"]["kind"] in ("not-found", "is-directory")
        else:
            assert tagged is managed
