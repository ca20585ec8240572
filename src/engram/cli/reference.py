"""`python -m engram.cli.reference > docs/cli.md`: the reference, made from the program itself."""

import inspect
import sys
from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin

import typer

from engram.cli.main import VERBS, function_of

INTRODUCTION = """# The command line

Made from the program by `python -m engram.cli.reference > docs/cli.md`; a test fails when it is out of date.

`engram VERB [OPTIONS]`. Every verb takes `--home DIR` (the store, instead of `$ENGRAM_HOME`) and `--json`, before or after
the verb. Wherever a memory is named, its id, its name or an alias will do. Answers go to stdout, remarks to stderr; tables,
colours and progress bars appear on terminals only.

| exit | means |
|---|---|
| 0 | done; DUPLICATE and CONTRADICTION are answers too |
| 1 | refused or failed; nothing is half-written |
| 2 | wrong usage |
| 3 | not found |

`learn` and `remember` stamp where a memory comes from: `human` only when a person types at a terminal, else `agent` or
`tool:remember`. No option can claim otherwise. This protects against what an agent reads, not against a program that runs as you.
"""


def markdown() -> str:
    """The whole reference."""
    parts = [INTRODUCTION]
    for name in VERBS:
        found = function_of(name)
        parts += _group(name, found) if isinstance(found, typer.Typer) else [_verb(name, found)]
    return "\n".join(parts)


def _group(name: str, group: typer.Typer) -> Iterator[str]:
    yield f"## engram {name}\n\n{group.info.help}\n"
    for command in group.registered_commands:
        assert command.callback is not None
        yield _verb(f"{name} {command.name}", command.callback, level=3)


def _verb(name: str, function: Any, level: int = 2) -> str:
    parameters = [entry for entry in described(function) if entry[1] not in ("--home", "--json")]
    usage = " ".join(["engram", name, *(shown for kind, shown, _ in parameters if kind == "argument")])
    options = " [OPTIONS]" if any(kind == "option" for kind, _, _ in parameters) else ""
    rows = [f"| `{_cell(shown)}` | {_cell(text)} |" for _, shown, text in parameters]
    table = "\n".join(["", "| | |", "|---|---|", *rows, ""]) if rows else ""
    return f"{'#' * level} engram {name}\n\n    {usage}{options}\n\n{inspect.getdoc(function)}\n{table}"


def described(function: Any) -> Iterator[tuple[str, str, str]]:
    """Each parameter of a verb: argument or option, how it is written, its help."""
    for parameter in inspect.signature(function).parameters.values():
        if get_origin(parameter.annotation) is not Annotated:
            continue
        info = get_args(parameter.annotation)[1]
        metavar = info.metavar or ""
        if isinstance(info, typer.models.ArgumentInfo):
            required = parameter.default is inspect.Parameter.empty
            written = metavar if required or metavar.startswith("[") else f"[{metavar}]"
            yield "argument", written, info.help or ""
        else:
            names = ", ".join(item for item in (info.default, *(info.param_decls or ())) if isinstance(item, str))
            yield "option", f"{names} {metavar}".strip(), _with_default(info.help or "", parameter.default)


def _with_default(text: str, default: Any) -> str:
    return f"{text} Default: {default}." if default not in (None, "", False, inspect.Parameter.empty) else text


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
