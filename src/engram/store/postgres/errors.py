"""Turns errors of the server and the driver into Engram's: what happened and what to do, never the password."""

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

_PASSWORD = re.compile(r"(://[^/\s:@]*:)[^@\s]{0,1000}@|(password=)('[^']*'|\S+)", re.IGNORECASE)


def shown_url(url: str) -> str:
    """A store's URL, safe to show: host, port and database, without user or password."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    host = str(parts.get("host") or parts.get("hostaddr") or "localhost")
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"postgresql://{host}:{parts.get('port') or 5432}/{parts.get('dbname') or parts.get('user') or ''}"


def is_readable(url: str) -> bool:
    """Whether a URL parses as intended: an unescaped / or @ in a password turns part of it into a host or a database."""
    try:
        parts = conninfo.conninfo_to_dict(url)
    except (psycopg.Error, UnicodeError):
        return False
    ports = str(parts.get("port") or "").replace(",", "")
    path = url.partition("://")[2].partition("?")[0].partition("/")[2]
    misread = "\0" in url or "@" in path or "@" in str(parts.get("host") or "")[1:]
    return not misread and (not ports or ports.isdigit())


def without_password(text: str) -> str:
    """A message of the driver with any password masked."""
    return _PASSWORD.sub(lambda found: f"{found.group(1)}***@" if found.group(1) else f"{found.group(2)}***", text)


@contextmanager
def translate_errors(where: str) -> Iterator[None]:
    """Turn errors of the driver into Engram's."""
    try:
        yield
    except EngramError:
        raise
    except (psycopg.Error, PoolTimeout) as error:
        raise to_engram_error(error, where) from error
    except UnicodeEncodeError as error:
        raise InvalidInput(
            f"the text contains half a surrogate pair, which cannot be stored ({error.reason}); remove it"
        ) from None


def to_engram_error(error: Exception, where: str) -> EngramError:
    """The error to raise for one of the driver's."""
    message = _first_line(error)
    for kinds, make in _KINDS:
        if isinstance(error, kinds):
            return make(message, where)
    if isinstance(error, psycopg.OperationalError) and (error.sqlstate or "08")[:2] in ("08", "57"):
        return _connection_error(message, where)
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"Postgres cannot store this ({message}); nothing was written. Change or remove it")
    return StoreError(f"{where}: {message}")


def _first_line(error: Exception) -> str:
    text = without_password(str(error)).strip() or type(error).__name__
    diagnosis = getattr(error, "diag", None)
    return str(getattr(diagnosis, "message_primary", None) or " ".join(text.split()))


def _connection_error(message: str, where: str) -> StoreError:
    """The error for a failed connection; only the message gives the reason."""
    if "password" in message or "authentication" in message or "no pg_hba.conf entry" in message:
        return _login_error(message, where)
    if "does not exist" in message and ("database" in message or "role" in message):
        return StoreDenied(f"{where}: {message}; create it, or correct ENGRAM_URL")
    if "starting up" in message or "shutting down" in message or "recovery" in message:
        return StoreUnreachable(f"{where}: {message}; try again when the server has started")
    if "too many" in message or "connection slots" in message:
        return _too_many_connections_error(message, where)
    return StoreUnreachable(
        f"cannot reach {where}: {message}; check that the server is running and that ENGRAM_URL is correct"
    )


def _login_error(message: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {message}; check user and password (ENGRAM_URL, PGPASSWORD or ~/.pgpass)")


def _privilege_error(message: str, where: str) -> StoreDenied:
    return StoreDenied(f"{where}: {message}; docs/postgres.md shows how to grant the privileges Engram needs")


def _read_only_error(message: str, where: str) -> StoreReadOnly:
    return StoreReadOnly(f"{where} is read-only ({message}); send writes to the primary, a replica only answers reads")


def _busy_error(message: str, where: str) -> StoreBusy:
    return StoreBusy(f"{where}: {message}; nothing was written; try again")


def _conflict_error(message: str, where: str) -> StoreBusy:
    return StoreBusy(
        f"{where}: {message}; another writer took this number or name, which can happen after a failover. Nothing was written; "
        "try again"
    )


def _out_of_space_error(message: str, where: str) -> StoreError:
    return StoreError(f"{where}: {message}; nothing was written")


def _too_long_error(message: str, where: str) -> InvalidInput:
    return InvalidInput(f"{where}: {message}; a name, key or session id is too long; shorten it")


def _too_many_connections_error(message: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(f"{where}: {message}; raise max_connections, or put a pooler in front of the server")


def _pool_error(message: str, where: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"{where}: no connection became free in time ({message}); the server may be down or overloaded"
    )


def _missing_schema_error(message: str, where: str) -> StoreError:
    return StoreError(f"{where}: {message}; the schema is incomplete; `engram doctor` shows what is missing")


_KINDS = (
    ((errors.InvalidPassword, errors.InvalidAuthorizationSpecification), _login_error),
    ((errors.InsufficientPrivilege,), _privilege_error),
    ((errors.ReadOnlySqlTransaction,), _read_only_error),
    (
        (errors.LockNotAvailable, errors.QueryCanceled, errors.DeadlockDetected, errors.SerializationFailure),
        _busy_error,
    ),
    ((errors.UniqueViolation,), _conflict_error),
    ((errors.ProgramLimitExceeded,), _too_long_error),
    ((errors.DiskFull, errors.OutOfMemory), _out_of_space_error),
    ((errors.TooManyConnections,), _too_many_connections_error),
    (
        (errors.UndefinedTable, errors.UndefinedColumn, errors.UndefinedFunction, errors.UndefinedObject),
        _missing_schema_error,
    ),
    ((PoolTimeout,), _pool_error),
)
