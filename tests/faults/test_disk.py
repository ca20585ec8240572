"""A full disk and a read-only directory: a clear error, nothing half-written, reading still works."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from tests.faults.consistency import assert_consistent, assert_journal_and_files_agree, scratch
from tests.faults.processes import finish, start
from tests.faults.workers.operations import sentence

SMALL = "4m"
BALLAST = {"both": 1_500_000, "home": 3_400_000, "cache": 1_500_000}
"""Bytes that fill the small disk beforehand, by what else is on it."""


@contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a file system of four megabytes; returns whether the system allowed it."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SMALL}", "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _assert_told_and_whole(home: Path, cache: Path, answer: dict[str, Any]) -> None:
    assert answer["kept"] and answer["told"]
    assert all(told.startswith(("StoreReadOnly", "StoreBusy", "StoreError")) for told in answer["told"]), answer["told"]
    with Engram.open(home, cache=cache, directory=home) as mem:
        assert {i: mem.get(i).statement[:40] for i in answer["kept"]} == answer["kept"]
        assert mem.add(sentence(5000)).statement == sentence(5000)
        assert mem.store.verify_ledgers() == []
        statements = [memory.statement for memory in mem.list(limit=None, scope="everywhere")]
        assert len(statements) == len(set(statements))
    assert_consistent(home, cache)


@pytest.mark.parametrize("full", ["both", *(pytest.param(one, marks=pytest.mark.heavy) for one in ("home", "cache"))])
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, full: str) -> None:
    with small_disk(tmp_path / "small") as mounted:
        home = (tmp_path / "small" if full != "cache" else tmp_path) / "home"
        cache = (tmp_path / "small" if full != "home" else tmp_path) / "cache"
        ballast = tmp_path / "small" / "ballast"
        ballast.write_bytes(b"\0" * BALLAST[full])
        [answer] = finish(start("unwritable", "fill" if mounted else "bounded", str(home), str(cache)))
        ballast.unlink()
        _assert_told_and_whole(home, cache, answer)


def test_files_that_may_not_grow_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    [answer] = finish(start("unwritable", "bounded", str(home), str(cache)))
    shutil.rmtree(cache)
    _assert_told_and_whole(home, cache, answer)


@pytest.mark.parametrize("indexed", [True, False], ids=["with an index", "without an index"])
def test_a_read_only_home_can_be_queried(indexed: bool) -> None:
    with scratch() as folder:
        folder.chmod(0o755)
        home, cache = folder / "home", folder / "cache"
        with Engram.open(home, cache=cache if indexed else folder / "other", directory=home) as mem:
            mem.add_batch([{"statement": sentence(n)} for n in range(8)])
        cache.mkdir(exist_ok=True)
        _open_to_all(cache)
        _forbid(home)
        try:
            [answer] = finish(start("unwritable", "read_only", str(home), str(cache)))
        finally:
            _allow(home)
        assert answer["found"] == [sentence(3)] and sentence(4) in answer["recalled"] and answer["injected"]
        for verb in ("learn", "feedback", "observe", "purge"):
            assert answer[verb].startswith("StoreReadOnly"), (verb, answer[verb])
        assert answer["doctor"][:1] == ["home"], answer["doctor"]
        assert any("cannot" in warning for warning in answer["warned"]) or indexed
        assert_consistent(home, folder / "third")


def _open_to_all(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o777 if path.is_dir() else 0o666)


def _forbid(home: Path) -> None:
    for path in [*home.rglob("*"), home]:
        path.chmod(0o555 if path.is_dir() else 0o444)


def _allow(home: Path) -> None:
    for path in [home, *home.rglob("*")]:
        path.chmod(0o700 if path.is_dir() else 0o600)


def test_an_error_names_the_place_where_no_store_can_be_created(tmp_path: Path) -> None:
    from engram.model.errors import StoreReadOnly

    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreReadOnly, match="cannot create a store in"):
        Engram.open(tmp_path / "file" / "home", cache=tmp_path / "cache")
    with pytest.raises(StoreReadOnly, match="ENGRAM_CACHE"):
        Engram.open(tmp_path / "home", cache=tmp_path / "file" / "cache")


@pytest.mark.heavy
def test_a_statement_of_five_megabytes_is_stored(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    words = " ".join(f"item{n % 5000}" for n in range(520_000))
    text = f"Zanzibar opens the list: {words}"[: 5 * 1024 * 1024]
    with Engram.open(home, cache=cache, directory=home) as mem:
        memory = mem.add(text)
        mem.add(sentence(1))
        assert mem.get(memory.id).statement == text
        assert mem.search("zanzibar list")[0].id == memory.id
        assert mem.search(sentence(1))[0].text == sentence(1)
    assert_journal_and_files_agree(home)
