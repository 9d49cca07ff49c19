"""docs/errors.md, made of the catalogue, of the source, and of mistakes made for real.

`make generated` writes it; tests/unit/test_errors.py says where it is stale.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path

from error_sites import TOP, texts_by_kind
from mistakes import MADE, Desk
from pinfold.catalogue import COMMAND_ERRORS, FINDINGS, SEVERITIES
from pinfold_protocol.catalogue import DENIALS, RPC_ERRORS, TOOL_ERRORS, Kind

PAGE = TOP / "docs" / "errors.md"

_HEAD = """# Errors

<!-- Made by `make generated` from the catalogue in protocol/pinfold_protocol/catalogue.py and
gateway/pinfold/catalogue.py, from the source, and from mistakes that are made for real. -->

Every error that a model, a host or a person can see, each with its anchor: what happened and why, and what to do. Search this page for
some words of the message that you have: under each kind are all its texts, with … for what is filled in. Whatever the error,
nothing was changed by the call that got it, unless its section says otherwise.
"""
_PARTS = {
    "For models": 'Results with `isError: true`. `_meta["pinfold/details"].error.kind` is the kind, and the text says the same in words.',
    "Denials": 'Why a call is `denied`: by the `rule` of `_meta["pinfold/decision"]`. Hooks, `policy/explain` and `pinfold explain` give '
    "the same reasons. [The policy](policy.md) says what is behind them.",
    "For hosts": "JSON-RPC errors, by their `code`. After each the connection goes on, but for what the first section says.",
    "For people": "What commands and hooks say on stderr.",
}


def page(examples: dict[str, str]) -> str:
    """The whole page."""
    texts = texts_by_kind()
    codes = {f"{code}": kind for code, kind in RPC_ERRORS.items()}
    parts = {
        "For models": [_section(kind, "", examples, texts) for kind in TOOL_ERRORS.values()],
        "Denials": [
            _section(kind, f"Rule `{rule}`. ", examples, texts) for rule, kind in DENIALS.items()
        ],
        "For hosts": [
            _section(kind, f"Code `{code}`. ", examples, texts) for code, kind in codes.items()
        ],
        "For people": [_section(kind, "", examples, texts) for kind in COMMAND_ERRORS.values()],
    }
    lines = [_HEAD]
    for title, sections in parts.items():
        lines += [f"## {title}\n", f"{_PARTS[title]}\n", *sections]
    return "\n".join([*lines, *_findings(), *_diagnostics()])


def _section(kind: Kind, key: str, examples: dict[str, str], texts: dict[str, list[str]]) -> str:
    lines = [f"### {kind.name}\n", f"{key}{kind.means}\n", f"**What to do.** {kind.then}\n"]
    if kind.name in examples:
        lines += ["```text", examples[kind.name], "```\n"]
    if said := texts.get(kind.name):
        lines += ["All texts:\n", *(f"- {_code(each)}" for each in said), ""]
    return "\n".join(lines)


def _code(text: str) -> str:
    """As code, whatever it holds."""
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def _findings() -> Iterable[str]:
    yield "## Findings of the doctor\n"
    yield "What `pinfold doctor` finds wrong, or worth knowing; [the doctor](doctor.md) says what each is.\n"
    yield "| finding | level | what to do |\n| --- | --- | --- |"
    for name, kind in FINDINGS.items():
        if kind.level != "ok":
            yield f'| <a id="doctor-{name}"></a>`{name}` | {kind.level} | {kind.advice} |'
    yield ""


def _diagnostics() -> Iterable[str]:
    yield "## Diagnostics in editors\n"
    yield "What an editor underlines in a memory document; [the language service](language.md#diagnostics) says what each means and what mends it.\n"
    yield "| diagnostic | severity |\n| --- | --- |"
    for name, severity in SEVERITIES.items():
        yield f'| <a id="diagnostic-{name}"></a>`{name}` | {severity} |'
    yield ""


def examples() -> dict[str, str]:
    """Each mistake made once, in a place of its own."""
    found = {}
    for name in MADE:
        with tempfile.TemporaryDirectory() as base:
            found[name] = example(name, Path(base))
    return found


def example(name: str, base: Path) -> str:
    """What is said of one mistake."""
    desk = Desk(base)
    return desk.said(MADE[name](desk))


def main() -> None:
    PAGE.write_text(page(examples()), "utf-8")


if __name__ == "__main__":
    main()
