"""Which store a caller means: a directory of files, or a tenant of a Postgres server."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    pass

DEFAULT_TENANT = "default"
SCHEMES = ("postgresql", "postgres")


@dataclass(frozen=True, slots=True)
class Server:
    """A tenant of a Postgres server. The URL may hold a password: it is never shown."""

    url: str
    tenant: str


def requested_server(
    home: str | Path | None = None, url: str | None = None, tenant: str | None = None, *, ephemeral: bool = False
) -> Server | None:
    """The server a caller means, by argument or by `$ENGRAM_URL`; None where the store is one of files.

    A server's URL in the place of a home means the server: a folder of that name, password and all, is nobody's wish.
    """
    if url is None and isinstance(home, str) and home.partition("://")[0].lower() in SCHEMES:
        home, url = None, home
    given = [name for name, said in (("home", home), ("url", url is not None), ("ephemeral", ephemeral)) if said]
    if len(given) > 1:
        raise InvalidInput(f"{' and '.join(given)} name two stores; give one of them")
    if not given:
        url = os.environ.get("ENGRAM_URL", "").strip() or None
    if url is None:
        if tenant is not None:
            raise InvalidInput("a tenant is part of a Postgres server; give its url, or set $ENGRAM_URL")
        return None
    return Server(checked_url(url), _checked_tenant(tenant))


def checked_url(url: str) -> str:
    """The URL; `InvalidInput` unless it is a Postgres server's."""
    if url.partition("://")[0].lower() not in SCHEMES:
        raise InvalidInput("the store's URL (url=, $ENGRAM_URL) must begin with postgresql://, as in "
                           "postgresql://user@host:5432/database")  # fmt: skip
    return url


def _checked_tenant(tenant: str | None) -> str:
    if tenant is None:
        return os.environ.get("ENGRAM_TENANT", "").strip() or DEFAULT_TENANT
    if not tenant.strip():
        raise InvalidInput(f"the tenant is empty; name one, or leave it out for {DEFAULT_TENANT!r}")
    return tenant


def owner_config() -> Path | None:
    """The settings of whoever runs this, wherever the memories are: `config.toml` of the usual home. None without a home."""
    from engram.store.files.home import default_root

    try:
        return default_root().expanduser().absolute() / "config.toml"
    except InvalidInput:
        return None
