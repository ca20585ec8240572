"""enrich: cues for memories that have none."""

from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.decisions import draw_bulk, hint_undo
from engram.cli.display import block, progress
from engram.cli.records import bulk_data, memory_data
from engram.cli.surface import FAILED, Surface, text_or_stdin
from engram.model.errors import InvalidInput
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.review.bulk import BulkDecision

DEFAULT_BATCH_SIZE = 50


def enrich(
    surface: Surface, file: str | None = None, *, limit: int | None = None, with_model: bool = False, undo: bool = False
) -> None:
    """Print memories that lack cues, or store their cues."""
    if sum((file is not None, with_model, undo)) > 1:
        raise InvalidInput("give one of FILE, --with-model and --undo")
    with surface.memory() as mem:
        if undo:
            _report(surface, mem.enrichment.undo(actor=surface.actor))
        elif with_model:
            with progress("Asking for cues") as report:
                found = mem.enrichment.run(limit, progress=report)
            _report(surface, found)
        elif file is not None:
            _report(surface, mem.enrichment.apply(_read_cues(file)))
        else:
            _print_batch(surface, mem, DEFAULT_BATCH_SIZE if limit is None else limit)


def _report(surface: Surface, decision: "BulkDecision") -> None:
    """Print the result; exit 1 if cues were refused."""
    from engram.capture.enrichment import DECLINED

    surface.answer(bulk_data(decision, surface.now), lambda: draw_bulk(decision))
    hint_undo(surface, decision)
    if any(why != DECLINED for why in decision.left.values()):
        raise SystemExit(FAILED)


def _read_cues(file: str) -> dict[str, list[str]]:
    from engram.readers.json_reader import parse_json_object
    from engram.readers.limits import read_text

    text = text_or_stdin("-") if file == "-" else read_text(Path(file))
    cues = parse_json_object(text)
    if not all(isinstance(given, list) for given in cues.values()):
        raise InvalidInput('cues must be JSON like {"ID": ["cue", …], …}')
    return cues


def _print_batch(surface: Surface, mem: "Engram", limit: int) -> None:
    from engram.capture.enrichment import render_batch

    batch, count = mem.enrichment.next_batch(limit), mem.enrichment.count()
    data = {"without_cues": count, "memories": [memory_data(memory, surface.now) for memory in batch]}
    surface.answer(data, lambda: block(render_batch(batch)) if batch else None)
    lack = format_count(count, "memory lacks cues", "memories lack cues")
    surface.hint(f"engram: {lack}" + ("; `engram enrich FILE` stores them" if batch else ""))
