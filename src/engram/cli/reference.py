"""`python -m engram.cli.reference > docs/cli.md`: the reference, made from the program itself."""

import sys
from collections.abc import Iterator

from engram.cli.help import describe_parameters, full_help
from engram.cli.main import PROGRAM
from engram.cli.parser import parameters
from engram.verbs import SECTIONS
from engram.verbs.declaration import Group, Verb

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
    parts = [INTRODUCTION, _contents()]
    for name, found in PROGRAM.verbs.items():
        parts += _group(name, found) if isinstance(found, Group) else [_verb(name, found)]
    return "\n".join(parts)


def _contents() -> str:
    rows = [f"| {title} | {', '.join(f'[{verb}](#engram-{verb})' for verb in SECTIONS[title])} |" for title in SECTIONS]
    return "\n".join(["| | |", "|---|---|", *rows, ""])


def _group(name: str, group: Group) -> Iterator[str]:
    yield f"## engram {name}\n\n{group.help}\n"
    for own, verb in group.verbs.items():
        assert not isinstance(verb, Group)
        yield _verb(f"{name} {own}", verb, level=3)


def _verb(name: str, verb: Verb, level: int = 2) -> str:
    declared = list(describe_parameters(parameters(verb)))
    usage = " ".join(["engram", name, *(written for kind, written, _ in declared if kind == "argument")])
    options = " [OPTIONS]" if any(kind == "option" for kind, _, _ in declared) else ""
    rows = [f"| `{_cell(written)}` | {_cell(text)} |" for _, written, text in declared]
    table = "\n".join(["", "| | |", "|---|---|", *rows, ""]) if rows else ""
    return f"{'#' * level} engram {name}\n\n    {usage}{options}\n\n{full_help(verb)}\n{table}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(markdown())
