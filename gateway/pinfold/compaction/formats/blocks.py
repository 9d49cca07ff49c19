"""What OpenAI's and Anthropic's formats share: a result is a text or a list of typed blocks."""

from collections.abc import Callable
from typing import Any

import msgspec

from pinfold.compaction.scan import clean_mime, media_placeholder
from pinfold_protocol.compaction import CLEARED_TEXT


class Blocks(msgspec.Struct, frozen=True):
    """What the blocks of one format are called. `mime` gives a media block's type; `kept` is the
    member that must survive where a block is replaced (a cache marker)."""

    text: tuple[str, ...]
    media: tuple[str, ...]
    mime: Callable[[dict[str, Any]], Any]
    kept: str | None = None

    def weigh(self, content: Any) -> tuple[str | None, int] | None:
        """A result's text and its number of media blocks; None for a shape that is not known."""
        if content is None:
            return None, 0
        if isinstance(content, str):
            return content, 0
        if not isinstance(content, list):
            return None
        texts, media = [], 0
        for block in content:
            kind = block.get("type") if isinstance(block, dict) else None
            if kind in self.text and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif kind in self.media:
                media += 1
            else:
                return None
        return ("".join(texts) if texts else None), media

    def cleared(self, content: Any) -> Any:
        """The placeholder, as a text or as blocks, as it was."""
        if not isinstance(content, list):
            return CLEARED_TEXT
        return [self._text(CLEARED_TEXT, content)]

    def without_media(self, content: list[Any]) -> list[Any]:
        """The same blocks, each piece of media replaced by a line that says so."""
        return [
            self.placeholder(block)
            if isinstance(block, dict) and block.get("type") in self.media
            else block
            for block in content
        ]

    def placeholder(self, block: dict[str, Any]) -> dict[str, Any]:
        """The line that stands for a media block."""
        return self._text(media_placeholder(self.mime_of(block)), [block])

    def mime_of(self, block: dict[str, Any]) -> str:
        """A media block's type, as a placeholder names it."""
        return clean_mime(self.mime(block))

    def _text(self, text: str, replaced: list[Any]) -> dict[str, Any]:
        block = {"type": self.text[0], "text": text}
        for each in reversed(replaced):
            if self.kept is not None and isinstance(each, dict) and each.get(self.kept):
                return {**block, self.kept: each[self.kept]}
        return block


def data_url_mime(url: Any) -> str | None:
    """The media type of a `data:` URL."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    return url[5:].partition(",")[0].partition(";")[0] or None
