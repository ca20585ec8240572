"""The help of the program and of every verb, from the verbs' declarations."""

import inspect
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from engram.cli.display import Cell, escape_hidden, lines
from engram.cli.parser import GLOBALS, HelpRequested, Parameter, UsageError, find_verb, parameters
from engram.verbs.declaration import REQUIRED, Group, Positional, Verb

MAX_WIDTH = 100
NAME_WIDTH = 28
"""Names longer than this have their explanation on the next line."""
Row = list[Cell]
EPILOGUE = "`engram VERB --help` explains a verb. `engram demo` shows the program at work."


def show(request: HelpRequested, program: Group, sections: Mapping[str, Iterable[str]]) -> int:
    """Print the help that was requested; where a verb is missing, on stderr, as wrong usage. Returns the exit code."""
    rows = list(_rows(request.path, program, sections))
    if request.missing:
        for row in rows:
            sys.stderr.write("".join(cell if isinstance(cell, str) else cell[0] for cell in row).rstrip() + "\n")
        return 2
    lines(*rows)
    return 0


def print_usage_error(error: UsageError) -> None:
    """Tell a person what is wrong with a command line, and where its help is."""
    where = " ".join(["engram", *error.path.split(), "--help"])
    sys.stderr.write(f"engram: {escape_hidden(str(error))}\nTry `{where}`.\n")


def _rows(path: str, program: Group, sections: Mapping[str, Iterable[str]]) -> Iterator[Row]:
    found = find_verb(program, path)
    name = " ".join(["engram", *path.split()])
    if not isinstance(found, Group):
        yield from _verb(name, found)
        return
    yield [("Usage: ", "bold"), f"{name} [OPTIONS] VERB …"]
    yield [""]
    yield from _paragraphs(found.help)
    titled = sections if found is program else {"Verbs": tuple(found.verbs)}
    for title, verbs in titled.items():
        yield from _table(title, [(verb, summary(found.verbs[verb])) for verb in verbs])
    yield from _table("Options", _global_rows())
    if found is program:
        yield [""]
        yield [EPILOGUE]


def _verb(name: str, verb: Verb) -> Iterator[Row]:
    declared = list(describe_parameters(parameters(verb)))
    arguments = [(written, text) for kind, written, text in declared if kind == "argument"]
    options = [(written, text) for kind, written, text in declared if kind == "option"]
    yield [("Usage: ", "bold"), " ".join([name, *(written for written, _ in arguments), "[OPTIONS]"])]
    yield [""]
    yield from _paragraphs(full_help(verb))
    if arguments:
        yield from _table("Arguments", arguments)
    yield from _table("Options", [*options, *_global_rows()])


def full_help(verb: Verb) -> str:
    """What the command line says about a verb."""
    return inspect.cleandoc(verb.help)


def summary(found: "Verb | Group") -> str:
    """The first sentence of what a verb says about itself."""
    text = found.help if isinstance(found, Group) else full_help(found)
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def describe_parameters(declared: "Iterator[Parameter] | Sequence[Parameter]") -> Iterator[tuple[str, str, str]]:
    """Each parameter of a verb: `argument` or `option`, how it is written, its help."""
    for parameter in declared:
        spec = parameter.spec
        if isinstance(spec, Positional):
            written = spec.metavar if parameter.is_required or spec.metavar.startswith("[") else f"[{spec.metavar}]"
            yield "argument", written, spec.help
        else:
            written = f"{', '.join(spec.names)} {spec.metavar}".strip()
            yield "option", written, _with_default(spec.help, parameter.default)


def _with_default(text: str, default: Any) -> str:
    return f"{text} Default: {default}." if default not in (None, "", (), False, REQUIRED) else text


def _global_rows() -> list[tuple[str, str]]:
    return [*((written, text) for _, written, text in describe_parameters(GLOBALS)), ("-h, --help", "Show this help.")]


def _width() -> int:
    return min(shutil.get_terminal_size().columns, MAX_WIDTH)


def _paragraphs(text: str) -> Iterator[Row]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield [""]
        for line in wrap(" ".join(paragraph.split()), _width() - 2):
            yield [f"  {line}"]


def _table(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[Row]:
    yield [""]
    yield [(f"{title}:", "bold")]
    column = min(max(len(name) for name, _ in rows), NAME_WIDTH) + 4
    for name, text in rows:
        wrapped = wrap(text, max(_width() - column, 20)) or [""]
        if len(name) > NAME_WIDTH:
            yield [(f"  {name}", "cyan")]
        else:
            yield [(f"  {name}".ljust(column), "cyan"), wrapped.pop(0)]
        for line in wrapped:
            yield [" " * column, line]
