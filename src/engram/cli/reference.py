"""The help of the program and of its verbs, from their declarations; `python -m engram.cli.reference > docs/cli.md` makes the reference."""

import inspect
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from engram.cli.display import Cell, escape_hidden, lines
from engram.cli.main import GLOBALS, PROGRAM, HelpRequested, Parameter, UsageError, find_verb, parameters
from engram.verbs import SECTIONS
from engram.verbs.declaration import REQUIRED, Group, Positional, Verb

MAX_WIDTH = 100
NAME_WIDTH = 28
"""Names longer than this have their explanation on the next line."""
Row = list[Cell]
EPILOGUE = "`engram VERB --help` explains a verb. `engram demo` shows the program at work."


def print_help(request: HelpRequested, program: Group, sections: Mapping[str, Iterable[str]]) -> int:
    """Print the requested help; if a verb is missing, on stderr as a usage error. Returns the exit code."""
    rows = list(_help_rows(request.path, program, sections))
    if request.missing:
        for row in rows:
            sys.stderr.write("".join(cell if isinstance(cell, str) else cell[0] for cell in row).rstrip() + "\n")
        return 2
    lines(*rows)
    return 0


def print_usage_error(error: UsageError) -> None:
    """Report the error in a command line, and where to find help."""
    where = " ".join(["engram", *error.path.split(), "--help"])
    sys.stderr.write(f"engram: {escape_hidden(str(error))}\nTry `{where}`.\n")


def _help_rows(path: str, program: Group, sections: Mapping[str, Iterable[str]]) -> Iterator[Row]:
    found = find_verb(program, path)
    name = " ".join(["engram", *path.split()])
    if not isinstance(found, Group):
        yield from _verb_rows(name, found)
        return
    yield [("Usage: ", "bold"), f"{name} [OPTIONS] VERB …"]
    yield [""]
    yield from _paragraphs(found.help)
    titled = sections if found is program else {"Verbs": tuple(found.verbs)}
    for title, verbs in titled.items():
        yield from _table_rows(title, [(verb, summary(found.verbs[verb])) for verb in verbs])
    yield from _table_rows("Options", _global_rows())
    if found is program:
        yield [""]
        yield [EPILOGUE]


def _verb_rows(name: str, verb: Verb) -> Iterator[Row]:
    declared = list(describe_parameters(parameters(verb)))
    arguments = [(written, text) for kind, written, text in declared if kind == "argument"]
    options = [(written, text) for kind, written, text in declared if kind == "option"]
    yield [("Usage: ", "bold"), " ".join([name, *(written for written, _ in arguments), "[OPTIONS]"])]
    yield [""]
    yield from _paragraphs(full_help(verb))
    if arguments:
        yield from _table_rows("Arguments", arguments)
    yield from _table_rows("Options", [*options, *_global_rows()])


def full_help(verb: Verb) -> str:
    """The full help of a verb."""
    return inspect.cleandoc(verb.help)


def summary(found: "Verb | Group") -> str:
    """The first sentence of a verb's help."""
    text = found.help if isinstance(found, Group) else full_help(found)
    return " ".join(text.split("\n\n")[0].split()).split(". ")[0].rstrip(".")


def describe_parameters(declared: "Iterator[Parameter] | Sequence[Parameter]") -> Iterator[tuple[str, str, str]]:
    """Each parameter of a verb: `argument` or `option`, its spelling, its help."""
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


def _table_rows(title: str, rows: Sequence[tuple[str, str]]) -> Iterator[Row]:
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


INTRODUCTION = """# The command line

Made from the program by `python -m engram.cli.reference > docs/cli.md`; a test fails when it is out of date.

`engram VERB [OPTIONS]`. Every verb takes `--home DIR` (the store, instead of `$ENGRAM_HOME`) and `--json`, before or after
the verb. Wherever a memory is named, its id, its name or an alias works. Answers go to stdout, remarks to stderr; tables,
colours and progress bars appear on terminals only.

| variable | meaning |
|---|---|
| `ENGRAM_HOME` | the directory of the store and of `config.toml`; default `$XDG_DATA_HOME/engram` |
| `ENGRAM_CACHE` | the directory of the index; default `$XDG_CACHE_HOME/engram` |
| `ENGRAM_URL` | a Postgres server instead of files, such as `postgresql://user@host:5432/database`; `--home` overrides it |
| `ENGRAM_TENANT` | the tenant on that server; default `default` |
| `ENGRAM_TIME_ZONE` | the zone in which "tomorrow" and times without a zone are read, such as `America/Los_Angeles` or `+05:30`; overrides the setting `time_zone`; default: the system's (`TZ`) |
| `ENGRAM_SESSION` | the session for `--session` and `engram session …` |
| `ENGRAM_TASK` | the task for `engram task …` and `ingest --task` when none is named |
| `ENGRAM_LOG` | `debug`, `info`, `warning` or `error`: what is done is [logged](python.md#logs) on stderr, without the text of memories |
| `ENGRAM_DEBUG` | set to anything: an unexpected error shows its traceback instead of one line |

On a server every verb works as on files, except `trust`, `add --team`, `backup`, `restore` and `doctor --repair`: these are about
files and say what to do instead. `engram hook` then asks the server, which costs a connection.

| exit | meaning |
|---|---|
| 0 | done; DUPLICATE and CONTRADICTION are answers too |
| 1 | refused or failed; nothing is half-written |
| 2 | wrong usage |
| 3 | not found |

With `--json` an error is also an object on stdout, `{"error": "what happened", "code": 2}`, unless the verb has already
answered; a refused `learn` answers with its decision. The message for a person stays on stderr.

`learn` and `remember` record where a memory comes from: `human` only when a person types at a terminal, otherwise `agent` or
`tool:remember`. No option can claim otherwise. This protects against text that an agent reads, not against a program that runs as you.
"""


def markdown() -> str:
    """The whole reference."""
    parts = [INTRODUCTION, _contents_markdown()]
    for name, found in PROGRAM.verbs.items():
        parts += _group_markdown(name, found) if isinstance(found, Group) else [_verb_markdown(name, found)]
    return "\n".join(parts)


def _contents_markdown() -> str:
    rows = [f"| {title} | {', '.join(f'[{verb}](#engram-{verb})' for verb in SECTIONS[title])} |" for title in SECTIONS]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def _group_markdown(name: str, group: Group) -> Iterator[str]:
    yield f"## engram {name}\n\n{group.help}\n"
    for own, verb in group.verbs.items():
        assert not isinstance(verb, Group)
        yield _verb_markdown(f"{name} {own}", verb, level=3)


def _verb_markdown(name: str, verb: Verb, level: int = 2) -> str:
    declared = list(describe_parameters(parameters(verb)))
    usage = " ".join(["engram", name, *(written for kind, written, _ in declared if kind == "argument")])
    options = " [OPTIONS]" if any(kind == "option" for kind, _, _ in declared) else ""
    rows = [f"| `{_escape_cell(written)}` | {_escape_cell(text)} |" for _, written, text in declared]
    table = "\n".join(["", "| | |", "|---|---|", *rows, ""]) if rows else ""
    return f"{'#' * level} engram {name}\n\n    {usage}{options}\n\n{full_help(verb)}\n{table}"


def _escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
