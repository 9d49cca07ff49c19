"""What a user configures for the one session of an MCP connection, and for what people ask on the
command line: a file of the user's, and flags.

Never a file in the project: an agent could write it.
"""

import errno
import os
import stat
from typing import Any

import msgspec

from pinfold.flags import Flags, checked_prefix, default_path
from pinfold_protocol.convert import structure
from pinfold_protocol.errors import RpcError, invalid_params, short
from pinfold_protocol.session import ConnectionOptions, Profile, ScopePatch, SessionOpenParams
from pinfold_protocol.wire import Wire

_MOST_BYTES = 1 << 20
_CONNECTION = ConnectionOptions.__struct_fields__
_TO_HAVE_ONE = "give its command after --, or put it under upstreams in {}"


class UserConfig(Wire, frozen=True):
    """The file. `tool_prefix` goes before the names of our tools, for hosts whose own have the
    same names; `backend` is the name of the upstream to be in front of; the rest is as in
    `session/open` and in `initializationOptions.pinfold`."""

    profile: Profile | None = None
    scope: ScopePatch | None = None
    tool_prefix: str | None = None
    memory: Any = None
    limits: Any = None
    rules: Any = None
    audit: Any = None
    upstreams: Any = None
    backend: str | None = None


class Settings(msgspec.Struct, frozen=True):
    """Both together; flags win. `project` is a directory that is there; `path` is the file that was
    read, if any."""

    connection: ConnectionOptions
    profile: Profile
    scope: ScopePatch | None
    project: str | None
    tool_prefix: str
    path: str | None
    backend: str | None = None

    def opening(self, project: str) -> SessionOpenParams:
        """The session to open. Raises RpcError (-32602) if the file that was named is where an
        agent could change it. The user's own place is the user's, also with a project at home."""
        named = self.path if self.path not in (None, default_path()) else None
        places = () if named is None else (os.path.abspath(named), os.path.realpath(named))
        tops = tuple(f"{top.rstrip('/')}/" for top in (project, os.path.realpath(project)))
        if any(place.startswith(tops) for place in places):
            raise invalid_params(
                "--config", f"{self.path} is in the project: an agent could change it; move it"
            )
        return SessionOpenParams(self.profile, project, scope=self.scope, backend=self.backend)


def load(flags: Flags, *, profile: Profile = "main", file: bool = True) -> Settings:
    """`profile`: where neither says one. Without `file`, by the flags alone.

    Raises RpcError (-32602) that names the file and the member, or the flag.
    """
    if flags.project is not None and not os.path.isdir(flags.project):
        problem = f"there is no directory {flags.project}; make it, or name another"
        raise invalid_params("--project", problem)
    path = flags.config or default_path()
    raw = _read(path, required=flags.config is not None) if file else None
    try:
        config = structure({} if raw is None else raw, UserConfig)
        given = {name: getattr(config, name, None) for name in _CONNECTION}
        members = {name: value for name, value in given.items() if value is not None}
        connection = structure(members, ConnectionOptions)
    except RpcError as error:
        raise in_file(path, error) from None
    more: dict[str, Any] = {}
    if flags.layout is not None:
        more["memory"] = {**(members.get("memory") or {}), "layout": flags.layout}
    if flags.upstreams:
        more["upstreams"] = {**(members.get("upstreams") or {}), **flags.upstreams}
    if more:
        connection = structure({**members, **more}, ConnectionOptions)
    scope = config.scope
    if flags.scope:
        own = {} if raw is None else raw.get("scope") or {}
        scope = structure({**own, **flags.scope}, ScopePatch, "--scope")
    backend = flags.upstream or config.backend
    if backend not in (None, "local", *(connection.upstreams or ())):
        at = "--upstream" if flags.upstream else f"{path}: backend"
        problem = f"there is no upstream {short(str(backend))!r}; {_TO_HAVE_ONE.format(path)}"
        raise invalid_params(at, problem)
    prefix = (config.tool_prefix or "") if flags.tool_prefix is None else flags.tool_prefix
    where = f"{path}: toolPrefix" if flags.tool_prefix is None else "--tool-prefix"
    settings = Settings(
        connection=connection,
        profile=flags.profile or config.profile or profile,  # type: ignore[arg-type]
        scope=scope,
        project=flags.project,
        tool_prefix=checked_prefix(prefix, where),
        path=None if raw is None else path,
        backend=backend,
    )
    if flags.project is not None:
        settings.opening(flags.project)
    return settings


def in_file(path: str, error: RpcError) -> RpcError:
    """The error, with the file where the member stands."""
    data = error.data or {}
    return invalid_params(f"{path}: {data.get('path')}", str(data.get("problem")))


def open_regular(path: str, flags: int) -> int:
    """An opener for `open`: a FIFO must not keep anybody waiting. Raises OSError."""
    handle = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(errno.EINVAL, "is no regular file", path)
    return handle


def _read(path: str, *, required: bool) -> dict[str, Any] | None:
    try:
        with open(path, "rb", opener=open_regular) as file:
            text = file.read(_MOST_BYTES)
    except FileNotFoundError:
        if required:
            raise invalid_params(
                path, "there is no such file; leave --config out to do without one"
            ) from None
        return None
    except OSError as error:
        raise invalid_params(path, error.strerror or "cannot be read") from None
    import json  # says where a mistake is

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = ""
        if isinstance(error, json.JSONDecodeError):
            where = f": {error.msg} (line {error.lineno}, column {error.colno})"
        raise invalid_params(path, f"is not JSON{where}") from None
    if not isinstance(value, dict):
        raise invalid_params(path, "must hold an object")
    return value
