"""git: which of its commands only read, and which repositories let them.

A repository's configuration, and its hooks, name programs that git runs by itself. So git passes
only where the repository has been found and looked at (`memory/repositories.py`), and what it sets
is in a short list. Where there is none, git has nothing to run.
"""

import re

import msgspec

from pinfold.policy.shell.options import (
    Check,
    Options,
    Words,
    anything,
    require_settled,
    without,
)
from pinfold.policy.shell.words import refuse


class Repository(msgspec.Struct, frozen=True):
    """What git may find from one place. `problem`: why it could not be looked at.

    `where`: its git directory. `in_memory`: that directory, or anything of it that decides what is
    run, is inside a memory root. `settings`: every key of its configuration as
    `section.name` or `section.subsection.name`, and its value; None where it could not be read.
    """

    where: str
    problem: str | None = None
    in_memory: bool = False
    settings: tuple[tuple[str, str], ...] | None = ()


_WORD = r"[^\n]*"
_SETTINGS = re.compile(
    r"core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks|"
    r"precomposeunicode|autocrlf|eol|safecrlf|quotepath|abbrev|trustctime|checkstat|untrackedcache|"
    r"preloadindex|sharedrepository|commitgraph|multipackindex|protecthfs|protectntfs)|"
    r"user\.(?:name|email)|"
    rf"remote\.{_WORD}\.(?:url|fetch|pushurl|push|tagopt|prune|gh-resolved)|"
    rf"branch\.{_WORD}\.(?:remote|merge|rebase|pushremote|description|vscode-merge-base|"
    r"github-pr-owner-number)|"
    r"extensions\.(?:objectformat|worktreeconfig|relativeworktrees)|"
    r"init\.defaultbranch|pull\.(?:rebase|ff)|push\.(?:default|autosetupremote)|merge\.ff|"
    r"merge\.conflictstyle|fetch\.prune|rebase\.autostash|color\.ui|diff\.(?:renames|algorithm)|"
    r"gc\.auto|commit\.gpgsign|tag\.gpgsign|advice\.[a-z]+"
)
"""None of these names a program, a filter, a pager or another file."""


def repository_problem(repository: Repository) -> str | None:
    """What speaks against running git there."""
    if repository.problem:
        return repository.problem
    if repository.in_memory:
        return f"would read the repository {repository.where}, which is inside memory"
    if repository.settings is None:
        return f"would read the repository {repository.where}, whose configuration is not plain"
    for key, _ in repository.settings:
        if not _SETTINGS.fullmatch(key):
            return f"would read the repository {repository.where}, which sets {key}"
    return None


# The commands

_RUNS = (*("ext-diff", "textconv", "filters", "open-files-in-pager", "upload-pack", "exec-path"),)
_REFUSED = (
    Options(long=("output",), why="writes a file"),
    Options(long=_RUNS, exact=frozenset(("text",)), why="runs a helper program"),
    Options(long=("show-signature",), why="runs a program that checks signatures"),
    Options(long=("remerge-diff",), why="may write what it merges again"),
    Options(long=("recurse-submodules", "submodule"), why="runs git in other repositories"),
    Options(long=("help",), why="shows a manual by another program"),
)
_PAGER = Options(short="O", valued="ABCefm", why="runs a pager")

_reads = without(*_REFUSED, words_may_be=anything)
_grep = without(*_REFUSED, _PAGER, words_may_be=anything)

# A sign between the two says what becomes of the lines around it.
_SIGNATURE = re.compile("%[-+ ]*G")


def _log(name: str, words: Words) -> None:
    """`%G…` checks signatures by a program; merges that are made again are written."""
    _reads(name, words)
    for word in words:
        if _SIGNATURE.search(word.value):
            raise refuse(f"{name} {word.raw}", "runs a program that checks signatures")
        if re.match(r"--diff-m[a-z-]*(?:=r|$)", word.value):
            raise refuse(f"{name} {word.raw}", "may write what it merges again")


# To tell whether the work tree is dirty it writes the index, whatever locks it may take.
_REFRESHES = Options(long=("dirty", "broken"), why="writes the index")
_describe = without(*_REFUSED, _REFRESHES, words_may_be=anything)


_BRANCH = re.compile(
    r"-[arvqi]+|--(?:all|remotes|verbose|show-current|no-color|no-column|no-abbrev|ignore-case|"
    r"no-contains|contains|merged|no-merged|points-at|color(?:=.*)?|column(?:=.*)?|abbrev=[0-9]+|sort|format|"
    r"(?:sort|format|contains|no-contains|merged|no-merged|points-at)=.*|list)|-l",
    re.DOTALL,
)
_BRANCH_LISTS = re.compile(
    r"-l|--list|--(?:no-)?(?:contains|merged)(?:=.*)?|--points-at(?:=.*)?", re.DOTALL
)


def _branch(name: str, words: Words) -> None:
    """A name is a branch to be made, unless an option says that branches are listed."""
    told, rest = [], list(words)
    while rest:
        told.append(rest.pop(0))
        if told[-1].value in ("--sort", "--format"):
            del rest[:1]
    listing = any(_BRANCH_LISTS.fullmatch(word.value) for word in told)
    for word in told:
        option = word.value.startswith("-")
        if (option and not _BRANCH.fullmatch(word.value)) or not (option or listing):
            raise refuse(f"{name} {word.raw}", "may change branches")
    if any("signature" in word.value for word in words):
        raise refuse(name, "runs a program that checks signatures")


def _remote(name: str, words: Words) -> None:
    """Without asking the remote itself, which would run whatever its address says."""
    values = [word.value for word in words if word.value not in ("-v", "--verbose")]
    told = values[:1] == ["get-url"] and len(values) > 1
    if not (values in ([], ["show"]) or values[:2] == ["show", "-n"] or told):
        told_to = " ".join(word.raw for word in words)
        raise refuse(f"{name} {told_to}", "may change remotes or connect to one")


_COMMANDS: dict[str, Check] = {
    "blame": _log,
    "branch": _branch,
    "cat-file": _reads,
    "describe": _describe,
    "diff": _log,
    "grep": _grep,
    "log": _log,
    "ls-files": _reads,
    "remote": _remote,
    "rev-parse": _reads,
    "show": _log,
    "status": _reads,
}
_ALONE = ((), ("--version",), ("--help",), ("--version", "--build-options"))


def check_git(name: str, words: Words) -> bool:
    """Whether it needs a repository that was looked at. Raises Refused for all but reading."""
    require_settled(name, words)
    values = tuple(word.value for word in words)
    if values in _ALONE:
        return False
    check = _COMMANDS.get(values[0])
    if check is None or not words[0].bare:
        raise refuse(f"{name} {words[0].raw}", "is not a command of git that only reads")
    check(f"{name} {values[0]}", words[1:])
    return True
