"""What the server or the driver complains of, as Engram's own errors: what happened, and what to do. Never the password."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import conninfo, errors
from psycopg_pool import PoolTimeout

from engram.model.errors import (
    EngramError,
    InvalidInput,
    StoreBusy,
    StoreDenied,
    StoreError,
    StoreReadOnly,
    StoreUnreachable,
)

_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^@\s]*@|(password=)('[^']*'|\S+)", re.IGNORECASE)


def shown_url(url: str) -> str:
    """Where a store lives, safe to show: host, port and database, without user or password."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or parts.get('user') or ''}"


def is_readable(url: str) -> bool:
    """Whether a URL says what its author meant: an unescaped / or @ in the password makes part of it a host or a database."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):
        return False
    ports = str(parts.get("port") or "").replace(",", "")
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    misread = "\0" in url or "@" in path or "@" in str(parts.get("host") or "")[1:]
    return not misread and (not ports or ports.isdigit())


def without_password(text: str) -> str:
    """A complaint of the driver, with any password in it masked."""
    return _PASSWORD.sub(lambda found: f"{found.group(1)}***@" if found.group(1) else f"{found.group(2)}***", text)


@contextmanager
def explained(where: str) -> Iterator[None]:
    """Turn errors of the driver into Engram's."""
    try:
        yield
    except EngramError:
        raise
    except (psycopg.Error, PoolTimeout) as error:
        raise explanation(error, where) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(f"half a surrogate pair cannot be stored ({error.reason}); remove it") from None


def explanation(error: Exception, where: str) -> EngramError:
    """The error to raise for one of the driver's."""
    words = _first_line(error)
    for kinds, made in _KINDS:
        if isinstance(error, kinds):
            return made(words, where)
    if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57"):
        return _connecting(words, where)
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"Postgres cannot hold this ({words}); change or remove it, nothing was written")
    return StoreError(f"{where}: {words}")


def _first_line(error: Exception) -> str:
    text = without_password(str(error)).strip() or type(error).__name__
    diagnosis = getattr(error, "diag", None)
    return str(getattr(diagnosis, "message_primary", None) or " ".join(text.split()))


def _connecting(words: str, where: str) -> StoreError:
    """A failed connection says why only in words."""
    if "password" in words or "authentication" in words or "no pg_hba.conf entry" in words:
        return _denied(words, where)
    if "does not exist" in words and ("database" in words or "role" in words):
        return StoreDenied(f"{where}: {words}; create it, or correct ENGRAM_URL")
    if "starting up" in words or "shutting down" in words or "recovery" in words:
        return StoreUnreachable(f"{where}: {words}; try again when the server has started")
    if "too many" in words or "connection slots" in words:
        return _crowded(words, where)
    return StoreUnreachable(f"cannot reach {where}: {words}; is the server running, and ENGRAM_URL right?")


def _denied(words: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {words}; check user and password (ENGRAM_URL, PGPASSWORD or ~/.pgpass)")


def _privilege(words: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {words}; docs/postgres.md has the statements that grant what Engram needs")


def _read_only(words: str, where: str) -> StoreReadOnly:
    return StoreReadOnly(f"{where} accepts no writes ({words}); a replica answers questions, writes go to the primary")


def _busy(words: str, where: str) -> StoreBusy:
    return StoreBusy(f"{where}: {words}; nothing was written, try again")


def _taken(words: str, where: str) -> StoreBusy:
    return StoreBusy(
        f"{where}: {words}; another writer has taken this number or name, as may happen after a failover. Nothing was written, "
        "try again"
    )


def _full(words: str, where: str) -> StoreError:
    return StoreError(f"{where}: {words}; nothing was written")


def _too_long(words: str, where: str) -> InvalidInput:
    return InvalidInput(f"{where}: {words}; a name, key or session id this long cannot be looked up, shorten it")


def _crowded(words: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(f"{where}: {words}; raise max_connections, or put a pooler in front of the server")


def _pool(words: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(f"{where}: no connection came free in time ({words}); the server is down or overloaded")


def _missing(words: str, where: str) -> StoreError:
    return StoreError(f"{where}: {words}; the schema is not whole, `engram doctor` says what is missing")


_KINDS = (
    ((errors.InvalidPassword, errors.InvalidAuthorizationSpecification), _denied),
    ((errors.InsufficientPrivilege,), _privilege),
    ((errors.ReadOnlySqlTransaction,), _read_only),
    ((errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected, errors.SerializationFailure), _busy),
    ((errors.UniqueViolation,), _taken),
    ((errors.ProgramLimitExceeded,), _too_long),
    ((errors.DiskFull, errors.OutOfMemory), _full),
    ((errors.TooManyConnections,), _crowded),
    ((errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.UndefinedObject), _missing),
    ((PoolTimeout,), _pool),
)
