"""Operations on whole tenants of a server for the benchmarks: emptiness check, copies, the planner's statistics."""

from psycopg import sql

from engram.store.postgres.connections import connect, shown_url, translate_errors
from engram.store.postgres.database import Database
from engram.store.postgres.tenants import TENANT_TABLES


def is_empty(url: str, tenant: str) -> bool:
    """Whether a tenant has no document."""
    database = Database(url, tenant)
    try:
        return not database.query("SELECT 1 FROM engram.documents WHERE tenant = %(tenant)s LIMIT 1", {})
    finally:
        database.close()


def copy(admin: str, source: str, target: str, documents: int) -> None:
    """Copy a tenant's first documents and everything that belongs to them. The role must bypass row security."""
    with translate_errors(shown_url(admin)), connect(admin) as connection, connection.transaction():
        for table, columns in connection.execute(TENANT_TABLES).fetchall():
            kept = [name for name in columns if name != "tenant"]
            connection.execute(
                sql.SQL(
                    "INSERT INTO engram.{table} (tenant, {columns}) SELECT {target}, {columns} FROM engram.{table} t "
                    "WHERE t.tenant = {source} {first}"
                ).format(
                    table=sql.Identifier(table),
                    columns=sql.SQL(", ").join(map(sql.Identifier, kept)),
                    target=sql.Literal(target),
                    source=sql.Literal(source),
                    first=_first(columns, source, documents),
                )
            )


def _first(columns: list[str], source: str, documents: int) -> sql.Composable:
    """Restricts a table's rows to those of the first documents."""
    chosen = sql.SQL("(SELECT {{}} FROM engram.documents WHERE tenant = {source} ORDER BY n LIMIT {count})").format(
        source=sql.Literal(source), count=sql.Literal(documents)
    )
    for column in ("n", "id"):
        if column in columns and (column == "n" or "day" not in columns):
            inner = sql.SQL(chosen.as_string().replace("{}", column))
            return sql.SQL("AND t.{} IN ").format(sql.Identifier(column)) + inner
    return sql.SQL("")


def analyze(admin: str) -> None:
    """Update the planner's statistics of every table."""
    with translate_errors(shown_url(admin)), connect(admin) as connection:
        for table, _ in connection.execute(TENANT_TABLES).fetchall():
            connection.execute(sql.SQL("VACUUM ANALYZE engram.{}").format(sql.Identifier(table)))
