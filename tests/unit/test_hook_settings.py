"""The entry in a host's settings: what is put in, and that nothing else changes."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pinfold.doors.hook.hosts import HOSTS
from pinfold.installer.settings import Unusable, entries, installed, is_ours, uninstalled
from support import clean_env, snapshot, write

COMMAND = "/opt/bin/pinfold hook --host claude-code --scope protectPinned=true"
OLDER = "/old/pinfold hook --host=claude-code"
OTHER = {"type": "command", "command": "true"}
HOOK = [sys.executable, "-m", "pinfold", "hook"]

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=6))
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8
)  # fmt: skip
groups = st.lists(
    st.fixed_dictionaries({"matcher": st.text(max_size=4), "hooks": st.just([OTHER])}),
    min_size=1,
    max_size=2,
)
events = st.dictionaries(
    st.sampled_from(["PreToolUse", "PostToolUse", "SessionStart", "Stop"]), groups, min_size=1
)


@st.composite
def settings_texts(draw: st.DrawFn) -> str:
    """Settings as people have them: in any form, with comments wherever a line ends."""
    data = draw(
        st.dictionaries(st.text(max_size=4).filter(lambda key: key != "hooks"), values, max_size=3)
    )
    if draw(st.booleans()):
        data["hooks"] = draw(events)
    indent = draw(st.sampled_from([None, 0, 1, 2, 4, "\t"]))
    text = json.dumps(data, indent=indent, ensure_ascii=draw(st.booleans()))
    if indent is not None and draw(st.booleans()):
        comment = draw(st.sampled_from([" // }, ] é", " /* a, b */", "\n// own line"]))
        text = re.sub(r"(?<=[\]}])(,?)\n", lambda found: f"{found[1]}{comment}\n", text)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return (
        draw(st.sampled_from(["", "// head\n"]))
        + text
        + draw(st.sampled_from(["", "\n", " // end\n"]))
    )


def data_of(text: str) -> Any:
    """Without comments; what the tests write has none inside of strings."""
    return json.loads(re.sub(r"//[^\n]*|/\*.*?\*/", "", text))


@settings(deadline=None)
@given(settings_texts())
def test_what_was_put_in_comes_out_and_nothing_else_changes(text: str) -> None:
    try:
        before = data_of(text)
    except ValueError:  # a string that looks like a comment: not what is tested here
        return
    with_entry = installed(text, "claude-code", COMMAND)
    after = data_of(with_entry)
    wanted = entries(HOSTS["claude-code"], COMMAND)
    for event, group in wanted.items():
        assert after["hooks"][event].count(group) == 1
        assert after["hooks"][event][:-1] == before.get("hooks", {}).get(event, [])
    assert {**after, "hooks": 0} == {**before, "hooks": 0}
    assert installed(with_entry, "claude-code", COMMAND) == with_entry
    assert uninstalled(with_entry, "qwen-code") == with_entry
    if before:
        assert uninstalled(with_entry, "claude-code") == text
    comments = re.findall(r"//[^\r\n]*|/\*.*?\*/", text)
    assert re.findall(r"//[^\r\n]*|/\*.*?\*/", with_entry) == comments


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "{ }\n",
        "{\n}",
        "\n",
        '{"hooks": {}}',
        '{"hooks":{"PreToolUse":[]}}',
        "{ /* c */ }",
    ],
)
def test_empty_settings(text: str) -> None:
    with_entry = installed(text, "claude-code", COMMAND)
    assert data_of(with_entry)["hooks"] == {
        event: [group] for event, group in entries(HOSTS["claude-code"], COMMAND).items()
    }
    assert data_of(uninstalled(with_entry, "claude-code")) == {}
    assert ("/* c */" in text) == ("/* c */" in uninstalled(with_entry, "claude-code"))


def test_an_older_entry_is_brought_up_to_date_and_others_stay() -> None:
    mixed = {"matcher": "*", "hooks": [OTHER, {"type": "command", "command": OLDER}]}
    theirs = {
        "matcher": "*",
        "hooks": [{"type": "command", "command": OLDER.replace("claude", "qwen")}],
    }
    text = json.dumps({"hooks": {"PreToolUse": [mixed, theirs], "Stop": [mixed]}}, indent=2)
    after = data_of(installed(text, "claude-code", COMMAND))["hooks"]
    assert after["Stop"] == [{"matcher": "*", "hooks": [OTHER]}]
    own = entries(HOSTS["claude-code"], COMMAND)["PreToolUse"]
    assert after["PreToolUse"] == [{"matcher": "*", "hooks": [OTHER]}, theirs, own]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "line 1"),
        ('{\n"a": 1,\n}', "line 2: there is a comma too many"),
        ('{"a": [\n1,\n]}', "line 2: there is a comma too many"),
        ('{"a": }', "it is not JSON"),
        ("[]", "must be an object"),
        ("{} {}", "it"),
        ('{"hooks": []}', "hooks must be an object"),
        ('{"hooks":\n {"PreToolUse": {}}}', "line 2: hooks.PreToolUse must be an array"),
        ('{"hooks": {},\n"hooks": {}}', "line 2: there are two of 'hooks'"),
        ('{"a": tru}', "it is not JSON"),
    ],
)
def test_settings_that_cannot_be_changed_are_not(text: str, said: str) -> None:
    with pytest.raises(Unusable, match=re.escape(said)):
        installed(text, "claude-code", COMMAND)


@pytest.mark.parametrize(
    ("command", "ours"),
    [
        (COMMAND, True),
        (OLDER, True),
        ("'/a b/pinfold' hook --profile dream --host claude-code", True),
        ("python3 -m pinfold hook --host claude-code", True),
        ("/v/bin/python -P -m pinfold hook --profile dream --host claude-code", True),
        (f"{COMMAND} && notify-send done", False),
        (f"tee -a log | {COMMAND}", False),
        ("git hook run x; echo pinfold --host claude-code", False),
        ("pinfold hook", False),
        ("pinfold hook --host qwen-code", False),
        ("pinfold serve --host claude-code", False),
        ("echo pinfold; hook --host claude", False),
        ("other hook --host claude-code", False),
        ("pinfold 'hook", False),
        (None, False),
        (3, False),
    ],
)
def test_which_commands_are_ours(command: object, ours: bool) -> None:
    assert is_ours(command, "claude-code") is ours


# The command line


def run(home: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    env = clean_env(HOME=str(home)) | more.pop("env", {})
    return subprocess.run(
        [*HOOK, *arguments], capture_output=True, text=True, env=env, cwd=home, stdin=-3, **more
    )


def test_nothing_is_written_without_consent(tmp_path: Path) -> None:
    write(tmp_path / ".claude/settings.json", '{"a": 1}\n')
    before = snapshot(tmp_path)
    done = run(tmp_path, "--install", "--host", "claude-code")
    assert done.returncode == 1 and "protectPinned=true" in done.stdout and "--yes" in done.stdout
    assert snapshot(tmp_path) == before


def test_consent_may_come_by_a_pipe(tmp_path: Path) -> None:
    for answer, status in (("n\n", 1), ("yes\n", 0)):
        done = subprocess.run(
            [*HOOK, "--install", "--host", "qwen-code"],
            input=answer, capture_output=True, text=True, env=clean_env(HOME=str(tmp_path)),
        )  # fmt: skip
        assert done.returncode == status
        assert (tmp_path / ".qwen/settings.json").exists() is (status == 0)


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("\n", 1)])
def test_consent_is_asked_for_in_a_terminal(tmp_path: Path, answer: str, status: int) -> None:
    terminal, theirs = pty.openpty()
    os.write(terminal, answer.encode())
    done = subprocess.run(
        [*HOOK, "--install", "--host", "qwen-code"],
        stdin=theirs, capture_output=True, text=True, env=clean_env(HOME=str(tmp_path)),
    )  # fmt: skip
    os.close(theirs)
    os.close(terminal)
    assert done.returncode == status and "[y/N]" in done.stdout
    assert (tmp_path / ".qwen/settings.json").exists() is (status == 0)


def test_install_and_uninstall_in_a_project_through_a_link(tmp_path: Path) -> None:
    project = tmp_path / "project"
    text = '{\n\t"model": "x" // mine\n}\n'
    real = Path(write(tmp_path / "dotfiles/claude.json", text))
    real.chmod(0o600)
    (project / ".claude").mkdir(parents=True)
    (project / ".claude/settings.json").symlink_to(real)
    flags = ("--host", "claude-code", "--project", str(project), "--yes")
    rules = write(tmp_path / "rules.json", "[]")
    done = run(tmp_path, "--install", *flags, "--profile", "dream", "--rules", "rules.json")
    assert done.returncode == 0, done.stderr
    after = data_of(real.read_text())
    (group,) = after["hooks"]["PreToolUse"]
    assert group["hooks"][0]["command"].endswith(
        f"hook --host claude-code --profile dream --rules {rules}"
    )
    assert (project / ".claude/settings.json").is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    again = run(tmp_path, "--install", *flags, "--profile", "dream", "--rules", "rules.json")
    assert again.returncode == 0 and "Nothing to do" in again.stdout
    assert run(tmp_path, "--uninstall", *flags).returncode == 0
    assert real.read_text() == text
    assert "Nothing to do" in run(tmp_path, "--uninstall", *flags).stdout


def test_the_entry_runs(tmp_path: Path) -> None:
    """As the host runs it: by a shell."""
    assert run(tmp_path, "--install", "--host", "claude-code", "--yes").returncode == 0
    found = json.loads((tmp_path / ".claude/settings.json").read_text())
    command = found["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    key = re.sub(r"[^A-Za-z0-9]", "-", str(tmp_path))
    pinned = tmp_path / ".claude/projects" / key / "memory/pinned/a.md"
    event = {"tool_name": "Write", "tool_input": {"file_path": str(pinned)}, "cwd": str(tmp_path)}
    done = subprocess.run(
        command, shell=True, input=json.dumps(event), capture_output=True, text=True,
        env=clean_env(HOME=str(tmp_path)),
    )  # fmt: skip
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--install",), "--host is missing"),
        (("--install", "--host", "vim"), "must be one of claude-code, qwen-code, not 'vim'"),
        (("--install", "--host", "claude-code", "--scope", "x=1"), "no member 'x'"),
        (("--install", "--host", "claude-code", "--rules", "none.json"), "No such file"),
        (("--install", "--uninstall", "--host", "claude-code"), "not allowed with"),
    ],
)
def test_what_cannot_be_installed(tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    before = snapshot(tmp_path)
    done = run(tmp_path, *arguments, "--yes")
    assert done.returncode == 2 and said in done.stderr
    assert snapshot(tmp_path) == before


def test_settings_that_are_no_text_or_not_writable_are_left(tmp_path: Path) -> None:
    path = tmp_path / ".claude/settings.json"
    write(path, b"\xff{}")
    done = run(tmp_path, "--install", "--host", "claude-code", "--yes")
    assert done.returncode == 2 and "not UTF-8" in done.stderr
    write(path, b"\xef\xbb\xbf{}\r\n")
    assert run(tmp_path, "--install", "--host", "claude-code", "--yes").returncode == 0
    data = path.read_bytes()
    assert data.startswith(b"\xef\xbb\xbf{\r\n") and b"\n" not in data.replace(b"\r\n", b"")


def test_comments_and_members_that_are_not_ours_stay() -> None:
    hook = json.dumps({"type": "command", "command": COMMAND})
    other = json.dumps(OTHER)
    for text, kept in (
        (f'{{"hooks": {{"Stop": [{{"hooks": [{other} /* , */ , {hook}]}}]}}}}', ["/* , */", other]),
        (f'{{"hooks": {{"Stop": [{{"hooks": [{hook} /* , */ , {other}]}}]}}}}', ["/* , */", other]),
        (f'{{"hooks": {{"Stop": [{{"note": "mine", "hooks": [{hook}]}}]}}}}', ['"note": "mine"']),
        (f'{{"hooks": {{"Stop": [ /* a */ {{"hooks": [{hook}]}}]}}}}', ["/* a */"]),
        (f'{{"hooks": {{ /* b */ "Stop": [{{"hooks": [{hook}]}}]}}}}', ["/* b */"]),
        (f'{{"hooks": {{"Stop": [{{ /* c */ "hooks": [{hook}]}}]}}}}', ["/* c */"]),
    ):
        without = uninstalled(text, "claude-code")
        assert COMMAND not in without and all(each in without for each in kept), without
        data_of(without)


def test_the_host_waits_longer_than_we_do(tmp_path: Path) -> None:
    for flags, wanted in (((), 10), (("--deadline", "20.5"), 26)):
        run(tmp_path, "--install", "--host", "claude-code", "--yes", *flags)
        found = json.loads((tmp_path / ".claude/settings.json").read_text())
        assert found["hooks"]["PreToolUse"][0]["hooks"][0]["timeout"] == wanted


def test_what_is_no_settings_file(tmp_path: Path) -> None:
    flags = ("--install", "--host", "claude-code", "--yes")
    os.makedirs(tmp_path / ".claude")
    os.mkfifo(tmp_path / ".claude/settings.json")
    assert run(tmp_path, *flags, timeout=60).returncode == 2
    os.unlink(tmp_path / ".claude/settings.json")
    write(tmp_path / ".claude/settings.json", '{"a": ' + "[" * 5000 + "]" * 5000 + "}")
    done = run(tmp_path, *flags)
    assert done.returncode == 2 and "too deep" in done.stderr
    done = run(tmp_path, *flags, "--project", "/nowhere/typo")
    assert done.returncode == 2 and "no directory /nowhere/typo" in done.stderr
