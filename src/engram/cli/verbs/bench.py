"""bench: retrieval and speed, measured on your machine with your data."""

from pathlib import Path
from typing import Annotated, Any

from engram.cli.declared import Argument, Group, Option
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput

File = Annotated[Path, Argument("FILE", "The data set's JSON file.")]
Mode = Annotated[str, Option("--mode", metavar="MODE", help="hybrid, semantic or keyword.")]
Fusion = Annotated[str | None, Option("--fusion", metavar="NAME", help="rrf for reciprocal rank fusion.")]
Baseline = Annotated[
    str | None, Option("--baseline", metavar="NAME", help="bm25 to print plain BM25 over the same turns next to it.")
]
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
Events = Annotated[int, Option("--events", metavar="N", help="How many events all tasks have together.")]
Runs = Annotated[int, Option("--tasks", metavar="N", help="How many tasks there are.")]
Megabytes = Annotated[int, Option("--megabytes", metavar="N", help="How large the document is.")]
Folder = Annotated[
    Path | None, Option("--folder", metavar="DIR", help="Keep the filled store there, for the next run.")
]
Nearest = Annotated[bool, Option("--nearest", help="Also make an HNSW index, and measure it.")]


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


def ledger(
    surface: Surface,
    events: Events = 1_000_000,
    tasks: Runs = 200,
    url: Url = None,
    folder: Folder = None,
) -> None:
    """Ledgers: one durable append, then search and context among many tasks."""
    if events < 1_000 or not 1 <= tasks <= events // 10:
        raise InvalidInput("--events takes at least 1000, --tasks at least 1 and a tenth of the events at most")
    _run("ledger", surface, {"events": events, "tasks": tasks, "url": url, "folder": folder})


def documents(surface: Surface, megabytes: Megabytes = 10, url: Url = None) -> None:
    """A long document: how long it takes to read, and whether what is planted in it is found."""
    if not 1 <= megabytes <= 60:
        raise InvalidInput("--megabytes takes 1 to 60")
    _run("documents", surface, {"megabytes": megabytes, "url": url})


def graph(surface: Surface, url: Url = None) -> None:
    """The graph: 100,000 relations, three steps from ten memories."""
    _run("graph", surface, {"url": url})


def loop(surface: Surface, n: Size = "10000", seconds: Seconds = 5, url: Url = None) -> None:
    """AsyncEngram: how long the event loop waits while 32 callers search and write."""
    if not n.isdecimal() or int(n) < 100 or seconds < 1:
        raise InvalidInput("--n takes a whole number of at least 100, --seconds at least 1")
    _run("loop", surface, {"n": n, "seconds": seconds, "url": url})


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
    options = {"file": file, "mode": mode, "fusion": fusion, "baseline": baseline, "limit": limit, "url": url}
    _run(kind, surface, options)


def _run(kind: str, surface: Surface, options: dict[str, Any]) -> None:
    from engram.bench.run import main

    main(kind, {**options, "json": surface.as_json})


bench = Group(
    "Measure retrieval quality and speed here.",
    {
        "locomo": locomo,
        "longmemeval": longmemeval,
        "beam": beam,
        "speed": speed,
        "server": server,
        "ledger": ledger,
        "documents": documents,
        "graph": graph,
        "loop": loop,
    },
)
