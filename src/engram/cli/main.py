"""`engram`: finds the verb on the command line and imports that one alone; most of a cold start is what it does not load."""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

from engram.cli.parser import HelpRequested, UsageError, read
from engram.verbs import FAMILIES, SECTIONS, find_declaration
from engram.verbs.declaration import Command, Group, Verb

LONG_RUNNING_VERBS = frozenset({"mcp", "bench", "worker"})
"""Verbs that keep running; the others answer once and end."""


class _Verbs(Mapping[str, "Verb | Group"]):
    """The verbs by name, the family of each imported when it is looked up."""

    def __getitem__(self, name: str) -> "Verb | Group":
        return find_declaration(name)

    def __contains__(self, name: object) -> bool:
        return name in FAMILIES

    def __iter__(self) -> Iterator[str]:
        return iter(FAMILIES)

    def __len__(self) -> int:
        return len(FAMILIES)


PROGRAM = Group("A memory for AI agents: plain text you own, found again in milliseconds.", _Verbs())


def main(arguments: Sequence[str]) -> None:
    """Run one command line. Raises SystemExit unless all is well."""
    if "--version" in arguments[:1]:
        arguments = ["version", *arguments[1:]]
    try:
        verb, given = read(arguments, PROGRAM)
    except HelpRequested as request:
        from engram.cli import help as help_text
        from engram.cli.surface import Surface, report_errors

        with report_errors(Surface()):
            raise SystemExit(help_text.show(request, PROGRAM, SECTIONS)) from None
    except UsageError as error:
        from engram.cli.help import print_usage_error
        from engram.cli.surface import USAGE, Surface

        print_usage_error(error)
        Surface(as_json="--json" in arguments).report_failure(str(error), USAGE)
        raise SystemExit(USAGE) from None
    from engram.cli.surface import perform

    perform(find_handler(verb), given)


def find_handler(verb: Verb) -> Callable[..., None]:
    """The function that carries out a verb."""
    assert isinstance(verb.command, Command)
    module, _, name = verb.command.handler.partition(":")
    handler: Callable[..., None] = getattr(import_module(f"engram.cli.verbs.{module}"), name)
    return handler


def _open_closed_streams() -> None:
    """Started with a stream closed (`<&-`), Python has None there, and the store's next file would take its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def run() -> None:
    """The program's entry point."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        # A memory may contain half a character; printing it must not end the program.
        cast(Any, stream).reconfigure(errors="backslashreplace")
    if not LONG_RUNNING_VERBS.intersection(sys.argv[1:3]):
        # One scan is over before a second thread has started.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Nearly everything that is made while modules load stays; looking for garbage among it is a tenth of a cold start.
        gc.set_threshold(100_000)
    try:
        try:
            main(sys.argv[1:])
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        finally:
            sys.stdout.flush()
    except OSError:  # nobody reads what is left to print; an error of a verb was reported before
        from engram.cli.surface import exit_quietly

        exit_quietly()


if __name__ == "__main__":
    run()
