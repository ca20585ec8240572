"""Writes `verbs.py` and `facets.py` from the synchronous classes: `python -m engram.aio.mirror`, then `ruff format`.

Written out rather than forwarded by name, so that an editor and a type checker know every call. A test fails when the two
sides are out of step.
"""

import ast
import builtins
import inspect
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path

from engram.aio.signatures import Function, annotation, arguments, calls, homes, is_property, parameters
from engram.client import Engram

BY_HAND = frozenset({"open", "close"})
"""Calls of `Engram` that are not forwarded."""
VALUES = frozenset({"model", "policy"})
"""Parts of `Engram` that are handed out as they are."""
BASES = {"Jobs": ("engram.aio.jobs", "Worker")}
"""Where a facet has calls that a thread should not be lent for, written by hand."""
SESSION = "SessionHandle"
"""The one answer that has calls of its own, and so needs a twin."""


class Page:
    """A module being written: its classes, and the names they import."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._typed: dict[str, str] = {}
        self._run: dict[str, str] = {}
        self.lines: list[str] = []

    def needs(self, module: str, name: str, running: bool = False) -> None:
        """Import a name, for types only unless it is needed when running."""
        (self._run if running else self._typed)[name] = module

    def text(self) -> str:
        """The whole module."""
        typed = {name: module for name, module in self._typed.items() if name not in self._run and name != SESSION}
        head = [
            f'"""{self._about} Written by `python -m engram.aio.mirror`; change that, not this."""',
            *(["# ruff: noqa: A002"] if self._shadows() else []),
            "from __future__ import annotations",
            "",
            *_imports({"TYPE_CHECKING": "typing", "Any": "typing", **self._run}),
            "if TYPE_CHECKING:",
            *(f"    {line}" for line in _imports(typed)),
        ]
        return "\n".join([*head, *self.lines, ""])

    def _shadows(self) -> bool:
        """Whether a parameter goes by the name of a builtin, as `type` does."""
        nodes = ast.walk(ast.parse("\n".join(self.lines)))
        return any(isinstance(node, ast.arg) and hasattr(builtins, node.arg) for node in nodes)


def _imports(names: dict[str, str]) -> list[str]:
    """Lines in the order a linter wants: the library's own, a gap, then ours."""
    lines: dict[bool, list[str]] = {False: [], True: []}
    for module in sorted(set(names.values())):
        wanted = sorted((name for name, home in names.items() if home == module), key=_constants_first)
        lines[module.startswith("engram")].append(f"from {module} import {', '.join(wanted)}")
    return [*lines[False], "", *lines[True]]


def _constants_first(name: str) -> tuple[bool, bool, str]:
    return not name.isupper(), name[0].islower(), name


def facets() -> dict[str, type]:
    """The facets of `Engram` by name, and what each is."""
    found = {}
    for kind in reversed(Engram.__mro__):
        for name, part in vars(kind).items():
            if isinstance(part, cached_property) and not name.startswith("_") and name not in VALUES:
                answer = inspect.signature(part.func).return_annotation
                found[name] = getattr(import_module(homes(kind)[answer]), answer)
    return found


def drawn() -> dict[str, str]:
    """The modules by file name."""
    return {"verbs.py": _verbs(), "facets.py": _facets()}


def _verbs() -> str:
    page = Page("Every call of `Engram`, awaited.")
    page.needs("engram.aio.threads", "Threads", True)
    page.needs("engram.client", "Engram")
    page.needs("engram.aio.opening", "Opened", True)
    page.lines += ["class Verbs(Opened):", '    """The calls and facets of an asynchronous memory."""']
    page.lines += ["    _threads: Threads", "    _engram: Engram", *_open(page)]
    for kind in (*Engram.__mro__[1:], Engram):
        for call in calls(kind):
            if call.name not in BY_HAND:
                page.lines += _method(page, kind, call, "_engram")
    for name, kind in facets().items():
        twin = f"Async{kind.__name__}"
        page.needs("engram.aio.facets", twin, True)
        page.lines += ["    @property", f"    def {name}(self) -> {twin}:", _doc(vars(_owner(name))[name].__doc__)]
        page.lines += [f"        return {twin}(self._threads, self._engram.{name})"]
    return page.text()


