"""What protects a start with `python -m`, which looks for modules in the working directory first."""

import os
import sys
from contextlib import suppress


def ignore_working_directory() -> None:
    """Remove the working directory from where Python put it for `-m`, so that a clone's `anyio.py` is not run.

    A folder `engram` in that directory has been run by now: only `python -P -m engram` is safe in a directory of others.
    """
    if not sys.flags.safe_path:
        here = ""
        with suppress(OSError):  # the directory was removed
            here = os.getcwd()
        if sys.path[:1] in ([""], [here]):
            del sys.path[0]
