"""A ledger's own file is authoritative: not the index, not its name, and it must not be shorter than its anchors."""

import json
import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.disk import lines_backwards
from engram.model.errors import StoreCorrupt, StoreReadOnly
from tests.faults.consistency import store_of
from tests.homes import home_of

UNMARKED = Path(__file__).parent / "fixtures" / "ledgers-unmarked"
TASK = "TASK-20260302-090010-4d2c30"


def opened(tmp_path: Path, cache: str = "cache") -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / cache, directory=tmp_path, embedder="none")


@pytest.fixture
def mem(tmp_path: Path) -> Engram:
    made = opened(tmp_path)
    for n in range(5):
        made.observe("talk", "user", f"line {n}")
    return made


def ledger(mem: Engram, name: str = "talk") -> Path:
    return home_of(mem).ledger / f"{name}.jsonl"


def numbers(path: Path) -> list[int]:
    return [json.loads(line)["seq"] for line in path.read_bytes().splitlines()]


def test_an_index_that_missed_events_does_not_misnumber_the_next(mem: Engram) -> None:
    with mem:
        database = store_of(mem).context.index.db
        database.execute("DELETE FROM docs WHERE kind = 'event' AND position > 2")
        mem.observe("talk", "user", "line 5")
        assert numbers(ledger(mem)) == [1, 2, 3, 4, 5, 6] and mem.store.verify_ledgers() == []


@pytest.mark.parametrize("cache", ["cache", "another"])
def test_nothing_is_appended_to_a_ledger_that_lost_its_end(mem: Engram, tmp_path: Path, cache: str) -> None:
    path = ledger(mem)
    whole = path.read_bytes()
    mem.close()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    before = path.read_bytes()
    with opened(tmp_path, cache) as again:
        with pytest.raises(StoreCorrupt, match=r"ends at event 3, but event 5 was written.*Restore the file"):
            again.observe("talk", "user", "one more")
        assert path.read_bytes() == before and again.store.verify_ledgers()
        again.observe("another", "user", "goes on")
        path.write_bytes(whole)
        again.observe("talk", "user", "line 5")
        assert numbers(path) == [1, 2, 3, 4, 5, 6] and again.store.verify_ledgers() == []


def test_a_ledger_that_lost_its_end_under_an_open_store_is_noticed_too(mem: Engram) -> None:
    with mem:
        path = ledger(mem)
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
        with pytest.raises(StoreCorrupt, match="ends at event 4"):
            mem.observe("talk", "user", "one more")
        path.unlink()
        with pytest.raises(StoreCorrupt, match="ends at event 0"):
            mem.observe("talk", "user", "one more")


def test_another_process_may_have_written_meanwhile(mem: Engram, tmp_path: Path) -> None:
    with mem, opened(tmp_path) as other:
        other.observe("talk", "user", "line 5")
        other.add("The api listens on port 8080")
        mem.observe("talk", "user", "line 6")
        other.observe("talk", "user", "line 7")
        assert numbers(ledger(mem)) == list(range(1, 9)) and mem.store.verify_ledgers() == []


@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_the_verdict_does_not_depend_on_the_cache(mem: Engram, tmp_path: Path, how: str) -> None:
    mem.observe("quiet", "user", "something else")
    path = ledger(mem)
    mem.close()
    (path.rename if how == "renamed" else lambda to: shutil.copy(path, to))(path.with_name("T-9.jsonl"))
    verdicts = []
    for cache in ("cache", "another", "cache"):
        with opened(tmp_path, cache) as again:
            verdicts.append(again.store.verify_ledgers())
    assert verdicts[0] == verdicts[1] == verdicts[2]
    assert any(problem.startswith("T-9.jsonl: contains the ledger of talk") for problem in verdicts[0])


def test_a_duplicate_name_in_a_line_is_reported(mem: Engram) -> None:
    with mem:
        path = ledger(mem)
        path.write_bytes(path.read_bytes().replace(b'"content":"line 2"', b'"content":"never said","content":"line 2"'))
        [problem] = mem.store.verify_ledgers()
        assert "contains fields that Engram did not write" in problem


def test_a_torn_line_is_quarantined_before_the_next_append(mem: Engram, tmp_path: Path) -> None:
    with mem:
        path = ledger(mem)
        with path.open("ab") as file:
            file.write(b'{"id":"EVT-2026')
        database = store_of(mem).context.index.db
        database.execute("UPDATE ledgers SET size = ?", (path.stat().st_size,))
        mem.observe("talk", "user", "line 5")
        assert numbers(path) == [1, 2, 3, 4, 5, 6] and mem.store.verify_ledgers() == []


@pytest.mark.parametrize("kept", [1, 2, 3])
@pytest.mark.parametrize("cache", ["cache", "another"])
def test_an_unfinished_turn_is_quarantined_after_a_crash(mem: Engram, tmp_path: Path, kept: int, cache: str) -> None:
    path = ledger(mem)
    before = path.read_bytes()
    mem.observe_batch("talk", [{"role": "user", "content": f"part {n}"} for n in range(4)])
    lines = path.read_bytes()[len(before) :].splitlines(keepends=True)
    mem.close()
    path.write_bytes(before + b"".join(lines[:kept]) + lines[kept][:20])
    [month] = (tmp_path / "home" / "journal").glob("*.jsonl")
    month.write_bytes(b"".join(month.read_bytes().splitlines(keepends=True)[:-1]))
    with opened(tmp_path, cache) as again:
        assert path.read_bytes() == before and again.store.verify_ledgers() == []
        [aside] = home_of(again).quarantine.iterdir()
        assert aside.read_bytes().count(b"\n") == 1 + kept
        again.observe("talk", "user", "line 5")
        assert numbers(path) == [1, 2, 3, 4, 5, 6] and again.store.verify_ledgers() == []


