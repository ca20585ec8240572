"""Reading a command line that is plainly right, without typer. Whatever is not plainly right is left to typer, which explains it."""

import os
from collections.abc import Callable, Sequence
from typing import Any

from engram.cli.declared import GLOBALS, Argument, Group, Option, Parameter, Verb, parameters


class _NotPlain(Exception):
    """Typer should look at this line."""


def read(words: Sequence[str], verb_of: Callable[[str], "Verb | Group | None"]) -> tuple[Verb, dict[str, Any]] | None:
    """The verb and its values, global ones included; None where typer should look at it."""
    try:
        return _read(list(words), verb_of)
    except _NotPlain:
        return None


def _read(words: list[str], verb_of: Callable[[str], "Verb | Group | None"]) -> tuple[Verb, dict[str, Any]]:
    given: dict[str, Any] = {}
    found = verb_of(_name(words, given))
    if isinstance(found, Group):
        found = found.verbs.get(_name(words, given))
    if found is None:
        raise _NotPlain
    declared = [*parameters(found), *GLOBALS]
    loose = _options(words, _by_name(declared), given)
    _arguments(loose, [p for p in declared if isinstance(p.said, Argument)], given)
    return found, {parameter.name: _value(parameter, given) for parameter in declared}


def _name(words: list[str], given: dict[str, Any]) -> str:
    """Take the name of a verb off the line, and the global options before it."""
    globals_ = _by_name(GLOBALS)
    while words and words[0].startswith("-"):
        if words[0].partition("=")[0] not in globals_:
            raise _NotPlain
        _take(words, globals_, given)
    if not words:
        raise _NotPlain
    return words.pop(0)


def _by_name(declared: Sequence[Parameter]) -> dict[str, Parameter]:
    return {name: p for p in declared if isinstance(p.said, Option) for name in p.said.names}


def _options(words: list[str], known: dict[str, Parameter], given: dict[str, Any]) -> list[str]:
    """Take every option off the line; what is left are arguments."""
    loose: list[str] = []
    while words:
        if words[0] == "--":
            return loose + words[1:]
        if not words[0].startswith("-") or words[0] == "-":
            loose.append(words.pop(0))
        elif words[0].partition("=")[0] in known:
            _take(words, known, given)
        else:
            raise _NotPlain
    return loose


def _take(words: list[str], known: dict[str, Parameter], given: dict[str, Any]) -> None:
    name, equals, value = words.pop(0).partition("=")
    parameter = known[name]
    if parameter.is_flag:
        if equals:
            raise _NotPlain
        given[parameter.name] = True
        return
    if equals and not name.startswith("--"):
        raise _NotPlain
    if not equals:
        if not words:
            raise _NotPlain
        value = words.pop(0)
    if parameter.many:
        given.setdefault(parameter.name, []).append(_converted(parameter, value))
    else:
        given[parameter.name] = _converted(parameter, value)


def _arguments(loose: list[str], declared: Sequence[Parameter], given: dict[str, Any]) -> None:
    for parameter in declared:
        if parameter.many:
            given[parameter.name] = [_converted(parameter, word) for word in loose]
            loose = []
        elif loose:
            given[parameter.name] = _converted(parameter, loose.pop(0))
    if loose:
        raise _NotPlain


def _converted(parameter: Parameter, text: str) -> Any:
    try:
        return parameter.kind(text)
    except ValueError:
        raise _NotPlain from None


def _value(parameter: Parameter, given: dict[str, Any]) -> Any:
    if parameter.name in given:
        return given[parameter.name] or (None if parameter.many else given[parameter.name])
    variable = parameter.said.envvar
    if variable and os.environ.get(variable):
        return _converted(parameter, os.environ[variable])
    if parameter.required:
        raise _NotPlain
    return parameter.default
