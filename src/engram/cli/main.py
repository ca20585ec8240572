"""`engram`: finds the verb that was asked for and imports that one alone: most of a cold start is what it does not load."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from engram.cli.declared import Group, Verb

VERBS: dict[str, str] = {
    "init": "setting_up",
    "learn": "teaching",
    "remember": "teaching",
    "add": "teaching",
    "recall": "asking",
    "search": "asking",
    "inject": "asking",
    "prepare": "preparing",
    "show": "reading",
    "list": "reading",
    "history": "reading",
    "lineage": "versions",
    "update": "changing",
    "revise": "versions",
    "pin": "changing",
    "forget": "forgetting",
    "feedback": "changing",
    "reinforce": "changing",
    "verify": "changing",
    "undo": "changing",
    "relate": "graph",
    "traverse": "graph",
    "session": "session",
    "task": "task",
    "ledger": "ledger",
    "capture": "capture",
    "ingest": "documents",
    "cite": "documents",
    "review": "review",
    "trust": "trust",
    "pause": "upkeep",
    "resume": "upkeep",
    "sync": "upkeep",
    "prune": "upkeep",
    "backup": "upkeep",
    "restore": "upkeep",
    "import": "exchange",
    "export": "exchange",
    "migrate": "moving",
    "index": "health",
    "doctor": "health",
    "status": "health",
    "config": "setting_up",
    "bench": "bench",
    "hook": "setting_up",
    "mcp": "setting_up",
    "worker": "worker",
    "demo": "setting_up",
    "version": "setting_up",
}
"""Every verb and the module of `engram.cli.verbs` that holds it, in the order of the help."""

LASTING = frozenset({"mcp", "bench", "worker"})
"""Verbs that go on working; the others answer once and end."""
_FUNCTIONS = {"list": "list_", "import": "import_"}
"""Verbs whose name Python already uses for something else."""


def verb_of(name: str) -> "Verb | Group | None":
    """What stands behind a name: a verb, a group of further verbs, or nothing."""
    if name not in VERBS:
        return None
    found: Verb | Group = getattr(import_module(f"engram.cli.verbs.{VERBS[name]}"), _FUNCTIONS.get(name, name))
    return found


def main(arguments: Sequence[str]) -> None:
    """Run one command line. Ends in SystemExit unless all is well."""
    if arguments[:1] == ["hook"]:
        from engram.cli.hook import main as hook

        sys.exit(hook(list(arguments[1:])))
    from engram.cli import quick

    call = quick.read(arguments, verb_of)
    if call is not None:
        from engram.cli.surface import perform

        perform(*call)
    else:
        from engram.cli.program import explain

        explain(arguments)


def _open_closed_streams() -> None:
    """Started with a stream closed (`<&-`), Python has None there, and the store's next file would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def run() -> None:
    """The program's entry point."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold half a character; printing it must not end the program.
        cast(Any, stream).reconfigure(errors="backslashreplace")
    if not LASTING.intersection(sys.argv[1:3]):
        # One scan is over before a second thread has started.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    run()
