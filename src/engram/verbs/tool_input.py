"""The arguments of a tool: the schema that the server publishes, and the values of a call."""

from collections.abc import Mapping
from typing import Any

from engram.model.errors import InvalidInput
from engram.verbs.declaration import REQUIRED, SAME, Argument, Property, Verb
from engram.verbs.kinds import Kind, WrongValue

_EMPTY: tuple[Any, ...] = ("", [], (), None)
"""Defaults that a reader assumes anyway."""


def input_schema(verb: Verb) -> dict[str, Any]:
    """The JSON schema of what a tool takes. An unknown argument is refused, so that no caller believes a claimed `source` was used."""
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
    """The names of what a tool takes, each with whether it is required."""
    return {_name(one, spelling): _default(one, spelling) is REQUIRED for one, spelling in verb.properties()}


def decode_arguments(verb: Verb, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a call by the library's names: those that were given, and the tool's own defaults.

    null and "" are dropped, since models send them for optional arguments. Raises `InvalidInput` that names each wrong argument
    and what it takes, never its value, which may be a secret.
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
