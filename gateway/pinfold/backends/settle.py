"""What became of an edit that was sent to an editor: judged by what the document shows, never by
what the editor replies.

Seen in the field: a reply of `applied: true` to an edit that was dropped, an edit applied a column
off, an error to one that came too late, no reply at all, and one that comes after the text.
"""

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from pinfold.backends.buffers import Pending, Progress, Reply
from pinfold.text.codec import printable
from pinfold.text.intent import Intent, Shown
from pinfold_protocol.errors import ToolError, ToolErrorKind, short

Seconds = Callable[[], float]
_QUIET_SECONDS = 1.0
"""How long an editor may take to tell of the changes that it had made before it replied: some wait
for a pause in typing."""


class Outcome(msgspec.Struct, frozen=True):
    """What is known of an edit in the end. `shown`: what the last version shows; `changed`:
    whether there was any later version; `version`: the first one that shows the edit, and `text`
    what it was with nothing but that."""

    shown: Shown = "missing"
    changed: bool = False
    version: int | None = None
    text: str = ""
    reply: Reply | None = None
    reason: str = ""
    over: Literal["closed", "lost"] | None = None

    @property
    def untouched(self) -> bool:
        """Whether the editor has said that it did nothing, and shows nothing else."""
        return self.reply == "refused" and self.shown == "missing" and self.over is None

    @property
    def doubtful(self) -> bool:
        """Whether the edit will hardly be seen any more: it was replied to, and either with a no
        or by a text that is another one."""
        return self.reply == "refused" or (self.reply is not None and self.changed)

    def after(self, intent: Intent, progress: Progress) -> "Outcome":
        """With what has happened since."""
        found = msgspec.structs.replace(
            self,
            reply=progress.reply or self.reply,
            reason=progress.reason or self.reason,
            over=progress.over,
        )
        for each in progress.versions:
            shown = "unclear" if each.lost else intent.shown_by(each.text)
            moved = each.text != intent.before or each.lost
            found = msgspec.structs.replace(found, shown=shown, changed=found.changed or moved)
            if shown == "made":
                kept = intent.as_kept(each.text)
                text = intent.after if kept is None else kept
                return msgspec.structs.replace(found, version=each.version, text=text)
        return found

    def error(self, name: str) -> ToolError | None:
        """What a model should read of it; None if the edit was made."""
        if self.shown == "made":
            return None
        kind, problem = self._problem()
        if self.untouched:
            return ToolError(kind, f"{name}: {problem}. Nothing was changed.", applied=False)
        message = f"{name}: {problem}. Read it again before you go on."
        return ToolError(kind, message, applied=None)

    def _problem(self) -> tuple[ToolErrorKind, str]:
        if self.over == "lost":
            return "backend", "the editor is gone, and whether it made the change is not known"
        if self.over == "closed":
            return "backend", "it was closed in the editor before the change could be seen"
        if self.changed and (self.shown == "missing" or self.reply == "refused"):
            return "stale", "it was changed in the editor meanwhile, and not by this edit"
        if self.reply == "refused":
            reason = f" ({printable(short(self.reason))})" if self.reason else ""
            return "backend", f"the editor refused the edit{reason}"
        if self.shown == "unclear":
            problem = "the editor shows neither the old text nor the one that was meant"
            return "backend", f"{problem}; nothing was taken back, and undo there is possible"
        if self.reply is None:
            return "backend", "the editor did not answer in time, and may still make the change"
        return "backend", "the editor says that it made the change, but its text does not show it"


def settle(intent: Intent, pending: Pending, seconds: float) -> Outcome:
    """Wait until a version shows the edit, or until it will not be seen any more, at most so
    long."""
    end = time.monotonic() + seconds
    until, outcome = end, Outcome()
    while (left := until - time.monotonic()) > 0:
        progress = pending.wait(left)
        outcome = outcome.after(intent, progress)
        if outcome.shown == "made" or outcome.over is not None:
            break
        news = bool(progress.versions) or (progress.reply is not None)
        if outcome.doubtful and news:
            until = min(end, time.monotonic() + _QUIET_SECONDS)
    return outcome
