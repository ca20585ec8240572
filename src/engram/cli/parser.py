"""The reader of command lines. What a verb takes is in its declaration (`engram.verbs`), which the help and docs/cli.md use, too.

A verb without one is a function: its first parameter is the `Surface`, every other one an `Argument` or an `Option` inside
`Annotated`, or a class of `Options` that several verbs share.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Any, NoReturn, Union, cast, get_args, get_origin

from engram.model.lazy import own_annotations
from engram.verbs.declaration import REQUIRED, SAME, Group, Option, Positional, Verb, command_default
from engram.verbs.kinds import File, Flag, Kind, Number, Text, Texts, Whole, WrongValue

__all__ = [
    "GLOBALS", "REQUIRED", "Argument", "Group", "Handler", "HelpRequested", "Option", "Options", "Parameter", "UsageError", "Verb",
    "find_verb", "parameters", "read",
]  # fmt: skip
Handler = Callable[..., None]
HELP = ("-h", "--help")
Argument = Positional
_KINDS: dict[type, Kind] = {str: Text(), int: Whole(), float: Number(), bool: Flag(), Path: File()}


class Options:
    """Parameters that several verbs share: a subclass annotates them, and a verb takes the subclass as one parameter."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Parameter:
    """One parameter of a verb on the command line: its spelling, its kind, and the shared `Options` it belongs to."""

    def __init__(self, name: str, spec: Positional | Option, kind: Kind, default: Any, owner: str = "") -> None:
        self.name, self.spec, self.kind, self.default, self.owner = name, spec, kind, default, owner

    @classmethod
    def annotated(cls, name: str, annotation: Any, default: Any, owner: str = "") -> "Parameter":
        """From the annotation of a function's parameter."""
        declared, spec = get_args(annotation)[:2]
        (alternative,) = [kind for kind in _alternatives(declared) if kind is not NoneType]
        if get_origin(alternative) is not list:
            return cls(name, spec, _KINDS[alternative], default, owner)
        (item,) = get_args(alternative)
        return cls(name, spec, File(is_many=True) if item is Path else Texts(), default, owner)

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    def parse(self, word: str) -> Any:
        """The value of a word. Raises `ValueError` that says what it takes."""
        try:
            return self.kind.parse(word)
        except WrongValue as error:
            raise ValueError(f"{self.spec.label} must be {error}, not {word!r:.40}") from None


def _alternatives(declared: Any) -> tuple[Any, ...]:
    return get_args(declared) if get_origin(declared) in (UnionType, Union) else (declared,)


def parameters(verb: Verb | Handler) -> Iterator[Parameter]:
    """What a verb takes, shared options included, without the surface."""
    if isinstance(verb, Verb):
        for argument in verb.options():
            assert argument.command is not None
            yield Parameter(argument.name, argument.command, argument.kind, command_default(argument))
        return
    function = cast(FunctionType, verb)
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
    shared = _shared_options(verb)
    for name in names:
        if name in shared:
            yield from _shared(shared[name], name)
        else:
            yield Parameter.annotated(name, function.__annotations__[name], defaults.get(name, REQUIRED))


def _shared_options(verb: Handler) -> dict[str, type[Options]]:
    """The parameters of a verb that are classes of shared options."""
    declared = cast(FunctionType, verb).__annotations__
    return {name: kind for name, kind in declared.items() if isinstance(kind, type) and issubclass(kind, Options)}


def _shared(group: type[Options], owner: str) -> Iterator[Parameter]:
    for base in reversed(group.__mro__):
        for name, annotation in own_annotations(base).items():
            yield Parameter.annotated(name, annotation, getattr(group, name, REQUIRED), owner)


_HOME = Option("--home", metavar="DIR", help="The store's directory instead of $ENGRAM_HOME.")
GLOBALS = (
    Parameter("home", _HOME, Text(), None),
    Parameter("as_json", Option("--json", help="Answer in JSON."), Flag(), False),
)
"""What every verb takes, before or after its name."""


class UsageError(Exception):
    """A command line that cannot be read: what is wrong, and the verb it was meant for ("" for the program)."""

    def __init__(self, message: str, path: str) -> None:
        super().__init__(message)
        self.path = path


class HelpRequested(Exception):
    """A command line that asks for help, or (`missing`) that names a group without one of its verbs."""

    def __init__(self, path: str, *, missing: bool = False) -> None:
        super().__init__(path)
        self.path, self.missing = path, missing


def find_verb(program: Group, path: str) -> "Verb | Handler | Group":
    """The verb or group that a path such as `session start` names."""
    found: Verb | Handler | Group = program
    for name in path.split():
        assert isinstance(found, Group)
        found = found.verbs[name]
    return found


def read(words: Sequence[str], program: Group) -> tuple[Verb | Handler, dict[str, Any]]:
    """The verb and its values, global ones included. Raises `UsageError` or `HelpRequested`.

    Of a declared verb they are the values that were given, and defaults that only the command line has.
    """
    reader = _Reader(words)
    found: Verb | Handler | Group = program
    while isinstance(found, Group):
        found = reader.choose(found)
    return found, reader.values(found)


class _Reader:
    """Takes a command line apart, word by word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.path = list(words), ""
        self.given: dict[str, Any] = {}

    def choose(self, group: Group) -> "Verb | Handler | Group":
        """Take the name of a verb off the line, and the global options before it."""
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

    def values(self, verb: Verb | Handler) -> dict[str, Any]:
        """Read the rest of the line as the parameters of a verb; shared ones come as an instance of their class."""
        declared = [*parameters(verb), *GLOBALS]
        loose = self._take_options(_by_name(declared))
        self._take_arguments(loose, [p for p in declared if isinstance(p.spec, Positional)])
        if isinstance(verb, Verb):
            values = {p.name: self._value(p) for p in declared}
            own = {
                one.name
                for one in verb.options()
                if one.command is not None and one.command.default not in (SAME, None)
            }
            kept = {*self.given, *own, *(p.name for p in (*GLOBALS, *declared) if self._is_in_environment(p))}
            kept |= {p.name for p in GLOBALS}
            return {name: value for name, value in values.items() if name in kept}
        found = {(p.owner, p.name): self._value(p) for p in declared}
        values = {name: value for (owner, name), value in found.items() if not owner}
        for shared, kind in _shared_options(verb).items():
            values[shared] = kind(**{name: value for (owner, name), value in found.items() if owner == shared})
        return values

    def _take_options(self, known: Mapping[str, Parameter]) -> list[str]:
        """Take every option off the line; the rest are arguments."""
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
        if self._is_in_environment(parameter):
            return self._parse(parameter, os.environ[parameter.spec.envvar])
        if parameter.required:
            self._refuse(f"{parameter.spec.label} is missing: {parameter.spec.help}")
        return parameter.default

    def _is_in_environment(self, parameter: Parameter) -> bool:
        return bool(parameter.spec.envvar and os.environ.get(parameter.spec.envvar))

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
    """A suggestion, where a known name is close to a mistyped one."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=2, cutoff=0.7)
    return f"; did you mean {' or '.join(close)}?" if close else ""
