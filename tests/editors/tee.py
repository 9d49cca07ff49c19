"""Stands between an editor and its server and keeps what they say: `tee.py DIRECTORY COMMAND…`."""

import os
import subprocess
import sys
import threading


def pump(source: int, target: int, kept: str) -> None:
    """Hand on what comes until its end, and the end too."""
    with open(kept, "ab", buffering=0) as file:
        while data := os.read(source, 1 << 16):
            file.write(data)
            os.write(target, data)
    os.close(target)


def main() -> int:
    directory, *command = sys.argv[1:]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None
    asked = (0, os.dup(server.stdin.fileno()), f"{directory}/asked")
    server.stdin.close()
    threading.Thread(target=pump, args=asked, daemon=True).start()
    pump(server.stdout.fileno(), 1, f"{directory}/answered")
    return server.wait()


if __name__ == "__main__":
    sys.exit(main())
