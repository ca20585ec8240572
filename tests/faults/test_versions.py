"""Newer stores and records are refused with an explanation; two versions share the files; clocks may go back."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreReadOnly, UnknownVersion
from engram.store import home as home_module
from tests.faults.consistency import assert_consistent, digest_of_tree, free_of, journal_lines, last_images
from tests.faults.workers.operations import sentence


def _open(tmp_path: Path) -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)


def test_a_store_of_a_newer_format_is_refused_and_left_alone(tmp_path: Path) -> None:
    _open(tmp_path).close()
    card = tmp_path / "home" / "store.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "format": 99}))
    before = card.read_bytes()
    with pytest.raises(UnknownVersion, match=r"format 99.*Upgrade Engram"):
        _open(tmp_path)
    assert card.read_bytes() == before


def test_a_store_whose_format_is_raised_meanwhile_takes_no_more_writes(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        known = mem.add(sentence(1))
        card = tmp_path / "home" / "store.json"
        before = card.read_text()
        card.write_text(json.dumps({**json.loads(before), "format": 99}))
        journal = journal_lines(tmp_path / "home")
        for write in (
            lambda: mem.add(sentence(2)),
            lambda: mem.forget(known.id),
            lambda: mem.observe("s1", "user", "hello"),
        ):
            with pytest.raises(UnknownVersion, match=r"format 99.*Upgrade Engram"):
                write()
        assert journal_lines(tmp_path / "home") == journal
        card.write_text(before)
        assert mem.add(sentence(2)).id != known.id


def test_a_store_that_requires_an_unknown_feature_is_refused_and_left_alone(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        mem.observe("s1", "user", "hello")
    card = tmp_path / "home" / "store.json"
    fields = json.loads(card.read_text())
    card.write_text(json.dumps({**fields, "requires": [*fields["requires"], "journal-signatures"]}))
    before = digest_of_tree(tmp_path / "home")
    with pytest.raises(UnknownVersion, match=r"requires journal-signatures, .*Upgrade Engram"):
        _open(tmp_path)
    assert digest_of_tree(tmp_path / "home") == before


def test_a_requirement_that_is_added_meanwhile_ends_writes(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        mem.add(sentence(1))
        card = tmp_path / "home" / "store.json"
        card.write_text(json.dumps({**json.loads(card.read_text()), "requires": ["journal-signatures"]}))
        with pytest.raises(UnknownVersion, match="journal-signatures"):
            mem.add(sentence(2))


def test_events_that_an_earlier_version_cannot_verify_raise_the_format_before_they_are_written(tmp_path: Path) -> None:
    card = tmp_path / "home" / "store.json"
    with _open(tmp_path) as mem:
        mem.add(sentence(1))
        assert json.loads(card.read_text())["format"] == 1 and "requires" not in card.read_text()
        mem.observe("s1", "user", "hello")
        fields = json.loads(card.read_text())
        assert (fields["format"], fields["requires"]) == (2, ["ledger-digest-2", "ledger-owner"])
        stamp = card.stat()
        mem.observe("s3", "user", "hello", user_id="ann")
        assert card.stat() == stamp
    assert {*json.loads(card.read_text())["requires"]} <= home_module.FEATURES.keys()
    with _open(tmp_path) as mem:
        assert mem.store.verify_ledgers() == []


def test_no_event_is_written_if_the_format_cannot_be_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with _open(tmp_path) as mem:
        monkeypatch.setattr(home_module, "replace_file", full)
        with pytest.raises(StoreReadOnly, match="nothing was written"):
            mem.observe("s1", "user", "hello")
        monkeypatch.undo()
        assert mem.store.events("s1") == []
        assert mem.observe("s1", "user", "hello").seq == 1


def test_a_newer_record_in_the_journal_costs_that_memory_only(tmp_path: Path) -> None:
    with _open(tmp_path) as mem:
        first, second = mem.add(sentence(1)), mem.add(sentence(2))
        [month] = (tmp_path / "home" / "journal").glob("*.jsonl")
        newer = journal_lines(tmp_path / "home")[-1]
        newer["seq"] += 1
        newer["changes"][0]["after"] |= {"version": 3, "statement": "From the future"}
        with month.open("a", encoding="utf-8") as file:
            file.write(json.dumps(newer) + "\n")
        third = mem.add(sentence(3))
        assert mem.get(first.id).statement == sentence(1)
        assert any(second.id in warning and "version 3" in warning for warning in mem.store.warnings)
    shutil.rmtree(tmp_path / "cache")
    with _open(tmp_path) as mem:
        assert mem.get(first.id).statement == sentence(1) and mem.get(third.id).statement == sentence(3)
    assert "From the future" in month.read_text("utf-8")


def _as_version(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engram:
    """An Engram whose index has another schema, and therefore another folder."""
    monkeypatch.setattr(home_module, "INDEX_SCHEMA", number)
    mem = _open(tmp_path)
    assert store_folder(mem).name == f"v{number}"
    return mem


def store_folder(mem: Engram) -> Path:
    from tests.faults.consistency import store_of

    return Path(store_of(mem).context.index.facts()["path"]).parent


def test_two_versions_in_parallel_see_each_others_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = _as_version(home_module.INDEX_SCHEMA, tmp_path, monkeypatch)
    version = home_module.INDEX_SCHEMA
    new = _as_version(version + 1, tmp_path, monkeypatch)
    made: list[str] = []
    for n in range(6):
        writer, reader = (old, new) if n % 2 else (new, old)
        monkeypatch.setattr(home_module, "INDEX_SCHEMA", version + (1 - n % 2))
        memory = writer.add(sentence(n))
        made.append(memory.id)
        writer.update(made[0], rationale=f"reason {n}")
        writer.observe("talk", "user", sentence(100 + n))
        monkeypatch.setattr(home_module, "INDEX_SCHEMA", version + n % 2)
        assert reader.search(sentence(n))[0].id == memory.id
        assert reader.get(made[0]).rationale == f"reason {n}"
        assert len(reader.store.events("talk")) == n + 1
    assert len(set(made)) == 6
    old.close()
    new.close()
    monkeypatch.setattr(home_module, "INDEX_SCHEMA", version)
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_purge_by_one_version_reaches_the_index_of_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    version = home_module.INDEX_SCHEMA
    old = _as_version(version, tmp_path, monkeypatch)
    kept, secret = old.add(sentence(1)), old.add("The orchestra bought a xylophone")
    new = _as_version(version + 1, tmp_path, monkeypatch)
    assert new.get(secret.id).statement.startswith("The orchestra")
    monkeypatch.setattr(home_module, "INDEX_SCHEMA", version)
    old.forget(secret.id, purge=True)
    assert free_of(tmp_path, b"xylophone")
    monkeypatch.setattr(home_module, "INDEX_SCHEMA", version + 1)
    assert [hit.id for hit in new.search("the orchestra bought")] in ([], [kept.id])
    assert new.add(sentence(2)).id not in (kept.id, secret.id)
    assert [image.op for image in new.history(kept.id)] == ["add"]
    new.close()
    old.close()
    monkeypatch.setattr(home_module, "INDEX_SCHEMA", version)
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_clock_set_back_keeps_order_ids_and_uses(tmp_path: Path) -> None:
    now = datetime(2026, 3, 1, 0, 0, 10, tzinfo=UTC)

    def clock() -> datetime:
        return now

    def reopened() -> Engram:
        return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock)

    made = []
    with reopened() as mem:
        for n, days in enumerate((0, -1, 40, -400, 0, 1)):
            now = datetime(2026, 3, 1, 0, 0, 10, tzinfo=UTC) + timedelta(days=days)
            memory = mem.add(sentence(n))
            made.append(memory.id)
            mem.feedback(made[0], "positive")
            mem.observe("talk", "user", sentence(100 + n))
            assert mem.search(sentence(n))[0].id == memory.id
        assert mem.get(made[0]).feedback.positive == 6
    assert len(set(made)) == 6
    assert set(made) == set(last_images(tmp_path / "home"))
    with reopened() as mem:
        assert mem.get(made[0]).feedback.positive == 6
        assert [event.seq for event in mem.store.events("talk")] == [1, 2, 3, 4, 5, 6]
        assert mem.store.verify_ledgers() == []
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_restored_store_is_not_answered_from_a_newer_index(tmp_path: Path) -> None:
    from engram.store.files.store.backup import restore

    with _open(tmp_path) as mem:
        early = mem.add(sentence(1))
        mem.upkeep.backup(tmp_path / "backup.tar.gz")
        late = mem.add(sentence(2))
        mem.update(early.id, statement=sentence(3))
    restore(tmp_path / "backup.tar.gz", tmp_path / "home", force=True)
    with _open(tmp_path) as mem:
        assert mem.get(early.id).statement == sentence(1)
        assert mem.store.get(late.id) is None
        assert mem.search(sentence(1))[0].id == early.id
    assert_consistent(tmp_path / "home", tmp_path / "cache")
