"""ingest, cite: documents taken in chunk by chunk, and quotes held against their source."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from engram.cli.declared import Argument, Option
from engram.cli.exits import FAILED
from engram.cli.surface import Surface
from engram.model.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.capture.longinput.citing import Citation
    from engram.capture.longinput.recording import LongInput

Source = Annotated[Path, Argument("FILE|DIR", "A text file, or a folder whose text files are all taken in.")]
IntoTask = Annotated[
    str,
    Option(
        "--task", metavar="TASK", envvar="ENGRAM_TASK", help="The task they belong to. Default: one begun for them."
    ),
]
Kind = Annotated[str, Option("--kind", metavar="KIND", help="markdown, text, code or diff. Default: by name and look.")]
ChunkTokens = Annotated[int, Option("--chunk-tokens", metavar="N", help="The longest a chunk may be.")]
Facts = Annotated[int, Option("--facts", metavar="N", help="At most so many facts of each chunk; 0 for none.")]
Scope = Annotated[
    str,
    Option("--scope", "-s", metavar="SCOPE", help="Where a task begun for them belongs; `here` is this directory's."),
]
Quote = Annotated[str, Argument("ID", "A fact drawn from a document, ENG-…, or a chunk of one, EVT-…")]
_STATES = {"verified": "green", "changed": "bold red", "unchecked": "yellow"}


def ingest(
    surface: Surface,
    path: Source,
    task: IntoTask = "",
    kind: Kind = "",
    chunk_tokens: ChunkTokens = 700,
    facts: Facts = 6,
    scope: Scope = "",
) -> None:
    """Take documents in, to be answered from with exact quotes.

    Each becomes chunks in a task's ledger, along its headings, facts that lead back to their chunk, and a checkpoint that lists
    the parts. A folder's hidden, ignored and binary files are left out.
    """
    from engram.cli.progress import bar
    from engram.cli.verbs.teaching import refuse_while_paused

    if not path.exists():
        raise NotFound(f"there is no file or folder {path}")
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        with bar("Taking in") as report:
            taken = mem.ingest(
                path, task=task, kind=kind, scope=scope, max_chunk_tokens=chunk_tokens, max_facts_per_chunk=facts,
                progress=report,
            )  # fmt: skip
        surface.warn([f"not read: {file}: {reason}" for file, reason in taken.refused])
        surface.answer(taken, lambda: _draw_taken(taken))
        surface.hint(
            f'engram: `engram task search "…" --task {taken[-1].task}` finds its chunks; `engram cite ID` checks a quote'
        )


def _draw_taken(taken: "Sequence[LongInput]") -> None:
    from engram.cli import drawing
    from engram.cli.drawing import Column
    from engram.cli.plain_text import line

    rows: list[list[drawing.Cell]] = [
        [(one.task, "cyan"), one.kind, f"{one.chunks:,}", f"{len(one.facts):,}", line(one.title)] for one in taken
    ]
    columns = [
        Column("task"), Column("kind"), Column("chunks", right=True), Column("facts", right=True), Column("title", grows=True),
    ]  # fmt: skip
    drawing.table(columns, rows)


def cite(surface: Surface, ref: Quote) -> None:
    """A quote, and whether its source still says it.

    The words are looked up at their place in the source: verified, or changed (exit 1) where it reads otherwise or cannot be
    read any more.
    """
    with surface.memory() as mem:
        found = mem.cite(ref)
        surface.answer(found, lambda: _draw_cited(found))
    if found.state != "verified":
        surface.hint(f"engram: {found.state}: {found.reason}")
    if found.state == "changed":
        raise SystemExit(FAILED)


def _draw_cited(found: "Citation") -> None:
    from engram.cli import drawing

    drawing.lines([(found.id, "bold cyan"), "  ", (found.state, _STATES.get(found.state, ""))])
    drawing.fields(
        [
            ("quote", found.quote),
            ("title", found.title),
            ("under", found.heading),
            ("file", found.path),
            ("characters", f"{found.span[0]}–{found.span[1]}"),
            ("source", found.source),
            ("digest", found.quote_hash),
        ]
    )
