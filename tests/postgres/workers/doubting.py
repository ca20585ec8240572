"""Every kind of write at once, each held where its client waits for the answer to a COMMIT, until a test says what becomes of it."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from engram import Engram
from engram.model.errors import StoreError
from tests.postgres.standby import Pair
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.cutting import Link, Wire, wire
from tests.postgres.workers.enduring import DONE, NOT_SAID, REFUSED, UNKNOWN
from tests.postgres.workers.writes import WRITES, Write

PATIENCE = 120.0
SEVERAL_TABLES = ("learn", "add_batch", "observe", "purge")
"""Writes of which each table of the store holds a part."""


@dataclass(slots=True)
class Doubt:
    """One write through a wire of its own: stopped at its COMMIT."""

    verb: str
    write: Write
    tenant: str
    laid: Wire
    mem: Engram
    watching: Engram
    """The same store past the wire."""
    state: Any
    arrived: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)
    link: Link | None = None
    links: int = 0
    """How many connections there had been when the wire was led elsewhere."""
    commit: bytes = b""
    told: "Future[str] | None" = None

    def begin(self, threads: ThreadPoolExecutor) -> None:
        """Write, up to the COMMIT: the server has not heard of that."""
        self.laid.arm(self._stop, statement=self.write.mark)
        self.told = threads.submit(self._carry_out)

    def _stop(self, link: Link, data: bytes) -> None:
        link.muted, link.held = True, self.released
        self.link, self.commit = link, data
        self.arrived.set()

    def _carry_out(self) -> str:
        try:
            self.write.carry_out(self.mem, self.state)
        except StoreError as error:
            return f"{UNKNOWN if NOT_SAID in str(error) else REFUSED}: {error}"
        return DONE

    def commit_it(self, *, aloud: bool = False) -> None:
        """Let the server have the COMMIT; its client hears the answer only if it is said `aloud`."""
        assert self.link is not None
        if aloud:
            self.link.muted, self.link.held = False, None
        self.link.server.sendall(self.commit)

    def lead_to(self, port: int) -> None:
        """The wire leads to another server."""
        self.laid.target, self.links = (self.laid.target[0], port), len(self.laid.links)

    def break_off(self) -> None:
        """The client's connection is broken; the server does not know."""
        assert self.link is not None
        self.link.client.shutdown(2)

    @property
    def traces(self) -> float:
        """How often it is there."""
        return float(self.write.traces(self.watching, self.state))

    @property
    def outcome(self) -> str:
        """What the client was told in the end."""
        assert self.told is not None
        return self.told.result(PATIENCE).partition(":")[0]


class Doubts:
    """All of them, on a database of their own."""

    def __init__(self, url: str, all_of_them: list[Doubt]) -> None:
        self.url, self._all = url, all_of_them

    def each(self, do: Callable[[Doubt], object]) -> None:
        """Do the same with all of them."""
        for doubt in self._all:
            do(doubt)

    def begin(self, threads: ThreadPoolExecutor) -> None:
        """Write, until each is stopped at its COMMIT."""
        self.each(lambda doubt: doubt.begin(threads))
        for doubt in self._all:
            assert doubt.arrived.wait(PATIENCE), f"{doubt.verb} never came to its commit: {doubt.told}"

    def commit(self) -> None:
        """All reach the server, and it has committed them."""
        self.each(Doubt.commit_it)
        for doubt in self._all:
            assert doubt.link is not None
            assert doubt.link.answered.wait(PATIENCE), f"{doubt.verb} was not committed"

    def release(self) -> None:
        """The clients notice that their connections are broken."""
        self.each(lambda doubt: doubt.released.set())

    @property
    def count(self) -> int:
        return len(self._all)

    def lead_to(self, port: int) -> None:
        """From now on every wire leads to another server."""
        self.each(lambda doubt: doubt.lead_to(port))

    @property
    def asked_since(self) -> bool:
        """Whether each has come through its wire again since that leads elsewhere."""
        return all(len(doubt.laid.links) > doubt.links for doubt in self._all)

    @property
    def none_is_told(self) -> bool:
        """Whether nobody has been told anything yet."""
        return not any(doubt.told is not None and doubt.told.done() for doubt in self._all)

    def outcomes(self) -> dict[str, tuple[str, float]]:
        """What each was told, and how often it is there."""
        return {doubt.verb: (doubt.outcome, doubt.traces) for doubt in self._all}

    def write_again(self) -> dict[str, float]:
        """Each once more, by the clients that were refused; how often it is there then."""
        self.each(lambda doubt: doubt.write.carry_out(doubt.mem, doubt.state))
        return {doubt.verb: doubt.traces for doubt in self._all}

    def disagreements(self) -> list[str]:
        """What does not fit together in the tables of those that have memories or ledgers."""
        return [
            complaint
            for doubt in self._all
            if doubt.verb in SEVERAL_TABLES
            for complaint in disagreements(self.url, doubt.tenant)
        ]


@contextlib.contextmanager
def doubts(servers: Pair, tenant: str, *, one_address: bool = False) -> Iterator[Doubts]:
    """Every kind of write, each by a tenant of its own and stopped at its COMMIT. Nobody waits for anything afterwards.

    Clients know both servers and look for the one that takes writes; or they know `one_address`, behind which it changes.
    """
    url = servers.new_database()
    dbname = urlsplit(url).path.lstrip("/")
    with contextlib.ExitStack() as opened:
        threads = opened.enter_context(ThreadPoolExecutor(len(WRITES)))
        made = []
        for number, (verb, write) in enumerate(WRITES.items()):
            own = f"{tenant}-{number}"
            watching = opened.enter_context(Engram.open(url=url, tenant=own))
            state = write.prepare(watching)
            assert write.traces(watching, state) == 0
            laid = opened.enter_context(wire(servers.primary.admin_url))
            ports = (laid.port,) if one_address else (laid.port, servers.standby_port)
            through = servers.url(dbname, *ports, any_server=one_address)
            mem = opened.enter_context(Engram.open(url=through, tenant=own))
            made.append(Doubt(verb, write, own, laid, mem, watching, state))
        every = Doubts(url, made)
        opened.callback(every.release)
        every.begin(threads)
        yield every
