"""LSP's way to tell of progress, for what an upstream tells of a call under way."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pinfold.doors.native import Native
    from pinfold.doors.rpc import Request

Progress = Callable[[dict[str, Any]], None]
"""Gets what an upstream tells of a call under way (MCP's members but the token), on any thread."""


class WorkDone:
    """Tells of one call, under a token that the host chose."""

    def __init__(self, native: "Native", request: "Request", token: int | str) -> None:
        self._native = native
        self._request = request
        self._token = token
        self._begun = False

    def __call__(self, params: dict[str, Any]) -> None:
        """Tell; on any thread."""
        self._native.on_loop(lambda: self._report(params))

    def _report(self, params: dict[str, Any]) -> None:
        if not self._native.is_running(self._request):
            return
        if not self._begun:
            self._begun = True
            self._say({"kind": "begin", "title": "the file server"})
        done, total, message = (params.get(name) for name in ("progress", "total", "message"))
        value: dict[str, Any] = {"kind": "report"}
        if isinstance(message, str):
            value["message"] = message
        if isinstance(done, int | float) and isinstance(total, int | float) and total > 0:
            value["percentage"] = max(0, min(100, int(100 * done / total)))
        self._say(value)

    async def until(self, result: Awaitable[Any]) -> Any:
        """The result; the end of the progress is told before it."""
        try:
            return await result
        finally:
            self._end()

    def _end(self) -> None:
        if self._begun and self._native.is_running(self._request):
            self._say({"kind": "end"})

    def _say(self, value: dict[str, Any]) -> None:
        self._native.rpc.notify("$/progress", {"token": self._token, "value": value})
