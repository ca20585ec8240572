"""Nearest-vector search: exact for a small tenant or a narrow query, by HNSW otherwise.

Each tenant has an HNSW index of its own (a partial index), built by `engram index --nearest`: an index over all tenants would
spend its time on other tenants' vectors. With a filter, the index is scanned until enough rows pass (pgvector's iterative scan);
a narrow query is faster, and complete, when answered exactly.
"""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from engram.model.errors import InvalidInput, StoreBusy, StoreDenied
from engram.model.lazy import dataclass
from engram.store.postgres.connections import HalfVector
from engram.store.postgres.database import BoundStatement, Database, Row, TenantContext
from engram.store.postgres.sql import statement
from engram.store.protocol import Filters, Progress

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors

MAX_EXACT_SEARCH_VECTORS = 20_000
"""Up to this many vectors, an exact search takes no longer than an index scan (16 ms) and misses nothing."""
FIRST_COMPARED_VECTORS = 4_000
"""How many vectors are compared first; their nearest give a bound for the rest."""
MIN_INDEX_VECTORS = 200_000
"""From this many vectors of one tenant, `engram doctor` suggests an HNSW index."""
MAX_COVERED_DIMENSIONS = 1200
EF_SEARCH = 400
M, EF_CONSTRUCTION = 16, 128
BUILD_MEMORY = "512MB"
"""A build is several times faster if its graph fits into memory."""
BUILD_LOCK_SECONDS = 600.0
"""How long to wait while another process builds or drops an index of the vectors."""
_POLL = 0.2
_NAME = re.compile(r"near_[0-9a-f]{16}_[0-9]+")


def uses_index(context: TenantContext, filters: Filters, generation: int) -> bool:
    """Whether the tenant's HNSW index answers a query with these filters."""
    return context.settings.get("hnsw") == generation and not _is_narrow(context, filters)


@dataclass(frozen=True, slots=True)
class NeighbourSearch:
    """A statement that finds numbers and distances of the nearest vectors, and the settings it needs."""

    text: str | sql.Composed
    values: dict[str, Any]
    settings: tuple[str, ...] = ()
    reset: tuple[str, ...] = ()

    def statements(self) -> list[BoundStatement]:
        """The statements for the nearest of all."""
        return self._with_settings(self.text, self.values)

    def statements_among(self, condition: str, values: Mapping[str, Any]) -> list[BoundStatement]:
        """The statements for the nearest whose documents pass a condition."""
        if isinstance(self.text, str):
            return self._with_settings(
                statement("near").format(nearest=self.text, condition=condition), {**self.values, **values}
            )
        text = sql.SQL(statement("near")).format(nearest=self.text, condition=sql.SQL(condition))
        return self._with_settings(text, {**self.values, **values})

    def _with_settings(self, text: str | sql.Composed, values: dict[str, Any]) -> list[BoundStatement]:
        before: list[BoundStatement] = [(setting, {}) for setting in self.settings]
        return [*before, (text, values), *((setting, {}) for setting in self.reset)]

    def own_rows(self, answers: Sequence[list[Row]]) -> list[Row]:
        """The statement's own rows."""
        return answers[len(self.settings)]


def nearest(context: TenantContext, search: NeighbourSearch) -> list[tuple[int, float]]:
    """Numbers and similarities of the nearest vectors, before any condition on their documents."""
    with context.database.reading():
        rows = search.own_rows(context.database.fetch_results(search.statements()))
    return [(n, -distance) for n, distance in rows]


def _values(vector: "Vectors", filters: Filters, wide: int, generation: int) -> dict[str, Any]:
    return {
        "vector": HalfVector(vector),
        "generation": generation,
        "kinds": list(filters.kinds),
        "scopes": list(filters.scopes or ()),
        "wide": wide,
    }


def exact_search(
    context: TenantContext, vector: "Vectors", filters: Filters, wide: int, generation: int
) -> NeighbourSearch:
    """The nearest, by comparing with every vector that passes the filters."""
    name = "near_all" if filters.scopes is None else "near_scopes"
    text = statement(name).format(fits=_fits("v", len(vector)), some_fit=_fits("o", len(vector)))
    return NeighbourSearch(text, {**_values(vector, filters, wide, generation), "some": FIRST_COMPARED_VECTORS})


def _fits(alias: str, dim: int) -> str:
    """The covering index's own condition, repeated so that the planner can use the index."""
    return f"vector_dims({alias}.vector) {'<=' if dim <= MAX_COVERED_DIMENSIONS else '>'} {MAX_COVERED_DIMENSIONS}"


def _is_narrow(context: TenantContext, filters: Filters) -> bool:
    values = {
        "kinds": list(filters.kinds),
        "scopes": list(filters.scopes or ()),
        "enough": MAX_EXACT_SEARCH_VECTORS + 1,
    }
    ((count,),) = context.database.run("few_all" if filters.scopes is None else "few_scopes", **values)
    return int(count) <= MAX_EXACT_SEARCH_VECTORS


