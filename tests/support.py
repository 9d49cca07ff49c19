"""What several tests share: a raw client, layouts of files, an embedded gateway."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from hypothesis import strategies as st

from pinfold.app import Gateway
from pinfold.explaining import explain
from pinfold_protocol.convert import structure, unstructure
from pinfold_protocol.decision import ExplainParams
from pinfold_protocol.framing import Body, Framer, LineFramer
from pinfold_protocol.session import SessionOpenParams, SessionResult
from pinfold_protocol.tools import ToolsCallParams

VECTORS = Path(__file__).parent / "vectors"
DEADLINE = 20.0
SERVE = (sys.executable, "-m", "pinfold", "serve")


def framed(message: Any) -> bytes:
    """A message, or bytes of a body, with a header before it."""
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


def lined(message: Any) -> bytes:
    """A message, or bytes of a body, as a line."""
    return (message if isinstance(message, bytes) else json.dumps(message).encode()) + b"\n"


def request(request_id: Any, method: str, params: Any = None) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return message if params is None else message | {"params": params}


def clean_env(**more: str) -> dict[str, str]:
    """This environment without anything that tells where memory is."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("QWEN_", "CLAUDE_"))}
    return env | more


class Raw:
    """A gateway process spoken to in bytes. Every wait has a deadline. `lines`: one message a line
    instead of headers."""

    def __init__(
        self,
        env: dict[str, str] | None = None,
        command: Sequence[str] = SERVE,
        lines: bool = False,
        **options: Any,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_env() if env is None else env,
            **options,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        self._framer = LineFramer(1 << 30) if lines else Framer(1 << 30)
        self._frame = lined if lines else framed
        self._last_id = 1000
        self.notifications: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(DEADLINE)
        for stream in (self.stdin, self.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    pass

    def write(self, data: bytes) -> None:
        self.stdin.write(data)
        self.stdin.flush()

    def send(self, *messages: Any) -> None:
        self.write(b"".join(map(self._frame, messages)))

    def receive(self, seconds: float = DEADLINE) -> dict[str, Any]:
        """The next answer; notifications are put aside. Raises TimeoutError, and EOFError at the
        end of the output."""
        deadline = time.monotonic() + seconds
        while True:
            event = self._framer.next_event()
            if isinstance(event, Body):
                message: dict[str, Any] = json.loads(event.data)
                if "id" in message:
                    return message
                self.notifications.append(message)
                continue
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.stdout], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self.stdout.fileno(), 1 << 20)
            if not data:
                raise EOFError
            self._framer.receive(data)

    def ask(self, method: str, params: Any = None) -> dict[str, Any]:
        """Send a request and return its answer; other messages on the way are dropped."""
        self._last_id += 1
        self.send(request(self._last_id, method, params))
        while (answer := self.receive()).get("id") != self._last_id:
            pass
        return answer

    def result(self, method: str, params: Any = None) -> Any:
        answer = self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def initialize(self, options: Any = None) -> Self:
        params: dict[str, Any] = {"processId": None, "capabilities": {}}
        if options is not None:
            params["initializationOptions"] = {"pinfold": options}
        self.result("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "initialized", "params": {}})
        return self

    def open(self, project: Path | str, profile: str = "main", **more: Any) -> dict[str, Any]:
        params = {"profile": profile, "projectRoot": str(project), **more}
        opened: dict[str, Any] = self.result("session/open", params)
        return opened

    def call(self, session: str, name: str, **arguments: Any) -> dict[str, Any]:
        params = {"sessionId": session, "name": name, "arguments": arguments}
        result: dict[str, Any] = self.result("tools/call", params)
        return result

    def status(self) -> int:
        return self.process.wait(DEADLINE)

    def end_input(self) -> int:
        self.stdin.close()
        return self.status()

    def terminate(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.status()


class Layout:
    """A case's files, as the vectors describe them, below a fresh base directory."""

    def __init__(self, base: Path, case: dict[str, Any]) -> None:
        self.base = base
        self.case = case
        self.project = self.text(case.get("projectRoot", "${BASE}/project"))
        env = case.get("env", {"QWEN_CODE_MEMORY_BASE_DIR": "${BASE}/memory"})
        self.env = {"HOME": f"{base}/home"} | {k: self.text(v) for k, v in env.items()}
        self._names: dict[str, str] = {}

    def text(self, value: str) -> str:
        value = value.replace("${BASE}", str(self.base))
        return value.replace("${PROJECT}", getattr(self, "project", ""))

    def path(self, value: str) -> str:
        for name, root in self._names.items():
            value = value.replace("${" + name + "}", root)
        value = self.text(value)
        return value if value.startswith("/") else f"{self.base}/{value}"

    def prepare(self) -> None:
        """Everything that comes before the roots are computed."""
        for directory in self.case.get("git", []):
            os.makedirs(self.path(directory) + "/.git", exist_ok=True)
        self.lay(self.case.get("prelayout", {}))
        if not os.path.lexists(self.project):
            os.makedirs(self.project)

    def name_roots(self, roots: list[dict[str, Any]]) -> None:
        names = {"project": "PROJECT_MEMORY", "user": "USER_MEMORY", "team": "TEAM_MEMORY"}
        self._names = {names[root["kind"]]: root["path"] for root in roots}
        self._names["PROJECT_STATE"] = os.path.dirname(self._names["PROJECT_MEMORY"])

    def lay(self, layout: dict[str, Any]) -> None:
        for path in layout.get("remove", []):
            remove(self.path(path))
        for path in layout.get("dirs", []):
            os.makedirs(self.path(path), exist_ok=True)
        for path, content in layout.get("files", {}).items():
            write(self.path(path), content)
        for path, target in layout.get("symlinks", {}).items():
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            # A relative link text stays as it is.
            os.symlink(self.path(target) if "${" in target else target, self.path(path))
        for path, existing in layout.get("hardlinks", {}).items():
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            os.link(self.path(existing), self.path(path))


def write(path: str | Path, content: str | bytes) -> str:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return str(path)


def read(path: str | Path) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def cases(name: str) -> list[dict[str, Any]]:
    """The cases of a vector file. An empty one would test nothing, so it is an error."""
    with open(VECTORS / name, encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)["cases"]
    assert found
    return found


def expanded(value: Any) -> Any:
    """`{"$repeat": [text, n]}` stands for a long text."""
    if isinstance(value, dict):
        if set(value) == {"$repeat"}:
            text, times = value["$repeat"]
            return text * times
        return {name: expanded(each) for name, each in value.items()}
    return [expanded(each) for each in value] if isinstance(value, list) else value


def snapshot(top: str | Path) -> dict[str, tuple[object, ...]]:
    """Every name below a directory with its kind, bytes, mode and inode."""
    found: dict[str, tuple[object, ...]] = {}
    for directory, names, files in os.walk(top):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            if os.path.islink(path):
                content: object = os.readlink(path)
            elif os.path.isfile(path):
                content = read(path)
            else:
                content = None
            found[path] = (status.st_mode, status.st_ino, content)
    return found


class Embedded:
    """A Gateway in this process with one project, and a session of each kind that is wanted."""

    def __init__(self, base: Path, **options: Any) -> None:
        self.base = base
        self.project = base / "project"
        self.project.mkdir(exist_ok=True)
        env = {"QWEN_CODE_MEMORY_BASE_DIR": str(base / "memory"), "HOME": str(base / "home")}
        self.gateway = Gateway(env, **options)
        self._count = 0

    def open(self, profile: str = "main", **more: Any) -> SessionResult:
        raw = {"profile": profile, "projectRoot": str(self.project), **more}
        return self.gateway.open_session(structure(raw, SessionOpenParams))

    def call(self, session: SessionResult, name: str, **arguments: Any) -> dict[str, Any]:
        params = ToolsCallParams(session.session_id, name, arguments)
        result: dict[str, Any] = unstructure(self.gateway.call(params))
        return result

    def explain(self, session: SessionResult, name: str, **arguments: Any) -> dict[str, Any]:
        params = ExplainParams(session.session_id, name, arguments)
        decision: dict[str, Any] = unstructure(explain(self.gateway, params))
        return decision

    @property
    def memory(self) -> str:
        """The project's memory root, made."""
        path = self.open().roots[0].path
        os.makedirs(path, exist_ok=True)
        return path


def details(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["_meta"]["pinfold/details"]
    return found


def decision(result: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = result["_meta"]["pinfold/decision"]
    return found


def kind(result: dict[str, Any]) -> str | None:
    """The error kind of a result; None for a success."""
    if not result["isError"]:
        return None
    return str(details(result)["error"]["kind"])


@contextmanager
def wiped(directory: Path) -> Iterator[Path]:
    """The same directory name again and again, empty each time."""
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


class Seam:
    """Does something once, at one moment of a change."""

    def __init__(self) -> None:
        self.moment = ""
        self.action: Callable[[], None] = lambda: None
        self.seen: list[str] = []

    def at(self, moment: str, action: Callable[[], None]) -> None:
        self.moment, self.action = moment, action

    def __call__(self, moment: str) -> None:
        self.seen.append(moment)
        if moment == self.moment:
            self.moment = ""
            self.action()


class Bench:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.seam = Seam()
        self.place = Embedded(base, seam=self.seam)
        self.memory = self.place.memory
        self.project = str(self.place.project)
        self.pinned = write(f"{self.memory}/pinned/p.md", "curated")
        self.main = self.place.open("main")
        self.dream = self.place.open("dream")

    def write(self, path: str, content: str = "new", session: Any = None) -> dict[str, Any]:
        return self.place.call(session or self.dream, "write_file", file_path=path, content=content)


class Held:
    """Another gateway's lock on a directory: writes below it wait."""

    def __init__(self, directory: Path) -> None:
        self._descriptor = os.open(directory, os.O_RDONLY)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def release(self) -> None:
        os.close(self._descriptor)


def peak_kib(process: int) -> int:
    return _status_kib(process, "VmHWM")


def resident_kib(process: int) -> int:
    return _status_kib(process, "VmRSS")


def _status_kib(process: int, name: str) -> int:
    with open(f"/proc/{process}/status", encoding="ascii") as status:
        line = next(line for line in status if line.startswith(name))
    return int(line.split()[1])


ENDINGS = st.sampled_from(["\n", "\r\n", "\r"])
WORDS = st.text(st.sampled_from("ab é→😀\u2028\x85\ufeff"), max_size=4)
LINES = st.lists(st.tuples(WORDS, ENDINGS), max_size=8)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A text with endings of any kind, and maybe no last one."""
    text = "".join(word + ending for word, ending in draw(LINES))
    return text + draw(WORDS)
