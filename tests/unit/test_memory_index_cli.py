"""`pinfold index`, as a person sees it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import clean_env, write


def pinfold(tmp_path: Path, *arguments: str, **env: str) -> "subprocess.CompletedProcess[str]":
    base = {"QWEN_CODE_MEMORY_BASE_DIR": str(tmp_path / "memory"), "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", "pinfold", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=clean_env(**{"COLUMNS": "200"} | base | env),
        cwd=tmp_path,
        timeout=50,
        check=False,
    )


@pytest.fixture
def memory(tmp_path: Path) -> str:
    roots = json.loads(pinfold(tmp_path, "roots", "--json").stdout)["roots"]
    path: str = roots[0]["path"]
    write(f"{path}/pinned/p.md", "---\nname: Rules \x1b]0;owned\x07\u202e\ntype: feedback\n---\n")
    long = "x" * 500
    os.utime(write(f"{path}/a/t.md", f"---\nname: {long}\ntype: user\n---\n"), (1, 1))
    os.symlink("/etc/passwd", f"{path}/out\x1b[31m.md")
    return path


def test_documents_by_root_with_their_marks(tmp_path: Path, memory: str) -> None:
    result = pinfold(tmp_path, "index")
    assert result.returncode == 0, result.stderr
    pinned, topic = (
        line for line in result.stdout.splitlines() if "p.md" in line or "t.md" in line
    )
    assert pinned.split()[0] == "pinned" and "feedback" in pinned and "pinned/p.md" in pinned
    assert "Rules \\x1b]0;owned\\x07\\u202e" in pinned and "now" in pinned
    assert topic.split()[0] != "pinned" and " d " in topic and "x" * 79 + "… " in topic
    assert "2 documents" in result.stdout and "not there yet" in result.stdout
    assert "out\\x1b[31m.md" in result.stdout and "leaves its root" in result.stdout
    assert "\x1b" not in result.stdout and "There are more" not in result.stdout


def test_limits_and_json(tmp_path: Path, memory: str) -> None:
    few = pinfold(tmp_path, "index", "--limit", "1")
    assert "1 document" in few.stdout and "There are more" in few.stdout
    listed = json.loads(pinfold(tmp_path, "index", "--json", "--profile", "dream").stdout)
    assert [each["path"] for each in listed["documents"]] == [
        f"{memory}/pinned/p.md",
        f"{memory}/a/t.md",
    ]
    assert listed["documents"][0]["title"] == "Rules \x1b]0;owned\x07\u202e"
    assert len(listed["skipped"]) == 1 and listed["truncated"] is False
    hidden = pinfold(
        tmp_path, *"index --json --profile remember --scope projectMemory=false".split()
    )
    assert json.loads(hidden.stdout)["documents"] == []
    assert "documents" in pinfold(tmp_path, "index", "--layout", "claude", "--json").stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--limit", "0"], "limit: must be at least 1"),
        (["--limit", "x"], "invalid int value"),
        (["--project", "nowhere"], "no directory"),
        (["--scope", "x=1"], "scope.x"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: list[str], words: str) -> None:
    result = pinfold(tmp_path, "index", *arguments)
    assert result.returncode == 2 and words in result.stderr and result.stdout == ""
    assert "Traceback" not in result.stderr
