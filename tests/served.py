"""A store that is not kept in files, without a server: what lies above the protocol must not notice the difference."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engram.model.errors import StoreError
from engram.store.files.store.backend import FilesStore
from engram.store.home import open_home

URL = "postgresql://ada:hunter2hunter2@db.example/memory"
PLACE = "postgresql://ada@db.example/memory"


class Served:
    """Everything the protocol offers, and nothing of the files it is made of."""

    place = PLACE

    def __init__(self, store: FilesStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        if name == "context":
            raise AttributeError("a server's store has no files")
        return getattr(self._store, name)

    def file_of(self, memory_id: str) -> str:
        """None."""
        return ""

    def facts(self) -> Mapping[str, Any]:
        """The files' own, less what only files have."""
        found = dict(self._store.facts())
        index = {name: value for name, value in found["index"].items() if name != "path"}
        return {**found, "store": PLACE, "index": index}


class Backend:
    """Stands in for the Postgres backend: keeps what it was asked for, and serves one store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.asked, self.down = folder, list[dict[str, Any]](), False

    def open_store(self, url: str, tenant: str, embedder: Any, *, clock: Any, create: bool = True) -> Any:
        """The store, under the name the client looks it up by."""
        if self.down:
            raise StoreError(f"cannot reach {PLACE}")
        self.asked.append({"url": url, "tenant": tenant, "embedder": embedder, "clock": clock, "create": create})
        home = open_home(self.folder / "served", self.folder / "served-cache")
        return Served(FilesStore(home, embedder, clock=clock))


def plugged_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """A backend that `Engram.open` finds where the one for Postgres would be."""
    backend = Backend(folder)
    module = SimpleNamespace(open_store=backend.open_store, prepare_server=lambda url: [])
    monkeypatch.setitem(sys.modules, "engram.store.postgres.setup", module)
    return backend
