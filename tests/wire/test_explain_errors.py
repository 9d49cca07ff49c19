"""Where a look fails, the call is a tool error and `policy/explain` names the argument: no bug, and
no decision. `pinfold explain` and the doctor say what it is."""

import ctypes
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import Raw, clean_env, kind, write

DROP_FROM_BOUNDING_SET, DAC_OVERRIDE, DAC_READ_SEARCH = 24, 1, 2


def bound() -> None:
    """For a process about to be made: permissions count for it, whoever runs the tests."""
    libc = ctypes.CDLL(None)
    for capability in (DAC_OVERRIDE, DAC_READ_SEARCH):
        libc.prctl(DROP_FROM_BOUNDING_SET, capability, 0, 0, 0)


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    """A project whose memory has a `pinned` that leads to where nobody may look."""
    base = tmp_path.resolve()
    write(base / "project/a.txt", "a")
    write(base / "base/memories/n.md", "n")
    (base / "closed/there").mkdir(parents=True)
    (base / "base/memories/pinned").symlink_to(base / "closed/there")
    (base / "closed").chmod(0)
    yield base
    (base / "closed").chmod(0o700)


def env(base: Path) -> dict[str, str]:
    return clean_env(HOME=str(base), QWEN_CODE_MEMORY_BASE_DIR=f"{base}/base")


def test_the_call_is_an_error_and_so_is_the_explanation(base: Path) -> None:
    with Raw(preexec_fn=bound, env=env(base)) as client:
        client.initialize()
        session = client.result(
            "session/open", {"profile": "dream", "projectRoot": f"{base}/project"}
        )["sessionId"]
        arguments = {"file_path": f"{base}/base/memories/new.md", "content": "x"}
        asked = {"sessionId": session, "name": "write_file", "arguments": arguments}
        called = client.result("tools/call", asked)
        assert kind(called) == "permission"
        error = client.ask("policy/explain", asked)["error"]
        assert error["code"] == -32602
        said = called["content"][0]["text"]
        assert error["data"] == {"path": "arguments.file_path", "problem": said}
        assert said.startswith(f"{base}/base/memories/pinned: ")
        command = {"sessionId": session, "name": "run_shell_command"}
        told = client.result("policy/explain", command | {"arguments": {"command": "git log"}})
        assert told["decision"] in ("allow", "deny")


@pytest.mark.parametrize(
    "command", [["explain", "{}/base/memories/new.md", "--profile", "dream"], ["doctor"]]
)
def test_on_the_command_line(base: Path, command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pinfold", *(each.format(base) for each in command)],
        cwd=base / "project",
        capture_output=True,
        text=True,
        env=env(base),
        preexec_fn=bound,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode in (1, 2), output
    told = " ".join(output.split())
    assert "pinned" in told and ("permission denied" in told or "pinned-unknown" in told), output
    assert "Traceback" not in output
