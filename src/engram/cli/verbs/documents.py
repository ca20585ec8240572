"""ingest, cite: documents split into chunks, and quotes checked against their source."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import Column, line, progress
from engram.cli.surface import FAILED, Surface
from engram.cli.verbs.learn import refuse_while_paused
from engram.model.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from engram.capture.documents.cite import Citation
    from engram.capture.documents.ingest import IngestedDocuments

_STATES = {"verified": "green", "changed": "bold red", "unchecked": "yellow"}


def ingest(
    surface: Surface,
    path: Path,
    task: str = "",
    kind: str = "",
    chunk_tokens: int = 700,
    facts: int = 6,
    llm: bool = False,
    scope: str = "",
) -> None:
    """Carry out `engram ingest`."""
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


def _summary(taken: "IngestedDocuments") -> str:
    """How many were read and how many were not; empty where all were."""
    if not taken.refused and not taken.left_out:
        return ""
    return f"engram: {len(taken):,} read, {len(taken.refused):,} unreadable, {len(taken.left_out):,} left out"


def _draw_taken(taken: "IngestedDocuments") -> None:
    rows: list[list[display.Cell]] = [
        [(one.task, "cyan"), one.kind, f"{one.chunks:,}", f"{len(one.facts):,}", line(one.title)] for one in taken
    ]
    display.table(["task", "kind", Column("chunks", right=True), Column("facts", right=True), "title"], rows)


def cite(surface: Surface, ref: str, scope: list[str] | None = None) -> None:
    """Carry out `engram cite`."""
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
