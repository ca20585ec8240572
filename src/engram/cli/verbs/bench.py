"""bench: retrieval and speed, measured on your machine with your data."""

from pathlib import Path
from typing import Annotated, Any

from engram.cli.declared import Argument, Group, Option
from engram.cli.surface import Surface

File = Annotated[Path, Argument("FILE", "The data set's JSON file.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
Limit = Annotated[int | None, Option("--limit", metavar="N", help="Only the first N questions.")]
Sizes = Annotated[str, Option("--n", metavar="N,N", help="How many memories, a list separated by commas.")]


def locomo(surface: Surface, file: File, mode: Mode = "hybrid", fusion: Fusion = None, limit: Limit = None) -> None:
    """LoCoMo: find the turns that answer a question.

    Turns and sessions of long conversations; recall, NDCG and latency.
    """
    _run("locomo", surface, {"file": file, "mode": mode, "fusion": fusion, "limit": limit})


def longmemeval(
    surface: Surface, file: File, mode: Mode = "hybrid", fusion: Fusion = None, limit: Limit = None
) -> None:
    """LongMemEval: find the sessions that answer.

    Takes the official JSON and the lite format.
    """
    _run("longmemeval", surface, {"file": file, "mode": mode, "fusion": fusion, "limit": limit})


def speed(surface: Surface, n: Sizes = "1000,10000") -> None:
    """Latency and throughput. Each figure beside its floor, measured in the same run."""
    _run("speed", surface, {"n": n})


def _run(kind: str, surface: Surface, options: dict[str, Any]) -> None:
    from engram.bench.run import main

    main(kind, {**options, "json": surface.as_json})


bench = Group(
    "Measure retrieval quality and speed here.", {"locomo": locomo, "longmemeval": longmemeval, "speed": speed}
)
