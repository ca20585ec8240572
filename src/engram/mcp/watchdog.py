"""Ends a server that computes without ever letting its event loop run.

One match of a regular expression cannot be interrupted: neither clients nor signals are answered until it ends. Input is
bounded so that none takes long; if one does, the kernel ends the process, and the client starts a new one. What was
acknowledged is on disk.
"""

import faulthandler
import signal
import sys
from contextlib import suppress

import anyio

MAX_BLOCKED_S = 10.0
"""Processor time of the process without one turn of the event loop."""


async def end_if_blocked(limit_s: float = MAX_BLOCKED_S) -> None:
    """Until cancelled, postpone the end of this process, which comes after `limit_s` seconds of computing without a turn of the loop.

    The timer counts processor time, so a process that sleeps or is stopped is not ended. Its stack is printed to stderr.
    """
    with suppress(ValueError, OSError, AttributeError):  # no stderr to print to
        faulthandler.register(signal.SIGVTALRM, file=sys.stderr, chain=True)
    try:
        while True:
            signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
            await anyio.sleep(limit_s / 4)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