def _open(page: Page) -> list[str]:
    call = next(call for call in calls(Engram) if call.name == "open")
    page.needs("engram.aio.opening", "Opening")
    page.needs("typing", "Self")
    page.needs("abc", "abstractmethod", True)
    return [
        "    @classmethod",
        f"    def open(cls, {parameters(page.needs, Engram, call)}, threads: int | None = None) -> Opening[Self]:",
        _doc(ast.get_docstring(call), "`threads` is how many calls may be under way at once."),
        f"        return cls._opening(threads, {arguments(call)})",
        "    @classmethod",
        "    @abstractmethod",
        "    def _opening(cls, threads: int | None, *args: Any, **kwargs: Any) -> Opening[Self]: ...",
        "",
    ]


def _facets() -> str:
    page = Page("The facets of `Engram`, awaited.")
    page.needs("engram.aio.threads", "Threads", True)
    for kind in facets().values():
        page.needs(kind.__module__, kind.__name__)
        base, by_hand = "", set()
        if kind.__name__ in BASES:
            module, base = BASES[kind.__name__]
            page.needs(module, base, True)
            by_hand = set(vars(getattr(import_module(module), base)))
        page.lines += [f"class Async{kind.__name__}{f'({base})' if base else ''}:", _doc(kind.__doc__, indent=4)]
        page.lines += [f"    def __init__(self, threads: Threads, facet: {kind.__name__}) -> None:"]
        page.lines += ["        self._threads = threads", "        self._facet = facet"]
        for call in calls(kind):
            if call.name not in by_hand:
                page.lines += _method(page, kind, call, "_facet")
    return page.text()


def _method(page: Page, kind: type, call: Function, held: str) -> list[str]:
    taken, given = parameters(page.needs, kind, call), arguments(call)
    assert call.returns is not None, f"{kind.__name__}.{call.name} does not say what it answers"
    answer = annotation(page.needs, kind, call.returns)
    doc, target = _doc(ast.get_docstring(call)), f"self.{held}.{call.name}"
    if is_property(call):
        page.needs("collections.abc", "Awaitable")
        return [
            "    @property",
            f"    def {call.name}(self) -> Awaitable[{answer}]:",
            doc,
            f"        return self._threads.run(lambda: {target})",
        ]
    if answer == SESSION:
        page.needs("engram.aio.session", "beginning", True)
        page.needs("engram.aio.session", "AsyncSession")
        page.needs("engram.aio.opening", "Opening")
        ask = f"        return beginning(self._threads, {target}{given and ', '}{given})"
        return [f"    def {call.name}(self{taken and ', '}{taken}) -> Opening[AsyncSession]:", doc, ask]
    if "Iterator" in answer or "Generator" in answer:
        sys.exit(f"{kind.__name__}.{call.name} answers piece by piece; give it a twin by hand")
    ask = f"        return await self._threads.run({target}{given and ', '}{given})"
    return [f"    async def {call.name}(self{taken and ', '}{taken}) -> {answer}:", doc, ask]


def _owner(name: str) -> type:
    return next(kind for kind in Engram.__mro__ if name in vars(kind))


def _doc(told: str | None, more: str = "", indent: int = 8) -> str:
    assert told, "everything a caller sees is described"
    pad = " " * indent
    lines = inspect.cleandoc(told).splitlines()
    if more:
        lines += [*([""] if len(lines) == 1 else []), more]
    body = "\n".join(pad + line if line else "" for line in lines)
    return f'{pad}"""{body.strip()}{chr(10) + pad if len(lines) > 1 else ""}"""'


def main() -> None:
    """Write both modules beside this one."""
    for name, text in drawn().items():
        Path(__file__).with_name(name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
