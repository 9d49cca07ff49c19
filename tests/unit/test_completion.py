"""Completion and `--help`, as a person at a terminal has them: in real shells, where they are."""

import argparse
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pinfold import usage
from pinfold.completion import SHELLS, script
from pinfold.parser import build
from support import DEADLINE, clean_env

PROFILES = {"main", "extraction", "dream", "remember"}

# What is typed before TAB, and what must be offered.
TYPED = [
    ("pinfold ", set(usage.COMMANDS)),
    ("pinfold exp", {"explain"}),
    ("pinfold explain --pro", {"--profile", "--project"}),
    ("pinfold explain --profile ", PROFILES),
    ("pinfold explain --tool write_file --profile dr", {"dream"}),
    ("pinfold serve --layout c", {"claude"}),
    ("pinfold compact --format an", {"anthropic"}),
    ("pinfold completion ", set(SHELLS)),
    ("pinfold explain to", {"topic.md"}),
    ("pinfold roots --project so", {"some"}),
    ("pinfold doctor --rules ru", {"rules.json"}),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory to complete names of, and a script for each shell."""
    for name in ("topic.md", "rules.json"):
        (tmp_path / name).touch()
    (tmp_path / "some").mkdir()
    for shell in SHELLS:
        printed = _pinfold("completion", shell)
        assert printed.returncode == 0 and not printed.stderr
        name = "_pinfold" if shell == "zsh" else f"pinfold.{shell}"
        (tmp_path / name).write_text(printed.stdout, "utf-8")
    return tmp_path


def _pinfold(*words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pinfold", *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=DEADLINE, check=False, env=clean_env(**env)
    )


def _asked(place: Path, *command: str) -> set[str]:
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=place, timeout=DEADLINE, check=True
    )
    assert not done.stderr
    return {line.split("\t")[0].rstrip(" /") for line in done.stdout.splitlines()}


def bash(place: Path, typed: str) -> set[str]:
    """As bash calls the function that `complete -F` named."""
    return _asked(
        place,
        "bash",
        "--norc",
        "-c",
        'source ./pinfold.bash; COMP_WORDS=($1); [[ $1 == *" " ]] && COMP_WORDS+=(""); '
        "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); complete -p pinfold | grep -q -- '-F _shtab_pinfold '"
        ' || exit 1; _shtab_pinfold; printf "%s\\n" "${COMPREPLY[@]}"',
        "bash",
        typed,
    )


def fish(place: Path, typed: str) -> set[str]:
    """fish says itself what it would offer."""
    return _asked(
        place, "fish", "--no-config", "-c", "source ./pinfold.fish; complete -C $argv[1]", typed
    )


ZSH = """\
fpath=($ZDOTDIR $fpath); autoload -U compinit; compinit -u -D; PS1='ready> '
zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' menu no; LISTMAX=1000
setopt auto_list no_list_beep no_list_types list_ambiguous
pinfold() { :; }
"""


def zsh(place: Path, typed: str) -> set[str]:
    """A zsh in a terminal, in which TAB and then Control-D (list) are pressed."""
    (place / ".zshrc").write_text(ZSH, "utf-8")
    ours, theirs = pty.openpty()
    env = clean_env(ZDOTDIR=str(place), TERM="dumb", COLUMNS="200", LINES="100")
    with subprocess.Popen(
        ["zsh", "-d", "-i"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=place,
        env=env,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            _until(ours, lambda shown: "ready>" in shown and "\x1b[?2004h" in shown)
            os.write(ours, typed.encode() + b"\t\x04")
            os.write(ours, b"\x15print do''ne\n")
            shown = _until(ours, lambda shown: "\ndone" in shown.replace("\r", "\n"))
        finally:
            process.kill()
            os.close(ours)
    return set(re.split(r"\s+", shown.replace("/", " ")))


def _until(terminal: int, enough: Callable[[str], bool]) -> str:
    shown, end = "", time.monotonic() + DEADLINE
    while not enough(shown):
        ready, _, _ = select.select([terminal], [], [], max(0, end - time.monotonic()))
        assert ready, shown
        shown += os.read(terminal, 65536).decode("utf-8", "replace")
    return shown


@pytest.mark.slow  # shells
@pytest.mark.parametrize(("typed", "offered"), TYPED, ids=[typed for typed, _ in TYPED])
@pytest.mark.parametrize("shell", [bash, fish, zsh], ids=lambda shell: shell.__name__)
def test_a_shell_offers_it(
    place: Path, shell: Callable[[Path, str], set[str]], typed: str, offered: set[str]
) -> None:
    if shutil.which(shell.__name__) is None:
        pytest.skip(f"{shell.__name__} is not here")
    assert offered <= shell(place, typed)


def test_a_shell_offers_no_other_value(place: Path) -> None:
    assert bash(place, "pinfold explain --profile ") == PROFILES
    assert bash(place, "pinfold roots --project ") == {"some"}


def _commands() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for parser in usage.every(build()):
        yield parser.prog, parser


def test_every_command_has_its_words_and_no_words_are_left() -> None:
    assert {prog for prog, _ in _commands()} == {
        "pinfold",
        *(f"pinfold {name}" for name in usage.COMMANDS),
    }


@pytest.mark.parametrize("words", [[], *([name] for name in usage.COMMANDS)], ids=str)
def test_help_fits_a_terminal_and_says_all(words: list[str]) -> None:
    shown = _pinfold(*words, "--help", COLUMNS="80")
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "Exit status" in shown.stdout or not words or words == ["completion"]


def test_every_option_says_what_it_is_for() -> None:
    silent = [
        (prog, action.dest)
        for prog, parser in _commands()
        for action in parser._actions
        if not action.help and not isinstance(action, argparse._SubParsersAction)
    ]
    assert silent == []


def test_every_example_is_one_that_the_parser_takes() -> None:
    parser, tried = build(), 0
    for _, _, examples in usage.COMMANDS.values():
        joined = re.sub(r"\\\n +", "", examples)
        for line in re.findall(r"^  pinfold (.+)$", joined, re.M):
            parser.parse_args(_words(line))
            tried += 1
    assert tried > 15


def _words(line: str) -> list[str]:
    """The words of a command, without another's, its redirections, and what is said of it."""
    return shlex.split(re.split(r"\s{3,}| [<>] | -- ", line)[0])


def test_a_shell_that_nobody_knows_is_a_mistake() -> None:
    wrong = _pinfold("completion", "tcsh")
    assert wrong.returncode == 2 and "zsh" in wrong.stderr and not wrong.stdout


def test_the_script_is_the_same_every_time() -> None:
    for shell in SHELLS:
        assert script(build(), shell) == script(build(), shell)
