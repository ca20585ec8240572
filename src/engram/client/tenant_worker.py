"""One worker for all tenants of a server, fair between them."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Self

from engram.capture.jobs import KINDS
from engram.client.engram import Engram, Setup
from engram.model.arguments import checked_limit
from engram.model.errors import EngramError, InvalidInput
from engram.sessions.jobs import MAX_JOBS_AT_ONCE, RoundRobin, WorkerTurn, WorkResult, add_jitter, retry_transient
from engram.store.defaults import Server, owner_config, requested_server, utc_now

if TYPE_CHECKING:
    from engram.gates.policies import MemoryPolicy
    from engram.store.postgres.tenants import DueTenants

MAX_OPEN_TENANTS = 256
"""Maximum tenants whose stores stay open; the least recently used one is closed for the next."""
MAX_IDLE_FACTOR = 5
"""Maximum factor by which the pause of an idle worker grows."""


class AllTenantsWorker:
    """Runs the jobs of every tenant of a Postgres server, with the settings of this process.

    Open it with `AllTenantsWorker.open()`; use it as a context manager, from one thread. Tenants take turns, one job each, so
    a long queue delays no other tenant for more than a round. A paused tenant is skipped, and so is one whose store cannot be
    opened. All of them share the connections of this process.
    """

    def __init__(self, url: str, setup: Setup, clock: Callable[[], datetime], due: "DueTenants") -> None:
        self._url, self._setup, self._clock, self._due = url, setup, clock, due
        self._open: OrderedDict[str, Engram] = OrderedDict()
        self._turns = RoundRobin(lambda: due.names(clock()), self._work)

    @classmethod
    def open(
        cls,
        url: str | None = None,
        *,
        embedder: str | None = None,
        policy: "str | MemoryPolicy" = "",
        clock: Callable[[], datetime] | None = None,
    ) -> Self:
        """For the tenants of a server, `$ENGRAM_URL` unless named. `embedder` and `policy` override the settings."""
        server = requested_server(url=url)
        if server is None:
            raise InvalidInput(
                "Only a Postgres server has tenants; give its url, or set $ENGRAM_URL. "
                "For a store of files, `engram worker` runs the jobs"
            )
        setup = Setup.of(owner_config(), embedder, policy)
        now = clock or utc_now
        from engram.store.postgres.setup import open_due_tenants

        return cls(server.url, setup, now, open_due_tenants(server.url, KINDS))

    def next_turn(self) -> WorkerTurn | None:
        """Run one job of the tenant whose turn it is; None if nothing is due now.

        The turn has the `tenant`, `worked` (the job done, retried or dead; empty if another worker was faster), and
        `failed`: why the tenant's store cannot be used. Raises `StoreUnreachable` if the server cannot be reached.
        """
        return self._turns.next()

    def work(self, limit: int = 100) -> list[WorkerTurn]:
        """Run everything due now for all tenants, up to `limit` jobs.

        Returns the turns in which something was done or failed.
        """
        turns: list[WorkerTurn] = []
        left = checked_limit(limit, most=MAX_JOBS_AT_ONCE)
        while left and (turn := self.next_turn()) is not None:
            if turn.worked or turn.failed:
                turns.append(turn)
            left -= bool(turn.worked)
        return turns

    def run(
        self, stop: threading.Event, idle_seconds: float = 1.0, report: Callable[[WorkerTurn], None] | None = None
    ) -> None:
        """Work until `stop` is set, then finish the current job. `report` gets each turn in which something was done or failed.

        With nothing to do it checks again after about `idle_seconds`, and less often the longer that lasts. A server that
        cannot be reached is retried for about 15 minutes.
        """
        idle = 1.0
        while not stop.is_set():
            turn = retry_transient(self.next_turn, stop)
            if turn is None:
                stop.wait(add_jitter(idle_seconds * idle))
                idle = min(2 * idle, MAX_IDLE_FACTOR)
            elif turn.worked or turn.failed:
                idle = 1.0
                if report is not None:
                    report(turn)

    def close(self) -> None:
        """Close the stores and the connections."""
        while self._open:
            self._open.popitem()[1].close()
        self._due.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self, tenant: str) -> WorkResult | None:
        try:
            mem = self._client(tenant)
            return None if mem.upkeep.paused else mem.jobs.work(1)
        except Exception:
            self._forget(tenant)
            raise

    def _client(self, tenant: str) -> Engram:
        """A tenant's client, opened on its turn."""
        known = self._open.get(tenant)
        if known is None:
            known = self._open[tenant] = Engram._on_server(
                Server(self._url, tenant), self._setup, self._clock, create=False
            )
            while len(self._open) > MAX_OPEN_TENANTS:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(tenant)
        return known

    def _forget(self, tenant: str) -> None:
        """Close a tenant's client after an error, so that the next turn opens it again."""
        known = self._open.pop(tenant, None)
        if known is not None:
            with suppress(EngramError):
                known.close()
