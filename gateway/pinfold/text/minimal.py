"""From one text to another by the smallest edits: what stays is not touched.

First lines are compared, then the words of lines that differ, and each difference is cut to what
is not common at its edges. Bounded: where a comparison would take long, one edit covers it.
"""

import difflib
import re
from collections.abc import Callable, Iterator

from pinfold.text.codec import Splice
from pinfold.text.diff import MOST_EFFORT, effort
from pinfold.text.edit import common_prefix, common_suffix
from pinfold.text.lines import split_lines
from pinfold.text.positions import splits_ending

_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_Cutter = Callable[[str], list[str]]
_CUTTERS: tuple[_Cutter, ...] = (split_lines, _WORD.findall)


def minimal(before: str, after: str) -> tuple[Splice, ...]:
    """Splices that make `after` of `before`: in order, apart from each other, and none of them
    beginning or ending between the CR and the LF of one ending, of the one text or the other.
    Empty if the texts are equal."""
    found: list[Splice] = []
    for each in _differences(before, after, 0, _CUTTERS):
        whole = _whole_endings(before, each)
        if found and whole.start <= found[-1].end:
            found[-1] = _joined(before, found[-1], whole)
        else:
            found.append(whole)
    if found:
        before_last = found[-2].end if len(found) > 1 else -1
        found[-1] = _off_the_end(before, found[-1], before_last)
    return tuple(found)


def spliced(text: str, splices: tuple[Splice, ...]) -> str:
    """A text with splices applied, as `minimal` makes them."""
    parts: list[str] = []
    at = 0
    for splice in splices:
        parts += (text[at : splice.start], splice.insert)
        at = splice.end
    return "".join((*parts, text[at:]))


def _differences(
    before: str, after: str, offset: int, cutters: tuple[_Cutter, ...]
) -> Iterator[Splice]:
    head = common_prefix(before, after)
    tail = common_suffix(before[head:], after[head:])
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    offset += head
    if not old and not new:
        return
    if not old or not new or not cutters:
        yield Splice(offset, offset + len(old), new)
        return
    left, right = cutters[0](old), cutters[0](new)
    if effort(left, right) > MOST_EFFORT:
        yield Splice(offset, offset + len(old), new)
        return
    yield from _compared(left, right, offset, cutters[1:])


def _compared(
    left: list[str], right: list[str], offset: int, cutters: tuple[_Cutter, ...]
) -> Iterator[Splice]:
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    done = 0
    for tag, first, last, start, end in matcher.get_opcodes():
        offset += sum(map(len, left[done:first]))
        done = first
        if tag != "equal":
            pieces = "".join(left[first:last]), "".join(right[start:end])
            yield from _differences(*pieces, offset, cutters)


def _whole_endings(text: str, splice: Splice) -> Splice:
    """With all of every CRLF that it takes apart or puts together: half of one is a line of its
    own to many editors."""
    start, end, insert = splice.start, splice.end, splice.insert
    if splits_ending(text, start):
        start, insert = start - 1, "\r" + insert
    if splits_ending(text, end):
        end, insert = end + 1, insert + "\n"
    if (insert or text[:start])[-1:] == "\r" and text[end : end + 1] == "\n":
        end, insert = end + 1, insert + "\n"
    if insert[:1] == "\n" and text[:start][-1:] == "\r":
        start, insert = start - 1, "\r" + insert
    return Splice(start, end, insert)


def _off_the_end(text: str, splice: Splice, others_end: int) -> Splice:
    """What comes behind, or is taken from, the last line that ends: the same a line ending earlier.
    For many editors there is no line behind that, and they would make one more."""
    start, end, insert = splice.start, splice.end, splice.insert
    old = text[start:end]
    ending = _last_ending(text[:start])
    alike = bool(ending) and ending == _last_ending(old + insert)
    room = start - len(ending) > others_end
    if end < len(text) or bool(old) == bool(insert) or not alike or not room:
        return splice
    moved = ending + insert.removesuffix(ending) if insert else ""
    return Splice(start - len(ending), end - len(ending), moved)


def _last_ending(text: str) -> str:
    return next((each for each in ("\r\n", "\n", "\r") if text.endswith(each)), "")


def _joined(text: str, first: Splice, second: Splice) -> Splice:
    """Two that touch as one, since an editor may not know which of them comes first."""
    between = text[first.end : second.start]
    return Splice(first.start, second.end, first.insert + between + second.insert)
