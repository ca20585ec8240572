"""What the doctor looks at on a server: its version, the extension, the schema, its indexes, and whose rows the role sees."""

import re

from engram.store.postgres import nearest
from engram.store.postgres.migrating import LATEST, LEAST_SERVER, LEAST_VECTOR, migrations, vector_version, version_of
from engram.store.postgres.parts import Parts
from engram.store.postgres.topology import examine_topology
from engram.store.protocol import Check

_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (\w+) ON|CREATE TABLE engram\.(\w+) \((?:[^;]*?)PRIMARY KEY", re.DOTALL)


def examine(parts: Parts) -> list[Check]:
    """Every check, worst news included; none changes anything."""
    return [
        _server(parts),
        _extension(parts),
        _schema(parts),
        _indexes(parts),
        _role(parts),
        _privileges(parts),
        *examine_topology(parts),
        _index(parts),
        _embedder(parts),
    ]


def _server(parts: Parts) -> Check:
    with parts.database.reading() as connection:
        version = connection.info.server_version
        replica = parts.database.is_replica(connection)
    detail = f"Postgres {version // 10000}.{version % 10000}, {'a replica: reads only' if replica else 'a primary'}"
    if version // 10000 < LEAST_SERVER:
        return Check("server", False, detail, f"Engram needs Postgres {LEAST_SERVER} or newer")
    return Check("server", True, detail)


def _extension(parts: Parts) -> Check:
    rows = parts.database.run("extension")
    if not rows:
        return Check("extension", False, "pgvector is missing", "an administrator runs: CREATE EXTENSION vector")
    if vector_version(rows[0][0]) < LEAST_VECTOR:
        return Check("extension", False, f"pgvector {rows[0][0]}", "ALTER EXTENSION vector UPDATE")
    return Check("extension", True, f"pgvector {rows[0][0]}")


def _schema(parts: Parts) -> Check:
    with parts.database.reading() as connection:
        version = version_of(connection)
    if version < LATEST:
        return Check(
            "schema", False, f"version {version} of {LATEST}", "`engram init` with the owner's role migrates it"
        )
    return Check("schema", True, f"version {version}")


def expected_indexes() -> set[str]:
    """Names of the indexes the migrations make."""
    found = set()
    for text in migrations().values():
        found |= {index or f"{table}_pkey" for index, table in _INDEX.findall(text)}
    return found


def _indexes(parts: Parts) -> Check:
    known: dict[str, bool] = dict(parts.database.run("indexes"))
    missing = sorted(expected_indexes() - set(known))
    broken = sorted(name for name, valid in known.items() if not valid)
    if missing:
        advice = "make them again: the statements are in the migrations, docs/postgres.md says where"
        return Check("indexes", False, f"missing: {', '.join(missing)}", advice)
    if broken:
        return Check(
            "indexes", False, f"not valid: {', '.join(broken)}", f"REINDEX INDEX CONCURRENTLY engram.{broken[0]}"
        )
    return Check("indexes", True, f"{len(known)}, all valid")


def _role(parts: Parts) -> Check:
    ((name, superuser, bypasses, *_),) = parts.database.run("role")
    unsecured = [table for (table,) in parts.database.run("unsecured")]
    if unsecured:
        advice = "ALTER TABLE … ENABLE ROW LEVEL SECURITY; ALTER TABLE … FORCE ROW LEVEL SECURITY"
        return Check("tenants", False, f"row security is off on {', '.join(unsecured)}", advice)
    if superuser or bypasses:
        power = "is a superuser" if superuser else "bypasses row security"
        return Check(
            "tenants", True, f"{name} {power}", "connect as an ordinary role, so that the server keeps tenants apart"
        )
    return Check("tenants", True, f"{name} sees only tenant {parts.database.tenant}")


def _privileges(parts: Parts) -> Check:
    lacking: dict[str, list[str]] = dict(parts.database.run("lacking"))
    if not lacking:
        return Check("privileges", True, "may read and write")
    if not any("SELECT" in what for what in lacking.values()) and not parts.database.run("writable"):
        return Check("privileges", True, "may read; every write is refused")
    named = ", ".join(f"{' and '.join(what)} on {table}" for table, what in lacking.items())
    return Check("privileges", False, f"lacks {named}", "roles.sql grants what is needed, docs/postgres.md says how")


def _index(parts: Parts) -> Check:
    generation = parts.facts.generation
    documents = int(parts.database.run("document_count")[0][0])
    vectors = int(parts.database.run("vector_count", generation=generation)[0][0])
    detail = f"{documents} documents, {vectors} vectors"
    if strays := parts.database.run("stray_documents", limit=10):
        return Check(
            "index", False, f"{detail}; {len(strays)} or more without a record", "run `engram index --rebuild`"
        )
    name = nearest.index_name(parts.database.tenant, generation)
    if parts.facts.get("hnsw") == generation and name not in nearest.indexes_of(parts.database):
        return Check("index", False, f"{detail}; the HNSW index {name} is gone", "run `engram index --nearest`")
    if vectors < documents and parts.embedder is not None and parts.facts.can_embed():
        missing = documents - vectors
        return Check("index", False, f"{detail}; {missing} lack a vector", "run `engram index --reembed`")
    if vectors >= nearest.WORTHWHILE and parts.facts.get("hnsw") != generation:
        advice = "`engram index --nearest` makes an HNSW index for this tenant"
        return Check("index", True, f"{detail}, searched one by one", advice)
    return Check("index", True, detail)


def _embedder(parts: Parts) -> Check:
    there = parts.facts.get("embedder")
    if parts.embedder is None:
        return Check("embedder", True, "none: search is by keyword")
    if not parts.facts.can_embed():
        detail = f"configured {parts.embedder.name}, the store holds {there or 'none'}; search is by keyword"
        return Check("embedder", False, detail, "run `engram index --reembed`")
    return Check("embedder", True, parts.embedder.name)
