"""Whoever can write to the disk or the tables, past Engram."""

import contextlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import psycopg

from engram.store.files.store.backend import FilesStore
from engram.store.protocol import Store
from tests.backends import Backend, OnPostgres
from tests.postgres.server import Server

Record = dict[str, Any]
Word = tuple[str, str, str]
"""An entry of the journal: what was done, in which ledger, and its reason."""


class Tamper(ABC):
    """Changes what the store keeps, as text."""

    @abstractmethod
    def ledger(self, session: str, change: Callable[[list[Record]], list[Record]], *, to: str = "") -> None:
        """Write a ledger's records changed, in their place or as another's ledger."""

    @abstractmethod
    def journal(self, stays: Callable[[Word], bool]) -> int:
        """Take entries out of the journal; say how many."""


class _InFiles(Tamper):
    def __init__(self, store: FilesStore) -> None:
        self._parts = store.context

    def ledger(self, session: str, change: Callable[[list[Record]], list[Record]], *, to: str = "") -> None:
        lines = self._parts.ledger.path(session).read_text("utf-8").splitlines()
        held = change([json.loads(line) for line in lines])
        text = "".join(json.dumps(r, ensure_ascii=False, separators=(",", ":")) + "\n" for r in held)
        self._parts.ledger.path(to or session).write_text(text, "utf-8")

    def journal(self, stays: Callable[[Word], bool]) -> int:
        gone = 0
        for month in self._parts.journal.months():
            path = self._parts.journal.path(month)
            lines = path.read_text("utf-8").splitlines(keepends=True)
            kept = [line for line in lines if stays(_word(json.loads(line)))]
            path.write_text("".join(kept), "utf-8")
            gone += len(lines) - len(kept)
        return gone


def _word(entry: Record) -> Word:
    return entry["op"], entry.get("session", ""), entry.get("reason", "")


class _InTables(Tamper):
    def __init__(self, admin: psycopg.Connection, tenant: str) -> None:
        self._admin, self._tenant = admin, tenant

    def ledger(self, session: str, change: Callable[[list[Record]], list[Record]], *, to: str = "") -> None:
        run = self._admin.execute
        query = "SELECT record::text FROM engram.agent_events WHERE tenant = %s AND session = %s ORDER BY seq"
        held = change([json.loads(record) for (record,) in run(query, (self._tenant, session))])
        for table in ("agent_events", "ledger_heads"):
            run(f"DELETE FROM engram.{table} WHERE tenant = %s AND session = %s".encode(), (self._tenant, session))
        for seq, record in enumerate(held, 1):
            row = (self._tenant, record["id"], to or session, seq, record.get("key", ""), json.dumps(record))
            run(
                "INSERT INTO engram.agent_events (tenant, id, session, seq, key, record) VALUES (%s, %s, %s, %s, %s, %s)",
                row,
            )
        head = (self._tenant, to or session, len(held), held[-1]["digest"])
        run("INSERT INTO engram.ledger_heads VALUES (%s, %s, %s, %s)", head)

    def journal(self, stays: Callable[[Word], bool]) -> int:
        run = self._admin.execute
        rows = run("SELECT seq, op, session, reason FROM engram.journal WHERE tenant = %s", (self._tenant,)).fetchall()
        gone = [seq for seq, *word in rows if not stays((word[0], word[1], word[2]))]
        run("DELETE FROM engram.journal WHERE tenant = %s AND seq = ANY(%s)", (self._tenant, gone))
        return len(gone)


@contextlib.contextmanager
def tampering(backend: Backend, store: Store, server: Callable[[], Server]) -> Iterator[Tamper]:
    """A way past Engram into its store."""
    if isinstance(store, FilesStore):
        yield _InFiles(store)
        return
    assert isinstance(backend, OnPostgres)
    with server().admin(urlsplit(backend.url).path.lstrip("/")) as admin:
        yield _InTables(admin, backend.tenant)
