"""A wire between client and server that breaks at the moment a test chooses: when a transaction is about to be committed."""

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

CHUNK = 1 << 16
PATIENCE = 60.0


@dataclass(slots=True)
class Link:
    """One connection through the wire."""

    client: socket.socket
    server: socket.socket
    seen: bool = False
    muted: bool = False
    sent: bytearray = field(default_factory=bytearray)
    """All that the client has sent."""
    answered: threading.Event = field(default_factory=threading.Event)
    """The server has answered something that the client was not told."""
    held: threading.Event | None = None
    """While it is not set, the client does not notice what becomes of the server."""

    def close(self) -> None:
        """Break it, for both sides."""
        for end in (self.client, self.server):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


Cut = Callable[[Link, bytes], None]


def before_it_is_sent(link: Link, _: bytes) -> None:
    """The server never hears of the commit."""
    link.close()


def after_it_was_sent(link: Link, data: bytes) -> None:
    """The server commits; its answer is lost."""
    link.muted = True
    link.server.sendall(data)


@dataclass(slots=True)
class Wire:
    """Passes bytes on. Once armed, one of the next COMMITs on connections that wrote to the marked table is cut, once."""

    target: tuple[str, int]
    listening: socket.socket
    links: list[Link] = field(default_factory=list)
    cut: Cut | None = None
    marker: bytes = b""
    spared: int = 0
    happened: threading.Event = field(default_factory=threading.Event)

    @property
    def port(self) -> int:
        """Where the wire begins, on this machine."""
        return int(self.listening.getsockname()[1])

    def through(self, url: str) -> str:
        """The same database, reached through the wire."""
        parts = urlsplit(url)
        account = parts.netloc.rpartition("@")[0]
        return urlunsplit(parts._replace(netloc=f"{account}@127.0.0.1:{self.port}"))

    def arm(self, cut: Cut, table: str = "", *, statement: str = "", spared: int = 0) -> None:
        """Cut the next commit of a transaction that wrote to this table, or that holds this piece of a statement.

        Without either it is the next commit of any transaction, those that are spared left out.
        """
        statement = f"INTO engram.{table} " if table else statement
        for link in self.links:
            link.seen = not statement
        self.marker, self.cut, self.spared = statement.encode(), cut, spared

    def serve(self) -> None:
        """Accept until the wire is taken down."""
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.target, PATIENCE)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            # Else each piece waits until the other side has acknowledged the one before.
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(client, server, seen=not self.marker)
            self.links.append(link)
            for pump in (self._to_server, self._to_client):
                threading.Thread(target=self._pumping, args=(pump, link), daemon=True).start()

    def _pumping(self, pump: Callable[[Link], None], link: Link) -> None:
        with contextlib.suppress(OSError):
            pump(link)
        if link.held is not None:
            link.held.wait(PATIENCE)
        link.close()

    def _to_server(self, link: Link) -> None:
        while data := link.client.recv(CHUNK):
            link.sent += data
            link.seen = link.seen or bool(self.marker and self.marker in data)
            meant = self.cut is not None and link.seen and b"COMMIT" in data
            if meant and self.spared:
                self.spared -= 1
                meant = False
            if self.cut is not None and meant:
                cut, self.cut = self.cut, None
                cut(link, data)
                self.happened.set()
            else:
                link.server.sendall(data)

    def _to_client(self, link: Link) -> None:
        while data := link.server.recv(CHUNK):
            if link.muted:
                link.answered.set()
                if link.held is None:
                    return
            else:
                link.client.sendall(data)


@contextlib.contextmanager
def wire(url: str) -> Iterator[Wire]:
    """A wire to the server of a URL, taken down afterwards."""
    parts = urlsplit(url)
    assert parts.hostname is not None and parts.port is not None
    listening = socket.create_server(("127.0.0.1", 0))
    laid = Wire((parts.hostname, parts.port), listening)
    serving = threading.Thread(target=laid.serve, daemon=True)
    serving.start()
    try:
        yield laid
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        for link in laid.links:
            link.close()
        serving.join(PATIENCE)
