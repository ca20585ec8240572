"""Health checks of a server: its version, the extension, the schema, the indexes, the role, and the servers around it."""

import re
import select
import time
from contextlib import closing
from typing import Any

import psycopg
from psycopg import pq

from engram.store.postgres import neighbours, schema
from engram.store.postgres.database import TenantContext
from engram.store.postgres.schema import (
    LATEST_SCHEMA,
    LEAST_SERVER,
    LEAST_VECTOR,
    Cluster,
    migrations,
    vector_version,
    version_of,
)
from engram.store.reports import Check

Connection = psycopg.Connection[tuple[Any, ...]]
ANSWER_SECONDS = 5.0
"""How long a pooler may take to find a second connection to the server."""
POOLER_TRIES = 5
"""How often to check whether two clients share a server process: others may use it in between."""


def examine_topology(context: TenantContext) -> list[Check]:
    """Checks of cluster, pooler and standbys; none changes anything."""
    return [_cluster(context), _pooler(context), _standbys(context), _jit(context)]


# -- the cluster


def _cluster(context: TenantContext) -> Check:
    with context.database.reading() as connection:
        cluster = schema.find_cluster(connection)
    if cluster is None:
        return Check("cluster", True, "none: one server")
    problem = _distribution_problem(cluster) or _leftover_problem(cluster) or _tenant_name_problem(context)
    if problem is not None:
        return problem
    place = f"Citus {cluster.version}"
    if not cluster.distributed_tables:
        advice = schema.obstacle(cluster) or "`engram init` distributes the tables over its nodes"
        return Check("cluster", True, f"{place}; the store is on this server alone", advice)
    return Check("cluster", True, f"{place}, {len(cluster.distributed_tables)} tables over {_nodes(cluster.nodes)}")


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"


def _distribution_problem(cluster: Cluster) -> Check | None:
    """A problem if this is a worker, if tables are not distributed, or not colocated."""
    if not cluster.is_coordinator:
        return Check("cluster", False, f"a worker of Citus {cluster.version}", "connect to the coordinator")
    if cluster.distributed_tables and cluster.local_tables:
        names = ", ".join(table.name for table in cluster.local_tables)
        advice = f"`engram init` as {cluster.local_tables[0].owner} distributes them"
        return Check("cluster", False, f"not distributed: {names}", advice)
    first = next(iter(cluster.distributed_tables), None)
    apart = [table.name for table in cluster.distributed_tables if first is not None and table.group != first.group]
    if first is not None and apart:
        advice = (
            f"SELECT update_distributed_table_colocation('engram.{apart[0]}', colocate_with => '{first.full_name}')"
        )
        return Check("cluster", False, f"not colocated with {first.name}: {', '.join(apart)}", advice)
    return None


def _leftover_problem(cluster: Cluster) -> Check | None:
    if not cluster.leftover_tables:
        return None
    names = ", ".join(table.name for table in cluster.leftover_tables)
    advice = f"`engram init` as {cluster.leftover_tables[0].owner} empties them"
    return Check("cluster", False, f"rows remain on the coordinator, where a purge cannot reach them: {names}", advice)


def _tenant_name_problem(context: TenantContext) -> Check | None:
    """A problem if the tenant's name does not reach the workers; their policies then hide every row."""
    ((name, _),) = context.database.run("citus_reached")
    if name == context.database.tenant:
        return None
    advice = "set citus.propagate_set_commands to 'local'; check for a pooler between coordinator and workers"
    return Check("cluster", False, "the tenant's name does not reach the workers: its rows are hidden there", advice)


# -- the pooler


def _pooler(context: TenantContext) -> Check:
    with context.database.reading() as connection:
        direct = _pid(connection) == connection.info.backend_pid
        place, password = connection.info.dsn, connection.info.password
    if direct:
        return Check("pooler", True, "none: connected directly")
    mode = _mode(context, place, password)
    return Check("pooler", True, f"a pooler {mode}; statements are not prepared", _ADVICE.get(mode, ""))


_SHARED = "in transaction mode"
_OWN = "probably in session mode"
_UNKNOWN = f"of unknown mode: no second connection became free within {ANSWER_SECONDS:g} s"
_ADVICE = {
    _SHARED: "run `engram index --nearest` and purges as owner on the server directly: they need longer timeouts",
    _OWN: "each client occupies a server connection; in transaction mode many more clients can share them",
}


