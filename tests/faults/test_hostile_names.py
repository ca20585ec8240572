"""Scopes, names, ids and archives that try to leave the store."""

import io
import json
import tarfile
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import EngramError, InvalidInput, StoreCorrupt
from engram.model.records import Session
from engram.store.files.store.backup import restore
from engram.store.home import scope_folder
from tests.faults.consistency import assert_consistent
from tests.homes import home_of

HOSTILE = ["..", "../..", "../../etc/passwd", "/etc/passwd", "a/../../b", "a\0b", "a\nb", ".", "~root", "a\\b", "C:\\x"]


def _inside(root: Path, allowed: set[str]) -> None:
    """Nothing was created next to the store."""
    assert {path.name for path in root.iterdir()} == allowed


@pytest.mark.parametrize("name", HOSTILE)
def test_a_scope_cannot_leave_its_folder(tmp_path: Path, name: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        for scope in (f"project:{name}", name):
            try:
                memory = mem.add("Otters hold hands", scope=scope)
            except EngramError as error:
                assert str(error)
                continue
            assert (home_of(mem).engrams / scope_folder(scope)).resolve().parent == home_of(mem).engrams.resolve()
            assert mem.get(memory.id).scope == scope
    _inside(tmp_path, {"home", "cache"})
    assert_consistent(tmp_path / "home", tmp_path / "cache")


@pytest.mark.parametrize("name", [*HOSTILE, "x" * 5000])
def test_an_id_written_by_hand_cannot_lead_a_file_out_of_the_store(tmp_path: Path, name: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        records = [{"id": name, "statement": "First of two"}, {"id": "ENG-2026-0101-001", "statement": "Second"}]
        (home_of(mem).engrams / "mine.yaml").write_text(json.dumps(records), "utf-8")
        told = mem.upkeep.sync()
        if name in told.added:
            assert mem.update(name, statement="Changed, and split into a file of its own").id == name
            assert mem.get(name).statement.startswith("Changed")
        else:
            assert told.problems
    _inside(tmp_path, {"home", "cache"})


@pytest.mark.parametrize("name", HOSTILE)
def test_a_session_id_cannot_leave_the_ledger(tmp_path: Path, name: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        mem.observe(name, "user", "hello from here")
        mem.observe(name + "x", "user", "hello from there")
        assert [event.content for event in mem.store.events(name)] == ["hello from here"]
        assert mem.store.load_record(Session, name) is None
    _inside(tmp_path, {"home", "cache"})
    assert_consistent(tmp_path / "home", tmp_path / "cache")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_memory_may_have_any_printable_name(tmp_path: Path, name: str) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        try:
            memory = mem.add("Otters hold hands", name=name, aliases=[name + "!"])
        except EngramError as error:
            assert str(error)
        else:
            assert mem.get(name).id == memory.id
    _inside(tmp_path, {"home", "cache"})
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def _archive(path: Path, members: list[tuple[tarfile.TarInfo, bytes]], manifest: dict[str, str] | None = None) -> Path:
    listed = json.dumps({"made": "2026-01-01T00:00:00+00:00", "files": manifest or {}}).encode()
    with tarfile.open(path, "w:gz") as archive:
        for info, data in [*members, (tarfile.TarInfo("MANIFEST.json"), listed)]:
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def _link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    "member",
    [
        tarfile.TarInfo("../escaped"),
        tarfile.TarInfo("/tmp/escaped-absolutely"),
        tarfile.TarInfo("engrams/../../escaped"),
        _link("engrams", "/etc"),
        _link("engrams/inside", "../journal"),
        _link("store.json", "/etc/passwd", tarfile.LNKTYPE),
        tarfile.TarInfo("not-in-the-manifest"),
    ],
    ids=lambda member: f"{member.name} {member.linkname}",
)
def test_an_archive_with_other_than_plain_files_is_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    source = _archive(tmp_path / "backup.tar.gz", [(member, b"")])
    with pytest.raises(StoreCorrupt, match="nothing was restored"):
        restore(source, tmp_path / "home")
    _inside(tmp_path, {"backup.tar.gz"})
    assert not Path("/tmp/escaped-absolutely").exists()


def test_an_archive_of_something_else_is_refused(tmp_path: Path) -> None:
    empty = _archive(tmp_path / "empty.tar.gz", [])
    with pytest.raises(StoreCorrupt, match=r"store\.json"):
        restore(empty, tmp_path / "home")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(StoreCorrupt, match="nothing was restored"):
        restore(tmp_path / "text", tmp_path / "home")
    with pytest.raises(InvalidInput, match="not a file"):
        restore(tmp_path / "nothing", tmp_path / "home")
    _inside(tmp_path, {"empty.tar.gz", "text"})
