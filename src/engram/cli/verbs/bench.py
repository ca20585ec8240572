"""bench: retrieval and speed, measured on your machine with your data."""

import sys
from pathlib import Path
from typing import Annotated

from engram.cli.declared import Argument, Group, Option
from engram.cli.surface import Surface

File = Annotated[Path, Argument("FILE", "The data set's JSON file.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
Baseline = Annotated[
    str | None, Option("--baseline", metavar="NAME", help="bm25 to print plain BM25 over the same turns next to it.")
]
Limit = Annotated[int | None, Option("--limit", metavar="N", help="Only the first N questions.")]
Sizes = Annotated[str, Option("--n", metavar="N,N", help="How many memories, a list separated by commas.")]

Url = Annotated[str | None, Option("--url", metavar="URL", help="Measure on this Postgres server; default: in files.")]


def locomo(
    surface: Surface,
    file: File,
    mode: Mode = "hybrid",
    fusion: Fusion = None,
    baseline: Baseline = None,
    limit: Limit = None,
    url: Url = None,
) -> None:
    """LoCoMo: find the turns that answer a question.

    Turns and sessions of long conversations; recall, NDCG and latency.
    """
    _retrieve("locomo", surface, file, mode, fusion, baseline, limit, url)


def longmemeval(
    surface: Surface,
    file: File,
    mode: Mode = "hybrid",
    fusion: Fusion = None,
    baseline: Baseline = None,
    limit: Limit = None,
    url: Url = None,
) -> None:
    """LongMemEval: find the sessions that answer.

    Takes the official JSON, the lite format, and sessions pooled in one store with many questions.
    """
    _retrieve("longmemeval", surface, file, mode, fusion, baseline, limit, url)


def beam(
    surface: Surface,
    file: File,
    mode: Mode = "hybrid",
    fusion: Fusion = None,
    baseline: Baseline = None,
    limit: Limit = None,
    url: Url = None,
) -> None:
    """BEAM: find the turns of long chats with an assistant that answer.

    One chat per line, or a JSON list of chats; whoever speaks in them.
    """
    _retrieve("beam", surface, file, mode, fusion, baseline, limit, url)


def speed(surface: Surface, n: Sizes = "1000,10000") -> None:
    """Latency and throughput. Each figure beside its floor, measured in the same run."""
    from engram.bench.report import figures_text, progress_line
    from engram.bench.speed import measure, parse_sizes

    reports = [measure(count, progress=progress_line) for count in parse_sizes(n)]
    surface.answer(reports, lambda: _write(*map(figures_text, reports)))


def _retrieve(
    kind: str,
    surface: Surface,
    file: Path,
    mode: str,
    fusion: str | None,
    baseline: str | None,
    limit: int | None,
    url: str | None,
) -> None:
    from importlib import import_module

    from engram.bench.report import progress_line, retrieval_text
    from engram.bench.retrieval import Asking, measure

    asking = Asking(mode, fusion, limit, kind != "longmemeval", baseline)
    conversations = import_module(f"engram.bench.{kind}").load(file)
    report = measure(conversations, asking, progress_line, url)
    surface.answer(report, lambda: _write(retrieval_text(report)))


def _write(*texts: str) -> None:
    for text in texts:
        sys.stdout.write(text + "\n")


bench = Group(
    "Measure retrieval quality and speed here.",
    {"locomo": locomo, "longmemeval": longmemeval, "beam": beam, "speed": speed},
)
