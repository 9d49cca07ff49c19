"""What pages tell a reader to type is typed, as it stands; what is not says why."""

from pathlib import Path

import pytest

import pages
from follow import Marker, follow, marker

WITH_BLOCKS = [source for source in pages.sources() if pages.load(source).blocks]


def test_there_are_pages_to_follow() -> None:
    assert {"README.md", "docs/doctor.md", "docs/hooks.md"} <= set(WITH_BLOCKS)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "source",
    [
        each if each == "README.md" else pytest.param(each, marks=pytest.mark.slow)
        for each in WITH_BLOCKS
    ],
)
def test_a_page_can_be_followed(source: str, tmp_path: Path) -> None:
    problems = list(follow(pages.load(source), tmp_path))
    assert not problems, "\n".join(problems)


HOLDS = (
    "```sh\ncd DIR && test -f a.py\nmine='1 2'\n```\n\n```sh\ntest \"$mine\" = '1 2' && test -f a.py\n```",
    '```sh\ntest "$PWD" = /home/me/project && test "$HOME" = /home/me\n```',
    "<!-- run: exit 1 -->\n```sh\npinfold explain ~/.qwen/none/pinned/x.md --profile dream\n```",
    "<!-- not run: it would take an hour -->\n```sh\nfalse\n```",
    "<!-- about the next one -->\n```json\n{}\n```",
    "```console\n$ printf 'one\\ntwo three [4]\\n'\none\ntwo … [4]\n$ echo a \\\n> b\na b\n```",
    "```python\nimport os\nassert os.getcwd() == '/home/me/project'\n```",
    '```jsonc\n// a comment\n{"a": [1]}\n```',
    "```toml\na = 1\n```\n\n```yaml\na: [1]\n```",
    "```\nan illustration, $ included\n```",
)
BREAKS = {
    "```sh\nfalse\ntrue\n```": "exit status 1 instead of 0",
    "```sh\nfalse | true\n```": "exit status 1 instead of 0",
    "```sh\necho \"$unset\"\n```": "exit status 1 instead of 0",
    "```sh\nno-such-program\n```": "exit status 127 instead of 0",
    "<!-- run: exit 1 -->\n```sh\ntrue\n```": "exit status 0 instead of 1",
    "<!-- run: exit one -->\n```sh\ntrue\n```": "is neither",
    "<!-- run: -->\n```sh\ntrue\n```": "is neither",
    "<!-- not run: -->\n```sh\ntrue\n```": "without a reason",
    "<!-- not run: too far away -->\n\n```sh\nfalse\n```": "exit status 1 instead of 0",
    "```console\n$ echo one\ntwo\n```": "`two` is not said",
    "```console\n$ printf 'one\\ntwo\\n'\ntwo\none\n```": "`one` is not said",
    "```\n$ pinfold demo\n```": "call it `console`",
    "```lua\nprint(1)\n```": "say why by",
    "```python\nawait nothing\n```": "exit status 1 instead of 0",
    "```json\n{\"a\": …}\n```": "does not parse",
    "```jsonc\n{\"a\": …}\n```": "does not parse",
    "```toml\na =\n```": "does not parse",
    "```yaml\na: [\n```": "does not parse",
    "- in a list\n\n  ```sh\n  false\n  ```": "exit status 1 instead of 0",
}  # fmt: skip


@pytest.mark.parametrize("text", HOLDS)
def test_what_holds(text: str, tmp_path: Path) -> None:
    assert list(follow(pages.parse("docs/page.md", text), tmp_path)) == []


@pytest.mark.parametrize("text", BREAKS)
def test_what_breaks_is_found_at_its_line(text: str, tmp_path: Path) -> None:
    page = pages.parse("docs/page.md", f"# Title\n\n{text}\n")
    (problem,) = follow(page, tmp_path)
    assert problem.startswith(f"docs/page.md:{page.blocks[0].line}: ")
    assert BREAKS[text] in problem
    assert (
        f"{page.path}:{text.splitlines().index(next(x for x in text.splitlines() if '```' in x)) + 3}:"
        in problem
    )


def test_after_a_failure_the_rest_is_looked_at_too(tmp_path: Path) -> None:
    page = pages.parse("docs/page.md", "```sh\nfalse\n```\n\n```json\n{\n```\n")
    assert len(list(follow(page, tmp_path))) == 2


def test_a_comment_that_is_no_marker_says_nothing() -> None:
    assert marker("a note: run it") == Marker()
