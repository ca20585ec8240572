"""Finding the nearest vectors: exact while a tenant is small or the question narrow, by HNSW beyond.

A tenant's HNSW index is its own (a partial index), made by `engram index --nearest`: one over all tenants would wade through
the others' vectors. With a filter the index is walked on until enough pass (pgvector's iterative scan); a question
narrow enough is faster answered exactly, and wholly.
"""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from engram.model.errors import InvalidInput, StoreBusy, StoreDenied
from engram.store.postgres.adapters import HalfVector
from engram.store.postgres.context import TenantContext
from engram.store.postgres.database import BoundStatement, Database, Row
from engram.store.postgres.sql import statement
from engram.store.protocol import Filters, Progress

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

NARROW = 20_000
"""Up to so many vectors an exact search takes no longer than a careful walk of the index (16 ms), and misses nothing."""
SOME = 4_000
"""How many vectors are compared first: the nearest of them bound the nearest of all."""
WORTHWHILE = 200_000
"""From how many vectors of one tenant on `engram doctor` proposes an HNSW index."""
LONGEST_COVERED = 1200
EF_SEARCH = 400
M, EF_CONSTRUCTION = 16, 128
BUILD_MEMORY = "512MB"
"""A build whose graph fits into memory is several times faster."""
TURN_SECONDS = 600.0
"""How long to wait while another process makes or drops an index of the vectors."""
_LOOK = 0.2
_NAME = re.compile(r"near_[0-9a-f]{16}_[0-9]+")


def uses_index(parts: TenantContext, filters: Filters, generation: int) -> bool:
    """Whether the tenant's HNSW index answers this question."""
    return parts.facts.get("hnsw") == generation and not _is_narrow(parts, filters)


@dataclass(frozen=True, slots=True)
class NeighbourSearch:
    """A statement that finds numbers and distances of the nearest vectors, and what the server is set to meanwhile."""

    text: str | sql.Composed
    values: dict[str, Any]
    settings: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()

    def asked(self) -> list[BoundStatement]:
        """What is sent for the nearest of all."""
        return self._set(self.text, self.values)

    def among(self, condition: str, values: Mapping[str, Any]) -> list[BoundStatement]:
        """What is sent for those of the nearest that pass a condition on their documents."""
        if isinstance(self.text, str):
            return self._set(
                statement("near").format(nearest=self.text, condition=condition), {**self.values, **values}
            )
        text = sql.SQL(statement("near")).format(nearest=self.text, condition=sql.SQL(condition))
        return self._set(text, {**self.values, **values})

    def _set(self, text: str | sql.Composed, values: dict[str, Any]) -> list[BoundStatement]:
        before: list[BoundStatement] = [(setting, {}) for setting in self.settings]
        return [*before, (text, values), *((setting, {}) for setting in self.reset)]

    def answer(self, answers: Sequence[list[Row]]) -> list[Row]:
        """The statement's own rows."""
        return answers[len(self.settings)]


def nearest(parts: TenantContext, way: NeighbourSearch) -> list[tuple[int, float]]:
    """The nearest vectors alone, whatever else a filter says of their documents."""
    with parts.database.reading() as connection:
        rows = way.answer(parts.database.answers(connection, way.asked()))
    return [(n, -distance) for n, distance in rows]


def _asked(vector: "Vectors", filters: Filters, wide: int, generation: int) -> dict[str, Any]:
    return {
        "vector": HalfVector(vector),
        "generation": generation,
        "kinds": list(filters.kinds),
        "scopes": list(filters.scopes or ()),
        "wide": wide,
    }


def exact_search(
    parts: TenantContext, vector: "Vectors", filters: Filters, wide: int, generation: int
) -> NeighbourSearch:
    """The nearest by comparing with every vector that may answer."""
    name = "near_all" if filters.scopes is None else "near_scopes"
    text = statement(name).format(fits=_fits("v", len(vector)), some_fit=_fits("o", len(vector)))
    return NeighbourSearch(text, {**_asked(vector, filters, wide, generation), "some": SOME})


def _fits(alias: str, dim: int) -> str:
    """What the covering index is restricted to; said again, so that the planner may use it."""
    return f"vector_dims({alias}.vector) {'<=' if dim <= LONGEST_COVERED else '>'} {LONGEST_COVERED}"


def _is_narrow(parts: TenantContext, filters: Filters) -> bool:
    values = {"kinds": list(filters.kinds), "scopes": list(filters.scopes or ()), "enough": NARROW + 1}
    ((count,),) = parts.database.run("few_all" if filters.scopes is None else "few_scopes", **values)
    return int(count) <= NARROW


def index_search(
    parts: TenantContext, vector: "Vectors", filters: Filters, wide: int, generation: int
) -> NeighbourSearch:
    """The nearest by the tenant's HNSW index, walked on until enough pass the filter."""
    asked = _asked(vector, filters, wide, generation)
    # The planner proves that a partial index serves only from constants, so tenant and generation are written out.
    text = sql.SQL(statement("near_by_index")).format(
        generation=sql.Literal(asked["generation"]),
        tenant=sql.Literal(parts.database.tenant),
        dim=sql.SQL(str(len(vector))),
        scoped=sql.SQL("AND v.scope = ANY(%(scopes)s::text[])" if filters.scopes is not None else ""),
    )
    settings = (
        f"SET LOCAL hnsw.ef_search = {min(max(EF_SEARCH, int(wide)), 1000)}",
        "SET LOCAL hnsw.iterative_scan = strict_order",
        "SET LOCAL hnsw.max_scan_tuples = 100000",
        "SET LOCAL enable_sort = off",
    )
    # The rest of the search shares this transaction.
    return NeighbourSearch(text, asked, settings, ("SET LOCAL enable_sort = on",))


