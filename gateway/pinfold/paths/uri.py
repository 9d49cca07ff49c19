"""`file:` URIs of this machine, to paths and back."""

from pinfold_protocol.errors import invalid_params

SCHEME = "file:"


def is_uri(text: str) -> bool:
    """Whether a text is meant as a `file:` URI."""
    return text[: len(SCHEME)].lower() == SCHEME


def from_uri(raw: str, member: str) -> str:
    """The path of a `file:` URI of this machine. Raises RpcError (-32602) that names the member."""
    from urllib.parse import unquote, urlsplit  # most hosts give paths

    problem = "must be a file: URI of this machine"
    if not raw.isprintable():  # urlsplit would drop some of these
        raise invalid_params(member, problem)
    try:
        uri = urlsplit(raw)
        path = unquote(uri.path, errors="strict")
    except ValueError:
        raise invalid_params(member, problem) from None
    foreign = uri.netloc.lower() not in ("", "localhost") or uri.query or uri.fragment
    if not is_uri(raw) or foreign or not path.startswith("/") or "\0" in path:
        raise invalid_params(member, problem)
    return path


def to_uri(path: str) -> str:
    """A path as a `file:` URI; what is not UTF-8 in it cannot come back."""
    from urllib.parse import quote

    return "file://" + quote(path, errors="replace")
