"""A verb's arguments and where it is offered: one declaration, read by the library, the command line, the MCP server and the docs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from engram.model.arguments import MAX_INTEGER


class WrongValue(ValueError):
    """A value that an argument does not accept; the message continues `NAME must be …`."""


class Kind:
    """The values that an argument accepts. By default, the value is the text itself."""

    is_many = False
    """Whether an option may be repeated, and an argument takes all remaining words."""
    is_flag = False
    """Whether an option has no value."""

    @property
    def requirement(self) -> str:
        """The accepted values, as the end of `NAME must be …`."""
        return "text"

    def parse(self, word: str) -> Any:
        """The value of a word on the command line. Raises `WrongValue`."""
        return word

    def collect(self, values: list[Any]) -> Any:
        """The value of an argument that takes several words."""
        return values

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": "string"}

    def decode(self, value: Any) -> Any:
        """The value from JSON. Raises `WrongValue`."""
        if not isinstance(value, str):
            raise WrongValue(self.requirement)
        return value


class Text(Kind):
    """Text, limited to the choices if there are any."""

    def __init__(self, choices: Sequence[str] = (), *, least: int = 0) -> None:
        self.choices, self.least = tuple(choices), least

    @property
    def requirement(self) -> str:
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        return "text, and not empty" if self.least else "text"

    def parse(self, word: str) -> Any:
        if self.choices and word not in self.choices:
            raise WrongValue(self.requirement)
        return word

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.least:
            schema["minLength"] = self.least
        return schema

    def decode(self, value: Any) -> Any:
        if not isinstance(value, str) or len(value) < self.least or (self.choices and value not in self.choices):
            raise WrongValue(self.requirement)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongValue("text without half characters") from None
        return value


class File(Kind):
    """A path, or several; only on the command line."""

    def __init__(self, *, is_many: bool = False) -> None:
        self.is_many = is_many

    def parse(self, word: str) -> Any:
        return Path(word)


class Whole(Kind):
    """A whole number."""

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self.least, self.most = least, most

    @property
    def requirement(self) -> str:
        return f"a whole number{_limits(self.least, self.most)}"

    def parse(self, word: str) -> Any:
        try:
            number = int(word)
        except ValueError:
            raise WrongValue(self.requirement) from None
        if abs(number) > MAX_INTEGER:
            raise WrongValue(f"a whole number up to {MAX_INTEGER}")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", **_bounds(self.least, self.most)}

    def decode(self, value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():  # in JSON, 3.0 is an integer
            value = int(value)
        if type(value) is not int or not _is_within(value, self.least, self.most):
            raise WrongValue(self.requirement)
        return value


class Real(Kind):
    """A number."""

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most

    @property
    def requirement(self) -> str:
        return f"a number{_limits(self.least, self.most)}"

    def parse(self, word: str) -> Any:
        try:
            return float(word)
        except ValueError:
            raise WrongValue(self.requirement) from None

    def schema(self) -> dict[str, Any]:
        return {"type": "number", **_bounds(self.least, self.most)}

    def decode(self, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not _is_within(value, self.least, self.most):
            raise WrongValue(self.requirement)
        return float(value)


class Flag(Kind):
    """True or false; on the command line an option without a value."""

    is_flag = True

    @property
    def requirement(self) -> str:
        return "true or false"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, bool):
            raise WrongValue(self.requirement)
        return value


class TextList(Kind):
    """A list of texts. Some clients send it as JSON text, or as words with commas."""

    is_many = True

    def __init__(self, most: int | None = None) -> None:
        self.most = most

    @property
    def requirement(self) -> str:
        return "a list of texts" + (f", at most {self.most}" if self.most is not None else "")

    def schema(self) -> dict[str, Any]:
        return {"items": {"type": "string"}, "type": "array", **({"maxItems": self.most} if self.most else {})}

    def decode(self, value: Any) -> Any:
        listed = _split(value) if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise WrongValue(self.requirement)
        if self.most is not None and len(listed) > self.most:
            raise WrongValue(self.requirement)
        return [Text().decode(one) for one in listed]


class Pairs(Kind):
    """The caller's own data; on the command line, a repeated `KEY=VALUE`."""

    is_many = True

    @property
    def requirement(self) -> str:
        return "KEY=VALUE"

    def parse(self, word: str) -> Any:
        """A pair; a value that is JSON is read as such."""
        from engram.model.errors import UnreadableData
        from engram.readers.data import NotJson, parse_json

        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise WrongValue(self.requirement)
        try:
            return key.strip(), parse_json(value, characters="any")
        except NotJson:
            return key.strip(), value
        except UnreadableData as error:
            raise WrongValue(f"{self.requirement}: {error}") from None

    def collect(self, values: list[Any]) -> Any:
        return dict(values)


