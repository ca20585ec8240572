"""Two servers of which one follows the other: the first is killed, the second promoted, and so on, as often as wanted."""

import contextlib
import secrets
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from psycopg import sql

from tests.postgres import keeper
from tests.postgres.keeper import Kept
from tests.postgres.server import Lease, Server, running_server
from tests.postgres.workers.acknowledged import wait_for

SETTINGS = {
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "wal_retrieve_retry_interval": "100ms",
    # Segments of the other kinds would outlive a server that is killed.
    "dynamic_shared_memory_type": "mmap",
}
FOLLOWER = "walreceiver"
"""What a standby calls itself. With `*` the program that copies the primary would count as one, too."""
HAS_PROCESSES = Path("/proc/self/cwd").exists()
"""Whether this machine says which processes belong to a server: without that it cannot be killed at once."""


@dataclass(slots=True)
class Pair:
    """A primary and its standby, which change places; one role owns the databases that are made here."""

    primary: Server
    standby: Server
    ports: tuple[int, int]
    synchronous: bool
    role: str
    password: str

    # -- databases

    def new_database(self) -> str:
        """The URL of an empty database, by which clients find whichever of the two takes writes."""
        name = f"engram_{secrets.token_hex(6)}"
        with self.primary.admin() as admin:
            create = sql.SQL("CREATE DATABASE {} OWNER {} TEMPLATE template0 ENCODING 'UTF8'")
            admin.execute(create.format(sql.Identifier(name), sql.Identifier(self.role)))
        with self.primary.admin(name) as inside:
            inside.execute("CREATE EXTENSION vector")
        return self.url(name)

    def _drop_databases(self) -> None:
        """Those of earlier tests: a copy for a new standby is the sooner made without them."""
        with self.primary.admin() as admin:
            for (name,) in admin.execute("SELECT datname FROM pg_database WHERE datname LIKE 'engram%'").fetchall():
                admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def url(self, dbname: str, *ports: int, any_server: bool = False) -> str:
        """Where clients reach a database: both servers, or these ports; whichever takes writes, or any that answers."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports or self.ports)
        which = "any" if any_server else "read-write"
        account = f"{quote(self.role)}:{quote(self.password)}"
        return f"postgresql://{account}@{hosts}/{dbname}?target_session_attrs={which}"

    @property
    def primary_port(self) -> int:
        """Where the primary listens."""
        return _kept(self.primary).port

    @property
    def standby_port(self) -> int:
        """Where the standby listens."""
        return _kept(self.standby).port

    # -- failing over

    def kill_primary(self) -> None:
        """The primary and all its processes are gone at once."""
        self.kill(self.primary)

    def kill(self, server: Server) -> None:
        """One of the two and all its processes are gone at once."""
        keeper.kill(_kept(server))

    def promote(self, *, waits: bool = False) -> None:
        """The standby takes over. It waits for a standby of its own from the first commit on, or once there is one."""
        self._wait_for_standbys(self.standby, waits)
        keeper.promote(_kept(self.standby))
        self.primary, self.standby = self.standby, self.primary

    def promote_and_crash(self, after: float) -> None:
        """The standby dies so many seconds after it was told to take over, is started again, and takes over then."""
        standby = _kept(self.standby)
        self._wait_for_standbys(self.standby, False)
        with ThreadPoolExecutor(1) as beside, contextlib.suppress(RuntimeError):
            promoting = beside.submit(keeper.promote, standby)
            time.sleep(after)
            keeper.kill(standby)
            promoting.result()
        self.standby.start()
        with self.standby.admin() as admin:
            ((follows,),) = admin.execute("SELECT pg_is_in_recovery()").fetchall()
        if follows:
            keeper.promote(standby)
        self.primary, self.standby = self.standby, self.primary

    def keep(self, *, synchronous: bool) -> None:
        """Whether commits wait for the standby, from now on."""
        self.synchronous = synchronous
        self._wait_for_standbys(self.primary, synchronous)

    def fail_over(self) -> None:
        """The primary dies, the standby takes over."""
        self.kill_primary()
        self.promote()

    def rejoin(self) -> None:
        """The one that is not the primary begins anew as its standby, whatever it was or held."""
        keeper.kill(_kept(self.standby))
        keeper.copy(_kept(self.primary), _kept(self.standby))
        self.standby.start()
        self.wait_until_in_step()
        self._wait_for_standbys(self.primary, self.synchronous)

    def restore(self) -> None:
        """Make sure that both run and one follows, and that commits wait for it or do not, as asked for."""
        if not keeper.processes_in(_kept(self.primary).data):
            self.primary.start()
        self._wait_for_standbys(self.primary, False)
        self._drop_databases()
        with self.primary.admin() as admin:
            follows = admin.execute("SELECT 1 FROM pg_stat_replication WHERE state = 'streaming'").fetchone()
        if follows is None:
            self.rejoin()
        else:
            self.keep(synchronous=self.synchronous)

    def wait_until_in_step(self) -> None:
        """Until the standby holds all that the primary holds now."""
        with self.primary.admin() as admin:
            (now,) = admin.execute("SELECT pg_current_wal_flush_lsn()").fetchone() or ("",)
            held = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND replay_lsn >= %s"
            wait_for(lambda: admin.execute(held, (now,)).fetchone() is not None, "the standby keeps up")

    @contextmanager
    def standby_cut_off(self) -> Iterator[None]:
        """Within, nothing the primary writes reaches the standby; afterwards it follows again, if it still is one."""
        standby = self.standby
        with standby.admin() as admin:
            ((followed,),) = admin.execute("SELECT current_setting('primary_conninfo')").fetchall()
            self._follow(standby, "")
            gone = "SELECT 1 FROM pg_stat_wal_receiver"
            wait_for(lambda: admin.execute(gone).fetchone() is None, "the standby is cut off")
        try:
            yield
        finally:
            if standby is self.standby:
                self._follow(standby, followed)

    def _follow(self, standby: Server, whom: str) -> None:
        with standby.admin() as admin:
            admin.execute(sql.SQL("ALTER SYSTEM SET primary_conninfo = {}").format(sql.Literal(whom)))
            admin.execute("SELECT pg_reload_conf()")

    def _wait_for_standbys(self, server: Server, wanted: bool) -> None:
        """Whether commits wait until a standby holds them, from when this returns."""
        names = FOLLOWER if wanted else ""
        with server.admin() as admin:
            admin.execute(sql.SQL("ALTER SYSTEM SET synchronous_standby_names = {}").format(sql.Literal(names)))
            admin.execute("SELECT pg_reload_conf()")
            asked = "SELECT current_setting('synchronous_standby_names')"
            wait_for(lambda: admin.execute(asked).fetchone() == (names,), "the setting arrives")
            # Whether commits wait is for the checkpointer to say: it has read the setting before it does this.
            admin.execute("CHECKPOINT")

    # -- a server that hangs

    @contextmanager
    def hung(self, server: Server) -> Iterator[None]:
        """A server that does nothing, neither answer nor end, and comes back afterwards unless it was killed."""
        keeper.send(signal.SIGSTOP, keeper.processes_in(_kept(server).data))
        try:
            yield
        finally:
            keeper.send(signal.SIGCONT, keeper.processes_in(_kept(server).data))


def _kept(server: Server) -> Kept:
    assert server.kept is not None
    return server.kept


@contextmanager
def pair(like: Kept | None, *, synchronous: bool, fsync: bool = False) -> Iterator[Pair]:
    """A primary and a standby in step with it, gone afterwards. Killed processes lose nothing the kernel has: no need for `fsync`."""
    with contextlib.ExitStack() as leases:
        settings = {**SETTINGS, "fsync": "on" if fsync else "off"}
        primary = _running(leases, settings, like, None)
        standby = _running(leases, settings, primary.kept, primary.kept)
        role, password = f"engram_{secrets.token_hex(6)}", secrets.token_hex(8)
        with primary.admin() as admin:
            made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(password))
            admin.execute(made)
        made_pair = Pair(primary, standby, (_kept(primary).port, _kept(standby).port), synchronous, role, password)
        made_pair.wait_until_in_step()
        made_pair._wait_for_standbys(primary, synchronous)
        yield made_pair


def _running(leases: contextlib.ExitStack, settings: dict[str, str], like: Kept | None, follows: Kept | None) -> Server:
    lease = Lease()
    leases.callback(lease.end)
    kept = running_server(lease.folder, settings, like, follows)
    return Server(kept.admin_url, kept)
