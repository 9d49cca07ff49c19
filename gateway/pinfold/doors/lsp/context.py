"""One document while a feature looks at it: its text, its place, its links. On the pool."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from pinfold import library
from pinfold.doors.lsp.client import Client, path_of
from pinfold.doors.lsp.convert import Converter
from pinfold.doors.lsp.documents import Document, Documents
from pinfold.doors.lsp.listings import Listings
from pinfold.language.facts import Linked, Where
from pinfold.language.links import MOST_LINKS, Link, find_links, links_on, resolve
from pinfold.paths.uri import to_uri
from pinfold.text.editable import lines_of, without_ending
from pinfold.text.positions import Encoding

if TYPE_CHECKING:
    from pinfold.app import Gateway
    from pinfold.memory.survey import Survey
    from pinfold.session import Session
    from pinfold_protocol.memory import MemoryDocument

MOST_TOPICS = 20_000


class Context(msgspec.Struct, frozen=True):
    """A memory document, open or not. `lines` are without endings."""

    gateway: "Gateway"
    session: "Session"
    client: Client
    documents: Documents
    uri: str
    document: Document | None
    text: str
    lines: list[str]
    where: Where
    survey: "Survey"
    listings: Listings

    def topics(self) -> "Sequence[MemoryDocument]":
        """The topics of its root, as they were a moment ago at least."""
        kind = self.where.kind

        def look() -> "Sequence[MemoryDocument]":
            return library.index(self.gateway, self.session, [kind], MOST_TOPICS).documents

        return self.listings.find(self.session.effective, kind, look)

    @property
    def convert(self) -> Converter:
        """Between its lines and the editor's positions."""
        return Converter(self.lines, self.encoding)

    @property
    def encoding(self) -> Encoding:
        """What the editor counts columns in."""
        return self.client.encoding

    def links(self) -> list[Link]:
        """Its links to files, among the first MOST_LINKS."""
        return _to_files(find_links(self.lines, MOST_LINKS))

    def links_on(self, line: int) -> list[Link]:
        """Its links to files in one line."""
        return _to_files(links_on(self.lines, line))

    def leads(self, link: Link) -> str:
        """The absolute path that a link names."""
        return resolve(self.where.path, link.path or "")

    def moved_to(self, path: str) -> "Context | None":
        """The context of another document below the same root; None where there is none."""
        if path == self.where.path:
            return self
        where = self.survey.where(path)
        if where is None or where.kind != self.where.kind:
            return None
        document = self.documents.find_path(path)
        found = library.text_of(self.gateway, self.session, path)
        text = document.text if document else found
        if text is None:
            return None
        uri = document.uri if document else to_uri(path)
        lines = text_lines(text)
        return msgspec.structs.replace(
            self, uri=uri, document=document, text=text, lines=lines, where=where
        )

    def looked_up(self, links: list[Link]) -> dict[str, Linked]:
        """What links lead to, by the path that stands in them."""
        paths = {link.path or "": self.leads(link) for link in links}
        found = self.survey.linked(self.where, dict.fromkeys(paths.values()))
        return {path: found[leads] for path, leads in paths.items() if leads in found}


def _to_files(links: list[Link]) -> list[Link]:
    return [link for link in links if link.path is not None]


def text_lines(text: str) -> list[str]:
    """The lines of a text, without endings; the last one may be empty."""
    return [without_ending(line) for line in lines_of(text)]


class Opener(msgspec.Struct, frozen=True):
    """Makes contexts for one session."""

    gateway: "Gateway"
    session: "Session"
    client: Client
    documents: Documents
    listings: Listings

    @contextmanager
    def open(self, uri: str) -> "Iterator[Context | None]":
        """The context of a document; None for one that is no memory document, or whose text is not
        known."""
        path = path_of(uri)
        document = self.documents.get(uri)
        if path is None or not path.endswith(".md") or (document and document.lost):
            yield None
            return
        with library.survey(self.gateway, self.session) as survey:
            where = survey.where(path)
            text = None if where is None else self._text(document, where.path)
            if where is None or text is None:
                yield None
                return
            yield Context(
                self.gateway,
                self.session,
                self.client,
                self.documents,
                uri,
                document,
                text,
                text_lines(text),
                where,
                survey,
                self.listings,
            )

    def _text(self, document: Document | None, path: str) -> str | None:
        if document is not None:
            return document.text
        return library.text_of(self.gateway, self.session, path)
