"""`engram`: parses the command line by the declaration of its verb, and imports only that verb, for a fast cold start."""

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

from engram.verbs import FAMILIES, SECTIONS, find_declaration
from engram.verbs.declaration import (
    REQUIRED,
    SAME,
    Command,
    Flag,
    Group,
    Kind,
    Option,
    Positional,
    Text,
    Verb,
    WrongValue,
    command_default,
)

HELP = ("-h", "--help")


class Parameter:
    """One parameter of a verb on the command line: its spelling, its kind, its default."""

    def __init__(self, name: str, spec: Positional | Option, kind: Kind, default: Any) -> None:
        self.name, self.spec, self.kind, self.default = name, spec, kind, default

    @property
    def is_required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def is_always_passed_on(self) -> bool:
        """Whether the default is always passed to the verb, because only the command line has it."""
        return self.spec.default not in (SAME, REQUIRED, None)

    @property
    def variable(self) -> str:
        """The value of the environment variable that can provide it."""
        return os.environ.get(self.spec.envvar, "") if self.spec.envvar else ""

    def parse(self, word: str) -> Any:
        """The parsed value of a word. Raises `ValueError` with a description of valid values."""
        try:
            return self.kind.parse(word)
        except WrongValue as error:
            raise ValueError(f"{self.spec.label} must be {error}, not {word!r:.40}") from None


def parameters(verb: Verb) -> Iterator[Parameter]:
    """What the command line takes for a verb."""
    for argument in verb.options():
        assert argument.command is not None
        yield Parameter(argument.name, argument.command, argument.kind, command_default(argument))


GLOBALS = (
    Parameter(
        "home",
        Option("--home", metavar="DIR", help="The store's directory instead of $ENGRAM_HOME.", default=None),
        Text(),
        None,
    ),
    Parameter("as_json", Option("--json", help="Answer in JSON."), Flag(), False),
)
"""The options of every verb, before or after its name."""


