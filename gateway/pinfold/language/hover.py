"""What is said of the topic behind a link."""

from pinfold.language.facts import Linked

_UNITS = (
    (365 * 86_400, "year"),
    (30 * 86_400, "month"),
    (86_400, "day"),
    (3600, "hour"),
    (60, "minute"),
)


def age(modified: int, now: int) -> str:
    """How long ago, in the largest unit that fits; both in nanoseconds since the epoch."""
    seconds = (now - modified) // 1_000_000_000
    for size, name in _UNITS:
        if seconds >= size:
            count = seconds // size
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now" if seconds >= 0 else "in the future"


def hover(linked: Linked, now: int, *, markdown: bool) -> str:
    """Title, description, age, and whether it is pinned."""
    if not linked.exists:
        return "There is no such file."
    if not linked.inside:
        return "This leads out of the memory root."
    facts: list[str] = []
    if linked.topic is not None:
        facts.append(linked.topic.type)
    if linked.modified is not None:
        facts.append(f"changed {age(linked.modified, now)}")
    facts.append(
        "pinned: automated maintenance cannot change it" if linked.pinned else "not pinned"
    )
    title = "No valid topic" if linked.topic is None else linked.topic.title
    description = "" if linked.topic is None else linked.topic.description
    words = (f"**{_escaped(title)}**", _escaped(description)) if markdown else (title, description)
    return "\n\n".join(each for each in (*words, " · ".join(facts)) if each)


def _escaped(text: str) -> str:
    """Text as Markdown that reads the same: what a topic says is not to become a link or a tag."""
    return "".join(f"\\{each}" if each in "\\`*_{}[]()<>#+-.!|&~" else each for each in text)
