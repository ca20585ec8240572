"""How a synchronous class is read: its calls, their parameters and types as they are written in its source."""

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from typing import Any

Function = ast.FunctionDef
Needs = Callable[[str, str], None]
"""Told the module and the name of every type that a signature mentions."""
PLAIN = (type(None), bool, int, float, str)
"""What a default may be, so that it can be written out."""


def calls(kind: type) -> Iterator[Function]:
    """The public calls and properties a class defines itself, in order."""
    if not kind.__module__.startswith("engram."):
        return
    tree = ast.parse(inspect.getsource(kind))
    assert isinstance(tree.body[0], ast.ClassDef)
    for node in tree.body[0].body:
        if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
            continue
        if not isinstance(vars(kind)[node.name], cached_property):
            yield node


def is_property(call: Function) -> bool:
    """Whether it is asked for without parentheses."""
    return any(isinstance(mark, ast.Name) and mark.id == "property" for mark in call.decorator_list)


def _module(kind: type) -> Any:
    return sys.modules[kind.__module__]


def parameters(needs: Needs, kind: type, call: Function) -> str:
    """The parameters as they are, with defaults written out, less `self`."""
    if is_property(call):
        return ""
    defaults = inspect.signature(getattr(kind, call.name)).parameters
    told = call.args
    parts = []
    for given in (*told.posonlyargs, *told.args):
        if given.arg not in ("self", "cls"):
            parts.append(_parameter(needs, kind, given, defaults[given.arg].default))
    if told.vararg is not None:
        parts.append(f"*{_parameter(needs, kind, told.vararg, inspect.Parameter.empty)}")
    elif told.kwonlyargs:
        parts.append("*")
    parts += [_parameter(needs, kind, given, defaults[given.arg].default) for given in told.kwonlyargs]
    if told.kwarg is not None:
        parts.append(f"**{_parameter(needs, kind, told.kwarg, inspect.Parameter.empty)}")
    return ", ".join(parts)


def _parameter(needs: Needs, kind: type, given: ast.arg, default: Any) -> str:
    assert given.annotation is not None, f"{kind.__name__}: {given.arg} has no type"
    told = f"{given.arg}: {annotation(needs, kind, given.annotation)}"
    if default is inspect.Parameter.empty:
        return told
    items = default if isinstance(default, tuple) else (default,)
    assert all(isinstance(item, PLAIN) for item in items), (
        f"{kind.__name__}: {given.arg} = {default!r} is no plain value"
    )
    return f"{told} = {default!r}"


def arguments(call: Function) -> str:
    """How the parameters are handed on."""
    told = call.args
    parts = [given.arg for given in (*told.posonlyargs, *told.args) if given.arg not in ("self", "cls")]
    parts += [f"*{told.vararg.arg}"] if told.vararg else []
    parts += [f"{given.arg}={given.arg}" for given in told.kwonlyargs]
    parts += [f"**{told.kwarg.arg}"] if told.kwarg else []
    return ", ".join(parts)


def annotation(needs: Needs, kind: type, told: ast.expr) -> str:
    """A type as it is written, unquoted, with every name in it imported."""
    if isinstance(told, ast.Constant) and isinstance(told.value, str):
        told = ast.parse(told.value, mode="eval").body
    known = homes(kind)
    for node in ast.walk(told):
        if isinstance(node, ast.Name) and node.id in known:
            needs(known[node.id], node.id)
    return ast.unparse(told)


@cache
def homes(kind: type) -> dict[str, str]:
    """Where each name that a class's module uses comes from; its own names from itself."""
    found: dict[str, str] = {}
    tree = ast.parse(inspect.getsource(_module(kind)))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {name.asname or name.name: node.module for name in node.names if name.name != "Any"}
    # An alias may stand in a block for types alone.
    for own in (node for top in tree.body for node in (top.body if isinstance(top, ast.If) else [top])):
        if isinstance(own, ast.ClassDef):
            found[own.name] = kind.__module__
        elif isinstance(own, ast.Assign):
            found |= {target.id: kind.__module__ for target in own.targets if isinstance(target, ast.Name)}
    return found
