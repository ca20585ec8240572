"""capture, ingest, cite: remember the lasting facts of conversations and documents, and check quotes against their source."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli import display
from engram.cli.display import Column, line, progress
from engram.cli.records import memory_data, plain
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.cli.verbs.learn import refuse_while_paused
from engram.model.errors import InvalidInput, NotFound
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.capture.buffer import CaptureResult
    from engram.capture.documents.cite import Citation
    from engram.capture.documents.ingest import IngestedDocuments
    from engram.capture.exchange import FactDecision
    from engram.capture.extraction import ExtractedFact
    from engram.client import Engram

_OPERATIONS = {
    "ADD": "green", "UPDATE": "green", "SUPERSEDE": "magenta", "END": "magenta", "FORGET": "magenta",
    "NOOP": "bright_black",
}  # fmt: skip


_EXTRACTED = {
    "high": "extracted at once: high signal", "turns": "extracted: enough turns have come",
    "time": "extracted: the turns have waited long enough", "retry": "extracted: the model was asked again",
    "flush": "extracted", "end": "extracted: the session has ended",
}  # fmt: skip
"""Descriptions of each trigger."""


def capture(
    surface: Surface,
    user: str = "",
    assistant: str = "",
    session: str = "",
    scope: str = "",
    listen: bool = False,
    key: str = "",
    dry_run: bool = False,
    buffer: bool = False,
    flush: bool = False,
    due: bool = False,
) -> None:
    """Carry out `engram capture`."""
    if flush + due + buffer + dry_run > 1:
        raise InvalidInput("Give only one of --buffer, --flush, --due and --dry-run")
    if flush or due:
        _read_buffers(surface, user + assistant + key, session, scope, due=due)
        return
    if user == assistant == "-":
        raise InvalidInput("stdin can be read only once: give --user or --assistant as text")
    asked, answered = text_or_stdin(user), text_or_stdin(assistant)
    if not asked.strip() and not answered.strip():
        raise InvalidInput("Give --user TEXT, --assistant TEXT, or both")
    with surface.memory() as mem:
        if dry_run:
            _preview_facts(surface, mem, asked, answered, listen)
        elif buffer:
            _buffer(surface, mem, {"user": asked, "assistant": answered}, session, scope, key, listen=listen)
        else:
            _record_exchange(surface, mem, asked, answered, session=session, scope=scope, listen=listen, key=key)


def _preview_facts(surface: Surface, mem: "Engram", asked: str, answered: str, listen: bool) -> None:
    turns = [
        {"role": role, "content": content} for role, content in (("user", asked), ("assistant", answered)) if content
    ]
    found = mem.extract(turns, extract_assistant_response=listen)
    surface.answer(found, lambda: _draw_facts(found))
    surface.hint(
        "engram: nothing was written; without --dry-run these are compared with existing memories"
        if found
        else "engram: nothing here would be stored"
    )


def _draw_facts(found: "Sequence[ExtractedFact]") -> None:
    for fact in found:
        display.lines([(f"{fact.confidence:.2f} ", "cyan"), (f"{fact.type}  ", "bold"), line(fact.statement)])
        display.lines([(f"     {fact.role}, characters {fact.span[0]}–{fact.span[1]}: {fact.reason}", "bright_black")])


def _record_exchange(surface: Surface, mem: "Engram", asked: str, answered: str, *, listen: bool, **given: str) -> None:
    kept = mem.add_conversation(asked, answered, extract_assistant_response=listen, source=surface.actor, **given)
    surface.warn(kept.warnings)
    now = surface.now
    data = {
        "decisions": kept.decisions, "memories": [memory_data(memory, now) for memory in kept],
        "events": kept.events, "pending": kept.pending, "warnings": kept.warnings,
    }  # fmt: skip
    surface.answer(data, lambda: _draw_decisions(kept.decisions))
    if kept.pending:
        surface.hint("engram: `engram worker` asks the model again")
    waiting = sum(memory.status == "candidate" for memory in kept)
    if waiting:
        surface.hint(f"engram: {format_count(waiting, 'memory awaits', 'memories await')} review: `engram review`")
    if all(one.reason.startswith("skipped: ") for one in kept.decisions):
        surface.hint("engram: the turns are stored; they contain nothing to remember")


def _draw_decisions(decisions: "Sequence[FactDecision]") -> None:
    for one in decisions:
        style = _OPERATIONS.get(one.operation, "") if one.applied else "bright_black"
        display.lines(
            [(f"{one.operation:<10}", style), (f"{one.memory_id}  " if one.memory_id else "", "cyan"), line(one.fact)]
        )
        against = f" (↔ {one.target_id})" if one.target_id and one.target_id != one.memory_id else ""
        refused = (
            "" if one.applied or one.operation == "NOOP" else "awaits review: " if one.memory_id else "not applied: "
        )
        display.lines([(f"{'':<10}{refused}{one.reason}{against}", "bright_black")])


# -- the buffer


def _buffer(
    surface: Surface, mem: "Engram", turns: dict[str, str], session: str, scope: str, key: str, *, listen: bool
) -> None:
    results = [
        mem.capture(
            session,
            role,
            content,
            scope=scope or None,
            key=f"{key} {role}" if key else "",
            source=surface.actor,
            extract_assistant_response=listen,
        )
        for role, content in turns.items()
        if content.strip()
    ]
    _answer(surface, results)
    if results[-1].waiting:
        surface.hint(
            f"engram: {format_count(results[-1].waiting, 'turn waits', 'turns wait')} for extraction in {results[-1].session}"
        )


def _read_buffers(surface: Surface, given: str, session: str, scope: str, *, due: bool) -> None:
    if due and (given or session):
        raise InvalidInput(
            "--due extracts from turns that have waited long enough; it takes --scope and no other option"
        )
    if given:
        raise InvalidInput("--flush extracts from turns that wait; it takes --session and --scope and no other option")
    with surface.memory() as mem:
        owner = scope or None
        results = mem.read_due_captures(scope=owner) if due else mem.flush_captures(session, scope=owner)
        _answer(surface, results)
        if not results:
            surface.hint("engram: no turn is due" if due else "engram: no turn waits")


def _answer(surface: Surface, results: "Sequence[CaptureResult]") -> None:
    now = surface.now
    data = [
        {**plain(result), "memories": [memory_data(memory, now) for memory in result.memories]} for result in results
    ]
    surface.answer(data, lambda: _draw_results(results))
    for result in results:
        surface.warn(result.warnings)


def _draw_results(results: "Sequence[CaptureResult]") -> None:
    for result in results:
        what = _EXTRACTED.get(result.trigger, result.trigger) or _waiting(result)
        display.lines(
            [(what, "green" if result.trigger else "bright_black"), f"  {line(result.event or result.session)}"]
        )
        _draw_decisions(result.decisions)


def _waiting(result: "CaptureResult") -> str:
    """That a turn is stored and waits; for a session, that its turns do."""
    if not result.event:
        return "waits"
    return f"stored, waits ({'no' if result.level == 'none' else result.level} signal)"


_CITATION_STYLES = {"verified": "green", "changed": "bold red", "unchecked": "yellow"}


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
        surface.hint(_ingest_summary(taken))
        surface.hint(
            f'engram: `engram task search "…" --task {taken[-1].task}` searches its chunks; `engram cite ID` checks a quote'
        )
    if taken.refused:
        raise SystemExit(FAILED)


def _ingest_summary(taken: "IngestedDocuments") -> str:
    """How many were read and how many were not; empty if all were."""
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
    display.lines([(found.id, "bold cyan"), "  ", (found.state, _CITATION_STYLES.get(found.state, ""))])
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
