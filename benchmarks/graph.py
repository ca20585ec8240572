"""Measures the speed of walks over relations: many links, three hops from ten memories, with and without a hub among them."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.command import URL_HELP, empty_tenant, parser, print_report
from engram.bench import figures as floors
from engram.bench.figures import Figure, progress_line
from engram.bench.speed import statements
from engram.client import Engram
from engram.graph.graph import Graph
from engram.graph.graph import walk as traverse
from engram.model.memory import LIVE_STATUSES, Association, Memory
from engram.model.relations import known_relations
from engram.store.defaults import utc_now
from engram.store.protocol import Filters, Hops, Progress, Store

SEEDS, HOPS, PER_SEED, TOTAL = 10, 3, 25, 100
DIRECTIONS = ("outbound", "inbound", "any")
TENANT = "bench-graph"
SLICE = 2_000


@dataclass(frozen=True, slots=True)
class Shape:
    """A graph to measure: its memories and links, and one memory that is linked with `hub` others in each direction."""

    memories: int = 15_000
    edges: int = 100_000
    hub: int = 2_500
    rounds: int = 60


def measure(
    shape: Shape | None = None, *, url: str | None = None, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Fill a store with linked memories and time walks: in files, or on a server, where the tenant is removed at the end."""
    shape = shape or Shape()
    with _opened(url) as mem:
        ids = fill(mem.store, shape, progress)
        _settle(url)
        figures = [figure for direction in DIRECTIONS for figure in _timed(mem, ids, shape, direction)]
    return {"memories": shape.memories, "edges": shape.edges, "figures": [asdict(figure) for figure in figures]}


@contextmanager
def _opened(url: str | None) -> Iterator[Engram]:
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as folder:
        if url is None:
            with Engram.open(Path(folder, "home"), cache=Path(folder, "cache"), directory=folder) as mem:
                yield mem
            return
        with empty_tenant(url, TENANT), Engram.open(url=url, tenant=TENANT, directory=folder) as mem:
            yield mem


def _settle(url: str | None) -> None:
    """Update a server's table statistics, as it does by itself within a minute."""
    if url is not None:
        from benchmarks.tenants import analyze

        analyze(url)


def fill(store: Store, shape: Shape, progress: Progress = lambda *_: None) -> list[str]:
    """Add memories with links to others all over the store; the first one is the hub. Returns their ids."""
    now = utc_now()
    with store.deciding("add", actor="bench", scopes=["global"], ids_for=[now] * shape.memories) as deciding:
        ids = [deciding.new_id(now) for _ in range(shape.memories)]
    texts = statements(shape.memories)
    linked = _links(shape, ids)
    for start in range(0, shape.memories, SLICE):
        with store.deciding("add", actor="bench", scopes=["global"]) as deciding:
            for memory_id in ids[start : start + SLICE]:
                deciding.put(Memory(memory_id, next(texts), created=now, associations=tuple(linked.get(memory_id, ()))))
        progress("adding", min(start + SLICE, shape.memories), shape.memories)
    return ids


def _links(shape: Shape, ids: list[str]) -> dict[str, list[Association]]:
    rng = random.Random(4)
    kinds = list(known_relations())
    made: dict[tuple[int, int], Association] = {}

    def link(source: int, target: int) -> None:
        if source != target:
            made[source, target] = Association(ids[target], rng.choice(kinds), weight=round(rng.uniform(0.05, 2), 3))

    for other in rng.sample(range(1, shape.memories), shape.hub):
        link(0, other)
    for other in rng.sample(range(1, shape.memories), shape.hub):
        link(other, 0)
    while len(made) < shape.edges:
        link(rng.randrange(shape.memories), rng.randrange(shape.memories))
    found: dict[str, list[Association]] = {}
    for (source, _), association in made.items():
        found.setdefault(ids[source], []).append(association)
    return found


def _timed(mem: Engram, ids: list[str], shape: Shape, direction: str) -> list[Figure]:
    """Time the walk alone, the whole answer with its memories, and the whole answer if one of the ten is the hub."""
    rng = random.Random(7)
    graph = Graph(mem.store, utc_now)
    anywhere = [rng.sample(ids[1:], SEEDS) for _ in range(shape.rounds)]
    filters = Filters(statuses=LIVE_STATUSES, valid_at=utc_now())

    def walk(number: int) -> object:
        hops = Hops(utc_now(), direction, filters=filters)
        with mem.store.reading():
            return traverse(mem.store, anywhere[number], hops, HOPS, PER_SEED)

    def answer(seeds: list[str]) -> object:
        return graph.traverse_many(
            seeds, max_depth=HOPS, direction=direction, limit_per_seed=PER_SEED, total_limit=TOTAL
        )

    walk(0)
    answer(anywhere[0])
    measured = {
        "walk": floors.samples_ms(walk, shape.rounds),
        "traverse_many": floors.samples_ms(lambda i: answer(anywhere[i]), shape.rounds),
        "traverse_many, the hub among the seeds": floors.samples_ms(
            lambda i: answer([ids[0], *anywhere[i][1:]]), shape.rounds
        ),
    }
    name = f"{HOPS} hops from {SEEDS} seeds, {direction}"
    return [
        Figure(
            f"{what}, {name}", floors.percentile(s, 0.5), "ms", floors.percentile(s, 0.95), floors.percentile(s, 0.99)
        )
        for what, s in measured.items()
    ]


def main() -> None:
    """Measure with the options of the command line."""
    options = parser("graph", "100,000 relations: three steps from ten memories.")
    options.add_argument("--url", help=URL_HELP)
    given = options.parse_args()
    print_report(lambda: measure(url=given.url, progress=progress_line), as_json=given.json)


if __name__ == "__main__":
    main()
