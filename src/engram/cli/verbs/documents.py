"""ingest, cite: documents split into chunks, and quotes checked against their source."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from engram.cli import display
from engram.cli.display import Column, line, progress
from engram.cli.parser import Argument, Option
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.learn import refuse_while_paused
from engram.cli.verbs.options import SeenFrom
from engram.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from engram.capture.documents.cite import Citation
    from engram.capture.documents.ingest import Ingested

Source = Annotated[Path, Argument("FILE|DIR", "A text file, or a folder whose text files are all read.")]
IntoTask = Annotated[
    str,
    Option("--task", metavar="TASK", envvar="ENGRAM_TASK", help="The task they belong to. Default: a new one."),
]
Kind = Annotated[
    str, Option("--kind", metavar="KIND", help="markdown, text, code or diff. Default: by name and content.")
]
ChunkTokens = Annotated[int, Option("--chunk-tokens", metavar="N", help="The most tokens of a chunk.")]
Facts = Annotated[int, Option("--facts", metavar="N", help="At most this many facts of each chunk; 0 for none.")]
Llm = Annotated[
    bool, Option("--llm", help="Let the configured model read every chunk, too, and add what the rules miss.")
]
Scope = Annotated[
    str,
    Option("--scope", "-s", metavar="SCOPE", help="The scope of a new task; `here` is this directory's."),
]
Quote = Annotated[str, Argument("ID", "A fact from a document, ENG-…, or a chunk of one, EVT-…")]
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
    """Read documents, to answer from them with exact quotes.

    Each document becomes chunks in a task's ledger, split at its headings, facts that cite their chunk, and a checkpoint that
    lists the parts. A file that has changed is read again: facts it no longer states are superseded, and what you forgot stays
    forgotten. A folder's hidden, ignored, empty and binary files are left out and named. A file that cannot be read is exit 1,
    after the others.
    """
    if not os.path.lexists(path):
        raise NotFound(f"No such file or folder: {path}")
    if path.is_symlink() and not path.exists():
        raise InvalidInput(f"{path} is a broken link; name the file itself")
    with surface.memory() as mem:
        refuse_while_paused(surface, mem)
        with progress("Reading") as report:
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
            f'engram: `engram task search "…" --task {taken[-1].task}` searches its chunks; `engram cite ID` checks a quote'
        )
    if taken.refused:
        raise SystemExit(FAILED)


def _summary(taken: "Ingested") -> str:
    """How many were read and how many were not; empty where all were."""
    if not taken.refused and not taken.left_out:
        return ""
    return f"engram: {len(taken):,} read, {len(taken.refused):,} unreadable, {len(taken.left_out):,} left out"


def _draw_taken(taken: "Ingested") -> None:
    rows: list[list[display.Cell]] = [
        [(one.task, "cyan"), one.kind, f"{one.chunks:,}", f"{len(one.facts):,}", line(one.title)] for one in taken
    ]
    display.table(["task", "kind", Column("chunks", right=True), Column("facts", right=True), "title"], rows)


def cite(surface: Surface, ref: Quote, scope: SeenFrom = None) -> None:
    """Show a quote, and whether its source still says it.

    The quote is compared with its place in the source: verified; changed (exit 1) where the source differs or can no longer be
    read; or unchecked where it was given as a text and there is no file.
    """
    with surface.memory() as mem:
        found = mem.cite(ref, scope=scope or None)
        surface.answer(found, lambda: _draw_cited(found))
    if found.state != "verified":
        surface.hint(f"engram: {found.state}: {found.reason}")
    if found.state == "changed":
        raise SystemExit(FAILED)


def _draw_cited(found: "Citation") -> None:
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