def index_name(tenant: str, generation: int) -> str:
    """The name of a tenant's HNSW index."""
    import hashlib

    return f"near_{hashlib.sha256(tenant.encode()).hexdigest()[:16]}_{generation}"


def build(parts: TenantContext, progress: Progress) -> str:
    """Make the HNSW index of the generation in force, beside whoever reads and writes; returns its name.

    Only the owner of the tables may. Inserts of this tenant cost more from then on. Where another process is making one, it is
    waited for; raises `StoreBusy` when that takes too long.
    """
    database, generation, dim = parts.database, parts.facts.generation, int(parts.facts.get("dim") or 0)
    table = _table(database)
    if not dim or table is None:
        raise InvalidInput("this tenant has no vectors yet; write something with an embedder first")
    name = index_name(database.tenant, generation)
    progress("nearest", 0, 1)
    with _turn(database) as waited:
        # What another process has just made of the same vectors need not be made again.
        if not waited or not _known(database).get(name, False):
            _build(database, name, table, dim, generation)
    with database.transaction() as own:
        parts.facts.set(own, hnsw=generation)
    progress("nearest", 1, 1)
    return name


def _table(database: Database) -> tuple[str, str] | None:
    """Where the tenant's vectors lie: the table, or the partition of it that holds them. None where there are none."""
    if not database.run("has_vectors"):
        return None
    if not database.run("is_partitioned")[0][0]:
        return "engram", "memory_vectors"
    ((schema, name),) = database.run("vectors_partition")
    return schema, name


def _build(database: Database, name: str, table: tuple[str, str], dim: int, generation: int) -> None:
    made = sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON {table} "
        "USING hnsw ((vector::halfvec({dim})) halfvec_ip_ops) WITH (m = {m}, ef_construction = {ef}) "
        "WHERE tenant = {tenant} AND generation = {generation}"
    ).format(
        name=sql.Identifier(name),
        table=sql.Identifier(*table),
        dim=sql.SQL(str(dim)),
        m=sql.SQL(str(M)),
        ef=sql.SQL(str(EF_CONSTRUCTION)),
        tenant=sql.Literal(database.tenant),
        generation=sql.Literal(generation),
    )
    # One that was broken off is left behind, answers nothing and slows every insert.
    broken = {known for known, is_valid in _known(database).items() if not is_valid}
    _drop(database, {name, *broken})
    with database.alone(maintenance_work_mem=BUILD_MEMORY) as connection:
        connection.execute(made)


@contextlib.contextmanager
def _turn(database: Database) -> Iterator[bool]:
    """One process at a time, for all tenants; says whether another one was at it.

    Two that make or drop an index of one table beside writers wait for each other: each for the end of every transaction that
    may still see the table without its index, the other's among them. The lock is held by a transaction on a connection of its
    own. It has no snapshot while it is idle, so nobody waits for it, and a pooler in transaction mode leaves it its server.
    """
    deadline, waited = time.monotonic() + TURN_SECONDS, False
    with database.alone() as holding:
        while not _is_held(holding):
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"another process has been making or dropping an index of the vectors on {database.where} for "
                    f"{TURN_SECONDS:.0f} s; wait until it has ended, then run the command again"
                )
            waited = True
            time.sleep(_LOOK)
        try:
            yield waited
        finally:
            with contextlib.suppress(psycopg.Error):
                holding.execute("ROLLBACK")


def _is_held(holding: psycopg.Connection[Row]) -> bool:
    """Try to take the turn; a transaction is left open only where it was taken."""
    holding.execute("BEGIN")
    # It is idle for as long as the index takes.
    holding.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    row = holding.execute(statement("try_turn")).fetchone()
    if row is not None and row[0]:
        return True
    holding.execute("ROLLBACK")
    return False


def drop_others(parts: TenantContext, generation: int) -> None:
    """Take the HNSW indexes of all other generations away; where only their owner may, or not now, say which are left."""
    others = indexes_of(parts.database) - {index_name(parts.database.tenant, generation)}
    try:
        _drop_in_turn(parts.database, others)
    except (StoreDenied, StoreBusy):
        names = ", ".join(f"engram.{name}" for name in sorted(others))
        parts.warn(f"old vectors' indexes are left; the owner of the tables takes them away: DROP INDEX {names}")


def indexes_of(database: Database) -> set[str]:
    """The names of a tenant's HNSW indexes, of every generation."""
    return set(_known(database))


def _known(database: Database) -> dict[str, bool]:
    """A tenant's HNSW indexes, and whether each is whole."""
    return {name: is_valid for _, name, is_valid in _found(database)}


def _found(database: Database) -> list[Row]:
    """Schema, name and state; not those that a server keeps for its parts of a table, named after these with a number."""
    beginning = index_name(database.tenant, 0)[:-1]
    return [row for row in database.run("nearest_indexes", beginning=beginning) if _NAME.fullmatch(row[1])]


def _drop_in_turn(database: Database, names: set[str]) -> None:
    if names:
        with _turn(database):
            _drop(database, names)


def _drop(database: Database, names: set[str]) -> None:
    """Drop indexes, wherever their table is: in a partitioned server's own schema for partitions, too."""
    for schema, name, _ in _found(database):
        if name in names:
            with database.alone() as connection:
                connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(schema, name)))


def drop_all(database: Database) -> None:
    """Take every HNSW index of a tenant away."""
    _drop_in_turn(database, indexes_of(database))
