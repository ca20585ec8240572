"""What protects a start with `python -m`, which looks for modules in the working directory first."""

import os  # with `sys`, all that Python has loaded by now: any other import could run a module of a clone
import sys


def ignore_working_directory() -> None:
    """Remove the working directory from where Python put it for `-m`, so that a clone's `anyio.py` is not run.

    A folder `engram` there, or a `contextlib.py`, has been run by now: only `python -P -m engram` is safe in a directory of others.
    """
    if sys.flags.safe_path:
        return
    try:
        here = os.getcwd()  # noqa: PTH109 -- see above
    except OSError:  # the directory was removed
        here = ""
    if sys.path[:1] in ([""], [here]):
        del sys.path[0]
