"""How a verb declares what it takes, and the reader of command lines.

A verb is a function. Its first parameter is the `Surface`; every other one is an `Argument` or an `Option` inside `Annotated`, or a
class of `Options` that several verbs share. The reader, the help and docs/cli.md all use these declarations.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, NoReturn, Union, cast, get_args, get_origin

from engram.model.arguments import LONGEST
from engram.model.lazy import own_annotations

Verb = Callable[..., None]
HELP = ("-h", "--help")
REQUIRED: Any = object()
"""The default of a parameter that must be given."""
_KINDS = {int: "a whole number", float: "a number"}


class Argument:
    """A positional argument: its name in the help, its meaning, the variable that may provide it."""

    def __init__(self, metavar: str, help: str, *, envvar: str = "") -> None:  # noqa: A002
        self.metavar, self.help, self.envvar = metavar, help, envvar


class Option:
    """An option: its names, the name of its value in the help (none for a flag), its meaning."""

    def __init__(self, *names: str, metavar: str = "", help: str = "", envvar: str = "") -> None:  # noqa: A002
        self.names, self.metavar, self.help, self.envvar = names, metavar, help, envvar


class Options:
    """Parameters that several verbs share: a subclass annotates them, and a verb takes the subclass as one parameter."""

    def __init__(self, **given: Any) -> None:
        self.__dict__.update(given)


class Group:
    """A verb made of further verbs; the program is one, too."""

    def __init__(self, help: str, verbs: "Mapping[str, Verb | Group]") -> None:  # noqa: A002
        self.help, self.verbs = help, verbs

    def at(self, path: str) -> "Verb | Group":
        """The verb or group that a path such as `session start` names."""
        found: Verb | Group = self
        for name in path.split():
            assert isinstance(found, Group)
            found = found.verbs[name]
        return found


class Parameter:
    """One parameter of a verb: its declaration, its type, and the shared `Options` it belongs to."""

    def __init__(self, name: str, annotation: Any, default: Any, owner: str = "") -> None:
        declared, self.spec = get_args(annotation)[:2]
        self.name, self.default, self.owner = name, default, owner
        kinds = [kind for kind in _alternatives(declared) if kind is not NoneType]
        self.many = get_origin(kinds[0]) is list
        self.kind: type = get_args(kinds[0])[0] if self.many else kinds[0]

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is REQUIRED

    @property
    def is_flag(self) -> bool:
        """Whether it is an option without a value."""
        return self.kind is bool

    def converted(self, text: str) -> Any:
        """The text as a value of its type. Raises `ValueError` that says what it takes."""
        try:
            value = self.kind(text)
        except ValueError:
            raise ValueError(f"{self.label} takes {_KINDS.get(self.kind, 'another value')}, not {text!r}") from None
        if type(value) is int and abs(value) > LONGEST:
            raise ValueError(f"{self.label} takes a number up to {LONGEST}")
        return value

    @property
    def label(self) -> str:
        """How a message names it."""
        return self.spec.names[0] if isinstance(self.spec, Option) else self.spec.metavar.strip("[]")


def _alternatives(declared: Any) -> tuple[Any, ...]:
    return get_args(declared) if get_origin(declared) in (UnionType, Union) else (declared,)


def parameters(verb: Verb) -> Iterator[Parameter]:
    """What a verb takes, shared options included, without the surface."""
    function = cast(FunctionType, verb)
    names = function.__code__.co_varnames[1 : function.__code__.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True))
    shared = _shared_options(verb)
    for name in names:
        if name in shared:
            yield from _shared(shared[name], name)
        else:
            yield Parameter(name, function.__annotations__[name], defaults.get(name, REQUIRED))


def _shared_options(verb: Verb) -> dict[str, type[Options]]:
    """The parameters of a verb that are classes of shared options."""
    declared = cast(FunctionType, verb).__annotations__
    return {name: kind for name, kind in declared.items() if isinstance(kind, type) and issubclass(kind, Options)}


def _shared(group: type[Options], owner: str) -> Iterator[Parameter]:
    for base in reversed(group.__mro__):
        for name, annotation in own_annotations(base).items():
            yield Parameter(name, annotation, getattr(group, name, REQUIRED), owner)


Home = Annotated[str | None, Option("--home", metavar="DIR", help="The store's directory instead of $ENGRAM_HOME.")]
Json = Annotated[bool, Option("--json", help="Answer in JSON.")]
GLOBALS = (Parameter("home", Home, None), Parameter("as_json", Json, False))
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


def read(words: Sequence[str], program: Group) -> tuple[Verb, dict[str, Any]]:
    """The verb and its values, global ones included. Raises `UsageError` or `HelpRequested`."""
    reader = _Reader(words)
    found: Verb | Group = program
    while isinstance(found, Group):
        found = reader.choose(found)
    return found, reader.values(found)


class _Reader:
    """Takes a command line apart, word by word."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words, self.path = list(words), ""
        self.given: dict[str, Any] = {}

    def choose(self, group: Group) -> "Verb | Group":
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

    def values(self, verb: Verb) -> dict[str, Any]:
        """Read the rest of the line as the parameters of a verb; shared ones come as an instance of their class."""
        declared = [*parameters(verb), *GLOBALS]
        loose = self._take_options(_by_name(declared))
        self._take_arguments(loose, [p for p in declared if isinstance(p.spec, Argument)])
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
        if parameter.is_flag:
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
        self._keep(parameter, self._converted(parameter, value))

    def _take_arguments(self, loose: list[str], declared: Sequence[Parameter]) -> None:
        for parameter in declared:
            if parameter.many:
                for word in loose:
                    self._keep(parameter, self._converted(parameter, word))
                loose = []
            elif loose:
                self._keep(parameter, self._converted(parameter, loose.pop(0)))
        if loose:
            self._refuse(f"Unexpected argument {loose[0]!r}; put a text of several words in quotes")

    def _keep(self, parameter: Parameter, value: Any) -> None:
        if parameter.many:
            self.given.setdefault(parameter.name, []).append(value)
        else:
            self.given[parameter.name] = value

    def _value(self, parameter: Parameter) -> Any:
        if parameter.name in self.given:
            return self.given[parameter.name]
        variable = parameter.spec.envvar
        if variable and os.environ.get(variable):
            return self._converted(parameter, os.environ[variable])
        if parameter.required:
            self._refuse(f"{parameter.label} is missing: {parameter.spec.help}")
        return parameter.default

    def _converted(self, parameter: Parameter, text: str) -> Any:
        try:
            return parameter.converted(text)
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
