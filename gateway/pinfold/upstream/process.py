"""The process of an upstream, and everything that it starts: one process group, which ends with us.

A guard leads the group: a shell that waits for the end of a pipe whose other end only the gateway
holds. However the gateway ends, the pipe ends with it, and the guard kills the whole group.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence

_GUARD = ("/bin/sh", "-c", "trap '' TERM INT HUP; read -r _; kill -s KILL 0")
_TAIL = 4096
_CHUNK = 1 << 16


class Child:
    """One running process, its streams in bytes. Raises OSError where it cannot be started."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], cwd: str | None = None
    ) -> None:
        self._guard = subprocess.Popen(
            _GUARD,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(env),
                cwd=cwd,
                bufsize=0,
                process_group=self._guard.pid,
            )
        except BaseException:
            self._end_group()
            raise
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._stderr = self._process.stderr
        self._tail = b""
        self._draining = threading.Thread(target=self._drain, name="upstream-stderr", daemon=True)
        self._draining.start()

    @property
    def pid(self) -> int:
        """The number of the process that was started."""
        return self._process.pid

    def read(self) -> bytes:
        """What it says next; empty at the end, and then the stream is closed. Blocks. For one
        thread: a descriptor is closed by whoever uses it, or its number could be another file's."""
        try:
            data = os.read(self._stdout.fileno(), _CHUNK)
        except OSError:
            data = b""
        if not data:
            self._stdout.close()
        return data

    def write(self, data: bytes) -> None:
        """Hand all of it over. Blocks while it does not read; raises OSError when it is gone. For
        one thread, which calls `written` when it is done."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._stdin.fileno(), view) :]

    def written(self) -> None:
        """Nothing will be written any more."""
        self._stdin.close()

    @property
    def last_words(self) -> str:
        """The last line that it wrote to stderr so far. Others are read and forgotten."""
        lines = self._tail.decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _drain(self) -> None:
        with self._stderr:
            while data := os.read(self._stderr.fileno(), _CHUNK):
                self._tail = (self._tail + data)[-_TAIL:]

    def wait(self) -> None:
        """Until the process that was started has ended, whoever still holds its streams. Blocks."""
        self._process.wait()

    def end(self, seconds: float) -> int | None:
        """End its input, wait so long, then kill the group. Its exit status, if it had one by
        then; afterwards nothing of the group runs. Once, and before `written`."""
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._stdin.fileno(), inheritable=False)
        os.close(nothing)
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        self._end_group()
        self._process.kill()  # where it has left the group
        self._process.wait()
        self._draining.join(1.0)
        return status

    def _end_group(self) -> None:
        """The guard leads the group and is waited for last, so its number is still the group's."""
        try:
            os.killpg(self._guard.pid, signal.SIGKILL)
        except OSError:
            pass
        assert self._guard.stdin is not None
        self._guard.stdin.close()
        self._guard.wait()
