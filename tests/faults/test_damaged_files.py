"""A file in any state leads to a clear message; neither its content nor the rest of the store is lost."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import NotFound, StoreCorrupt
from tests.faults.consistency import assert_consistent, store_of
from tests.homes import home_of

PATIENCE = 60.0
"""Seconds after which reading a file counts as a denial of service."""
OLD = "The staging database listens on port 5433"
NEW = "The staging database listens on port 6000, since Tuesday"


@pytest.fixture
def mem(tmp_path: Path) -> Engram:
    return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)


def file_of(mem: Engram, memory_id: str) -> Path:
    place = "SELECT path FROM places WHERE id = ?"
    [stored] = store_of(mem).context.index.db.execute(place, (memory_id,)).fetchone()
    return home_of(mem).root / str(stored)


def _bomb_of_aliases() -> bytes:
    lines = ["- id: x", "  statement: y", "  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    for i in range(1, 30):
        lines.append(f"  a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]")
    return "\n".join(lines).encode()


UNREADABLE: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda good: good[: len(good) // 2].rstrip(b"\n") + b'\n  rationale: "never clo',
    "invalid UTF-8": lambda good: good.replace(b"staging", b"st\xe4ging"),
    "a bomb of aliases": lambda good: _bomb_of_aliases(),
    "a bomb of depth": lambda good: b"- id: x\n  statement: " + b"[" * 200_000,
    "a bomb of dashes": lambda good: b"- " * 100_000 + b"x",
    "conflict markers": lambda good: b"<<<<<<< HEAD\n" + good + b"=======\n" + good + b">>>>>>> theirs\n",
    "a newer record": lambda good: good.replace(b"version: 2", b"version: 3") if b"version: 2" in good
    else good.replace(b"- id:", b"- version: 3\n  id:"),
    "no list": lambda good: b"just words\n",
    "a tag": lambda good: b"- !!python/object/apply:os.system ['true']\n",
    "zeros": lambda good: b"\0" * 300,
    "binary": lambda good: bytes(range(256)) * 8,
}  # fmt: skip


@pytest.mark.parametrize("state", UNREADABLE)
def test_an_unreadable_file_is_kept_and_its_last_good_version_stays_current(mem: Engram, state: str) -> None:
    target, other = mem.add(OLD), mem.add("Otters sleep holding hands")
    path = file_of(mem, target.id)
    broken = UNREADABLE[state](path.read_bytes())
    path.write_bytes(broken)
    began = time.monotonic()

    assert mem.get(target.id).statement == OLD
    problems = mem.upkeep.sync().problems
    assert len(problems) == 1 and str(path) in problems[0]
    assert not mem.doctor().ok
    with pytest.raises(StoreCorrupt, match="repair it first"):
        mem.update(target.id, rationale="decided while the file was broken")
    mem.feedback(target.id, "positive")
    mem.rebuild_index()

    if state == "zeros":
        assert b"feedback" in path.read_bytes(), "what a power failure leaves is written again"
    else:
        assert path.read_bytes() == broken
    assert mem.get(target.id).feedback.positive == 1
    assert [hit.id for hit in mem.search("otters holding hands")][:1] == [other.id]
    assert time.monotonic() - began < PATIENCE
    mem.close()


@pytest.mark.parametrize("state", ["truncated", "conflict markers", "a newer record"])
def test_a_file_repaired_by_its_owner_is_read(mem: Engram, state: str, tmp_path: Path) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    good = path.read_bytes()
    path.write_bytes(UNREADABLE[state](good))
    mem.upkeep.sync()
    path.write_bytes(good.replace(OLD.encode(), NEW.encode()))

    assert mem.get(target.id).statement == NEW
    assert mem.upkeep.sync().problems == []
    assert [image.actor for image in mem.history(target.id)][-1] == "hand"
    mem.close()
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_file_left_empty_is_restored(mem: Engram, tmp_path: Path) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    path.write_bytes(b"")
    assert mem.get(target.id).statement == OLD
    assert path.read_bytes() == b"", "an editor may be about to fill it"
    os.utime(path, (time.time() - 60, time.time() - 60))

    assert mem.upkeep.sync().restored == [target.id]
    assert OLD in path.read_text("utf-8")
    mem.close()
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_file_removed_by_hand_retires_its_memory_and_can_be_put_back(mem: Engram, tmp_path: Path) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    good = path.read_bytes()
    path.unlink()
    assert mem.upkeep.sync().removed == [target.id]
    assert mem.get(target.id).status == "retired"
    path.write_bytes(good)
    mem.upkeep.sync()
    assert mem.get(target.id).status == "active"
    mem.close()
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_a_folder_of_memories_that_is_gone_retires_nothing(mem: Engram) -> None:
    target = mem.add(OLD)
    home_of(mem).engrams.rename(home_of(mem).root / "elsewhere")
    assert any("is missing" in problem for problem in mem.upkeep.sync().problems)
    assert mem.get(target.id).status == "active"
    (home_of(mem).root / "elsewhere").rename(home_of(mem).engrams)
    assert mem.upkeep.sync().problems == []
    mem.close()


def test_a_file_moved_to_another_folder_is_followed(mem: Engram, tmp_path: Path) -> None:
    target = mem.add(OLD)
    (home_of(mem).engrams / "mine").mkdir()
    file_of(mem, target.id).rename(home_of(mem).engrams / "mine" / "database.yaml")
    assert mem.upkeep.sync().removed == []
    assert mem.get(target.id).status == "active"
    assert mem.update(target.id, statement=NEW).statement == NEW
    assert NEW in (home_of(mem).engrams / "mine" / "database.yaml").read_text("utf-8")
    mem.close()
    assert_consistent(tmp_path / "home", tmp_path / "cache")


def test_two_files_with_one_id_are_reported_and_neither_is_touched(mem: Engram) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    copy = path.with_name("copy.yaml")
    copy.write_bytes(path.read_bytes().replace(OLD.encode(), NEW.encode()))
    told = mem.upkeep.sync()
    assert len(told.problems) == 1 and str(copy) in told.problems[0] and "already taken" in told.problems[0]
    assert mem.get(target.id).statement == OLD
    assert NEW in copy.read_text("utf-8")

    path.unlink()
    mem.upkeep.sync()
    assert mem.upkeep.sync().problems == []
    assert mem.get(target.id).statement == NEW and mem.get(target.id).status == "active"
    mem.close()


def test_one_id_twice_in_a_file_counts_once(mem: Engram) -> None:
    (home_of(mem).engrams / "both.yaml").write_text(
        f"- id: ENG-2026-0101-001\n  statement: {OLD}\n- id: ENG-2026-0101-001\n  statement: {NEW}\n", "utf-8"
    )
    assert any("occurs twice" in problem for problem in mem.upkeep.sync().problems)
    assert mem.get("ENG-2026-0101-001").statement == OLD
    with pytest.raises(StoreCorrupt):
        mem.update("ENG-2026-0101-001", rationale="r")
    assert NEW in (home_of(mem).engrams / "both.yaml").read_text("utf-8")
    mem.close()


@pytest.mark.parametrize(
    "name",
    [
        "{id} (Ann's conflicted copy 2026-11-15).yaml",
        "{id}.sync-conflict-20261115-101112-ABCDEFG.yaml",
        "{id} (conflicted copy 2026-11-15 101112).yaml",
        "{id}_conflict-20261115-101112.yaml",
    ],
)
def test_a_conflicted_copy_is_reported_and_not_indexed(mem: Engram, name: str) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    copy = path.with_name(name.format(id=path.stem))
    copy.write_bytes(path.read_bytes().replace(OLD.encode(), NEW.encode()))
    problems = mem.upkeep.sync().problems
    assert len(problems) == 1 and "conflicted copy" in problems[0] and str(copy) in problems[0]
    assert mem.get(target.id).statement == OLD
    mem.rebuild_index()
    assert mem.get(target.id).statement == OLD and copy.exists()
    mem.close()


@pytest.mark.parametrize("name", ["{id}.yaml~", ".{id}.yaml.swp", "#{id}.yaml#", "{id}.yaml.bak", ".{id}.yaml.1.tmp"])
def test_what_an_editor_leaves_beside_a_file_is_ignored(mem: Engram, name: str) -> None:
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    path.with_name(name.format(id=path.stem)).write_bytes(path.read_bytes().replace(OLD.encode(), NEW.encode()))
    assert mem.upkeep.sync().problems == []
    assert mem.get(target.id).statement == OLD
    assert len(mem.list(status="any", scope="everywhere")) == 1
    mem.close()


def test_a_link_out_of_the_store_is_neither_followed_nor_overwritten(mem: Engram, tmp_path: Path) -> None:
    outside = tmp_path / "outside.yaml"
    outside.write_text(f"- id: ENG-2026-0101-777\n  statement: {NEW}\n", "utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "more.yaml").write_text("- id: ENG-2026-0101-778\n  statement: Hidden\n", "utf-8")
    target = mem.add(OLD)
    path = file_of(mem, target.id)
    path.unlink()
    path.symlink_to(outside)
    (home_of(mem).engrams / "linked").symlink_to(tmp_path / "folder", target_is_directory=True)

    assert any("not a plain file" in problem for problem in mem.upkeep.sync().problems)
    assert mem.get(target.id).statement == OLD
    with pytest.raises(StoreCorrupt):
        mem.update(target.id, rationale="r")
    mem.rebuild_index()
    assert outside.read_text("utf-8") == f"- id: ENG-2026-0101-777\n  statement: {NEW}\n"
    for outsider in ("ENG-2026-0101-777", "ENG-2026-0101-778"):
        with pytest.raises(NotFound):
            mem.get(outsider)
    mem.close()


def test_a_next_id_taken_by_hand_is_not_given_out(mem: Engram, tmp_path: Path) -> None:
    first = mem.add(OLD)
    following = f"{first.id[:-3]}002"
    path = file_of(mem, first.id)
    path.with_name(f"{following}.yaml").write_text(f"- id: {following}\n  statement: {NEW}\n", "utf-8")
    second = mem.add("Otters sleep holding hands")
    assert mem.get(second.id).statement == "Otters sleep holding hands"
    mem.upkeep.sync()
    statements = {memory.statement for memory in mem.list(status="any", scope="everywhere")}
    assert NEW in statements or any("already taken" in problem for problem in mem.upkeep.sync().problems)
    assert NEW in path.with_name(f"{following}.yaml").read_text("utf-8")
    assert mem.get(second.id).statement == "Otters sleep holding hands"
    mem.close()


def test_a_file_of_many_is_read_as_it_is_and_split_at_the_first_change(mem: Engram, tmp_path: Path) -> None:
    shared = home_of(mem).engrams / "shared.yaml"
    lines = [f"- id: ENG-2026-0101-00{i}\n  statement: Rule {i} of the house\n  mine: {i}\n" for i in range(1, 4)]
    shared.write_text("# kept as it was\n" + "".join(lines), "utf-8")
    original = shared.read_bytes()
    assert len(mem.upkeep.sync().added) == 3
    mem.update("ENG-2026-0101-002", statement="Rule two was changed")

    assert not shared.exists()
    assert shared.with_name("shared.yaml.orig").read_bytes() == original
    assert mem.get("ENG-2026-0101-001").extra == {"mine": 1}
    assert mem.get("ENG-2026-0101-002").statement == "Rule two was changed"
    mem.close()
    assert_consistent(tmp_path / "home", tmp_path / "cache")
