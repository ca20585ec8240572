"""A store that was filled once, copied to wherever a test wants it: filling it anew takes ten times as long."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

from psycopg import sql

from engram.store.defaults import Server as Place
from engram.store.home import open_home
from engram.store.migration.transfer import Endpoint
from tests.postgres.server import Server

COPIED_COLUMNS = (
    "SELECT c.relname::text, array_agg(a.attname::text) FROM pg_attribute a"
    " JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = 'engram' AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND a.attnum > 0"
    " AND NOT a.attisdropped AND a.attgenerated = '' GROUP BY c.relname HAVING 'tenant' = ANY(array_agg(a.attname))"
)


def copy(source: Endpoint, target: Endpoint, server: Server | None = None) -> None:
    """Everything that lies at one end, also at the other, which is of the same kind and empty."""
    if source.server is not None and target.server is not None:
        assert server is not None
        copy_tenant(source.server, target.server, server)
    else:
        assert source.directory is not None and target.directory is not None
        copy_home(source.directory, target.directory)


def copy_home(source: Path, target: Path) -> None:
    """The files and the index made of them; each has its cache beside it."""
    shutil.copytree(source, target)
    here, there = (open_home(home, home.parent / "cache") for home in (source, target))
    shutil.copytree(here.index, there.index)


def copy_tenant(source: Place, target: Place, server: Server) -> None:
    """Every row of a tenant, under another name in the same database."""
    assert source.url == target.url
    with server.admin(urlsplit(source.url).path.lstrip("/")) as admin, admin.transaction():
        tables = admin.execute(COPIED_COLUMNS).fetchall()
        assert tables, "no table has a tenant"
        for table, columns in tables:
            others = sql.SQL(", ").join(sql.Identifier(name) for name in sorted(columns) if name != "tenant")
            admin.execute(
                sql.SQL("INSERT INTO {0} (tenant, {1}) SELECT %s, {1} FROM {0} WHERE tenant = %s").format(
                    sql.Identifier("engram", table), others
                ),
                (target.tenant, source.tenant),
            )
