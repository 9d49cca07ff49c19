"""Keeps what an editor and its server say to each other: `tee.py DIRECTORY COMMAND…`.

The server is this process, so that what the editor does to it is done to it alone; the listener is
nobody's child, and hears out both sides even where one kills the other.
"""

import os
import sys
import threading


def pump(source: int, target: int, kept: str) -> None:
    """Hand on what comes until its end, and the end too; keep it in any case."""
    with open(kept, "ab", buffering=0) as file:
        while data := os.read(source, 1 << 16):
            file.write(data)
            try:
                while data:
                    data = data[os.write(target, data) :]
            except BrokenPipeError:
                pass
    os.close(target)


def main() -> None:
    directory, *command = sys.argv[1:]
    heard, asked = os.pipe()
    answered, said = os.pipe()
    if os.fork():
        os.dup2(heard, 0)
        os.dup2(said, 1)
        os.closerange(3, said + 1)
        os.wait()
        os.execvp(command[0], command)
    if os.fork():
        os._exit(0)
    os.close(heard)
    os.close(said)
    listener = threading.Thread(target=pump, args=(answered, 1, f"{directory}/answered"))
    listener.start()
    pump(0, asked, f"{directory}/asked")
    listener.join()


if __name__ == "__main__":
    main()
