"""Claims the process's standard streams: protocol bytes are private, stray prints go to stderr."""

import os
import select
import sys

_LINE_BYTES = 4096


def claim() -> tuple[int, int]:
    """Descriptors for protocol input and output, on numbers that no child inherits.

    Afterwards fd 0 is empty and fd 1 is stderr, so that neither a `print` nor a child process can
    break the stream or eat from it.
    """
    _fill_holes()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="backslashreplace", closefd=False)
    return reading, writing


def _fill_holes() -> None:
    """A standard stream that was closed must not be taken by the next file that is opened."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return


def log(message: str) -> None:
    """One line to stderr, if it can be taken at once: nobody may be reading it. Never contents."""
    line = f"pinfold: {message}\n".encode("utf-8", "backslashreplace")[:_LINE_BYTES]
    try:
        poll = select.poll()
        poll.register(2, select.POLLOUT)
        if any(event & select.POLLOUT for _, event in poll.poll(0)):
            os.write(2, line)
    except OSError:
        pass


def log_exception(error: BaseException, error_id: str) -> None:
    """Where a bug struck, without the exception's own text, which may quote contents."""
    import traceback  # a start does not need it

    frames = traceback.format_tb(error.__traceback__)
    log(f"internal error {error_id}: {type(error).__name__}\n{''.join(frames)[-3500:]}")
