"""A store that someone else wrote: nothing it says about files leads out of it, and nothing in it makes Engram wait."""

import hashlib
import io
import json
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import EngramError, Refused, StoreCorrupt, StoreReadOnly
from engram.model.records import Session
from engram.store.files.log.journal import Journal
from engram.store.files.store.backup import restore
from engram.store.home import PointsOutside, memory_file
from tests.homes import home_of
from tests.repositories import make_repository
from tests.tables import table

OUTSIDE = [
    "../../../.bash_login",
    "../escaped.yaml",
    "engrams/../../escaped.yaml",
    "engrams/../config.yaml",
    "engrams/./x.yaml",
    "engrams//x.yaml",
    "engrams",
    "engrams/",
    "engrams/.yaml",
    "engrams/global",
    "engrams/global/2026-11/x.txt",
    "engrams/.hidden/x.yaml",
    "engrams/a\0b.yaml",
    "config.toml",
    "lock",
    "journal/2026-11.jsonl",
    "state/trust.json",
    "/etc/cron.d/x",
    "/etc/cron.d/x.yaml",
    "/repo/.engram/x.yaml",
    "/repo/.engram/engrams/../../x.yaml",
    "/repo/.engram/engrams/.git/x.yaml",
    7,
    None,
    ["engrams/x.yaml"],
]
INSIDE = [
    "",
    "engrams/x.yaml",
    "engrams/x.yml",
    "engrams/project:acme%2Fapi/2026-11/ENG-2026-1116-001.yaml",
    "engrams/global/2026-11/an id with..dots.yaml",
    "/home/ana/.config/repo/.engram/engrams/shared/x.yaml",
    "/home/ana/here/../repo/.engram/engrams/shared/x.yaml",
]


@pytest.mark.parametrize("stored", OUTSIDE, ids=repr)
def test_a_path_in_the_journal_that_is_no_memory_file_is_refused(stored: object) -> None:
    with pytest.raises(PointsOutside):
        memory_file(stored)


@table("stored", INSIDE)
def test_the_paths_that_engram_writes_itself_pass(stored: str) -> None:
    assert memory_file(stored) == stored


def _entry(file: Any, seq: int = 1, memory_id: Any = "ENG-2026-1116-001") -> dict[str, Any]:
    after = {"id": memory_id, "version": 2, "status": "active", "type": "fact", "scope": "global",
             "statement": "touch /tmp/owned"}  # fmt: skip
    change = {"id": memory_id, "file": file, "after": after}
    return {"seq": seq, "at": "2026-11-16T10:00:00Z", "op": "add", "actor": "human", "changes": [change]}


def _foreign_home(folder: Path, *entries: dict[str, Any]) -> Path:
    home = folder / "home"
    (home / "journal").mkdir(parents=True)
    (home / "store.json").write_text(json.dumps({"format": 1, "id": "f0e1d2"}), "utf-8")
    lines = "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries)
    (home / "journal" / "2026-11.jsonl").write_text(lines, "utf-8")
    return home


def _open(folder: Path, directory: Path | None = None) -> Engram:
    return Engram.open(folder / "home", cache=folder / "cache", directory=directory or folder)


