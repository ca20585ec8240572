"""bench: retrieval and speed, measured on your machine with your data."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from engram.cli.parser import Argument, Group, Option, Options
from engram.cli.surface import Surface
from engram.cli.verbs.options import Fusion, Mode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.bench.dataset import SessionOfTurns

Sizes = Annotated[str, Option("--n", metavar="N,N", help="How many memories, separated by commas.")]


class RetrievalOptions(Options):
    """What the retrieval benchmarks take."""

    file: Annotated[Path, Argument("FILE", "The data set's JSON file.")]
    mode: Mode = "hybrid"
    fusion: Fusion = None
    baseline: Annotated[
        str | None, Option("--baseline", metavar="NAME", help="bm25 prints plain BM25 over the same turns next to it.")
    ] = None
    wordings: Annotated[
        Path | None,
        Option("--wordings", metavar="FILE", help='JSON file of other wordings: {"a question": ["a wording", …]}.'),
    ] = None
    limit: Annotated[int | None, Option("--limit", metavar="N", help="Only the first N questions.")] = None
    url: Annotated[
        str | None, Option("--url", metavar="URL", help="Measure on this Postgres server. Default: in files.")
    ] = None


def locomo(surface: Surface, asked: RetrievalOptions) -> None:
    """LoCoMo: find the turns that answer a question.

    Turns and sessions of long conversations; recall, NDCG and latency.
    """
    _retrieve("locomo", surface, asked)


Distractors = Annotated[
    Path | None,
    Option("--distractors", metavar="FILE", help="Pooled file whose sessions, without questions, join every store."),
]


def longmemeval(surface: Surface, asked: RetrievalOptions, distractors: Distractors = None) -> None:
    """LongMemEval: find the sessions that answer a question.

    Takes the official JSON, the lite format, and sessions pooled in one store with many questions.
    """
    from engram.bench.longmemeval import load_distractors

    _retrieve("longmemeval", surface, asked, load_distractors(distractors) if distractors else ())


def beam(surface: Surface, asked: RetrievalOptions) -> None:
    """BEAM: find the turns of long chats with an assistant that answer a question.

    One chat per line, or a JSON list of chats, with any speakers.
    """
    _retrieve("beam", surface, asked)


def speed(surface: Surface, n: Sizes = "1000,10000") -> None:
    """Latency and throughput. Each figure is compared with its floor, measured in the same run."""
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


bench = Group(
    "Measure retrieval quality and speed on this machine.",
    {"locomo": locomo, "longmemeval": longmemeval, "beam": beam, "speed": speed},
)
