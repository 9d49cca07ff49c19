"""A member that is given twice: which of the two counts may not decide what is protected."""

import json

import pytest

from pinfold.doors.greeting import answer_to
from pinfold.doors.twice import METHODS, require_once
from pinfold.flags import Flags
from pinfold_protocol.errors import RpcError
from support import framed

HEAD = '"jsonrpc":"2.0","id":1'
OURS = '"initializationOptions":{"pinfold":'
TWICE: list[tuple[str, str, str]] = [
    ("session/open", '{"scope":{"protectPinned":true,"protectPinned":false}}', "scope.protectPinned"),
    ("session/open", '{"profile":"dream","profile":"main"}', "profile"),
    ("session/open", '{"scope":{"shell":"deny"},"scope":{}}', "scope"),
    ("session/open", '{"rules":[{},{"tools":[],"tools":["*"]}]}', "rules[1].tools"),
    ("session/open", '{"profile":"dream","pro\\u0066ile":"main"}', "profile"),
    ("session/configure", '{"scope":{"shell":"deny","shell":null}}', "scope.shell"),
    ("turn/begin", '{"scope":{},"scope":{}}', "scope"),
    ("session/open", '{"a":"\\ud800","rules":[],"rules":[]}', "rules"),
    ("initialize", "{" + OURS + '{"rules":[],"rules":[]}}}', "initializationOptions.pinfold.rules"),
    ("initialize", "{" + OURS + '{}},"initializationOptions":null}', "initializationOptions"),
    ("initialize", "{" + OURS + '{"rules":[]},"pinfold":{}}}', "initializationOptions.pinfold"),
]  # fmt: skip
ONCE: list[tuple[str, str]] = [
    ("session/open", '{"scope":{"protectPinned":true},"profile":"dream"}'),
    ("session/open", '{"_meta":{"x":1,"x":2},"rules":[{"tools":[]},{"tools":[]}]}'),
    ("initialize", '{"capabilities":{"a":1,"a":2},"trace":"off","trace":"on"}'),
    ("initialize", '{"initializationOptions":{"theirs":1,"theirs":2,"pinfold":{}}}'),
    ("initialize", '{"initializationOptions":5}'),
    ("session/open", "[]"),
    ("session/open", '{"x":' + "[" * 5000 + "]" * 5000 + "}"),
]


def message(method: str, params: str) -> bytes:
    return f'{{{HEAD},"method":"{method}","params":{params}}}'.encode()


@pytest.mark.parametrize(("method", "params", "path"), TWICE)
def test_a_member_that_is_given_twice_is_named(method: str, params: str, path: str) -> None:
    with pytest.raises(RpcError) as error:
        require_once(message(method, params), method)
    assert error.value.code == -32602
    assert error.value.data == {"path": path, "problem": "is given twice; say it once"}


@pytest.mark.parametrize(("method", "params"), ONCE)
def test_all_else_is_not_looked_at(method: str, params: str) -> None:
    require_once(message(method, params), method)


def test_calls_are_not_read_again() -> None:
    wanted = {"initialize", "session/open", "session/configure", "turn/begin"}
    assert wanted == METHODS


def test_the_greeting_leaves_it_to_the_gateway() -> None:
    once = json.loads(message("initialize", "{}"))
    assert answer_to(framed(once), Flags()) is not None
    two = '{"initializationOptions":{"pinfold":{}},"initializationOptions":null}'
    assert answer_to(framed(message("initialize", two)), Flags()) is None