def test_a_turn_cut_by_hand_is_kept_and_reported(mem: Engram, tmp_path: Path) -> None:
    path = ledger(mem)
    mem.observe_batch("talk", [{"role": "user", "content": f"part {n}"} for n in range(4)])
    mem.close()
    cut = b"".join(path.read_bytes().splitlines(keepends=True)[:7])
    path.write_bytes(cut)
    with opened(tmp_path) as again:
        assert path.read_bytes() == cut
        assert any("event 9 is missing or was altered" in problem for problem in again.store.verify_ledgers())


def test_a_new_ledger_is_anchored_before_its_first_event(mem: Engram) -> None:
    with mem:
        mem.observe("new", "user", "hello")
        [month] = home_of(mem).journal.glob("*.jsonl")
        told = [entry for entry in map(json.loads, month.read_text().splitlines()) if entry.get("session") == "new"]
        assert [entry["reason"].split()[0] for entry in told] == ["0", "1"]


def test_lines_are_read_from_the_end_however_long_they_are(tmp_path: Path) -> None:
    lines = [b"a" * n for n in (3, 20_000, 0, 8191, 8192, 70_000, 1)]
    path = tmp_path / "log"
    for torn in (b"", b"half a li", b"h" * 30_000):
        path.write_bytes(b"".join(line + b"\n" for line in lines) + torn)
        assert list(lines_backwards(path)) == lines[::-1]
    path.write_bytes(b"no whole line")
    assert list(lines_backwards(path)) == []


# -- ledgers whose digests have no mark


@pytest.fixture
def yesterday(tmp_path: Path) -> Engram:
    shutil.copytree(UNMARKED, tmp_path / "home")
    return opened(tmp_path)


def test_a_ledger_without_marks_verifies_as_before(yesterday: Engram) -> None:
    with yesterday:
        assert yesterday.store.verify_ledgers() == []
        assert [event.content for event in yesterday.store.events(TASK)][5:] == ["", "Noted."]


def test_a_ledger_without_marks_is_continued_with_them(yesterday: Engram, tmp_path: Path) -> None:
    with yesterday:
        yesterday.record_event(TASK, "user", "and one more")
        yesterday.upkeep.purge([yesterday.store.events(TASK)[0].id])
        assert yesterday.store.verify_ledgers() == []
        digests = [event.digest for event in yesterday.store.events(TASK)]
        assert [digest.startswith("2:") for digest in digests] == [False] * 7 + [True]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("40 seconds", "50 seconds"),
        ('"content":""', '"content":"My landlord is called Bob"'),
        ('"role":"tool"', '"role":"user"'),
        ('"content":"Noted."', '"content":"Noted.","by":"Eve"'),
    ],
)
def test_a_ledger_without_marks_cannot_be_altered_unseen(yesterday: Engram, old: str, new: str) -> None:
    with yesterday:
        path = ledger(yesterday, TASK)
        text = path.read_text("utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), "utf-8")
        problems = yesterday.store.verify_ledgers()
        assert problems and all(problem.startswith(TASK) for problem in problems)


def test_an_index_deleted_between_two_events_loses_nothing(mem: Engram, tmp_path: Path) -> None:
    mem.close()
    shutil.rmtree(tmp_path / "cache")
    with opened(tmp_path) as again:
        again.observe("talk", "user", "line 5")
        assert numbers(ledger(again)) == [1, 2, 3, 4, 5, 6] and again.store.verify_ledgers() == []
        with sqlite3.connect(home_of(again).index / "index.db") as reader:
            assert reader.execute("SELECT count(*) FROM docs WHERE kind = 'event'").fetchone() == (6,)
        reader.close()


# -- other entries in the ledger folder


ODD = {"a folder": lambda path: path.mkdir(), "a broken link": lambda path: path.symlink_to("nowhere")}


@pytest.mark.parametrize("kind", ODD)
def test_an_entry_that_is_not_a_file_is_reported_and_stops_nothing(tmp_path: Path, mem: Engram, kind: str) -> None:
    with mem:
        place = ledger(mem, "old")
        ODD[kind](place)
        (problem,) = mem.store.verify_ledgers()
        assert problem == f"old.jsonl: {place} is not a file but {kind}; move it out of that folder"
        found = mem.doctor()
        assert not found["ledgers"].ok and problem in found["ledgers"].message
        assert found["index"].ok
        assert mem.observe("talk", "user", "line 5").seq == 6
        mem.rebuild_index()
    with opened(tmp_path, "another cache") as again:
        assert [event.seq for event in again.store.events("talk")] == [1, 2, 3, 4, 5, 6]
        assert again.upkeep.purge([again.store.events("talk")[0].id]).remaining == ()
        assert again.upkeep.prune().ledgers == ()
        again.upkeep.backup(tmp_path / "backup.tar")


def test_a_folder_in_place_of_a_ledger_is_reported_on_append(mem: Engram) -> None:
    with mem:
        ledger(mem, "old").mkdir()
        with pytest.raises(StoreReadOnly, match=r"cannot append to .*old\.jsonl: Is a directory"):
            mem.observe("old", "user", "hello")


def test_an_unreadable_ledger_is_reported(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    with mem:
        whole = os.open

        def closed(path: Any, *args: Any, **kwargs: Any) -> int:
            if path == ledger(mem):
                raise PermissionError(13, "Permission denied", str(path))
            return whole(path, *args, **kwargs)

        monkeypatch.setattr(os, "open", closed)
        problems = mem.store.verify_ledgers()
        assert f"{ledger(mem)}: cannot be read (Permission denied); its owner must be able to" in problems
