"""bench: retrieval and speed, measured on your machine with your data."""

from pathlib import Path
from typing import Annotated, Any

from engram.cli.declared import Argument, Group, Option
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput

File = Annotated[Path, Argument("FILE", "The data set's JSON file.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
Limit = Annotated[int | None, Option("--limit", metavar="N", help="Only the first N questions.")]
Sizes = Annotated[str, Option("--n", metavar="N,N", help="How many memories, a list separated by commas.")]

Size = Annotated[str, Option("--n", metavar="N", help="How many memories the measured tenant has.")]
Url = Annotated[str | None, Option("--url", metavar="URL", help="Measure on this Postgres server; default: in files.")]
Admin = Annotated[
    str | None,
    Option(
        "--admin-url", metavar="URL", help="A superuser's URL of the same database, to fill the other tenants with."
    ),
]
Tenants = Annotated[int, Option("--tenants", metavar="N", help="How many tenants there are.")]
Rows = Annotated[int, Option("--rows", metavar="N", help="How many memories all tenants have together.")]
Clients = Annotated[int, Option("--clients", metavar="N", help="How many processes work side by side at the end.")]
Seconds = Annotated[int, Option("--seconds", metavar="N", help="For how long; 0 leaves it out.")]
Nearest = Annotated[bool, Option("--nearest", help="Also make an HNSW index, and measure it.")]


def locomo(
    surface: Surface, file: File, mode: Mode = "hybrid", fusion: Fusion = None, limit: Limit = None, url: Url = None
) -> None:
    """LoCoMo: find the turns that answer a question.

    Turns and sessions of long conversations; recall, NDCG and latency.
    """
    _run("locomo", surface, {"file": file, "mode": mode, "fusion": fusion, "limit": limit, "url": url})


def longmemeval(
    surface: Surface, file: File, mode: Mode = "hybrid", fusion: Fusion = None, limit: Limit = None, url: Url = None
) -> None:
    """LongMemEval: find the sessions that answer.

    Takes the official JSON and the lite format.
    """
    _run("longmemeval", surface, {"file": file, "mode": mode, "fusion": fusion, "limit": limit, "url": url})


def speed(surface: Surface, n: Sizes = "1000,10000") -> None:
    """Latency and throughput. Each figure beside its floor, measured in the same run."""
    _run("speed", surface, {"n": n})


def server(
    surface: Surface,
    url: Url = None,
    admin_url: Admin = None,
    n: Size = "100000",
    tenants: Tenants = 20,
    rows: Rows = 1_000_000,
    clients: Clients = 16,
    seconds: Seconds = 60,
    nearest: Nearest = False,
) -> None:
    """Postgres: one tenant among many, beside the embedded store, then many clients at once.

    It writes tenants named bench-… and removes them at the end.
    """
    import os

    asked = url or os.environ.get("ENGRAM_URL", "")
    if not asked:
        raise InvalidInput("name a server: --url postgresql://…, or ENGRAM_URL")
    if tenants < 2 or clients < 1 or seconds < 0:
        raise InvalidInput("--tenants takes at least 2, --clients at least 1, --seconds 0 or more")
    options = {"url": asked, "admin": admin_url, "n": n, "tenants": tenants, "rows": rows}
    _run("server", surface, {**options, "clients": clients, "seconds": seconds, "nearest": nearest})


def _run(kind: str, surface: Surface, options: dict[str, Any]) -> None:
    from engram.bench.run import main

    main(kind, {**options, "json": surface.as_json})


bench = Group(
    "Measure retrieval quality and speed here.",
    {"locomo": locomo, "longmemeval": longmemeval, "speed": speed, "server": server},
)
