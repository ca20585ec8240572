"""bench: retrieval and speed, measured on your machine with your data."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli.surface import Surface
from engram.cli.verbs.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.bench.dataset import SessionOfTurns


class RetrievalOptions(Options):
    """What the retrieval benchmarks take."""

    file: Path
    mode: str = "hybrid"
    fusion: str | None = None
    baseline: str | None = None
    wordings: Path | None = None
    limit: int | None = None
    url: str | None = None


def locomo(surface: Surface, **given: Any) -> None:
    """Carry out `engram bench locomo`."""
    asked = RetrievalOptions(**given)
    _retrieve("locomo", surface, asked)


def longmemeval(surface: Surface, distractors: Path | None = None, **given: Any) -> None:
    """Carry out `engram bench longmemeval`."""
    asked = RetrievalOptions(**given)
    from engram.bench.longmemeval import load_distractors

    _retrieve("longmemeval", surface, asked, load_distractors(distractors) if distractors else ())


def beam(surface: Surface, **given: Any) -> None:
    """Carry out `engram bench beam`."""
    asked = RetrievalOptions(**given)
    _retrieve("beam", surface, asked)


def speed(surface: Surface, n: str = "1000,10000") -> None:
    """Carry out `engram bench speed`."""
    from engram.bench.report import figures_text, progress_line
    from engram.bench.speed import measure, parse_sizes

    reports = [measure(count, progress=progress_line) for count in parse_sizes(n)]
    surface.answer(reports, lambda: _write(*map(figures_text, reports)))


def _retrieve(
    kind: str, surface: Surface, asked: RetrievalOptions, distractors: "Sequence[SessionOfTurns]" = ()
) -> None:
    from importlib import import_module

    from engram.bench.dataset import add_sessions, add_wordings
    from engram.bench.report import progress_line, retrieval_text
    from engram.bench.retrieval import BenchQuestion, measure

    asking = BenchQuestion(asked.mode, asked.fusion, asked.limit, kind != "longmemeval", asked.baseline)
    conversations = add_sessions(import_module(f"engram.bench.{kind}").load(asked.file), distractors)
    if asked.wordings:
        conversations = add_wordings(conversations, asked.wordings)
    report = measure(conversations, asking, progress_line, asked.url)
    surface.answer(report, lambda: _write(retrieval_text(report)))


def _write(*texts: str) -> None:
    for text in texts:
        sys.stdout.write(text + "\n")
