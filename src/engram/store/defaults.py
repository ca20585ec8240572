"""Defaults for values that a caller does not give: the store (a directory or a tenant of a server), clock and randomness."""

import os
from datetime import UTC, datetime
from pathlib import Path

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass

DEFAULT_TENANT = "default"
SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Server:
    """A tenant of a Postgres server. The URL may contain a password and is never shown."""

    url: str
    tenant: str


def requested_server(
    home: str | Path | None = None, url: str | None = None, tenant: str | None = None, *, ephemeral: bool = False
) -> Server | None:
    """The server given by argument or by `$ENGRAM_URL`; None for a store of files.

    A server's URL given as home also means the server, to avoid a directory named after it, password included.
    """
    if url is None and isinstance(home, str) and home.partition("://")[0].lower() in SCHEMES:
        home, url = None, home
    given = [name for name, value in (("home", home), ("url", url is not None), ("ephemeral", ephemeral)) if value]
    if len(given) > 1:
        raise InvalidInput(f"{' and '.join(given)} name two stores; give only one")
    if not given:
        url = os.environ.get("ENGRAM_URL", "").strip() or None
    if url is None:
        if tenant is not None:
            raise InvalidInput("a tenant needs a Postgres server; give its url, or set $ENGRAM_URL")
        return None
    return Server(checked_url(url), _checked_tenant(tenant))


def checked_url(url: str) -> str:
    """Check a URL; raises `InvalidInput` unless it is a Postgres server's."""
    if url.partition("://")[0].lower() not in SCHEMES:
        raise InvalidInput("the store's URL (url=, $ENGRAM_URL) must begin with postgresql://, as in "
                           "postgresql://user@host:5432/database")  # fmt: skip
    return url


def _checked_tenant(tenant: str | None) -> str:
    if tenant is None:
        return os.environ.get("ENGRAM_TENANT", "").strip() or DEFAULT_TENANT
    if not tenant.strip():
        raise InvalidInput(f"the tenant is empty; give a name, or omit it for {DEFAULT_TENANT!r}")
    return tenant


def owner_config() -> Path | None:
    """The user's settings for stores on a server: `config.toml` of the default home; None if there is no home."""
    from engram.store.home import default_root

    try:
        return default_root().expanduser().absolute() / "config.toml"
    except InvalidInput:
        return None


def utc_now() -> datetime:
    """The current time in milliseconds precision, which stays readable in a file."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def random_hex(size: int) -> str:
    """Random bytes as hex digits."""
    return os.urandom(size).hex()
