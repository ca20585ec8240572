"""ingest, cite: documents taken in chunk by chunk, and quotes held against their source."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from engram.cli.parser import Argument, Option
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.options import SeenFrom
from engram.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from engram.capture.documents.cite import Citation
    from engram.capture.documents.ingest import Ingested

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
Llm = Annotated[
    bool, Option("--llm", help="Let the configured model read every chunk too, and add what the rules miss.")
]
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
    llm: Llm = False,
    scope: Scope = "",
) -> None:
    """Take documents in, to be answered from with exact quotes.

    Each becomes chunks in a task's ledger, along its headings, facts that lead back to their chunk, and a checkpoint that lists
    the parts. A file that changed since is read anew: facts it no longer states are out of force, what you forgot stays
    forgotten. A folder's hidden, ignored, empty and binary files are left out, each by name; a file that should have been read
    and cannot be is exit 1, after the others.
    """
    from engram.cli.display import progress
    from engram.cli.verbs.learn import refuse_while_paused

    if not os.path.lexists(path):
        raise NotFound(f"there is no file or folder {path}")
    if path.is_symlink() and not path.exists():
        raise InvalidInput(f"{path} is a link that leads nowhere, or back to itself; name the file it should lead to")
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        with progress("Taking in") as report:
            taken = mem.ingest(
                path, task=task, kind=kind, scope=scope, max_chunk_tokens=chunk_tokens, max_facts_per_chunk=facts,
                extract_with_llm=llm, progress=report,
            )  # fmt: skip
        surface.warn([f"left out: {file}: {reason}" for file, reason in taken.left_out])
        surface.warn([f"not read: {file}: {reason}" for file, reason in taken.refused])
        surface.warn([warning for one in taken for warning in one.warnings])
        surface.answer(taken, lambda: _draw_taken(taken))
        surface.hint(_summary(taken))
        surface.hint(
            f'engram: `engram task search "…" --task {taken[-1].task}` finds its chunks; `engram cite ID` checks a quote'
        )
    if taken.refused:
        raise SystemExit(FAILED)


def _summary(taken: "Ingested") -> str:
    """How many were read and how many not; nothing where all were."""
    if not taken.refused and not taken.left_out:
        return ""
    return f"engram: {len(taken):,} read, {len(taken.refused):,} that cannot be read, {len(taken.left_out):,} left out"


def _draw_taken(taken: "Ingested") -> None:
    from engram.cli import display
    from engram.cli.display import Column, line

    rows: list[list[display.Cell]] = [
        [(one.task, "cyan"), one.kind, f"{one.chunks:,}", f"{len(one.facts):,}", line(one.title)] for one in taken
    ]
    columns = [
        Column("task"), Column("kind"), Column("chunks", right=True), Column("facts", right=True), Column("title", grows=True),
    ]  # fmt: skip
    display.table(columns, rows)


def cite(surface: Surface, ref: Quote, scope: SeenFrom = None) -> None:
    """A quote, and whether its source still says it.

    The words are looked up at their place in the source: verified, changed (exit 1) where it reads otherwise or cannot be
    read any more, or unchecked where it was given as a text and there is no file to look into.
    """
    with surface.memory() as mem:
        found = mem.cite(ref, scope=scope or None)
        surface.answer(found, lambda: _draw_cited(found))
    if found.state != "verified":
        surface.hint(f"engram: {found.state}: {found.reason}")
    if found.state == "changed":
        raise SystemExit(FAILED)


def _draw_cited(found: "Citation") -> None:
    from engram.cli import display

    display.lines([(found.id, "bold cyan"), "  ", (found.state, _STATES.get(found.state, ""))])
    display.fields(
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