def _mode(context: TenantContext, place: str, password: str) -> str:
    """The pooler's mode: in transaction mode two connected clients can get the same server process."""
    # `closing`, not `with`: a connection that still waits for an answer cannot commit.
    with closing(psycopg.connect(place, password=password, autocommit=True)) as second:
        seen: set[int] = set()
        for _ in range(POOLER_TRIES):
            pid = _pid_within(second, ANSWER_SECONDS)
            if pid is None:
                return _UNKNOWN
            seen.add(pid)
            with context.database.reading() as first:
                shared = _pid(first) in seen
            if shared or len(seen) > 1:
                return _SHARED
    return _OWN


def _pid(connection: Connection) -> int:
    row = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(row[0]) if row else 0


def _pid_within(connection: Connection, seconds: float) -> int | None:
    """The server process that answers; None if none does in time, after which the connection is unusable."""
    server, deadline = connection.pgconn, time.monotonic() + seconds
    server.send_query(b"SELECT pg_backend_pid()")
    while server.is_busy():
        ready, _, _ = select.select([server.socket], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        server.consume_input()
    answer = server.get_result()
    while server.get_result() is not None:
        pass
    known = answer is not None and answer.status == pq.ExecStatus.TUPLES_OK
    return int(answer.get_value(0, 0) or 0) if answer is not None and known else None


# -- standbys


def _standbys(context: TenantContext) -> Check:
    if context.database.is_replica():
        return _replica_check(context)
    rows = context.database.run("standbys")
    ((names, level),) = context.database.run("commit_waits_for")
    hidden = [row for row in rows if row[1] is None]
    waited_for = [row for row in rows if row[2] in ("sync", "quorum")]
    detail = ", ".join(_standby(*row) for row in rows) or "none"
    if names and not rows:
        advice = "start it, or: ALTER SYSTEM SET synchronous_standby_names = ''; SELECT pg_reload_conf()"
        return Check("standbys", False, f"none, and every commit waits for one ({names})", advice)
    if hidden:
        waiting = "commits wait for one of them" if names else "commits do not wait for them"
        return Check("standbys", True, f"{detail}; {waiting}", f"only members of pg_monitor see their state: {_GRANT}")
    if names and not waited_for:
        advice = f"every commit waits until one of synchronous_standby_names ({names}) is connected"
        return Check("standbys", False, detail, advice)
    if names and level in ("off", "local"):
        return Check("standbys", True, detail, f"commits do not wait for them: synchronous_commit is {level}")
    if rows and not waited_for:
        return Check("standbys", True, detail, _MAY_LOSE)
    return Check("standbys", True, detail)


_GRANT = "GRANT pg_monitor TO the role"
_MAY_LOSE = "none is synchronous: a failover can lose acknowledged commits; docs/scaling.md shows the setting"


def _standby(name: str, state: str | None, sync: str | None, behind: int | None) -> str:
    known = [word for word in (state, {"async": "asynchronous", "sync": "synchronous"}.get(sync or "", sync)) if word]
    lag = [] if behind is None else [f"{behind:,} bytes behind"]
    return " ".join([f"{name}:", ", ".join([*known, *lag])]) if known or lag else name


def _replica_check(context: TenantContext) -> Check:
    ((unplayed, seconds, connected),) = context.database.run("following")
    known = [f"{unplayed:,} bytes received and not yet replayed"] if unplayed is not None else []
    known += [f"last change {seconds:,.0f} s ago"] if seconds is not None else []
    detail = f"this is one; {', '.join(known) or 'its lag is unknown'}"
    if connected:
        return Check("standbys", True, detail)
    advice = "it is not connected to its primary and falls behind, unless it is fed from an archive"
    return Check("standbys", True, detail, advice)


# -- compiling


def _jit(context: TenantContext) -> Check:
    ((value,),) = context.database.run("jit")
    return Check(
        "jit", True, "off" if value == "off" else "on at the server; Engram switches it off in its transactions"
    )


_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON|CREATE TABLE engram\.(\w+) \((?:[^;]*?)PRIMARY KEY", re.DOTALL)


def examine(context: TenantContext) -> list[Check]:
    """All checks; none changes anything."""
    return [
        _server(context),
        _extension(context),
        _schema(context),
        _indexes(context),
        _role(context),
        _privileges(context),
        *examine_topology(context),
        _index(context),
        _embedder(context),
    ]


def _server(context: TenantContext) -> Check:
    with context.database.reading() as connection:
        version = connection.info.server_version
        replica = context.database.is_replica()
    detail = f"Postgres {version // 10000}.{version % 10000}, {'a replica: reads only' if replica else 'a primary'}"
    if version // 10000 < LEAST_SERVER:
        return Check("server", False, detail, f"Engram needs Postgres {LEAST_SERVER} or newer")
    return Check("server", True, detail)


def _extension(context: TenantContext) -> Check:
    rows = context.database.run("extension")
    if not rows:
        return Check("extension", False, "pgvector is missing", "as an administrator, run: CREATE EXTENSION vector")
    if vector_version(rows[0][0]) < LEAST_VECTOR:
        return Check("extension", False, f"pgvector {rows[0][0]}", "ALTER EXTENSION vector UPDATE")
    return Check("extension", True, f"pgvector {rows[0][0]}")


def _schema(context: TenantContext) -> Check:
    with context.database.reading() as connection:
        version = version_of(connection)
    if version < LATEST_SCHEMA:
        return Check(
            "schema", False, f"version {version} of {LATEST_SCHEMA}", "run `engram init` with the owner's role"
        )
    return Check("schema", True, f"version {version}")


def expected_indexes() -> set[str]:
    """Names of the indexes that the migrations create."""
    found = set()
    for text in migrations().values():
        found |= {index or f"{table}_pkey" for index, table in _INDEX.findall(text)}
    return found


def _indexes(context: TenantContext) -> Check:
    known: dict[str, bool] = dict(context.database.run("indexes"))
    missing = sorted(expected_indexes() - set(known))
    broken = sorted(name for name, valid in known.items() if not valid)
    if missing:
        advice = "create them again with the statements of the migrations; docs/postgres.md says where they are"
        return Check("indexes", False, f"missing: {', '.join(missing)}", advice)
    if broken:
        return Check(
            "indexes", False, f"not valid: {', '.join(broken)}", f"REINDEX INDEX CONCURRENTLY engram.{broken[0]}"
        )
    return Check("indexes", True, f"{len(known)}, all valid")


def _role(context: TenantContext) -> Check:
    ((name, superuser, bypasses, *_),) = context.database.run("role")
    unsecured = [table for (table,) in context.database.run("unsecured")]
    if unsecured:
        advice = "ALTER TABLE … ENABLE ROW LEVEL SECURITY; ALTER TABLE … FORCE ROW LEVEL SECURITY"
        return Check("tenants", False, f"row security is off on {', '.join(unsecured)}", advice)
    if superuser or bypasses:
        power = "is a superuser" if superuser else "bypasses row security"
        return Check(
            "tenants", True, f"{name} {power}", "connect as an ordinary role, so that the server isolates tenants"
        )
    return Check("tenants", True, f"{name} sees only tenant {context.database.tenant}")


def _privileges(context: TenantContext) -> Check:
    lacking: dict[str, list[str]] = dict(context.database.run("lacking"))
    if not lacking:
        return Check("privileges", True, "may read and write")
    if not any("SELECT" in what for what in lacking.values()) and not context.database.run("writable"):
        return Check("privileges", True, "may read; every write is refused")
    named = ", ".join(f"{' and '.join(what)} on {table}" for table, what in lacking.items())
    return Check("privileges", False, f"lacks {named}", "roles.sql grants what is needed; see docs/postgres.md")


def _index(context: TenantContext) -> Check:
    generation = context.settings.generation
    documents = int(context.database.run("document_count")[0][0])
    vectors = int(context.database.run("vector_count", generation=generation)[0][0])
    detail = f"{documents} documents, {vectors} vectors"
    if strays := context.database.run("stray_documents", limit=10):
        return Check(
            "index", False, f"{detail}; {len(strays)} or more without a record", "run `engram index --rebuild`"
        )
    if lacking := [str(memory_id) for (memory_id,) in context.database.run("unindexed_memories", limit=10)]:
        named = f"{', '.join(lacking[:5])} {'and more ' if len(lacking) > 5 else ''}not in the index"
        return Check("index", False, f"{detail}; {named}", "run `engram index --rebuild`")
    name = neighbours.index_name(context.database.tenant, generation)
    if context.settings.get("hnsw") == generation and name not in neighbours.indexes_of(context.database):
        return Check("index", False, f"{detail}; the HNSW index {name} is missing", "run `engram index --nearest`")
    if vectors < documents and context.embedder is not None and context.settings.can_embed():
        missing = documents - vectors
        return Check("index", False, f"{detail}; {missing} lack a vector", "run `engram index --reembed`")
    if vectors >= neighbours.MIN_INDEX_VECTORS and context.settings.get("hnsw") != generation:
        advice = "`engram index --nearest` builds an HNSW index for this tenant"
        return Check("index", True, f"{detail}, searched exhaustively", advice)
    return Check("index", True, detail)


def _embedder(context: TenantContext) -> Check:
    there = context.settings.get("embedder")
    if context.embedder is None:
        return Check("embedder", True, "none: search is by keyword")
    if not context.settings.can_embed():
        detail = f"configured {context.embedder.name}, the store has {there or 'none'}; search is by keyword"
        return Check("embedder", False, detail, "run `engram index --reembed`")
    return Check("embedder", True, context.embedder.name)
