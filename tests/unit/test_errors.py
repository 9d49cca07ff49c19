"""Every error that can be seen is in the catalogue and on its page, and its example is real."""

import re
from pathlib import Path
from typing import get_args

import pytest

from error_page import PAGE, example, page
from error_sites import HANDED_ON, INSIDE, MAKERS, ONE_KIND, TOP, raised, sites, texts_by_kind
from mistakes import MADE, NOT_MADE
from pinfold.catalogue import COMMAND_ERRORS, FINDINGS, SEVERITIES
from pinfold_protocol import errors
from pinfold_protocol.catalogue import DENIALS, RPC_ERRORS, TOOL_ERRORS, Kind
from pinfold_protocol.decision import Rule

KINDS: list[Kind] = [
    *TOOL_ERRORS.values(),
    *DENIALS.values(),
    *RPC_ERRORS.values(),
    *COMMAND_ERRORS.values(),
]
NAMES = [kind.name for kind in KINDS]
UNFIXED = {
    # Sites that hand on whatever kind of error they were given, with a place or a word more
    "gateway/pinfold/backends/editor.py": "_refused: its calls are sites",
    "gateway/pinfold/backends/settle.py": "Outcome.error: what _problem returns are sites",
    "gateway/pinfold/calls.py": "_placed",
    "gateway/pinfold/doors/mcp_memory.py": "a tool's error as a resource's",
    "gateway/pinfold/paths/errors.py": "from_errno: its table is in the sites",
    "gateway/pinfold/tools/edit.py": "_located",
    "gateway/pinfold/upstream/peer.py": "what an upstream answered, in its own words",
    "protocol/pinfold_protocol/client.py": "what a gateway answered",
}


def _page() -> str:
    return PAGE.read_text("utf-8")


def _shown() -> dict[str, str]:
    """The examples on the page, by anchor."""
    sections = re.split(r"^### (.+)\n", _page(), flags=re.MULTILINE)
    found = {}
    for name, text in zip(sections[1::2], sections[2::2], strict=True):
        if block := re.search(r"^```text\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL):
            found[name] = block[1]
    return found


def test_the_catalogue_has_a_row_for_every_kind_code_and_rule() -> None:
    public = {name: value for name, value in vars(errors).items() if name[0].isupper()}
    codes = {value for name, value in public.items() if name.isupper() and type(value) is int}
    assert set(TOOL_ERRORS) == set(errors.TOOL_ERROR_KINDS)
    assert set(RPC_ERRORS) == codes
    assert set(DENIALS) == set(get_args(Rule)) - {"default"}
    assert len(NAMES) == len({*NAMES})
    for kind in KINDS:
        assert kind.means.endswith(".") and kind.then.endswith("."), kind.name


def test_whatever_is_raised_is_catalogued_or_known_to_stay_inside() -> None:
    known = {*INSIDE, *ONE_KIND, *MAKERS, *HANDED_ON, "ToolError", "RpcError"}
    found = {name: place for place, name in raised()}
    assert {name: place for name, place in found.items() if name not in known} == {}
    assert {*INSIDE, *MAKERS, *HANDED_ON} - {*found} == set(), "no longer raised: remove"


def test_every_site_has_a_kind_of_the_catalogue() -> None:
    found = sites()
    assert len(found) > 300
    assert {site.kind for site in found if site.kind} <= {*NAMES}
    unfixed = {site.place.rpartition(":")[0] for site in found if site.kind is None}
    assert unfixed == {*UNFIXED}


def test_every_kind_can_be_said_by_some_code() -> None:
    # What is wrong with a value is said by `invalid_params`; the other is a word of the contract
    assert {*NAMES} - {*texts_by_kind()} == {"command-value", "cancelled"}


def test_every_kind_has_its_anchor_on_the_page() -> None:
    headings = re.findall(r"^### (.+)$", _page(), re.MULTILINE)
    assert headings == NAMES
    others = re.findall(r'<a id="([^"]+)">', _page())
    wanted = [f"doctor-{name}" for name, kind in FINDINGS.items() if kind.level != "ok"]
    assert others == wanted + [f"diagnostic-{name}" for name in SEVERITIES]
    explained = (TOP / "docs/language.md").read_text("utf-8") + (TOP / "docs/doctor.md").read_text(
        "utf-8"
    )
    assert {name for name in (*FINDINGS, *SEVERITIES) if f"`{name}`" not in explained} == set()


def test_every_kind_has_an_example_or_a_reason_why_not() -> None:
    assert {*MADE} & {*NOT_MADE} == set()
    assert {*MADE} | {*NOT_MADE} == {*NAMES}
    assert {*_shown()} == {*MADE}
    for why in NOT_MADE.values():
        for named in re.findall(r"tests/\S+\.py", why):
            assert (TOP / named).is_file(), named


@pytest.mark.parametrize("name", MADE)
def test_the_example_is_what_is_really_said(tmp_path: Path, name: str) -> None:
    assert example(name, tmp_path) == _shown()[name], "stale: run `make generated`"


def test_the_page_is_current() -> None:
    assert _page() == page(_shown()), "stale: run `make generated`"


@pytest.mark.parametrize("name", [n for n in TOOL_ERRORS if n in MADE])
def test_an_error_for_a_model_says_what_and_what_to_do(name: str) -> None:
    """A fact, and a sentence or a clause of advice, in whole sentences."""
    text = _shown()[name]
    assert text.endswith("."), text
    assert re.search(r"[.:;] \S+", text.partition(": ")[2] or text), text


def test_a_directory_s_errors_name_the_file_that_was_meant() -> None:
    nowhere = {"invalid-path", "invalid-arguments", "no-change", "denied"}
    for name in (n for n in TOOL_ERRORS if n in MADE and n not in nowhere):
        assert "/home/you/project" in _shown()[name], name
