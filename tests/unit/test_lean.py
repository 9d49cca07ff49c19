"""What a start leaves out is there for whoever wants it afterwards."""

import subprocess
import sys

_PROGRAM = """
import sys
import pinfold.doors.lean
left_out = {"ssl", "inspect", "traceback", "locale", "platform", "typing_extensions"}
print(sorted(left_out & set(sys.modules)))

import asyncio
import io
import msgspec

async def fails():
    raise ValueError("why")

async def main():
    task = asyncio.ensure_future(fails())
    await asyncio.wait([task])
    assert task.exception()
    stack = io.StringIO()
    task.print_stack(file=stack)
    asyncio.get_running_loop().set_debug(True)
    where = repr(asyncio.get_running_loop().create_future())
    return "fails" in repr(task), "ValueError: why" in stack.getvalue(), "created at" in where

print(*asyncio.run(main()))
print(asyncio.iscoroutinefunction(fails), asyncio.iscoroutinefunction(print))
print(msgspec.json.schema(int), msgspec.inspect.type_info(str))

import inspect, platform, ssl, traceback, typing_extensions, uuid
print(platform.python_version() in sys.version, uuid.uuid4().version)
print(inspect.isfunction(fails), ssl.create_default_context() is not None)
import asyncio.sslproto
print(asyncio.sslproto.SSLProtocol.__name__, typing_extensions.TypedDict.__name__)
"""


def test_nothing_is_missing_afterwards() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == [
        "[]",
        "True True True",
        "True False",
        "{'type': 'integer'} StrType(min_length=None, max_length=None, pattern=None)",
        "True 4",
        "True True",
        "SSLProtocol TypedDict",
    ]
