"""Captures turns in children that kill themselves at a point between two steps.

One JSON request per line on stdin, `[POINT, PLACE…]`; for each a line on stdout: the signal that ended the child, 0 for none.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from engram import Engram
from engram.capture.buffer import BufferReader, CaptureBuffer

TURNS = ("My sister Ulla lives in Oslo.", "I never eat olives.")
POINTS: dict[str, tuple[type, str, bool]] = {
    "before the ledger": (CaptureBuffer, "_append", True),
    "between ledger and buffer": (CaptureBuffer, "_add", True),
    "after the buffer": (CaptureBuffer, "_read", True),
    "after the claim": (BufferReader, "read", True),
    "after reading": (CaptureBuffer, "_settle", True),
    "after settling": (CaptureBuffer, "_settle", False),
}
"""Where it dies in its second turn: a method, and whether before or after it."""


def dying(call: Callable[..., Any], before: bool) -> Callable[..., Any]:
    """The call, with which the process ends."""

    def last(*given: Any, **more: Any) -> Any:
        if not before:
            call(*given, **more)
        os.kill(os.getpid(), signal.SIGKILL)

    return last


def captured(point: str, *place: str) -> None:
    """Capture the first turn, then die in the second."""
    options: dict[str, Any] = {"url": place[0], "tenant": place[1]} if len(place) == 2 else {}
    if not options:
        options = {"home": place[0], "cache": place[1], "directory": place[2]}
    with Engram.open(**options) as mem:
        mem.capture("chat", "user", TURNS[0])
        owner, name, before = POINTS[point]
        setattr(owner, name, dying(getattr(owner, name), before))
        mem.capture("chat", "user", TURNS[1], key="second")


def main() -> None:
    """Load what a capture needs once, then fork a child for each request."""
    with Engram.open(ephemeral=True) as mem:
        for turn in TURNS:
            mem.capture("chat", "user", turn)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            captured(*json.loads(line))
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
