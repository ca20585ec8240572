"""`python -m engram.cli.reference > docs/cli.md`: the reference, made from the program itself."""

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from engram.cli.declared import Argument, Group, Verb, parameters
from engram.cli.main import VERBS, verb_of

INTRODUCTION = """# The command line

Made from the program by `python -m engram.cli.reference > docs/cli.md`; a test fails when it is out of date.

`engram VERB [OPTIONS]`. Every verb takes `--home DIR` (the store, instead of `$ENGRAM_HOME`) and `--json`, before or after
the verb. Wherever a memory is named, its id, its name or an alias will do. Answers go to stdout, remarks to stderr; tables,
colours and progress bars appear on terminals only.

| variable | means |
|---|---|
| `ENGRAM_HOME` | the store's directory, and that of `config.toml`; default `$XDG_DATA_HOME/engram` |
| `ENGRAM_CACHE` | where the index is kept; default `$XDG_CACHE_HOME/engram` |
| `ENGRAM_URL` | a Postgres server instead of files, as in `postgresql://user@host:5432/database`; `--home` beats it |
| `ENGRAM_TENANT` | whose memories on that server; default `default` |
| `ENGRAM_SESSION` | the session that `--session` and `engram session …` mean |
| `ENGRAM_TASK` | the task that `engram task …` and `ingest --task` mean, where none is named |
| `ENGRAM_DEBUG` | set to anything: an error that Engram did not foresee shows its traceback instead of one line |

On a server every verb works as on files, but `trust`, `add --team`, `backup`, `restore` and `doctor --repair`: these are about
files and say what to do instead. `engram hook` then asks the server, so it costs a connection.

| exit | means |
|---|---|
| 0 | done; DUPLICATE and CONTRADICTION are answers too |
| 1 | refused or failed; nothing is half-written |
| 2 | wrong usage |
| 3 | not found |

With `--json` an error is also an object on stdout, `{"error": "what happened", "code": 2}`, where the verb has not answered
yet; a refused `learn` answers with its decision. The words for a person stay on stderr.

`learn` and `remember` stamp where a memory comes from: `human` only when a person types at a terminal, else `agent` or
`tool:remember`. No option can claim otherwise. This protects against what an agent reads, not against a program that runs as you.
"""


def markdown() -> str:
    """The whole reference."""
    parts = [INTRODUCTION]
    for name in VERBS:
        found = verb_of(name)
        assert found is not None
        parts += _group(name, found) if isinstance(found, Group) else [_verb(name, found)]
    return "\n".join(parts)


def _group(name: str, group: Group) -> Iterator[str]:
    yield f"## engram {name}\n\n{group.help}\n"
    for own, function in group.verbs.items():
        yield _verb(f"{name} {own}", function, level=3)


def _verb(name: str, function: Verb, level: int = 2) -> str:
    declared = list(described(function))
    usage = " ".join(["engram", name, *(shown for kind, shown, _ in declared if kind == "argument")])
    options = " [OPTIONS]" if any(kind == "option" for kind, _, _ in declared) else ""
    rows = [f"| `{_cell(shown)}` | {_cell(text)} |" for _, shown, text in declared]
    table = "\n".join(["", "| | |", "|---|---|", *rows, ""]) if rows else ""
    return f"{'#' * level} engram {name}\n\n    {usage}{options}\n\n{inspect.getdoc(function)}\n{table}"


def described(function: Verb) -> Iterator[tuple[str, str, str]]:
    """Each parameter of a verb: argument or option, how it is written, its help."""
    for parameter in parameters(function):
        said = parameter.said
        if isinstance(said, Argument):
            written = said.metavar if parameter.required or said.metavar.startswith("[") else f"[{said.metavar}]"
            yield "argument", written, said.help
        else:
            yield (
                "option",
                f"{', '.join(said.names)} {said.metavar}".strip(),
                _with_default(said.help, parameter.default),
            )


def _with_default(text: str, default: Any) -> str:
    return f"{text} Default: {default}." if default not in (None, "", False, inspect.Parameter.empty) else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
