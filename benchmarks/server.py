"""Measures the store on a server: one tenant among many next to the embedded backend, filters, and many clients at once."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import crowd
from benchmarks.command import parser, print_report, whole
from benchmarks.tenants import analyze, copy, is_empty
from engram.bench import figures as floors
from engram.bench.figures import Figure, figure_text, figures_text, progress_line
from engram.bench.speed import fill, memories, questions, statements
from engram.client import Engram
from engram.model.errors import InvalidInput
from engram.store.protocol import Filters, Progress

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors
    from engram.store.postgres.neighbours import NeighbourSearch
    from engram.store.postgres.store import PostgresStore

RARE = "project:rare"
"""The scope of one memory in a hundred."""
POOL = 60
BIG, SMALL = "bench-big", "bench-small"


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: the tenant's size, the total tenants and rows, the number of clients and their time."""

    url: str
    admin: str
    count: int = 100_000
    tenants: int = 20
    rows: int = 1_000_000
    clients: int = 16
    seconds: int = 60
    nearest: bool = True
    rounds: int = 60
    """Number of timings of each operation."""


def measure(
    plan: Plan, progress: Progress = lambda *_: None, tell: Callable[[dict[str, Any]], object] = lambda _: None
) -> dict[str, Any]:
    """Fill tenants, time what a user waits for, then start many clients. Everything written is removed at the end.

    Each figure is reported as soon as it is known, because the whole takes minutes.
    """
    from engram.store.postgres import tenants

    names = [BIG, SMALL, *(f"bench-{number}" for number in range(plan.tenants - 2))]
    with _opened(plan, BIG):
        pass  # creates the schema if there is none
    if any(not is_empty(plan.url, name) for name in names):
        raise InvalidInput(
            f"Tenants {names[0]} … {names[-1]} are not empty: an earlier benchmark was interrupted. Remove them."
        )
    try:
        return _measure(plan, names, progress, tell)
    finally:
        for name in names:
            tenants.remove(plan.url, name)


