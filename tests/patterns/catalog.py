"""Every regular expression of the package: constants, those of classes and cached builders, and literals inside functions."""

import ast
import importlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import signature
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import engram
from engram import settings
from engram.capture.extraction.clauses import MAX_READ_SENTENCE_CHARS
from engram.capture.transcripts import windows
from engram.gates.policies import policy
from engram.gates.policies.policy import PRESETS, policy_named
from engram.gates.secrets import forms, numbers, prose, scan
from engram.sessions import summary_lines

ANCHORED = frozenset(("match", "fullmatch"))
SEARCHING = frozenset(("search", "finditer", "findall", "sub", "subn", "split"))
OPTIONAL = ("engram.integrations",)
"""Modules that need a package of somebody else, or run the program."""
SEARCHED = ("finditer",)
TABLE_METHODS = {"engram.capture.extraction.rules.rules": ("match",), "engram.settings#": ("fullmatch",)}
"""What runs the patterns of a table, by the start of their names."""
MAX_DEPTH = 4
"""Levels of tuples, dictionaries and objects below a constant that are searched for patterns."""


class FoundPattern(NamedTuple):
    """A pattern and the ways in which it is used."""

    name: str
    source: str
    flags: int
    window: int
    """The most characters that it ever runs on; 0 for any number."""
    methods: tuple[str, ...]
    """`match` and `fullmatch`, which try one place of a text, if nothing else runs it; otherwise `finditer`."""


@cache
def all_patterns() -> tuple[FoundPattern, ...]:
    """The patterns of the package, each once."""
    found: dict[tuple[str, int], FoundPattern] = {}
    modules = dict(_modules())
    trees = {name: ast.parse(Path(str(module.__file__)).read_text("utf-8")) for name, module in modules.items()}
    used = {name: _methods_used(tree) for name, tree in trees.items()}
    shared: dict[str, set[str]] = {}
    for names in used.values():
        for name, methods in names.items():
            shared.setdefault(name, set()).update(() if name.startswith("_") else methods)
    for name, module in modules.items():
        tree = trees[name]
        for pattern in (
            *_constants(name, module, {one: methods | shared[one] for one, methods in used[name].items()}),
            *_literals(name, module, tree),
            *_built(name),
        ):
            key = (pattern.source, pattern.flags)
            known = found.get(key)
            window = 0 if known and not known.window else pattern.window
            methods = {*pattern.methods, *(known.methods if known else ())}
            found[key] = pattern._replace(
                window=window, methods=SEARCHED if SEARCHED[0] in methods else tuple(sorted(methods))
            )
    return tuple(sorted(found.values()))


def _built(module_name: str) -> Iterator[FoundPattern]:
    """The patterns that a function builds from a row of a table."""
    for number, built in enumerate(BUILDERS.get(module_name, tuple)()):
        for source, flags in _inside(built, MAX_DEPTH):
            yield _found(f"{module_name}#{number}", source, flags, SEARCHED)


def _secret_forms() -> Iterator[Any]:
    for name in forms._TABLES:
        yield from (re.compile(row[2]) for row in forms.columns(name) if len(row) > 2)


def _policy_patterns() -> Iterator[Any]:
    presets = list(map(policy_named, PRESETS))
    types, slots = chain.from_iterable(one.types for one in presets), chain.from_iterable(one.slots for one in presets)
    sources = [part for rules in (types, slots) for rule in rules for part in (rule.pattern, rule.unless)]
    yield from (re.compile(source, re.IGNORECASE) for source in sources if source)


WINDOWS = {
    "engram.capture.extraction.rules.rules": MAX_READ_SENTENCE_CHARS,
    "engram.capture.extraction.clauses._TRAILING": MAX_READ_SENTENCE_CHARS,
    "engram.capture.extraction.statement": MAX_READ_SENTENCE_CHARS,
    "engram.capture.extraction.references": MAX_READ_SENTENCE_CHARS,
    "engram.capture.transcripts.windows._printed_pattern": windows._LOOKED_AT,
    "engram.gates.secrets.prose._MIXED": prose.MAX_JUDGED_SPAN_CHARS,
    "engram.gates.policies.policy._ESCAPE_OR_SET": policy.MAX_PATTERN_CHARS,
    "engram.gates.policies.policy#": policy.MAX_RULE_CHARS,
}
"""The most characters of the texts that patterns run on where a longer text is cut or refused before, by the start of their names."""
BUILDERS: Mapping[str, Callable[[], Iterable[Any]]] = {
    "engram.gates.secrets.forms": _secret_forms,
    "engram.gates.secrets.scan": lambda: map(scan._pattern, range(len(forms.columns(forms.SHAPES)))),
    "engram.gates.secrets.numbers": lambda: map(numbers._compile_row, range(len(forms.columns(forms.NUMBERS)))),
    "engram.gates.policies.policy": _policy_patterns,
    "engram.sessions.summary_lines": lambda: map(summary_lines._pattern, summary_lines.SIGNALS),
    "engram.settings": lambda: (re.compile(shape) for shape, *_ in settings.SHAPES.values()),
}
"""What builds the patterns of tables, by module."""


