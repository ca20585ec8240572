"""`engram`, also as `python -P -m engram`. A hook runs at every prompt, so its usual command line is read without the parser."""

import atexit
import os
import sys

HOOK_WORDS = 3
"""`engram hook EVENT`, and nothing else."""


def run() -> None:
    """The program's entry point. It ends the process."""
    try:
        _perform()
    except SystemExit as end:
        if not (end.code is None or isinstance(end.code, int)):
            raise
        _leave(end.code or 0)
    _leave(0)


def _perform() -> None:
    if len(sys.argv) == HOOK_WORDS and sys.argv[1] == "hook" and sys.argv[2] not in ("recall", "-h", "--help"):
        from engram.hooks import runner

        if sys.argv[2] in runner.SECONDS and sys.stdin is not None and sys.stdout is not None:
            runner.run(sys.argv[2])
            return
    from engram.cli.main import run as run_verb

    run_verb()


def _leave(code: int) -> None:
    """End without taking the interpreter apart: to free every object one by one is a tenth of a cold start.

    A verb has closed what it opened. Where another thread still runs, or what was written cannot be delivered, Python ends as usual.
    """
    threads = sys.modules.get("threading")
    if threads is None or threads.active_count() == 1:
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError, AttributeError):
            sys.exit(code)
        os._exit(code & 0xFF)
    sys.exit(code)


if __name__ == "__main__":
    from engram.launch import ignore_working_directory

    ignore_working_directory()
    run()
