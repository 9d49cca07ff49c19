"""The record of a real gateway: every line is there when it has ended."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support import DEADLINE, Held, Raw, clean_env, read, request, write

EXIT = {"jsonrpc": "2.0", "method": "exit"}


def gateway(tmp_path: Path, **audit: Any) -> Raw:
    env = clean_env(HOME=str(tmp_path), XDG_STATE_HOME="")
    return Raw(env).initialize({"audit": audit})


def recorded(path: Path | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read(path).splitlines()]


def test_every_decision_has_its_line(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    with gateway(tmp_path, path="~/audit.jsonl") as raw:
        opened = raw.open(tmp_path / "project", "dream", sessionId="d")
        memory = opened["roots"][0]["path"]
        raw.open(tmp_path / "project", "main", sessionId="m")
        raw.call("d", "write_file", file_path=f"{memory}/a.md", content="text")
        raw.call("d", "read_memory", file_path=f"{memory}/a.md")
        raw.call("d", "write_file", file_path=f"{memory}/pinned/a.md", content="text")
        raw.call("m", "edit", file_path="none.md", old_string="a", new_string="b")
        params = {"sessionId": "d", "name": "edit", "arguments": {"file_path": "x"}}
        raw.result("policy/explain", params)
        assert raw.result("shutdown") is None
        raw.send(EXIT)
        assert raw.status() == 0
    lines = recorded(tmp_path / "audit.jsonl")
    assert [(x["session"], x["tool"], x["decision"], x["outcome"]) for x in lines] == [
        ("d", "write_file", "allow", "done"),
        ("d", "read_memory", "allow", "done"),
        ("d", "write_file", "deny", "denied"),
        ("m", "edit", "allow", "failed:not-found"),
        ("d", "edit", "deny", "explained"),
    ]
    assert lines[0]["sha256After"] == lines[1]["sha256After"] and b"text" not in read(
        tmp_path / "audit.jsonl"
    )


def test_a_cancelled_call_has_a_line(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    held = Held(tmp_path / "project")
    with gateway(tmp_path) as raw:
        raw.open(tmp_path / "project", sessionId="m")
        arguments = {"file_path": "a.md", "content": "x"}
        params = {"sessionId": "m", "name": "write_file", "arguments": arguments}
        raw.send(request(1, "tools/call", params))
        raw.result("memory/roots", {"sessionId": "m"})  # it is under way
        raw.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 1}})
        assert raw.receive()["error"]["code"] == -32800
        held.release()
        # Changes to one path run in order: the next one ends after the cancelled one.
        raw.call("m", "write_file", **arguments)
        assert raw.end_input() == 1
    path = tmp_path / ".local/state/pinfold/audit.jsonl"
    assert [x["outcome"] for x in recorded(path)] == ["cancelled", "done"]


@pytest.mark.parametrize("how", ["shutdown", "end", "SIGTERM", "SIGINT"])
def test_a_gateway_that_ends_leaves_every_line(tmp_path: Path, how: str) -> None:
    path = write(tmp_path / "project/a.md", "x")
    with gateway(tmp_path, path=str(tmp_path / "log/audit.jsonl")) as raw:
        raw.open(tmp_path / "project", sessionId="m")
        params = {"sessionId": "m", "name": "read_file", "arguments": {"file_path": path}}
        raw.send(*[request(n, "tools/call", params) for n in range(200)])
        for _ in range(200):
            raw.receive()
        if how == "shutdown":
            raw.result("shutdown")
            raw.send(EXIT)
            raw.status()
        elif how == "end":
            raw.end_input()
        else:
            raw.terminate(getattr(signal, how))
        assert raw.process.stderr is not None and raw.process.stderr.read() == b""
    assert len(recorded(tmp_path / "log/audit.jsonl")) == 200


def test_two_gateways_share_a_file_and_a_person_reads_it(tmp_path: Path) -> None:
    path = write(tmp_path / "project/a.md", "x")
    log = str(tmp_path / "audit.jsonl")
    options = {"path": log, "maxBytes": 1 << 16, "keep": 9}
    with gateway(tmp_path, **options) as one, gateway(tmp_path, **options) as two:
        for raw, session in ((one, "one"), (two, "two")):
            raw.open(tmp_path / "project", sessionId=session)
            params = {"sessionId": session, "name": "read_file", "arguments": {"file_path": path}}
            raw.send(*[request(n, "tools/call", params) for n in range(300)])
        for raw in (one, two):
            for _ in range(300):
                raw.receive()
            raw.end_input()
    assert os.path.exists(f"{log}.1")
    command = [sys.executable, "-m", "pinfold", "audit", log, "--session", "two"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True)
    assert len(shown.stdout.splitlines()) == 300 and shown.stderr == ""


@pytest.mark.parametrize("what", ["fifo", "directory"])
def test_a_record_that_cannot_be_written_fails_no_call_and_is_told_once(
    tmp_path: Path, what: str
) -> None:
    log = tmp_path / "audit.jsonl"
    if what == "fifo":
        os.mkfifo(log)
    else:
        log.mkdir()
    (tmp_path / "project").mkdir()
    with gateway(tmp_path, path=str(log)) as raw:
        raw.open(tmp_path / "project", sessionId="m")
        for number in range(5):
            result = raw.call("m", "write_file", file_path="a.md", content=str(number))
            assert not result["isError"]
        raw.result("shutdown")
        raw.send(EXIT)
        assert raw.status() == 0
        assert raw.process.stderr is not None
        told = raw.process.stderr.read()
    assert told.count(b"the record: it cannot be written") == 1 and told.count(b"\n") == 2
    assert str(log).encode() not in told


def test_a_lock_that_somebody_keeps_delays_the_end_by_a_second_at_most(tmp_path: Path) -> None:
    log = write(tmp_path / "audit.jsonl", "")
    held = Held(Path(log))
    (tmp_path / "project").mkdir()
    with gateway(tmp_path, path=log) as raw:
        raw.open(tmp_path / "project", sessionId="m")
        raw.call("m", "read_file", file_path="a.md")
        raw.stdin.close()
        assert raw.process.wait(min(DEADLINE, 6)) == 1
    held.release()
