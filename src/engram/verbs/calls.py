"""Checks the arguments of a call against the declaration of its verb, for the library's methods and for tools with their schema."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from engram.model.errors import InvalidInput
from engram.model.memory import Owner
from engram.rules.limits import CHECKED_BY_VERB, check_argument
from engram.verbs.declaration import REQUIRED, SAME, Argument, Kind, Method, Property, Verb, WrongValue

Call = TypeVar("Call", bound=Callable[..., Any])


class Signature:
    """The parameters of a method according to the declaration of its verb."""

    def __init__(self, verb: Verb) -> None:
        assert isinstance(verb.library, Method)
        taken, rest = list(verb.parameters()), verb.library.rest
        self.method = verb.library.name
        self.positional = tuple(argument.name for argument in taken if argument.is_positional)
        self.required = tuple(argument.name for argument in taken if argument.default is REQUIRED)
        # The fields of a memory and the filters of a question are checked where their aliases are known.
        named = {argument.name for argument in taken} | ({*Owner.__annotations__} if rest is Owner else set())
        self.known = named if rest in (None, Owner) else None

    def check_sizes(self, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        """Raise `InvalidInput` for an argument that is too large."""
        for name, value in (*zip(self.positional, args, strict=False), *given.items()):
            if (self.method, name) not in CHECKED_BY_VERB:
                check_argument(name, value)

    def check_names(self, args: Sequence[Any], given: Mapping[str, Any], owner: str) -> None:
        """Raise `TypeError` if the arguments are not those of the method; `owner` is the class that the caller knows."""
        named = self.positional[: len(args)]
        call = f"{owner}.{self.method}()"
        unknown = next((name for name in given if self.known is not None and name not in self.known), None)
        if unknown is not None:
            raise TypeError(f"{call} got an unexpected keyword argument {unknown!r}")
        if len(args) > len(self.positional):
            raise TypeError(f"{call} takes {len(self.positional)} positional arguments but {len(args)} were given")
        twice = next((name for name in named if name in given), None)
        if twice is not None:
            raise TypeError(f"{call} got multiple values for argument {twice!r}")
        missing = next((name for name in self.required if name not in named and name not in given), None)
        if missing is not None:
            raise TypeError(f"{call} missing a required argument: {missing!r}")


def bind_verb(verb: Verb) -> Callable[[Call], Call]:
    """A decorator for the method of `Engram` behind a verb."""
    signature = Signature(verb)

    def decorate(method: Call) -> Call:
        @wraps(method)
        def check_and_call(self: Any, /, *args: Any, **given: Any) -> Any:
            signature.check_sizes(args, given)
            signature.check_names(args, given, "Engram")
            return method(self, *args, **given)

        check_and_call.signature = signature  # type: ignore[attr-defined]
        return cast(Call, check_and_call)

    return decorate


def signature_of(method: Callable[..., Any]) -> Signature | None:
    """The declared signature of a method, if it has one."""
    return getattr(method, "signature", None)


_EMPTY: tuple[Any, ...] = ("", [], (), None)
"""Defaults that readers assume anyway."""


def input_schema(verb: Verb) -> dict[str, Any]:
    """The JSON schema of a tool's arguments.

    Unknown ones are refused, so that no caller believes a claimed `source` was used.
    """
    listed = [(_name(argument, spelling), argument, spelling) for argument, spelling in verb.properties()]
    required = [name for name, argument, spelling in listed if _default(argument, spelling) is REQUIRED]
    schema: dict[str, Any] = {
        "additionalProperties": False,
        "properties": {name: _property(argument, spelling) for name, argument, spelling in listed},
        **({"required": required} if required else {}),
        "type": "object",
    }
    return schema


def _property(argument: Argument, spelling: Property) -> dict[str, Any]:
    schema, default = _kind(argument, spelling).schema(), _default(argument, spelling)
    if spelling.help:
        schema["description"] = spelling.help
    if default is not REQUIRED and default not in _EMPTY:
        schema["default"] = default
    return dict(sorted(schema.items()))


def tool_arguments(verb: Verb) -> dict[str, bool]:
    """The names of a tool's arguments, each with whether it is required."""
    return {_name(one, spelling): _default(one, spelling) is REQUIRED for one, spelling in verb.properties()}


def decode_arguments(verb: Verb, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a call by the library's names: the given ones, and the tool's own defaults.

    null and "" are dropped, because models send them for optional arguments. Raises `InvalidInput` that names each
    wrong argument and its valid values, but never the given value, which may be a secret.
    """
    found: dict[str, Any] = {}
    wrong: list[str] = []
    listed = {_name(argument, spelling): (argument, spelling) for argument, spelling in verb.properties()}
    for name, (argument, spelling) in listed.items():
        value, default = arguments.get(name), _default(argument, spelling)
        if value is None or (value == "" and default is not REQUIRED):
            if default is REQUIRED:
                wrong.append(f"{name} is missing")
            elif spelling.default is not SAME and default is not None:
                found[argument.name] = default
            continue
        try:
            found[argument.name] = _kind(argument, spelling).decode(value)
        except WrongValue as error:
            wrong.append(f"{name} must be {error}")
    wrong += [
        f"{name}: unknown argument; the arguments are {', '.join(listed)}" for name in arguments if name not in listed
    ]
    if wrong:
        raise InvalidInput("; ".join(wrong))
    return found


def _name(argument: Argument, spelling: Property) -> str:
    return spelling.name or argument.name


def _kind(argument: Argument, spelling: Property) -> Kind:
    return spelling.kind or argument.kind


def _default(argument: Argument, spelling: Property) -> Any:
    return argument.default if spelling.default is SAME else spelling.default
