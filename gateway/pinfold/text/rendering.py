"""A file's bytes and the text that an editor shows for them: one from the other, both ways."""

from typing import Self

import msgspec

from pinfold.text.codec import MARK, Decoded, encode
from pinfold.text.lines import line_ending, normalize


class Rendering(msgspec.Struct, frozen=True):
    """How a text would be saved: in `encoding`, behind `mark`, a `\\n` as `ending` (None: as it
    stands, since the editor tells the endings as they are)."""

    encoding: str
    mark: bytes = b""
    ending: str | None = None

    @classmethod
    def of(cls, file: Decoded, opened: str, text: str) -> Self:
        """As the file is on disk. `opened` is the text that the editor showed when it had just
        opened or saved the file, `text` what it shows now. Some show `\\n` for every ending."""
        ending = {"crlf": "\r\n", "cr": "\r"}.get(line_ending(file.text) or "")
        hidden = ending is not None and "\r" not in opened and "\r" not in text
        own_mark = text.startswith(MARK)
        return cls(file.encoding, b"" if own_mark else file.mark, ending if hidden else None)

    def saved(self, text: str) -> bytes:
        """The bytes of a text. Raises ToolError for what this encoding cannot hold."""
        return self.mark + encode(self._with_endings(text), self.encoding)

    def _with_endings(self, text: str) -> str:
        return text if self.ending is None else normalize(text).replace("\n", self.ending)

    def text(self, data: bytes) -> str:
        """The text that an editor would show for these bytes."""
        text = data.removeprefix(self.mark).decode(self.encoding)
        return text if self.ending is None else normalize(text)


def same_text(one: str, other: str) -> bool:
    """Whether two texts differ in nothing but line endings and a mark."""
    return normalize(one).removeprefix(MARK) == normalize(other).removeprefix(MARK)