def index_search(
    context: TenantContext, vector: "Vectors", filters: Filters, wide: int, generation: int
) -> NeighbourSearch:
    """The nearest, by the tenant's HNSW index, scanned until enough pass the filters."""
    values = _values(vector, filters, wide, generation)
    # The planner uses a partial index only for constants, so tenant and generation are literals.
    text = sql.SQL(statement("near_by_index")).format(
        generation=sql.Literal(generation),
        tenant=sql.Literal(context.database.tenant),
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
    return NeighbourSearch(text, values, settings, ("SET LOCAL enable_sort = on",))


def index_name(tenant: str, generation: int) -> str:
    """The name of a tenant's HNSW index."""
    import hashlib

    return f"near_{hashlib.sha256(tenant.encode()).hexdigest()[:16]}_{generation}"


def build(context: TenantContext, progress: Progress) -> str:
    """Build the HNSW index of the current generation without blocking readers or writers; returns its name.

    Only the owner of the tables may. The tenant's inserts are slower from then on. Waits for another process that is building
    one; raises `StoreBusy` if that takes too long.
    """
    database, generation, dim = context.database, context.settings.generation, int(context.settings.get("dim") or 0)
    table = _table(database)
    if not dim or table is None:
        raise InvalidInput("this tenant has no vectors yet; add a memory with an embedder first")
    name = index_name(database.tenant, generation)
    progress("nearest", 0, 1)
    with _build_lock(database) as waited:
        # Another process may just have built the same index.
        if not waited or not _index_validity(database).get(name, False):
            _build(database, name, table, dim, generation)
    with database.transaction():
        context.settings.set(hnsw=generation)
    progress("nearest", 1, 1)
    return name


def _table(database: Database) -> tuple[str, str] | None:
    """The table or partition with the tenant's vectors; None if it has none."""
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
    # An interrupted build leaves an invalid index, which answers nothing and slows every insert.
    invalid = {known for known, is_valid in _index_validity(database).items() if not is_valid}
    _drop(database, {name, *invalid})
    with database.maintenance_connection(maintenance_work_mem=BUILD_MEMORY) as connection:
        connection.execute(made)


@contextlib.contextmanager
def _build_lock(database: Database) -> Iterator[bool]:
    """A lock for one process at a time, across all tenants; yields whether it had to wait.

    Two concurrent builds or drops on one table deadlock: each waits for every transaction that may still see the table
    without its index, including the other. The lock belongs to a transaction on a separate connection. While idle it has no
    snapshot, so nothing waits for it, and a pooler in transaction mode keeps its server connection.
    """
    deadline, waited = time.monotonic() + BUILD_LOCK_SECONDS, False
    with database.maintenance_connection() as holding:
        while not _try_lock(holding):
            if time.monotonic() > deadline:
                raise StoreBusy(
                    f"another process has been building or dropping a vector index on {database.where} for "
                    f"{BUILD_LOCK_SECONDS:.0f} s; wait until it has finished, then run the command again"
                )
            waited = True
            time.sleep(_POLL)
        try:
            yield waited
        finally:
            with contextlib.suppress(psycopg.Error):
                holding.execute("ROLLBACK")


def _try_lock(holding: psycopg.Connection[Row]) -> bool:
    """Try to take the lock; a transaction stays open only if that succeeds."""
    holding.execute("BEGIN")
    # It is idle for as long as the build takes.
    holding.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    row = holding.execute(statement("try_turn")).fetchone()
    if row is not None and row[0]:
        return True
    holding.execute("ROLLBACK")
    return False


def drop_others(context: TenantContext, generation: int) -> None:
    """Drop the HNSW indexes of all other generations; warns about those that this role cannot drop now."""
    others = indexes_of(context.database) - {index_name(context.database.tenant, generation)}
    try:
        _drop_in_turn(context.database, others)
    except (StoreDenied, StoreBusy):
        names = ", ".join(f"engram.{name}" for name in sorted(others))
        context.warn(f"indexes of old vectors remain; the owner of the tables can drop them: DROP INDEX {names}")


def indexes_of(database: Database) -> set[str]:
    """The names of a tenant's HNSW indexes, of every generation."""
    return set(_index_validity(database))


def _index_validity(database: Database) -> dict[str, bool]:
    """A tenant's HNSW indexes, and whether each is valid."""
    return {name: is_valid for _, name, is_valid in _find_indexes(database)}


def _find_indexes(database: Database) -> list[Row]:
    """Schema, name and validity; without the derived indexes of shards, which have a number appended."""
    beginning = index_name(database.tenant, 0)[:-1]
    return [row for row in database.run("nearest_indexes", beginning=beginning) if _NAME.fullmatch(row[1])]


def _drop_in_turn(database: Database, names: set[str]) -> None:
    if names:
        with _build_lock(database):
            _drop(database, names)


def _drop(database: Database, names: set[str]) -> None:
    """Drop indexes in whatever schema they are; partitions may have one of their own."""
    for schema, name, _ in _find_indexes(database):
        if name in names:
            with database.maintenance_connection() as connection:
                connection.execute(sql.SQL("DROP INDEX CONCURRENTLY {}").format(sql.Identifier(schema, name)))


def drop_all(database: Database) -> None:
    """Drop every HNSW index of a tenant."""
    _drop_in_turn(database, indexes_of(database))
