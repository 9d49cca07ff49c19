"""MCP's conformance suite, as far as it needs no tools of its own, through a bridge from HTTP."""

import json
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clients.peers import NODE, node
from support import SERVE, clean_env

pytestmark = pytest.mark.client

SUITE = NODE / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "logging-set-level",
    "resources-list",
    "prompts-list",
]
_HEADER = "Mcp-Session-Id"


class Server:
    """One server on stdio, which is asked one thing after the other."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(SERVE, stdin=pipe, stdout=pipe, env=env, cwd=cwd)
        self._lock = threading.Lock()

    def send(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """Hand a message on: its answer, if it is a request."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        with self._lock:
            stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
            if "id" not in message or "method" not in message:
                return None
            for line in stdout:
                answer: dict[str, Any] = json.loads(line)
                if answer.get("id") == message["id"] and "method" not in answer:
                    return answer
        raise EOFError

    def end(self) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        with self._process.stdout:
            return self._process.wait(10)


class Bridge:
    """Streamable HTTP on loopback, a server for each session, and no stream from the server."""

    def __init__(self, env: dict[str, str], cwd: Path) -> None:
        self._env, self._cwd = env, cwd
        self._servers: dict[str, Server] = {}
        self.statuses: list[int] = []

    def take(self, message: Any, session: str | None) -> tuple[str, dict[str, Any] | None]:
        if session is None:
            session = f"session-{len(self._servers) + 1}"
            self._servers[session] = Server(self._env, self._cwd)
        return session, self._servers[session].send(message)

    def end(self) -> None:
        while self._servers:
            self.statuses.append(self._servers.popitem()[1].end())


@contextmanager
def bridged(env: dict[str, str], cwd: Path) -> Iterator[tuple[str, Bridge]]:
    bridge = Bridge(env, cwd)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 30

        def log_message(self, *_: Any) -> None:
            pass

        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            session, answer = bridge.take(message, self.headers.get(_HEADER))
            body = b"" if answer is None else json.dumps(answer).encode()
            self.send_response(200 if body else 202)
            self.send_header(_HEADER, session)
            self.send_header("Content-Type", "application/json")
            self._end(body)

        def do_GET(self) -> None:
            self.send_response(405)
            self._end(b"")

        def do_DELETE(self) -> None:
            self.do_GET()

        def _end(self, body: bytes) -> None:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp", bridge
        finally:
            server.shutdown()
            thread.join()
            bridge.end()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_conformance_suite(tmp_path: Path, scenario: str) -> None:
    assert SUITE.exists(), "run `make test-clients`"
    env = clean_env(HOME=str(tmp_path), NO_COLOR="1")
    with bridged(env, tmp_path) as (url, bridge):
        done = subprocess.run(
            [node(), str(SUITE), "server", "--url", url, "--scenario", scenario],
            env=env,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=50,
            check=False,
        )
    said = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    assert done.returncode == 0, said
    found = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", said)
    assert found and found[1] == found[2] != "0" and found[3] == "0", said
    assert bridge.statuses and set(bridge.statuses) == {0}
