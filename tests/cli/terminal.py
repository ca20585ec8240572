"""The program as a process of its own on a terminal of its own, forked from one that has loaded it already."""

import os
import pty
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence

from engram.cli.main import run


def on_terminal(words: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[int, int]:
    """Start `engram` with these words; its process id, and the other end of its terminal."""
    child, terminal = pty.fork()
    if child:
        return child, terminal
    # A test run in the background ignores interrupts, and its children would, too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ |= {"TERM": "xterm-256color", **(environment or {})}
    tempfile.tempdir = None
    sys.argv = ["engram", *words]
    sys.stdin, sys.stdout, sys.stderr = (open(number, mode) for number, mode in enumerate(("r", "w", "w")))  # noqa: SIM115
    status = 1
    try:
        run()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
