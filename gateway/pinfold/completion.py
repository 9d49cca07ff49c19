"""`pinfold completion SHELL`: a script that completes what the parser knows."""

import argparse

import shtab

from pinfold.usage import every

SHELLS = ("bash", "zsh", "fish")
# What is completed where a value is called so.
_COMPLETED = {"FILE": shtab.FILE, "HISTORY": shtab.FILE, "PATH": shtab.FILE, "DIR": shtab.DIRECTORY}


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script for one of SHELLS, to be kept where that shell looks for completions."""
    for each in every(parser):
        for action in each._actions:
            if isinstance(action.metavar, str) and action.metavar in _COMPLETED:
                action.complete = _COMPLETED[action.metavar]  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell=shell))