def _packed(home: Path, target: Path) -> Path:
    files = {path.relative_to(home).as_posix(): path.read_bytes() for path in home.rglob("*") if path.is_file()}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    files["MANIFEST.json"] = json.dumps({"made": "2026-11-16T10:00:00+00:00", "files": sums}).encode()
    with tarfile.open(target, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return target


def test_a_foreign_store_whose_history_points_outside_is_refused_with_its_line(tmp_path: Path) -> None:
    fine = _entry("engrams/global/2026-11/ENG-2026-1116-001.yaml")
    _foreign_home(tmp_path, fine, _entry("../.bash_login", 2))
    with pytest.raises(StoreCorrupt, match=r"2026-11\.jsonl:2: .*\.bash_login.*doctor --repair"):
        _open(tmp_path)
    assert not (tmp_path / ".bash_login").exists()


def test_an_absolute_path_in_a_foreign_history_is_refused(tmp_path: Path) -> None:
    _foreign_home(tmp_path, _entry(str(tmp_path / "victim" / "x.yaml")))
    (tmp_path / "victim").mkdir()
    with pytest.raises(StoreCorrupt, match=r"2026-11\.jsonl:1: "):
        _open(tmp_path)
    assert list((tmp_path / "victim").iterdir()) == []


def test_what_an_open_store_finds_appended_by_someone_else_is_held_to_the_same(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        kept = mem.add("Otters hold hands while they sleep").id
        (path,) = home_of(mem).journal.glob("*.jsonl")
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(_entry("../.bash_login", 2, "ENG-2026-1116-777")) + "\n")
        with pytest.raises(StoreCorrupt, match=r"\.jsonl:2: "):
            mem.add("Beavers build dams")
    assert not (tmp_path / ".bash_login").exists()
    moved = Journal(tmp_path / "home" / "journal", tmp_path / "home" / "quarantine").repair()
    assert len(moved) == 1
    with _open(tmp_path) as mem:
        assert mem.get(kept).statement.startswith("Otters") and mem.add("Beavers build dams").id


def test_a_foreign_archive_whose_history_points_outside_is_not_restored(tmp_path: Path) -> None:
    home = _foreign_home(tmp_path / "theirs", _entry("../../../.bash_login"))
    archive = _packed(home, tmp_path / "backup.tar.gz")
    with pytest.raises(StoreCorrupt, match=r"journal/2026-11\.jsonl:1: .*nothing was restored"):
        restore(archive, tmp_path / "mine" / "home")
    assert not (tmp_path / "mine" / "home").exists()


def test_an_archive_with_a_torn_line_of_its_own_is_restored_all_the_same(tmp_path: Path) -> None:
    home = _foreign_home(tmp_path / "theirs", _entry("engrams/x.yaml"))
    with (home / "journal" / "2026-11.jsonl").open("a") as file:
        file.write('{"seq":2,"to')
    restore(_packed(home, tmp_path / "backup.tar.gz"), tmp_path / "home")
    with _open(tmp_path) as mem:
        assert mem.get("ENG-2026-1116-001").statement == "touch /tmp/owned"


def test_a_foreign_journal_makes_no_file_in_a_repository(tmp_path: Path) -> None:
    team = tmp_path / "repo" / ".engram" / "engrams" / "shared"
    team.mkdir(parents=True)
    _foreign_home(tmp_path, _entry(str(team / "x.yaml")))
    with _open(tmp_path):
        pass
    assert list(team.iterdir()) == []


# -- links


def _month_of(mem: Engram, memory_id: str) -> Path:
    return Path(mem.store.file_of(memory_id)).parent


@pytest.mark.parametrize("level", ["month", "scope"])
def test_a_folder_that_is_a_link_is_not_written_through(tmp_path: Path, level: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    with _open(tmp_path) as mem:
        first = mem.add("Otters hold hands while they sleep")
        folder = _month_of(mem, first.id) if level == "month" else _month_of(mem, first.id).parent
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere, target_is_directory=True)
        before = sorted((path, path.read_bytes()) for path in elsewhere.rglob("*.yaml"))
        with pytest.raises(StoreReadOnly, match="is a symbolic link"):
            mem.add("Beavers build dams in the river")
        with pytest.raises(EngramError):
            mem.update(first.id, statement="Otters let go")
        assert mem.get(first.id).statement.startswith("Otters hold hands")
        mem.rebuild_index()
    assert sorted((path, path.read_bytes()) for path in elsewhere.rglob("*.yaml")) == before


@pytest.mark.parametrize("name", ["engrams", "journal", "ledger", "usage", "state", "quarantine", "state/sessions"])
def test_a_store_whose_own_folder_is_a_link_is_refused_by_name(tmp_path: Path, name: str) -> None:
    with _open(tmp_path):
        pass
    (tmp_path / "elsewhere").mkdir()
    place = tmp_path / "home" / name
    if place.exists():
        place.rmdir() if not any(place.iterdir()) else place.rename(tmp_path / "aside")
    place.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    with pytest.raises(StoreCorrupt, match=f"{name} is a symbolic link"):
        _open(tmp_path)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_home_that_is_itself_a_link_is_its_owners_choice(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk", target_is_directory=True)
    with _open(tmp_path) as mem:
        assert mem.add("Otters hold hands while they sleep").id
    assert (tmp_path / "disk" / "store.json").is_file()


def test_a_clone_cannot_lead_its_readers_writes_elsewhere_by_a_link(tmp_path: Path) -> None:
    from engram.store.files.store.backend import begin_team
    from tests.faults.consistency import store_of

    repo, elsewhere = tmp_path / "repo", tmp_path / "elsewhere"
    make_repository(repo)
    (repo / ".engram").mkdir()
    elsewhere.mkdir()
    (repo / ".engram" / "engrams").symlink_to(elsewhere, target_is_directory=True)
    with _open(tmp_path, repo) as mem:
        with pytest.raises(Refused, match="is a link"):
            begin_team(store_of(mem), repo)
        assert not store_of(mem).context.teams
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("names", [["usage/2026-11.jsonl", "ledger/talk.jsonl", "state/gates.jsonl"], ["lock"]])
def test_a_log_that_is_a_link_is_not_appended_to(tmp_path: Path, names: list[str]) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    with _open(tmp_path) as mem:
        kept = mem.add("Otters hold hands while they sleep").id
    for name in names:
        (tmp_path / "home" / name).unlink(missing_ok=True)
        (tmp_path / "home" / name).symlink_to(victim)
    with _open(tmp_path) as mem:
        _use_everything(mem)
        assert mem.get(kept).statement.startswith("Otters")
    assert victim.read_text() == "mine\n"


# -- pipes


PIPES = [
    "engrams/global/x.yaml",
    "engrams/x.yaml",
    "usage/2026-11.jsonl",
    "usage/2999-01.jsonl",
    "ledger/talk.jsonl",
    "ledger/other.jsonl",
    "state/gates.jsonl",
    "state/trust.json",
    "state/sessions/talk.json",
    "state/sessions/other.json",
    "state/jobs/x.json",
    "tasks/TASK-1.json",
    "tasks/TASK-1.checkpoints.jsonl",
]


def _use_everything(mem: Engram) -> None:
    """Every way to a file; what cannot be read may be refused, in words."""
    steps: list[Callable[[], object]] = [
        lambda: mem.add("Beavers build dams in the river"),
        lambda: mem.recall("what do otters do?"),
        lambda: mem.observe("talk", "user", "hello"),
        lambda: mem.store.list_records(Session),
        lambda: mem.tasks.list(),
        lambda: mem.jobs.list(),
        lambda: mem.upkeep.sync(),
        lambda: mem.doctor(),
        lambda: mem.rebuild_index(),
    ]
    for step in steps:
        try:
            step()
        except EngramError as error:
            assert str(error)


@pytest.mark.parametrize("names", [PIPES, ["lock"]], ids=["files", "lock"])
def test_pipes_by_the_names_of_our_files_keep_nobody_waiting(tmp_path: Path, names: list[str]) -> None:
    with _open(tmp_path) as mem:
        kept = mem.add("Otters hold hands while they sleep").id
    for name in names:
        place = tmp_path / "home" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.unlink(missing_ok=True)
        os.mkfifo(place)
    with _open(tmp_path) as mem:
        _use_everything(mem)
        assert mem.get(kept).statement.startswith("Otters")


@pytest.mark.parametrize("name", ["store.json", "config.toml", "journal/2026-11.jsonl", "journal/2999-01.jsonl"])
def test_a_pipe_in_the_place_of_what_a_store_needs_is_named(tmp_path: Path, name: str) -> None:
    with _open(tmp_path) as mem:
        mem.add("Otters hold hands while they sleep")
    for path in (tmp_path / "home" / "journal").glob("*.jsonl") if name.startswith("journal") else ():
        path.unlink()
    (tmp_path / "home" / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / "home" / name)
    with pytest.raises(EngramError, match=Path(name).name):
        _open(tmp_path)


# -- after a power loss


def _stale_mark(home: Path) -> None:
    """As a machine leaves it that stopped before any file was on disk."""
    mark = {"seq": 0, "boot": "another", "unbroken_since": 0}
    (home / "state").mkdir(exist_ok=True)
    (home / "state" / "durable.json").write_text(json.dumps(mark), "utf-8")


def test_a_foreign_mark_writes_no_memory_file_through_a_link(tmp_path: Path) -> None:
    home = _foreign_home(tmp_path, _entry("engrams/linked/2026-11/ENG-2026-1116-001.yaml"))
    elsewhere = tmp_path / "elsewhere"
    (home / "engrams").mkdir()
    elsewhere.mkdir()
    (home / "engrams" / "linked").symlink_to(elsewhere, target_is_directory=True)
    _stale_mark(home)
    for _ in range(2):
        with _open(tmp_path) as mem:
            mem.list()
            assert mem.add("Otters hold hands while they sleep").id
    assert list(elsewhere.iterdir()) == []


def test_a_foreign_mark_removes_nothing_behind_a_link(tmp_path: Path) -> None:
    stored = "engrams/linked/ENG-2026-1116-001.yaml"
    gone = {"seq": 2, "at": "2026-11-16T10:01:00Z", "op": "remove", "actor": "human",
            "changes": [{"id": "ENG-2026-1116-001", "file": stored, "after": None}]}  # fmt: skip
    home = _foreign_home(tmp_path, _entry(stored), gone)
    elsewhere = tmp_path / "elsewhere"
    (home / "engrams").mkdir()
    elsewhere.mkdir()
    victim, leftover = elsewhere / "ENG-2026-1116-001.yaml", elsewhere / ".ENG-2026-1116-001.yaml.1.tmp"
    victim.write_bytes(b"")
    leftover.write_bytes(b"")
    (home / "engrams" / "linked").symlink_to(elsewhere, target_is_directory=True)
    _stale_mark(home)
    with _open(tmp_path) as mem:
        mem.list()
    assert sorted(elsewhere.iterdir()) == [leftover, victim]


@pytest.mark.parametrize("linked", [False, True], ids=["a pipe", "a link"])
def test_what_is_no_plain_file_beside_a_memory_is_no_leftover_of_a_crash(tmp_path: Path, linked: bool) -> None:
    home = _foreign_home(tmp_path, _entry("engrams/global/ENG-2026-1116-001.yaml"))
    (home / "engrams" / "global").mkdir(parents=True)
    odd = home / "engrams" / "global" / ".ENG-2026-1116-001.yaml.1.tmp"
    (tmp_path / "victim").write_text("")
    odd.symlink_to(tmp_path / "victim") if linked else os.mkfifo(odd)
    _stale_mark(home)
    with _open(tmp_path) as mem:
        assert mem.get("ENG-2026-1116-001").statement == "touch /tmp/owned"
    assert (home / "engrams" / "global" / "ENG-2026-1116-001.yaml").is_file()
    assert odd in odd.parent.iterdir()


@pytest.mark.parametrize("stored", ["../../x.yaml", "/etc/cron.d/x.yaml", "config.toml", 7])
def test_a_foreign_archive_whose_unfinished_purge_points_outside_is_not_restored(
    tmp_path: Path, stored: object
) -> None:
    home = _foreign_home(tmp_path / "theirs", _entry("engrams/x.yaml"))
    (home / "state").mkdir()
    begun = {"ids": ["ENG-1"], "actor": "human", "said": [], "events": {}, "files": [stored], "scopes": []}
    (home / "state" / "purging.json").write_text(json.dumps(begun), "utf-8")
    archive = _packed(home, tmp_path / "backup.tar.gz")
    with pytest.raises(StoreCorrupt, match=r"state/purging\.json: .*nothing was restored"):
        restore(archive, tmp_path / "mine" / "home")
    assert not (tmp_path / "mine" / "home").exists()