def _measure(
    plan: Plan, names: list[str], progress: Progress, tell: Callable[[dict[str, Any]], object]
) -> dict[str, Any]:
    figures = _Told(tell)
    with _opened(plan, BIG) as big, _opened(plan, SMALL) as small:
        figures.note(fill(big, plan.count, progress, items))
        fill(small, max(plan.count // 10, 100), progress, items)
        _clone(plan, names[2:], progress)
        figures.note(*_searched(plan, big, small, progress))
        figures.note(_learned(plan, big, figures))
        figures.note(*_narrow(plan, big, "exact"))
        if plan.nearest:
            figures.note(*_by_index(plan, big, progress))
    report: dict[str, Any] = {"memories": plan.count, "figures": [asdict(figure) for figure in figures]}
    if plan.seconds:
        report["crowd"] = asdict(crowd.run(plan.url, BIG, plan.clients, plan.seconds, questions(200, plan.count)))
    return report


class _Told(list[Figure]):
    """Figures, each reported when it is recorded."""

    def __init__(self, tell: Callable[[dict[str, Any]], object]) -> None:
        super().__init__()
        self._tell = tell

    def note(self, *figures: Figure) -> None:
        """Record figures and report them."""
        for figure in figures:
            self.append(figure)
            self._tell(asdict(figure))


@contextmanager
def _opened(plan: Plan, tenant: str) -> Iterator[Engram]:
    with (
        tempfile.TemporaryDirectory(prefix="engram-bench-") as nowhere,
        Engram.open(url=plan.url, tenant=tenant, directory=nowhere) as mem,
    ):
        yield mem


def items(count: int) -> Iterator[dict[str, str]]:
    """The corpus, with one memory in a hundred in a scope of its own."""
    for number, item in enumerate(memories(count)):
        yield {**item, "scope": RARE} if number % 100 == 0 else item


def _clone(plan: Plan, names: list[str], progress: Progress) -> None:
    """Fill the other tenants with copies of the big one, made by the server."""
    each = max((plan.rows - plan.count - plan.count // 10) // max(len(names), 1), 0)
    for number, name in enumerate(names, 1):
        copy(plan.admin, BIG, name, each)
        progress("tenants", number, len(names))
    analyze(plan.admin)


def _searched(plan: Plan, big: Engram, small: Engram, progress: Progress) -> list[Figure]:
    embedded = _embedded(plan, progress)
    slow, quick = _search(plan, big, plan.count), _search(plan, small, max(plan.count // 10, 100))
    return [
        _against("search, hybrid", slow, floors.percentile(embedded, 0.5), "embedded"),
        _against("search, hybrid", slow, floors.percentile(quick, 0.5), "a tenant of a tenth"),
    ]


def _embedded(plan: Plan, progress: Progress) -> list[float]:
    with (
        tempfile.TemporaryDirectory(prefix="engram-bench-") as folder,
        Engram.open(Path(folder, "home"), cache=Path(folder, "cache"), directory=folder) as mem,
    ):
        fill(mem, plan.count, progress, items)
        return _search(plan, mem, plan.count)


def _search(plan: Plan, mem: Engram, count: int) -> list[float]:
    asked = questions(plan.rounds, count)
    for question in asked[:10]:
        mem.search(question)
    return floors.samples_ms(lambda i: mem.search(asked[i % len(asked)]), plan.rounds)


def _against(name: str, samples: list[float], floor: float, against: str) -> Figure:
    p50 = floors.percentile(samples, 0.5)
    p95, p99 = floors.percentile(samples, 0.95), floors.percentile(samples, 0.99)
    return Figure(f"{name} ÷ {against}", p50, "ms", p95, p99, floor, p50 / floor)


def _learned(plan: Plan, mem: Engram, known: list[Figure]) -> Figure:
    new = list(statements(plan.rounds, seed=plan.count + 7))
    learn = floors.samples_ms(lambda i: mem.learn(new[i], scope="project:acme"), plan.rounds)
    search = next(figure.value for figure in known if figure.name.startswith("search"))
    return _against("learn, durable, all gates", learn, search, "search")


def _narrow(plan: Plan, mem: Engram, how: str) -> list[Figure]:
    """Measure vector search in the rare scope: the share of an exact search's results that it finds, and its time."""
    from engram.store.postgres import neighbours

    store: PostgresStore = mem.store  # type: ignore[assignment]
    filters = Filters(scopes=(RARE,))
    vectors = [vector for question in questions(plan.rounds, plan.count) for vector in store.embed([question])]  # type: ignore[union-attr]
    walk = neighbours.index_search if how == "HNSW, iterative scan" else neighbours.exact_search
    found = [_nearest(store, walk, vector, filters) for vector in vectors]
    wanted = [_nearest(store, neighbours.exact_search, vector, filters) for vector in vectors]
    shares = [
        len({n for n, _ in got} & {n for n, _ in want}) / max(len(want), 1)
        for got, want in zip(found, wanted, strict=True)
    ]
    samples = floors.samples_ms(lambda i: _nearest(store, walk, vectors[i], filters), plan.rounds)
    return [
        Figure(f"one scope of 1 %, {how}: recall@{POOL}", sum(shares) / len(shares), ""),
        Figure(f"one scope of 1 %, {how}", floors.percentile(samples, 0.5), "ms", floors.percentile(samples, 0.95)),
    ]


def _nearest(
    store: "PostgresStore", way: "Callable[..., NeighbourSearch]", vector: "Vectors", filters: Filters
) -> list[tuple[int, float]]:
    from engram.store.postgres import neighbours

    return neighbours.nearest(
        store.context, way(store.context, vector, filters, POOL, store.context.settings.generation)
    )


def _by_index(plan: Plan, mem: Engram, progress: Progress) -> list[Figure]:
    """Like `_narrow`, with an HNSW index: the time to build it, and the share of the whole tenant's nearest it finds."""
    from engram.store.postgres import neighbours

    store: PostgresStore = mem.store  # type: ignore[assignment]
    vectors = [vector for question in questions(plan.rounds, plan.count) for vector in store.embed([question])]  # type: ignore[union-attr]
    every = Filters()
    wanted = [_nearest(store, neighbours.exact_search, vector, every) for vector in vectors]
    scan = floors.samples_ms(lambda i: _nearest(store, neighbours.exact_search, vectors[i], every), plan.rounds)
    started = time.perf_counter()
    store.build_nearest(progress)
    took = time.perf_counter() - started
    walk = floors.samples_ms(lambda i: _nearest(store, neighbours.index_search, vectors[i], every), plan.rounds)
    found = [_nearest(store, neighbours.index_search, vector, every) for vector in vectors]
    shares = [len({n for n, _ in got} & {n for n, _ in want}) / POOL for got, want in zip(found, wanted, strict=True)]
    return [
        Figure("vectors, exact", floors.percentile(scan, 0.5), "ms", floors.percentile(scan, 0.95)),
        Figure("HNSW index, made in", took, "s"),
        Figure("vectors, HNSW", floors.percentile(walk, 0.5), "ms", floors.percentile(walk, 0.95)),
        Figure(f"vectors, HNSW: recall@{POOL}", sum(shares) / len(shares), ""),
        _against("search, hybrid, with HNSW", _search(plan, mem, plan.count), 1.0, "1 ms"),
        *_narrow(plan, mem, "HNSW, iterative scan"),
    ]


def text(report: Mapping[str, Any]) -> str:
    """The figures, then the results of the crowd of clients."""
    lines = [figures_text(report)]
    if found := report.get("crowd"):
        lines += [
            f"  {found['clients']} clients, {found['seconds']:.0f} s: {found['searches']:,} searches, {found['writes']:,} writes, "
            f"{found['per_second']:.1f} a second",
            f"  search p50 {found['search_p50']:.0f} ms, p95 {found['search_p95']:.0f}; "
            f"write p50 {found['write_p50']:.0f} ms, p95 {found['write_p95']:.0f}",
            f"  {len(found['errors'])} errors, {found['lost']} lost, {found['doubled']} duplicated, {found['deadlocks']} deadlocks",
            *(f"  {error}" for error in found["errors"][:10]),
        ]
    return "\n".join(lines)


def main() -> None:
    """Measure with the options of the command line."""
    options = parser(
        "server",
        "Postgres: one tenant among many next to the embedded store, then many clients at once. "
        "It writes tenants named bench-… and removes them at the end.",
    )
    options.add_argument("--url", default=os.environ.get("ENGRAM_URL"), help="the server (default: $ENGRAM_URL)")
    options.add_argument("--admin-url", help="a superuser's URL of the same database, to fill the other tenants with")
    options.add_argument(
        "--n", type=whole(100), default=100_000, help="memories of the measured tenant (default: 100000)"
    )
    options.add_argument("--tenants", type=whole(2), default=20, help="number of tenants (default: 20)")
    options.add_argument("--rows", type=whole(0), default=1_000_000, help="memories of all tenants (default: 1000000)")
    options.add_argument("--clients", type=whole(1), default=16, help="processes that work at once (default: 16)")
    options.add_argument("--seconds", type=whole(0), default=60, help="for how long; 0 leaves them out (default: 60)")
    options.add_argument("--nearest", action="store_true", help="also build an HNSW index and measure it")
    given = options.parse_args()
    if not given.url:
        options.error("name a server: --url postgresql://…, or ENGRAM_URL")
    plan = Plan(
        given.url,
        given.admin_url or given.url,
        given.n,
        given.tenants,
        given.rows,
        given.clients,
        given.seconds,
        given.nearest,
    )
    tell: Callable[[dict[str, Any]], object] = lambda figure: sys.stderr.write(figure_text(figure) + "\n")  # noqa: E731
    print_report(lambda: measure(plan, progress_line, tell), as_json=given.json, text=text)


if __name__ == "__main__":
    main()
