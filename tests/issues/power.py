"""A machine that loses power: only what was fsynced is sure to be there afterwards."""

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engram import Engram

State = bytes | None
"""A file's content; None where there is no file."""


class Machine:
    """A store on a disk that remembers what it was made to keep. Every start has a boot id of its own."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.home, self.cache, self._aside = folder / "home", folder / "cache", folder / "aside"
        self._patch, self._boots = patch, 0
        self._states: dict[Path, list[State]] = {}
        """What each memory file may hold after a power loss: its states since it was last durable, the newest last."""
        self._kept: dict[Path, bytes] = {}
        self._sizes: dict[Path, int] = {}
        self._names: dict[Path, set[str]] = {}
        self._fsync = os.fsync
        patch.setattr(os, "fsync", self._noticed)
        patch.setattr(os, "sync", self._kept_all)
        self.start()

    def start(self) -> None:
        """The machine starts anew."""
        self._boots += 1
        self._patch.setattr("engram.store.files.log.journal.boot_id", lambda: f"boot-{self._boots}")

    def open(self) -> Engram:
        """The store, by keyword: vectors are derived."""
        return Engram.open(self.home, cache=self.cache, directory=self.home.parent, embedder="none")

    def look(self) -> None:
        """Note what the memory files say now; after every operation."""
        here = {path: path.read_bytes() for path in self.home.glob("engrams/**/*.yaml")}
        for path in {*here, *self._states}:
            states = self._states.setdefault(path, [None])
            if states[-1] != here.get(path):
                states.append(here.get(path))

    def _noticed(self, descriptor: int) -> None:
        self._fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        self.look()
        if path.is_file():
            self._kept[path] = path.read_bytes()
            self._sizes[path] = path.stat().st_size
            return
        self._names[path] = {child.name for child in path.iterdir()}
        for known, states in self._states.items():
            if known.parent == path and (states[-1] is None or self._kept.get(known) == states[-1]):
                self._states[known] = [states[-1]]

    def _kept_all(self) -> None:
        self.look()
        self._states = {path: states[-1:] for path, states in self._states.items()}

    def is_durable(self, path: Path) -> bool:
        """Whether what a file says, and its name, were waited for."""
        return path.name in self._names.get(path.parent, ()) and path.read_bytes() in self._kept.values()

    def uncertain(self) -> dict[Path, list[State]]:
        """The files that a power loss may change, with all they may be."""
        self.look()
        return {path: states for path, states in sorted(self._states.items()) if len(states) > 1}

    @contextmanager
    def losing_power(self, chosen: random.Random) -> Iterator[Engram]:
        """A store in use; when the block ends the machine stops, and starts again with what its disk kept."""
        with self.open() as mem:
            yield mem
            lost = self.uncertain()
            shutil.copytree(self.home, self._aside / "home")
            shutil.copytree(self.cache, self._aside / "cache")
            sizes = dict(self._sizes)
        for folder in (self.home, self.cache):
            shutil.rmtree(folder)
            (self._aside / folder.name).rename(folder)
        for path, states in lost.items():
            put(path, chosen.choice([*states, *damaged(states[-1], chosen)]))
        for path in self.home.glob("journal/*.jsonl"):
            data = path.read_bytes()
            path.write_bytes(data[: chosen.randint(min(sizes.get(path, 0), len(data)), len(data))])
        if chosen.random() < 0.3:
            shutil.rmtree(self.cache)
        self._states, self._kept = {}, {}
        self.look()
        self._states = {path: states[-1:] for path, states in self._states.items()}
        self.start()


def put(path: Path, state: State) -> None:
    """Make a file be as told."""
    if state is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(state)


def damaged(state: State, chosen: random.Random) -> list[State]:
    """What is left of content that was never waited for: nothing, zeros, a beginning."""
    if not state:
        return []
    return [b"", b"\0" * len(state), state[: chosen.randrange(len(state))]]
