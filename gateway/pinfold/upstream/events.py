"""What an upstream says by itself: what it tells, and what it asks, on its reader's thread."""

from collections.abc import Callable
from typing import Any

import msgspec

from pinfold.upstream.messages import without_ours
from pinfold_protocol.errors import INTERNAL_ERROR, METHOD_NOT_FOUND, RpcError, short

Params = dict[str, Any]
Answer = Callable[[Any], None]
Fail = Callable[[RpcError], None]
_MOST = 16
"""How many questions may be open at once."""


class Events(msgspec.Struct, frozen=True):
    """What an upstream says by itself, on its reader's thread: nothing here may block.

    `capabilities`: what to tell it that we can do. `ask` gets a request of it (method, params) and
    two functions for the answer; it returns one that takes the question back, and raises RpcError
    where nobody could answer.
    """

    on_tools: Callable[[], None] = lambda: None
    on_log: Callable[[Params], None] = lambda params: None
    on_trouble: Callable[[str], None] = lambda message: None
    capabilities: Callable[[], Params] = dict
    ask: "Callable[[str, Params, Answer, Fail], Callable[[], None]]" = lambda method, *_: _nobody(
        method
    )


def _nobody(method: str) -> Callable[[], None]:
    raise RpcError(METHOD_NOT_FOUND, f"Method not found: {short(method)}")


class Questions:
    """The requests of one upstream. Each is answered once, whoever answers first, by `post`, which
    raises ValueError for what cannot be sent."""

    def __init__(self, events: Events, post: Callable[[Params], None]) -> None:
        self._events = events
        self._post = post
        self._open: dict[int | str, Callable[[], None]] = {}

    def put(self, number: Any, method: str, params: Params) -> None:
        """It asks something."""
        if type(number) not in (int, str):
            return
        if method == "ping":
            self._post({"id": number, "result": {}})
        elif number in self._open or len(self._open) >= _MOST:
            self._refuse(number, RpcError(INTERNAL_ERROR, "too many questions at once"))
        else:
            self._open[number] = lambda: None
            self._hand_on(number, method, params)

    def _hand_on(self, number: int | str, method: str, params: Params) -> None:
        try:
            withdraw = self._events.ask(
                method,
                without_ours(params),
                lambda result: self._answer(number, result),
                lambda error: self._fail(number, error),
            )
        except RpcError as error:
            self._fail(number, error)
        else:
            if number in self._open:
                self._open[number] = withdraw

    def withdraw(self, number: Any) -> None:
        """It takes a question back: nobody answers it any more."""
        taken_back = self._open.pop(number, None) if type(number) in (int, str) else None
        if taken_back is not None:
            taken_back()

    def _answer(self, number: int | str, result: Any) -> None:
        if self._open.pop(number, None) is None:
            return
        try:
            self._post({"id": number, "result": result})
        except ValueError:  # nested too deeply
            self._refuse(number, RpcError(INTERNAL_ERROR, "no answer that can be sent"))

    def _fail(self, number: int | str, error: RpcError) -> None:
        if self._open.pop(number, None) is not None:
            self._refuse(number, error)

    def _refuse(self, number: int | str, error: RpcError) -> None:
        self._post({"id": number, "error": {"code": error.code, "message": error.message}})
