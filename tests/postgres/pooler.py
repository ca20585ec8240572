"""PgBouncer in front of a server of the tests: in transaction mode, without prepared statements, gone with whoever asked for it.

Run as a program of its own (`python -m tests.postgres.pooler`) it keeps one PgBouncer. It is told on stdin what to do, a JSON
object a line, and answers each on stdout. When stdin ends, however its other end came to that, so do PgBouncer and its files.
"""

import contextlib
import json
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit, urlunsplit

from tests.postgres.keeper import free_port, open_place, service_account

ROOT = Path(__file__).parents[2]
SERVER_CONNECTIONS = 20
START_SECONDS = 60.0
END_SECONDS = 60.0
PORTS_TRIED = 3
PLACES = ("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin")
"""Where it is installed, besides PATH: Debian puts it where only root looks."""
MISSING = (
    "these tests run against PgBouncer, and there is no program `pgbouncer` here: `apt-get install pgbouncer` on Debian "
    "and Ubuntu, `brew install pgbouncer` on macOS"
)
KNOWS_PREPARED = (1, 21)
"""From this version on it would keep prepared statements apart; here it must not, as Debian's 1.18 does not."""


def program() -> str:
    """Where PgBouncer is. Where it is not, a test is left out, and says what to install; in CI that is an error."""
    found = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), *PLACES]))
    if found is None and "PYTEST_CURRENT_TEST" in os.environ and "CI" not in os.environ:
        import pytest

        pytest.skip(MISSING)
    if found is None:
        raise RuntimeError(MISSING)
    return found


def version_of(binary: str) -> tuple[int, ...]:
    """The version of a PgBouncer."""
    told = subprocess.run(
        [binary, "--version"], capture_output=True, text=True, timeout=START_SECONDS, check=True
    ).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", told)
    assert found is not None, told
    return tuple(map(int, found.groups()))


# -- what a test has


@dataclass(slots=True)
class Pooler:
    """A PgBouncer that runs; whoever may log in at its server may do so here."""

    port: int
    password: str
    pid: int
    place: str
    """The folder of its files."""
    _process: "subprocess.Popen[str]"

    def through(self, url: str) -> str:
        """The same account and database, reached through the pooler."""
        parts = urlsplit(url)
        account = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{account}@127.0.0.1:{self.port}"))

    @property
    def console(self) -> str:
        """The URL of its own console, which answers `SHOW POOLS` and the like; simple queries only."""
        return f"postgresql://console:{self.password}@127.0.0.1:{self.port}/pgbouncer"

    def kill(self) -> None:
        """End it as a crash does: every connection breaks at once."""
        _ask(self._process, {"do": "kill"})

    def start(self) -> None:
        """Start it again, at the same address."""
        self.pid = _ask(self._process, {"do": "start"})["pid"]

    def restart(self) -> None:
        """Kill and start."""
        self.kill()
        self.start()


@contextlib.contextmanager
def pooler(admin_url: str, connections: int = SERVER_CONNECTIONS, **settings: str) -> Iterator[Pooler]:
    """A PgBouncer in front of the server of a superuser's URL, with so many connections to it for each account and database."""
    program()
    parts = urlsplit(admin_url)
    asked = {"host": parts.hostname, "port": parts.port or 5432, "user": parts.username, "password": parts.password}
    keeping = subprocess.Popen(
        [sys.executable, "-m", "tests.postgres.pooler"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        cwd="/", env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip
    try:
        own = {"default_pool_size": str(connections), **settings}
        told = _ask(keeping, {"do": "begin", "server": asked, "settings": own})
        yield Pooler(told["port"], told["password"], told["pid"], told["place"], keeping)
    finally:
        with keeping:
            _pipe(keeping.stdin).close()
            keeping.wait(END_SECONDS)


def _ask(keeping: "subprocess.Popen[str]", order: Mapping[str, Any]) -> dict[str, Any]:
    _pipe(keeping.stdin).write(json.dumps(order) + "\n")
    _pipe(keeping.stdin).flush()
    line = _pipe(keeping.stdout).readline()
    told: dict[str, Any] = json.loads(line) if line else {"failed": "what keeps PgBouncer has ended"}
    if "failed" in told:
        raise RuntimeError(told["failed"])
    return told


def _pipe(pipe: "IO[str] | None") -> "IO[str]":
    assert pipe is not None
    return pipe


# -- what keeps it


@dataclass(slots=True)
class _Kept:
    """A PgBouncer as its keeper has it."""

    place: Path
    account: str
    server: Mapping[str, Any]
    settings: Mapping[str, str]
    password: str
    port: int = 0
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def told(self) -> dict[str, Any]:
        """What whoever asked needs to know."""
        pid = self.process.pid if self.process is not None else 0
        return {"port": self.port, "password": self.password, "pid": pid, "place": str(self.place)}

    def begin(self) -> None:
        """Start on a free port; one that somebody else took in the meantime is no reason to give up."""
        for tried in range(PORTS_TRIED):
            self.port = free_port()
            self._configure()
            try:
                self.start()
            except RuntimeError:
                if tried == PORTS_TRIED - 1:
                    raise
            else:
                return

    def start(self) -> None:
        """Start, and return when somebody listens."""
        entry = pwd.getpwnam(self.account) if self.account else None
        who: dict[str, Any] = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []} if entry else {}
        with (self.place / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [program(), str(self.place / "pgbouncer.ini")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.place, start_new_session=True, **who,
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"PgBouncer did not start:\n{(self.place / 'log').read_text(errors='replace')}")
            time.sleep(0.01)

    def kill(self) -> None:
        """End it at once."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(END_SECONDS)
            self.process = None

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False

    def _configure(self) -> None:
        wanted = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "unix_socket_dir": "",
            "pool_mode": "transaction",
            "max_client_conn": "1000",
            "auth_type": "scram-sha-256",
            "auth_file": str(self.place / "users"),
            "auth_user": self.server["user"],
            "auth_query": "SELECT usename, passwd FROM pg_catalog.pg_shadow WHERE usename = $1",
            "admin_users": "console",
            "log_connections": "0",
            "log_disconnections": "0",
            **({"max_prepared_statements": "0"} if version_of(program()) >= KNOWS_PREPARED else {}),
            **self.settings,
        }
        lines = [
            "[databases]",
            f"* = host={self.server['host']} port={self.server['port']}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in wanted.items()),
        ]
        users = {self.server["user"]: self.server["password"] or "", "console": self.password}
        self._write("users", [f'"{name}" "{password}"' for name, password in users.items()])
        self._write("pgbouncer.ini", lines)

    def _write(self, name: str, lines: list[str]) -> None:
        path = self.place / name
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o600)
        if self.account:
            shutil.chown(path, self.account)


def main() -> None:
    """Keep one PgBouncer as long as somebody holds the other end of stdin."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, lambda caught, frame: sys.exit(128 + caught))
    account = service_account()
    place = open_place(account)
    kept: _Kept | None = None
    try:
        for line in sys.stdin:
            order = json.loads(line)
            try:
                if order["do"] == "begin":
                    kept = _Kept(place, account, order["server"], order["settings"], secrets.token_hex(8))
                    kept.begin()
                elif kept is not None:
                    kept.start() if order["do"] == "start" else kept.kill()
                told = kept.told if kept is not None else {}
            except (RuntimeError, OSError) as error:
                told = {"failed": str(error)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
    finally:
        if kept is not None:
            kept.kill()
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
