"""The PostgreSQL server of a test run: one for all workers, started when the first test needs it."""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.postgres import keeper
from tests.postgres.keeper import Kept

KEEPER = Path(keeper.__file__)
START_SECONDS = 200.0
END_SECONDS = 120.0


class Lease:
    """A folder whose server runs as long as the lease is held; the kernel ends it for a process that dies."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="engram-run-"))
        self._alive: IO[str] = (self.folder / "alive").open("w")
        fcntl.flock(self._alive, fcntl.LOCK_EX)
        os.register_at_fork(after_in_child=self._alive.close)  # a forked child would hold the lock beyond our end

    def end(self) -> None:
        """Let go, and wait until server and data are gone."""
        self._alive.close()
        deadline = time.monotonic() + END_SECONDS
        while (self.folder / "keeper").exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"the PostgreSQL server of {self.folder} did not end within {END_SECONDS} s")
            time.sleep(0.01)
        shutil.rmtree(self.folder, ignore_errors=True)


def running_server(
    folder: Path, settings: Mapping[str, str] | None = None, like: Kept | None = None, follows: Kept | None = None
) -> Kept:
    """The server of a lease; the first to ask starts it, the others wait. Raises with the log if it does not start.

    `like` is one whose programs it runs, `follows` one whose standby it is.
    """
    with (folder / "starting").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (folder / "log").exists():
            given = {"like": asdict(like) if like else None, "follows": asdict(follows) if follows else None}
            _start_keeper(folder, {"server": dict(settings or {}), **given})
        return _reported(folder)


def _start_keeper(folder: Path, settings: Mapping[str, Any]) -> None:
    (folder / "keeper").touch()
    with (folder / "log").open("wb") as log:
        command = [sys.executable, str(KEEPER), str(folder), json.dumps(settings)]
        started = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True
        )  # fmt: skip
    # It outlives the process that started it; without this, Python warns of that.
    started.returncode = 0


def _reported(folder: Path) -> Kept:
    deadline = time.monotonic() + START_SECONDS
    while not (folder / "server.json").exists():
        if not (folder / "keeper").exists() or time.monotonic() > deadline:
            raise RuntimeError(f"PostgreSQL did not start:\n{(folder / 'log').read_text(errors='replace')}")
        time.sleep(0.01)
    return Kept(**json.loads((folder / "server.json").read_text()))


@contextmanager
def durable_server(like: Kept | None) -> "Iterator[Server]":
    """A server to be stopped, restarted and killed; it writes through to disk as in production."""
    lease = Lease()
    settings = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    try:
        kept = running_server(lease.folder, settings, like)
        yield Server(kept.admin_url, kept)
    finally:
        lease.end()


@dataclass(frozen=True, slots=True)
class Server:
    """A PostgreSQL server and its superuser. Everyone shares it: restart only one that is your own."""

    admin_url: str
    kept: Kept | None = None

    @property
    def data(self) -> Path:
        """The data directory; only for a server of our own."""
        return Path(self._own.data)

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is what a crash looks like."""
        keeper.stop(self._own, mode)

    def start(self) -> None:
        """Start it again, at the same address, with the same data."""
        keeper.start(self._own)

    def restart(self, mode: str = "fast") -> None:
        """Stop and start."""
        self.stop(mode)
        self.start()

    def admin(self, dbname: str = "postgres") -> psycopg.Connection:
        """A connection of the superuser; every statement commits by itself."""
        return psycopg.connect(at_database(self.admin_url, dbname), autocommit=True)

    @property
    def _own(self) -> Kept:
        assert self.kept is not None, "a server given by ENGRAM_TEST_URL cannot be stopped: use own_server"
        return self.kept


@dataclass(frozen=True, slots=True)
class Role:
    """An ordinary account: it owns its databases and nothing else, and row-level security binds it."""

    server: Server
    name: str
    password: str

    def url(self, dbname: str) -> str:
        """Where this role reaches a database."""
        parts = urlsplit(self.server.admin_url)
        address = parts.netloc.rpartition("@")[2]
        return urlunsplit(
            parts._replace(netloc=f"{quote(self.name)}:{quote(self.password)}@{address}", path=f"/{dbname}")
        )


def at_database(url: str, dbname: str) -> str:
    """The same server and account, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{quote(dbname)}"))


@contextmanager
def ordinary_role(server: Server) -> Iterator[Role]:
    """A role of its own, and gone afterwards."""
    role = Role(server, f"engram_{secrets.token_hex(6)}", secrets.token_hex(8))
    name = sql.Identifier(role.name)
    with server.admin() as admin:
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(name, sql.Literal(role.password)))
    try:
        yield role
    finally:
        with server.admin() as admin:
            admin.execute(sql.SQL("DROP ROLE {}").format(name))


@contextmanager
def fresh_database(role: Role, like: str | None = None) -> Iterator[str]:
    """A database of the role, with pgvector; its URL. Dropped afterwards, whoever is still connected.

    Empty, or a copy of the one at a URL, which nobody uses any more.
    """
    dbname = f"engram_{secrets.token_hex(6)}"
    template = urlsplit(like).path.lstrip("/") if like else "template0"
    create = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE {} ENCODING 'UTF8' STRATEGY file_copy")
    name, owner = sql.Identifier(dbname), sql.Identifier(role.name)
    with role.server.admin() as admin:
        _wait_until_left(admin, template)
        admin.execute(create.format(name, owner, sql.Identifier(template)))
    try:
        if like is None:
            with role.server.admin(dbname) as inside:
                inside.execute("CREATE EXTENSION vector")
        yield role.url(dbname)
    finally:
        with role.server.admin() as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


def _wait_until_left(admin: psycopg.Connection, dbname: str) -> None:
    """A connection that was closed ends a little later; while one is there, its database cannot be copied."""
    deadline = time.monotonic() + END_SECONDS
    while admin.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", (dbname,)).fetchone():
        if time.monotonic() > deadline:
            raise TimeoutError(f"somebody is still connected to {dbname} after {END_SECONDS} s")
        time.sleep(0.01)