def _modules() -> Iterator[tuple[str, Any]]:
    for one in pkgutil.walk_packages(engram.__path__, "engram."):
        if not one.name.startswith(OPTIONAL) and not one.name.endswith("__main__"):
            yield one.name, importlib.import_module(one.name)


def _methods_used(tree: ast.AST) -> dict[str, set[str]]:
    """How each name of a module is used: the methods called on it, and "" for anything else."""
    called: dict[int, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            base = node.value.func if isinstance(node.value, ast.Call) else node.value
            called[id(base)] = node.attr
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.setdefault(node.id, set()).add(called.get(id(node), ""))
    return found


def _constants(module_name: str, module: Any, used: Mapping[str, set[str]]) -> Iterator[FoundPattern]:
    for name, value in vars(module).items():
        if name.startswith("__") or (
            getattr(value, "__module__", module_name) != module_name and isinstance(value, type)
        ):
            continue
        for source, flags in _inside(_called(value, module_name), MAX_DEPTH):
            called = used.get(name, set())
            methods = tuple(sorted(called)) if called and called <= ANCHORED else SEARCHED
            yield _found(f"{module_name}.{name}", source, flags, methods)


def _called(value: Any, module_name: str) -> Any:
    """What a cached function without parameters returns; any other value as it is."""
    return value() if _is_builder(value) and value.__module__ == module_name else value


def _is_builder(value: Any) -> bool:
    return hasattr(value, "cache_info") and not signature(value).parameters


def _inside(value: Any, depth: int) -> Iterator[tuple[str, int]]:
    if isinstance(value, re.Pattern):
        yield _text_of(value.pattern), value.flags & ~re.UNICODE.value
    elif type(value).__name__ == "_LazyPattern":
        yield _text_of(value._source), int(value._flags)
    elif type(value).__name__ == "Pattern" and type(value).__module__ == "_regex":
        yield value.pattern, 0
    elif depth and isinstance(value, dict):
        for one in value.values():
            yield from _inside(one, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for one in value:
            yield from _inside(one, depth - 1)
    elif depth and type(value).__module__.startswith("engram"):
        yield from _inside(_attributes(value), depth - 1)
    elif depth and isinstance(value, type) and value.__module__.startswith("engram"):
        yield from _inside(dict(vars(value)), depth - 1)


def _text_of(source: str | bytes) -> str:
    """The source of a pattern; one for bytes works alike on text."""
    return source.decode("latin-1") if isinstance(source, bytes) else source


def _attributes(value: Any) -> dict[str, Any]:
    slots = (name for one in type(value).__mro__ for name in getattr(one, "__slots__", ()))
    return {**getattr(value, "__dict__", {}), **{name: getattr(value, name, None) for name in slots}}


def _literals(module_name: str, module: Any, tree: ast.AST) -> Iterator[FoundPattern]:
    """The patterns that functions give to `re` themselves."""
    constants = {id(node.value) for node in ast.iter_child_nodes(tree) if isinstance(node, ast.Assign | ast.AnnAssign)}
    for function in ast.iter_child_nodes(tree):
        if isinstance(function, ast.FunctionDef) and _is_builder(getattr(module, function.name, None)):
            constants.update(map(id, ast.walk(function)))
    for node in ast.walk(tree):
        if id(node) in constants:
            continue
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)) or not node.args:
            continue
        if not (isinstance(node.func.value, ast.Name) and node.func.value.id in ("re", "regex")):
            continue
        if node.func.attr not in ANCHORED | SEARCHING | {"compile"}:
            continue
        source = _evaluated(node.args[0], module)
        if source is None:
            continue
        flags = next((_evaluated(one.value, module) for one in node.keywords if one.arg == "flags"), None)
        place = 1 if node.func.attr == "compile" else 2
        if flags is None and node.func.attr not in ("sub", "subn", "split") and len(node.args) > place:
            flags = _evaluated(node.args[place], module)
        yield _found(f"{module_name}:{node.lineno}", _text_of(source), int(flags or 0), _one(node.func.attr))


def _found(name: str, source: str, flags: int, methods: tuple[str, ...]) -> FoundPattern:
    window = next((chars for start, chars in WINDOWS.items() if name.startswith(start)), 0)
    methods = next((one for start, one in TABLE_METHODS.items() if name.startswith(start)), methods)
    return FoundPattern(name, source, flags, window, methods)


def _one(method: str) -> tuple[str, ...]:
    return (method,) if method in ANCHORED else SEARCHED


def _evaluated(node: ast.expr, module: Any) -> Any:
    """The value of an expression of constants; None for one with variables of a function."""
    try:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(vars(module)))
    except Exception:
        return None


if __name__ == "__main__":
    for pattern in all_patterns():
        sys.stdout.write(f"{pattern.name}\t{' '.join(pattern.methods)}\t{pattern.source[:100]!r}\n")