class ListsById(Kind):
    """A list of texts for each id."""

    @property
    def requirement(self) -> str:
        return "a list of texts for each id"

    def schema(self) -> dict[str, Any]:
        return {"additionalProperties": TextList().schema(), "type": "object"}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(one, list) for one in value.values()):
            raise WrongValue(self.requirement)
        return {Text().decode(key): TextList().decode(one) for key, one in value.items()}


class InPython(Kind):
    """A value that only a Python program can pass, such as a function."""

    @property
    def requirement(self) -> str:
        return "an object of Python"


def _split(text: str) -> Any:
    if text.lstrip().startswith("["):
        from engram.model.errors import UnreadableData
        from engram.readers.data import parse_json

        try:
            return parse_json(text)
        except UnreadableData as error:
            raise WrongValue(f"a list; its text cannot be read: {error}") from None
    return [word.strip() for word in text.split(",") if word.strip()]


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _limits(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f" of at least {least}"
    return f" up to {most}" if least is None else f" from {least} to {most}"


def _bounds(least: float | None, most: float | None) -> dict[str, Any]:
    named = {"minimum": least, "maximum": most}
    return {name: bound for name, bound in named.items() if bound is not None}


REQUIRED: Any = object()
"""The default of a required argument."""
SAME: Any = object()
"""Marks a part that a surface does not change from the argument's declaration."""


Help = str | Callable[[], str]
"""The help text of an argument; a function if computing it takes an import that only the help needs."""


class Spelling:
    """The spelling of an argument on the command line."""

    names: tuple[str, ...] = ()

    def __init__(self, metavar: str, help: Help, *, default: Any = SAME, envvar: str = "") -> None:  # noqa: A002
        self.metavar, self._help, self.default, self.envvar = metavar, help, default, envvar

    @property
    def help(self) -> str:
        """The explanation of the argument."""
        return self._help if isinstance(self._help, str) else self._help()

    @property
    def label(self) -> str:
        """The name of the argument in messages."""
        return self.names[0] if self.names else self.metavar.strip("[]")


class Positional(Spelling):
    """A positional argument."""


class Option(Spelling):
    """An option of the command line: its names, the name of its value in the help (none for a flag), its meaning."""

    def __init__(self, *names: str, metavar: str = "", help: Help = "", default: Any = SAME, envvar: str = "") -> None:  # noqa: A002
        super().__init__(metavar, help, default=default, envvar=envvar)
        self.names = names


class Property:
    """An argument of a tool.

    A model reads its help with every conversation, so the help adds only what the name does not convey.
    """

    def __init__(self, help: str = "", *, name: str = "", kind: Kind | None = None, default: Any = SAME) -> None:  # noqa: A002
        self.help, self.name, self.kind, self.default = help, name, kind, default


class Argument:
    """One argument of a verb.

    `name` is the library's, and that of the parameter which the command line and the tool fill. `command` and `tool`
    define how these two spell it, and are None if they do not offer it; `in_library` is False for an argument that only
    a surface has.
    """

    __slots__ = ("command", "default", "in_library", "is_positional", "kind", "name", "tool")

    def __init__(
        self,
        name: str,
        kind: Kind,
        default: Any = REQUIRED,
        *,
        is_positional: bool = False,
        command: Positional | Option | None = None,
        tool: Property | None = None,
        in_library: bool = True,
    ) -> None:
        self.name, self.kind, self.default = name, kind, default
        self.is_positional, self.in_library = is_positional, in_library
        self.command, self.tool = command, tool

    def replace(self, **changes: Any) -> "Argument":
        """A copy of the argument, adapted for another verb."""
        same = {name: getattr(self, name) for name in self.__slots__ if name not in ("name", "kind", "default")}
        name, kind, default = (changes.pop(one, getattr(self, one)) for one in ("name", "kind", "default"))
        return Argument(name, kind, default, **{**same, **changes})


def flag(name: str, spelled: str, help: str, *, in_library: bool = False) -> Argument:  # noqa: A002
    """A command line option without a value."""
    return Argument(name, Flag(), False, command=Option(*spelled.split(), help=help), in_library=in_library)


def option(
    name: str,
    kind: Kind,
    default: Any,
    spelled: str,
    metavar: str,
    help: Help,  # noqa: A002
    *,
    envvar: str = "",
    in_library: bool = False,
) -> Argument:
    """A command line option; `spelled` has its names, such as `--limit -n`."""
    shown = Option(*spelled.split(), metavar=metavar, help=help, envvar=envvar)
    return Argument(name, kind, default, command=shown, in_library=in_library)


def positional(
    name: str,
    kind: Kind,
    metavar: str,
    help: Help,  # noqa: A002
    *,
    default: Any = REQUIRED,
    envvar: str = "",
) -> Argument:
    """A positional argument that only the command line has."""
    return Argument(name, kind, default, command=Positional(metavar, help, envvar=envvar), in_library=False)


class NotOffered:
    """Why a verb is not offered on a surface."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Method:
    """A method of `Engram`; `rest` is the `TypedDict` of the keyword arguments besides those of its signature."""

    def __init__(self, name: str, *, rest: type | None = None) -> None:
        self.name, self.rest = name, rest


class Facet:
    """A call of a facet of `Engram`, such as `sessions.end`, which has its own signature."""

    def __init__(self, call: str) -> None:
        self.call = call


class Command:
    """A verb of the command line: the `module:function` of `engram.cli.verbs` that carries it out, and its own exit codes."""

    def __init__(self, handler: str, *, exits: Mapping[int, str] | None = None) -> None:
        self.handler, self.exits = handler, exits or {}


class Effect:
    """The effect of a tool call on the store, in the protocol's terms."""

    def __init__(
        self, *, is_read_only: bool = False, is_destructive: bool = False, is_idempotent: bool = False
    ) -> None:
        self.is_read_only = is_read_only
        """It changes nothing that a person would mind.

        A memory's use is recorded, but that does not count as a change.
        """
        self.is_destructive = is_destructive
        """In the protocol's sense: it does more than add."""
        self.is_idempotent = is_idempotent
        """A second call with the same arguments changes nothing further."""


READS = Effect(is_read_only=True, is_idempotent=True)
ADDS = Effect()


class ToolOffer:
    """A tool of the MCP server."""

    def __init__(self, name: str, title: str, description: str, *, effect: Effect = ADDS, not_found: str = "") -> None:
        self.name, self.title, self.description = name, title, description
        self.effect = effect
        self.not_found = not_found
        """What to do if nothing has the given id."""


class Verb:
    """One verb: its name, its arguments, and where it is offered.

    `help` is its text on the command line; the first sentence is the summary.
    """

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002
        arguments: Sequence[Argument] = (),
        *,
        library: Method | Facet | NotOffered,
        command: Command | NotOffered,
        tool: ToolOffer | NotOffered,
    ) -> None:
        self.name, self.help, self.arguments = name, help, tuple(arguments)
        self.library, self.command, self.tool = library, command, tool

    def parameters(self) -> Iterator[Argument]:
        """The arguments in the signature of the library's method."""
        rest = self.library.rest.__annotations__ if isinstance(self.library, Method) and self.library.rest else ()
        return (argument for argument in self.arguments if argument.in_library and argument.name not in rest)

    def options(self) -> Iterator[Argument]:
        """The arguments of the command line."""
        return (argument for argument in self.arguments if argument.command is not None)

    def properties(self) -> Iterator[tuple[Argument, Property]]:
        """The arguments of the tool, each with its spelling."""
        return ((argument, argument.tool) for argument in self.arguments if argument.tool is not None)


class Group:
    """A verb made of further verbs; the program itself is one."""

    def __init__(self, help: str, verbs: "Mapping[str, Verb | Group]") -> None:  # noqa: A002
        self.help, self.verbs = help, verbs

    @classmethod
    def of(cls, help: str, *verbs: Verb) -> Self:  # noqa: A002
        """A group of verbs, each named by the last word of its name."""
        return cls(help, {verb.name.rpartition(" ")[2]: verb for verb in verbs})


def command_default(argument: Argument) -> Any:
    """The default of an argument on the command line."""
    assert argument.command is not None
    return argument.default if argument.command.default is SAME else argument.command.default
