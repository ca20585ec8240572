"""How a verb says what it takes: arguments and options as plain declarations, read by two parsers.

Typer makes the help, the error messages and the suggestions from them, and costs some 140 ms to start; `quick` reads the same
declarations in microseconds and leaves every command line that is not plainly right to typer.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin

Verb = Callable[..., None]


class Argument:
    """A positional argument: how the help calls it, what it means, the variable it may come from."""

    def __init__(self, metavar: str, help: str, *, envvar: str = "") -> None:  # noqa: A002
        self.metavar, self.help, self.envvar = metavar, help, envvar


class Option:
    """An option: its names, how the help calls its value (none for a flag), what it means."""

    def __init__(self, *names: str, metavar: str = "", help: str = "", envvar: str = "") -> None:  # noqa: A002
        self.names, self.metavar, self.help, self.envvar = names, metavar, help, envvar


class Group:
    """A verb made of further verbs."""

    def __init__(self, help: str, verbs: Mapping[str, Verb]) -> None:  # noqa: A002
        self.help, self.verbs = help, verbs


class Parameter:
    """One parameter of a verb, declaration and type together."""

    def __init__(self, name: str, annotation: Any, default: Any) -> None:
        declared, self.said = get_args(annotation)[:2]
        self.name, self.default = name, default
        kinds = [kind for kind in _alternatives(declared) if kind is not NoneType]
        self.many = get_origin(kinds[0]) is list
        self.kind: type = get_args(kinds[0])[0] if self.many else kinds[0]
        self.annotation = declared

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is inspect.Parameter.empty

    @property
    def is_flag(self) -> bool:
        """Whether it is an option without a value."""
        return self.kind is bool


def _alternatives(declared: Any) -> tuple[Any, ...]:
    return get_args(declared) if get_origin(declared) is UnionType else (declared,)


def parameters(verb: Verb) -> Iterator[Parameter]:
    """What a verb takes, without the surface it is given first."""
    for entry in list(inspect.signature(verb).parameters.values())[1:]:
        yield Parameter(entry.name, entry.annotation, entry.default)


Home = Annotated[str | None, Option("--home", metavar="DIR", help="The store's directory instead of $ENGRAM_HOME.")]
Json = Annotated[bool, Option("--json", help="Answer in JSON.")]
GLOBALS = (Parameter("home", Home, None), Parameter("as_json", Json, False))
"""What every verb takes, before or after its name."""
