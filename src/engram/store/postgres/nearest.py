"""Finding the nearest vectors: exact while a tenant is small or the question narrow, by HNSW beyond.

A tenant's HNSW index is its own (a partial index), made by `engram index --nearest`: one over all tenants would wade through
the others' vectors. With a filter the index is walked on until enough pass (pgvector's iterative scan); a question
narrow enough is faster answered exactly, and wholly.
"""

from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from engram.store.postgres.parts import Parts
from engram.store.postgres.sql import statement
from engram.store.postgres.vectors import as_text
from engram.store.protocol import Filters, Progress

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

NARROW = 20_000
"""Vectors an exact search reads in the time HNSW takes with as good an answer; measured, docs/scaling.md."""
WORTHWHILE = 200_000
"""From how many vectors of one tenant on `engram doctor` proposes an HNSW index."""
LONGEST_COVERED = 1200
EF_SEARCH = 400
M, EF_CONSTRUCTION = 16, 128


def nearest(parts: Parts, vector: "Vectors", filters: Filters, wide: int) -> list[tuple[int, float]]:
    """Numbers and cosines of the nearest vectors of the asked-for kinds and scopes, best first."""
    asked = {
        "vector": as_text(vector),
        "generation": parts.facts.generation,
        "kinds": list(filters.kinds),
        "scopes": list(filters.scopes or ()),
        "wide": wide,
    }
    if parts.facts.get("hnsw") == parts.facts.generation and not _is_narrow(parts, filters):
        return _by_index(parts, asked, len(vector), scoped=filters.scopes is not None)
    name = "near_all" if filters.scopes is None else "near_scopes"
    return parts.database.query(statement(name).format(fits=_fits(len(vector))), asked)


def _fits(dim: int) -> str:
    """What the covering index is restricted to; said again, so that the planner may use it."""
    return f"vector_dims(v.vector) {'<=' if dim <= LONGEST_COVERED else '>'} {LONGEST_COVERED}"


def _is_narrow(parts: Parts, filters: Filters) -> bool:
    values = {"kinds": list(filters.kinds), "scopes": list(filters.scopes or ()), "enough": NARROW + 1}
    name = "few_all" if filters.scopes is None else "few_scopes"
    ((count,),) = parts.database.run(name, generation=parts.facts.generation, **values)
    return int(count) <= NARROW


def _by_index(parts: Parts, asked: dict[str, Any], dim: int, *, scoped: bool) -> list[tuple[int, float]]:
    # The planner proves that a partial index serves only from constants, so tenant and generation are written out.
    text = sql.SQL(statement("near_by_index")).format(
        generation=sql.Literal(asked["generation"]),
        tenant=sql.Literal(parts.database.tenant),
        dim=sql.SQL(str(int(dim))),
        scoped=sql.SQL("AND v.scope = ANY(%(scopes)s::text[])" if scoped else ""),
    )
    with parts.database.transaction() as connection:
        connection.execute(sql.SQL("SET LOCAL hnsw.ef_search = {}").format(sql.Literal(max(EF_SEARCH, asked["wide"]))))
        connection.execute("SET LOCAL hnsw.iterative_scan = strict_order")
        connection.execute("SET LOCAL enable_sort = off")
        cursor = connection.execute(text, {"tenant": parts.database.tenant, **asked}, prepare=False)
        return [(n, score) for n, score in cursor.fetchall()]


def index_name(tenant: str, generation: int) -> str:
    """The name of a tenant's HNSW index."""
    import hashlib

    return f"near_{hashlib.sha256(tenant.encode()).hexdigest()[:16]}_{generation}"


def build(parts: Parts, connection: psycopg.Connection[tuple[Any, ...]], progress: Progress) -> str:
    """Make the HNSW index of the generation in force, beside whoever reads and writes; returns its name.

    `connection` commits each statement by itself, and belongs to the owner of the tables.
    """
    generation, dim = parts.facts.generation, int(parts.facts.get("dim") or 0)
    name = index_name(parts.database.tenant, generation)
    progress("nearest", 0, 1)
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS engram.{}").format(sql.Identifier(name)))
    connection.execute(
        sql.SQL(
            "CREATE INDEX CONCURRENTLY {name} ON engram.memory_vectors "
            "USING hnsw ((vector::halfvec({dim})) halfvec_ip_ops) WITH (m = {m}, ef_construction = {ef}) "
            "WHERE tenant = {tenant} AND generation = {generation}"
        ).format(
            name=sql.Identifier(name),
            dim=sql.SQL(str(dim)),
            m=sql.SQL(str(M)),
            ef=sql.SQL(str(EF_CONSTRUCTION)),
            tenant=sql.Literal(parts.database.tenant),
            generation=sql.Literal(generation),
        )
    )
    with parts.database.transaction() as own:
        parts.facts.set(own, hnsw=generation)
    progress("nearest", 1, 1)
    return name


def drop(parts: Parts, connection: psycopg.Connection[tuple[Any, ...]], generation: int) -> None:
    """Take a generation's HNSW index away."""
    name = index_name(parts.database.tenant, generation)
    connection.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS engram.{}").format(sql.Identifier(name)))