class UsageError(Exception):
    """An invalid command line: the problem, and the verb it was meant for ("" for the program)."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class HelpRequested(Exception):
    """A command line that asks for help, or (`missing`) that names a group without one of its verbs."""

    def __init__(self, path: str, *, missing: bool = False) -> None:
        super().__init__(path)
        self.path, self.missing = path, missing


def find_verb(program: Group, path: str) -> "Verb | Group":
    """The verb or group that a path such as `session start` names."""
    found: Verb | Group = program
    for name in path.split():
        assert isinstance(found, Group)
        found = found.verbs[name]
    return found


def read(words: Sequence[str], program: Group) -> tuple[Verb, dict[str, Any]]:
    """The verb and its values, global ones included. Raises `UsageError` or `HelpRequested`."""
    reader = _Reader(words)
    found: Verb | Group = program
    while isinstance(found, Group):
        found = reader.choose(found)
    return found, reader.values(found)


class _Reader:
    """Parses a command line word by word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.path = list(words), ""
        self.given: dict[str, Any] = {}

    def choose(self, group: Group) -> "Verb | Group":
        """Read the name of a verb and the global options before it."""
        known = _by_name(GLOBALS)
        while self.words and self.words[0].startswith("-"):
            self._take_option(known)
        if not self.words:
            raise HelpRequested(self.path, missing=True)
        name = self.words.pop(0)
        if name not in group.verbs:
            self._refuse(f"Unknown verb {name!r}{_nearest(name, group.verbs)}")
        self.path = f"{self.path} {name}".strip()
        return group.verbs[name]

    def values(self, verb: Verb) -> dict[str, Any]:
        """Read the rest of the line: the given values, and the defaults that only the command line has."""
        declared = [*parameters(verb), *GLOBALS]
        loose = self._take_options(_by_name(declared))
        self._take_arguments(loose, [p for p in declared if isinstance(p.spec, Positional)])
        found = {
            p.name: self._value(p) for p in declared if self._is_given(p) or p.is_required or p.is_always_passed_on
        }
        return {**{p.name: p.default for p in GLOBALS}, **found}

    def _is_given(self, parameter: Parameter) -> bool:
        return parameter.name in self.given or bool(parameter.variable)

    def _take_options(self, known: Mapping[str, Parameter]) -> list[str]:
        """Remove every option from the line; the rest are arguments."""
        loose: list[str] = []
        while self.words:
            if self.words[0] == "--":
                return loose + self.words[1:]
            if self.words[0].startswith("-") and self.words[0] != "-":
                self._take_option(known)
            else:
                loose.append(self.words.pop(0))
        return loose

    def _take_option(self, known: Mapping[str, Parameter]) -> None:
        word = self.words.pop(0)
        if word in HELP:
            raise HelpRequested(self.path)
        name, equals, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:  # a short one with its value, or several flags: -n5, -yf
            name, equals, value = word[:2], "=", word[2:]
        parameter = known.get(name)
        if parameter is None:
            self._refuse(f"Unknown option {name}{_nearest(name, known)}")
        if parameter.kind.is_flag:
            if equals and word.startswith("--"):
                self._refuse(f"{name} takes no value")
            if equals:
                self.words.insert(0, f"-{value}")
            self._keep(parameter, True)
            return
        if not equals:
            if not self.words:
                self._refuse(f"{name} needs a value: {parameter.spec.metavar}")
            value = self.words.pop(0)
        self._keep(parameter, self._parse(parameter, value))

    def _take_arguments(self, loose: list[str], declared: Sequence[Parameter]) -> None:
        for parameter in declared:
            if parameter.kind.is_many:
                for word in loose:
                    self._keep(parameter, self._parse(parameter, word))
                loose = []
            elif loose:
                self._keep(parameter, self._parse(parameter, loose.pop(0)))
        if loose:
            self._refuse(f"Unexpected argument {loose[0]!r}; put a text of several words in quotes")

    def _keep(self, parameter: Parameter, value: Any) -> None:
        if parameter.kind.is_many:
            self.given.setdefault(parameter.name, []).append(value)
        else:
            self.given[parameter.name] = value

    def _value(self, parameter: Parameter) -> Any:
        if parameter.name in self.given:
            value = self.given[parameter.name]
            return parameter.kind.collect(value) if parameter.kind.is_many else value
        if parameter.variable:
            return self._parse(parameter, parameter.variable)
        if parameter.is_required:
            self._refuse(f"{parameter.spec.label} is missing: {parameter.spec.help}")
        return parameter.default

    def _parse(self, parameter: Parameter, text: str) -> Any:
        try:
            return parameter.parse(text)
        except ValueError as error:
            self._refuse(str(error))

    def _refuse(self, message: str) -> NoReturn:
        raise UsageError(message, self.path)


def _by_name(declared: Sequence[Parameter]) -> dict[str, Parameter]:
    return {name: p for p in declared if isinstance(p.spec, Option) for name in p.spec.names}


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    """A suggestion if a known name is close to a mistyped one."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(close)}?" if close else ""


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
    """Run one command line. Raises SystemExit unless it succeeds."""
    if "--version" in arguments[:1]:
        arguments = ["version", *arguments[1:]]
    try:
        verb, given = read(arguments, PROGRAM)
    except HelpRequested as request:
        from engram.cli import reference as help_text
        from engram.cli.surface import Surface, report_errors

        with report_errors(Surface()):
            raise SystemExit(help_text.print_help(request, PROGRAM, SECTIONS)) from None
    except UsageError as error:
        from engram.cli.reference import print_usage_error
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
    """Open closed standard streams (`<&-`), which are None in Python.

    Otherwise the store's next file would take their number.
    """
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
        # A single scan ends before a second thread would have started.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        # Nearly all objects created while modules load stay; garbage collection among them is a tenth of a cold start.
        gc.set_threshold(100_000)
    try:
        try:
            main(sys.argv[1:])
        except KeyboardInterrupt:
            raise SystemExit(130) from None
        finally:
            sys.stdout.flush()
    except OSError:  # nobody reads the remaining output; errors of a verb were reported before
        from engram.cli.surface import exit_quietly

        exit_quietly()


if __name__ == "__main__":
    run()
