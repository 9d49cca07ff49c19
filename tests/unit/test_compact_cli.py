"""`pinfold compact`: files as people have them, and what they see."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pinfold.cli import main
from pinfold_protocol.compaction import CLEARED_TEXT
from support import write

MESSAGE = Any


def history(memory: str) -> list[MESSAGE]:
    """Three reads: an ordinary one, one of memory, and a recent one."""
    made: list[MESSAGE] = [{"role": "user", "content": "hello"}]
    for index, path in enumerate(["/src/a.py", f"{memory}/user/a.md", "/src/\x1b[31mred.py"]):
        use = {"type": "tool_use", "id": f"t{index}", "name": "Read", "input": {"file_path": path}}
        said = {
            "type": "tool_result",
            "tool_use_id": f"t{index}",
            "content": f"text {index} é\ud800",
        }
        made += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [said]}]
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project").mkdir()
    monkeypatch.setenv("QWEN_CODE_MEMORY_BASE_DIR", str(tmp_path / "base"))
    monkeypatch.chdir(tmp_path / "project")
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], file: Path | str, *more: str) -> tuple[int, str, str]:
    base = ["compact", str(file), "--format", "anthropic", "--host", "claude-code", "--keep-recent"]
    with pytest.raises(SystemExit) as ended:
        main([*base, "1", *more])
    out, err = capsys.readouterr()
    return int(ended.value.code or 0), out, err


WRAPPERS = {
    "a list": lambda messages: json.dumps(messages),
    "a request": lambda messages: json.dumps({"model": "m", "messages": messages, "n": 1}),
    "lines": lambda messages: "\n".join(map(json.dumps, messages)) + "\n\n",
    "lines of a transcript": lambda messages: "\n".join(
        json.dumps(each)
        for each in [{"type": "summary"}, *({"uuid": 1, "message": m} for m in messages)]
    ),
}


@pytest.mark.parametrize("name", WRAPPERS)
def test_the_file_comes_back_in_its_own_shape(
    place: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    messages = history(f"{place}/base/memories")
    text = WRAPPERS[name](messages)
    status, out, err = run(capsys, write(place / "h.json", text))
    assert status == 0
    messages[2] = {
        "role": "user",
        "content": [messages[2]["content"][0] | {"content": CLEARED_TEXT}],
    }
    expected = WRAPPERS[name](messages)
    if "lines" in name:
        assert [json.loads(row) for row in out.splitlines()] == [
            json.loads(row) for row in expected.splitlines() if row
        ]
    else:
        assert json.loads(out) == json.loads(expected)
    assert "1 results cleared, 1 kept as memory" in err


def test_the_summary_says_what_goes_what_stays_and_why(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(place / "h.json", json.dumps(history(f"{place}/base/memories")))
    status, out, err = run(capsys, file, "--diff")
    assert (status, err) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert [(line[1], line[-1]) for line in lines[:3]] == [
        ("✂", "cleared"),
        ("●", "memory"),
        ("·", "recent"),
    ]
    assert "\x1b" not in out and "\\x1b[31mred.py" in out
    assert "saves about" in lines[3] or "saves about" in out


def test_a_format_that_does_not_fit_is_noticed(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(place / "h.json", json.dumps(history("/m")))
    with pytest.raises(SystemExit):
        main(["compact", file, "--format", "gemini", "--diff"])
    assert "are --format and --host right?" in capsys.readouterr().out


BAD: dict[str, tuple[str | bytes, str]] = {
    "nothing": ("", "empty"),
    "half an object": ('{"a":\n', "line 2"),
    "a number": ("3", "no list of messages"),
    "an object without a list": ('{"messages": {}}', "no list of messages"),
    "a broken line": ('{"role": "user"}\n{"role": \n', "line 2"),
    "another encoding": (b"\xff\xfe[\x00]\x00", "not UTF-8"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_holds_no_history(
    place: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    content, problem = BAD[name]
    status, out, err = run(capsys, write(place / "h.json", content))
    assert (status, out) == (2, "")
    assert problem in err and "h.json" in err


@pytest.mark.parametrize("path", ["missing.json", "."])
def test_a_file_that_cannot_be_read(
    place: Path, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    status, out, err = run(capsys, path)
    assert (status, out) == (2, "")
    assert path in err


def test_a_threshold_that_triggers_nothing(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(place / "h.json", json.dumps(history("/m")))
    status, out, err = run(capsys, file, "--trigger", "results", "--size-threshold", "1000")
    assert status == 0
    assert json.loads(out) == history("/m")
    assert "Nothing to clear" in err


def test_a_trigger_s_member_where_it_does_not_belong(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(place / "h.json", "[]")
    status, _, err = run(capsys, file, "--idle-seconds", "3")
    assert status == 2
    assert "--trigger turn" in err


SHAPES = {
    "one line": '{"role": "user", "content": "hi"}',
    "a rollout": '{"type": "response_item", "payload": {"type": "message", "role": "user", "content": "x"}}',
    "a message with a message": '{"role": "user", "content": "hi", "message": {"id": 1}}\n' * 2,
}


@pytest.mark.parametrize("name", SHAPES)
def test_more_shapes_come_back_as_they_were(
    place: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = write(place / "h.jsonl", SHAPES[name])
    with pytest.raises(SystemExit):
        main(["compact", file, "--format", "openai"])
    out, err = capsys.readouterr()
    assert [json.loads(row) for row in out.splitlines()] == [
        json.loads(row) for row in SHAPES[name].splitlines()
    ]
    assert "are --format and --host right?" in err


@pytest.mark.parametrize("number", ["1e400", "-1e999", "NaN", "9" * 5000])
def test_a_number_that_could_not_be_written_again(
    place: Path, capsys: pytest.CaptureFixture[str], number: str
) -> None:
    status, out, err = run(capsys, write(place / "h.json", f'[{{"role": "user", "n": {number}}}]'))
    assert (status, out) == (2, "")
    assert "h.json" in err and "nested" not in err


@pytest.mark.slow
@pytest.mark.parametrize("redirection", ["| true", ">&-", "> /dev/full", "- <&-"])
def test_streams_that_are_closed_or_full(place: Path, redirection: str) -> None:
    file = write(place / "h.json", json.dumps(history("/m") * 3000))
    file = "" if redirection.startswith("-") else file
    command = f"{sys.executable} -m pinfold compact {file} {redirection} --format anthropic"
    if redirection.startswith("|"):
        command = f"{sys.executable} -m pinfold compact {file} --format anthropic {redirection}"
    done = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr
