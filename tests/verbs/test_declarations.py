"""Each verb is declared once, and every surface agrees with its declaration."""

import inspect
from importlib import import_module
from typing import Any, get_args

from engram import Engram
from engram.cli.main import PROGRAM, find_handler
from engram.mcp.tools import TOOLS
from engram.verbs import FAMILIES
from engram.verbs.declaration import (
    REQUIRED,
    SAME,
    Command,
    Group,
    Method,
    NotOffered,
    ToolOffer,
    Verb,
    command_default,
)


def declarations() -> list[Verb]:
    """Every declared verb, also those that only the library offers."""
    modules = [import_module(f"engram.verbs.{family}") for family in sorted({*FAMILIES.values()})]
    return [verb for module in modules for verb in vars(module).values() if isinstance(verb, Verb)]


def unpacked(annotation: Any) -> str:
    """The name of the `TypedDict` in an annotation such as `Unpack[Owner]`."""
    (kind,) = get_args(annotation)
    return str(getattr(kind, "__forward_arg__", getattr(kind, "__name__", kind)))


def test_every_method_has_the_signature_of_its_declaration() -> None:
    differing: dict[str, Any] = {}
    for verb in declarations():
        if not isinstance(verb.library, Method):
            continue
        taken = list(inspect.signature(getattr(Engram, verb.library.name)).parameters.values())[1:]
        rest = [one.annotation for one in taken if one.kind is one.VAR_KEYWORD]
        named = [one for one in taken if one.kind is not one.VAR_KEYWORD]
        declared = [
            (one.name, inspect.Parameter.empty if one.default is REQUIRED else one.default, one.is_positional)
            for one in verb.parameters()
        ]
        found = [(one.name, one.default, one.kind is one.POSITIONAL_OR_KEYWORD) for one in named]
        # Keyword-only arguments have no order.
        key: Any = lambda one: (not one[2], "" if one[2] else one[0])  # noqa: E731
        if sorted(declared, key=key) != sorted(found, key=key):
            differing[verb.name] = (declared, found)
        if [*map(unpacked, rest)] != ([verb.library.rest.__name__] if verb.library.rest else []):
            differing[f"{verb.name} (rest)"] = (verb.library.rest, rest)
    assert differing == {}


def test_every_handler_takes_what_the_command_line_reads() -> None:
    differing: dict[str, Any] = {}
    for verb in declarations():
        if not isinstance(verb.command, Command):
            continue
        parameters = inspect.signature(find_handler(verb)).parameters
        declared = {one.name: command_default(one) for one in verb.options()}
        always_given = {
            one.name for one in verb.options() if one.command and one.command.default not in (SAME, None, "")
        }
        for name, parameter in list(parameters.items())[1:]:
            if parameter.kind is parameter.VAR_KEYWORD:
                declared.clear()
                continue
            default = declared.pop(name, "not declared")
            if parameter.default is parameter.empty:
                if default is not REQUIRED and name not in always_given:
                    differing[f"{verb.name}({name})"] = (default, "required")
            elif parameter.default != default and (parameter.default or default):
                differing[f"{verb.name}({name})"] = (default, parameter.default)
        if declared:
            differing[verb.name] = (sorted(declared), "not taken")
    assert differing == {}


def test_a_verb_is_offered_everywhere_or_says_why_not() -> None:
    for verb in declarations():
        for offer in (verb.library, verb.command, verb.tool):
            assert not isinstance(offer, NotOffered) or len(offer.reason) > 10, verb.name
        assert not isinstance(verb.command, Command) or verb.help, verb.name


def test_every_declared_tool_is_listed() -> None:
    named = {verb.tool.name for verb in declarations() if isinstance(verb.tool, ToolOffer)}
    assert named <= set(TOOLS)


def test_every_declared_verb_is_one_of_the_command_line() -> None:
    assert set(FAMILIES) <= set(PROGRAM.verbs)
    assert all(isinstance(PROGRAM.verbs[name], Verb | Group) for name in FAMILIES)


def test_every_call_of_the_memory_is_declared_once() -> None:
    declared = [verb.library.name for verb in declarations() if isinstance(verb.library, Method)]
    calls = {name for name, _ in inspect.getmembers(Engram, inspect.isfunction) if not name.startswith("_")}
    aliases = {"get_memories", "get_lineage"}
    assert sorted(declared) == sorted(calls - aliases - {"close"})
