"""Every command of `pinfold` and its options, as a page made from the parser itself.

`docs/reference/cli.md` is its output, and a test keeps it in step. Python's own help texts look
different from one version to the next, so the page is made from what they are made of.
"""

import argparse
import sys
from collections.abc import Iterator

from pinfold.parser import build

_HEAD = """\
# The command line

Every command of `pinfold` and its options; `pinfold COMMAND --help` says the same in a terminal.
Made from the program by `make generated`: not to be edited.
"""


def page() -> str:
    """The whole page of Markdown."""
    return "\n".join([_HEAD, *_program(build())])


def _program(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            for name, command in action.choices.items():
                yield _command(command, helps.get(name, ""))


def _command(parser: argparse.ArgumentParser, summary: str) -> str:
    parts = [f"## `{parser.prog}`\n", f"{_sentence(summary)}\n", f"```\n{_usage(parser)}\n```\n"]
    if parser.description:
        parts.append(f"{_plain(parser.description)}\n")
    rows: dict[str, list[str]] = {}
    for group in parser._action_groups:
        shown = [_row(each) for each in group._group_actions if not _is_hidden(each)]
        rows.setdefault(_lead(group), []).extend(shown)
    parts += [f"{lead}{_TABLE}{''.join(lines)}" for lead, lines in rows.items() if lines]
    if parser.epilog:
        parts.append(f"```\n{parser.epilog.strip()}\n```\n")
    return "\n".join(parts)


def _usage(parser: argparse.ArgumentParser) -> str:
    """One line: that there are options, and what has to be given."""
    needed = [_flag(each) for each in parser._actions if each.option_strings and each.required]
    words = [_positional(each) for each in parser._actions if not each.option_strings]
    optional = any(
        each.option_strings and not each.required and not _is_hidden(each)
        for each in parser._actions
    )
    return " ".join([parser.prog, *(["[OPTION]..."] if optional else []), *needed, *words])


def _positional(action: argparse.Action) -> str:
    name = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    return f"[{name}]" if action.nargs == "?" else name


_TABLE = "| option | meaning |\n| --- | --- |\n"
_NAMELESS = ("positional arguments", "options")  # what argparse calls its own groups


def _lead(group: argparse._ArgumentGroup) -> str:
    """What stands above a table: the group's title and description, where they are ours."""
    told = [] if group.title in _NAMELESS else [group.title, group.description]
    lead = " ".join(_sentence(each) for each in told if each)
    return f"{lead}\n\n" if lead else ""


def _row(action: argparse.Action) -> str:
    shown = _flag(action) if action.option_strings else _positional(action)
    told = (action.help or "") % {**vars(action), "prog": "pinfold"}
    cells = [f"`{shown}`", _plain(told)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _flag(action: argparse.Action) -> str:
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    if isinstance(action.metavar, str):
        return f"{names} {action.metavar}"
    values = "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    return f"{names} {values}"


def _is_hidden(action: argparse.Action) -> bool:
    return isinstance(action, argparse._HelpAction) or action.help == argparse.SUPPRESS


def _sentence(text: str) -> str:
    text = _plain(text)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")


def _plain(text: str) -> str:
    """A help text as Markdown that shows the same."""
    return text.replace("*", r"\*").replace("<", "&lt;").replace("_", r"\_")


if __name__ == "__main__":
    sys.stdout.write(page())
