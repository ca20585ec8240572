"""A power loss takes nothing back that was acknowledged, and what a person did to the files still counts."""

import json
import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from engram import Engram, Finding
from engram.model.errors import StoreReadOnly
from engram.store.files.log.journal import Journal
from engram.store.files.reconcile.index_state import place_of
from engram.store.files.states.work import session_path
from engram.store.files.store.health import accept_gaps
from tests.faults.consistency import assert_journal_and_files_agree, scratch, store_of
from tests.faults.workers.operations import sentence
from tests.issues.power import Machine, put


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with scratch() as folder:
        yield Machine(folder, monkeypatch)


def place(mem: Engram, memory_id: str) -> Path:
    parts = store_of(mem).context
    return parts.path(place_of(parts.index, memory_id))


def doctor(mem: Engram, check: str) -> Finding:
    return mem.upkeep.doctor()[check]


def machine_home(mem: Engram) -> Path:
    return store_of(mem).context.home.root


# -- any program, any loss

Act = Callable[[Engram, str], None]


class Program:
    """Random decisions and hand edits, and what was acknowledged of them."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.said: dict[str, str] = {}
        self.status: dict[str, str] = {}
        self._n = seed * 1000

    def step(self, mem: Engram) -> None:
        """One operation, acknowledged."""
        self._n += 1
        known = sorted(i for i, status in self.status.items() if status == "active")
        acts: list[Act] = [self._add, self._batch, self._observe, self._many]
        acts += [self._update, self._forget, self._edit, self._remove, self._move] if known else []
        self.chosen.choice(acts)(mem, self.chosen.choice(known) if known else "")

    def _add(self, mem: Engram, _: str) -> None:
        self._made(mem.add(sentence(self._n)).id, sentence(self._n))

    def _batch(self, mem: Engram, _: str) -> None:
        for memory in mem.add_batch([{"statement": f"{sentence(self._n)} part {i}"} for i in range(3)]):
            self._made(memory.id, memory.statement)

    def _many(self, mem: Engram, _: str) -> None:
        """A file of two, copied from elsewhere; the first change of either splits it."""
        ids = [f"ENG-2020-0101-{self._n}{i}" for i in range(2)]
        lines = [f"- id: {i}\n  statement: {sentence(self._n)} in {i}\n" for i in ids]
        put(machine_home(mem) / "engrams" / "shared" / f"many-{self._n}.yaml", "".join(lines).encode())
        mem.upkeep.sync()
        for i in ids:
            self._made(i, f"{sentence(self._n)} in {i}")

    def _made(self, memory_id: str, statement: str) -> None:
        self.said[memory_id], self.status[memory_id] = statement, "active"

    def _observe(self, mem: Engram, _: str) -> None:
        mem.observe("watched", "user", sentence(self._n))

    def _update(self, mem: Engram, target: str) -> None:
        mem.update(target, statement=sentence(self._n))
        self.said[target] = sentence(self._n)

    def _forget(self, mem: Engram, target: str) -> None:
        mem.forget(target)
        self.status[target] = "retired"

    def _edit(self, mem: Engram, target: str) -> None:
        path = place(mem, target)
        path.write_text(path.read_text("utf-8").replace(self.said[target], sentence(self._n)), "utf-8")
        mem.upkeep.sync()
        self.said[target] = sentence(self._n)

    def _remove(self, mem: Engram, target: str) -> None:
        parts, path = store_of(mem).context, place(mem, target)
        together = [i for i in self.said if place_of(parts.index, i) and parts.path(place_of(parts.index, i)) == path]
        path.unlink()
        mem.upkeep.sync()
        self.status |= dict.fromkeys(together, "retired")

    def _move(self, mem: Engram, target: str) -> None:
        path = place(mem, target)
        folder = path.parent.with_name(f"moved-{self._n}")
        folder.mkdir()
        path.rename(folder / path.name)
        mem.upkeep.sync()

    def check(self, mem: Engram) -> None:
        """Everything is as it was acknowledged."""
        for memory_id, statement in self.said.items():
            found = mem.get(memory_id)
            assert (found.statement, found.status) == (statement, self.status[memory_id]), memory_id


@pytest.mark.parametrize("seed", range(8))
def test_nothing_acknowledged_is_lost_reverted_or_revived_whatever_the_disk_kept(seed: int, machine: Machine) -> None:
    program = Program(seed)
    for _ in range(3):
        with machine.open() as mem:
            for _ in range(program.chosen.randrange(3)):
                program.step(mem)
                machine.look()
        with machine.losing_power(program.chosen) as mem:
            for _ in range(program.chosen.randrange(1, 8)):
                program.step(mem)
                machine.look()
        with machine.open() as mem:
            program.check(mem)
            mem.upkeep.sync()
            program.check(mem)
        assert_journal_and_files_agree(machine.home)


# -- what a person did still counts


def test_an_earlier_version_put_back_by_hand_is_an_edit_while_the_machine_runs(machine: Machine) -> None:
    with machine.open() as mem:
        memory_id = mem.add(sentence(1)).id
        before = place(mem, memory_id).read_bytes()
        mem.update(memory_id, statement=sentence(2))
        put(place(mem, memory_id), before)
        mem.upkeep.sync()
        assert mem.get(memory_id).statement == sentence(1)


def test_an_earlier_version_put_back_by_hand_after_a_restart_is_an_edit_once_the_files_were_on_disk(
    machine: Machine,
) -> None:
    with machine.open() as mem:
        memory_id = mem.add(sentence(1)).id
        before = place(mem, memory_id).read_bytes()
        mem.update(memory_id, statement=sentence(2))
        path = place(mem, memory_id)
    machine.start()
    put(path, before)
    with machine.open() as mem:
        mem.upkeep.sync()
        assert mem.get(memory_id).statement == sentence(1)


def test_a_file_removed_by_hand_after_a_restart_retires_once_the_files_were_on_disk(machine: Machine) -> None:
    with machine.open() as mem:
        memory_id = mem.add(sentence(1)).id
        path = place(mem, memory_id)
    machine.start()
    path.unlink()
    with machine.open() as mem:
        mem.upkeep.sync()
        assert mem.get(memory_id).status == "retired"


def test_new_words_in_a_file_win_even_right_after_a_power_loss(machine: Machine) -> None:
    with machine.losing_power(random.Random(0)) as mem:
        memory_id = mem.add(sentence(1)).id
        path, data = place(mem, memory_id), place(mem, memory_id).read_bytes()
    put(path, data.replace(sentence(1).encode(), sentence(2).encode()))
    with machine.open() as mem:
        mem.upkeep.sync()
        assert mem.get(memory_id).statement == sentence(2)


def test_a_store_of_an_earlier_engram_has_no_mark_and_its_owner_wins(machine: Machine) -> None:
    with machine.open() as mem:
        memory_id = mem.add(sentence(1)).id
        path = place(mem, memory_id)
    (machine.home / "state" / "durable.json").unlink()
    path.unlink()
    machine.start()
    with machine.open() as mem:
        mem.upkeep.sync()
        assert mem.get(memory_id).status == "retired"
        assert mem.upkeep.doctor().ok


# -- what the doctor says


def test_the_doctor_says_what_was_put_right(machine: Machine) -> None:
    with machine.losing_power(random.Random(0)) as mem:
        path = place(mem, mem.add(sentence(1)).id)
    path.unlink(missing_ok=True)
    with machine.open() as mem:
        assert path.exists()
    with machine.open() as mem:
        assert path.name in doctor(mem, "power").message
        assert mem.upkeep.doctor().ok


def test_a_file_that_cannot_be_put_right_yet_is_nobodys_removal(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    with machine.losing_power(random.Random(0)) as mem:
        memory_id = mem.add(sentence(1)).id
        path = place(mem, memory_id)
    path.unlink(missing_ok=True)

    def full(*_: object) -> None:
        raise StoreReadOnly("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("engram.store.files.reconcile.file_repair.memories.write", full)
        with machine.open() as mem:
            mem.upkeep.sync()
            assert mem.get(memory_id).status == "active"
    with machine.open() as mem:
        mem.upkeep.sync()
        assert path.exists() and mem.get(memory_id).status == "active"


@pytest.mark.parametrize("which", [1, -1], ids=["in the middle", "at the end"])
def test_a_lost_line_of_the_journal_shows(which: int, machine: Machine) -> None:
    with machine.open() as mem:
        for n in range(4):
            mem.add(sentence(n))
    (path,) = machine.home.glob("journal/*.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[which]
    path.write_bytes(b"".join(lines))
    with machine.open() as mem:
        assert not doctor(mem, "journal").ok
        mem.add(sentence(9))
        assert not doctor(mem, "journal").ok


def test_going_on_without_a_lost_line_is_the_owners_decision(machine: Machine) -> None:
    with machine.open() as mem:
        for n in range(3):
            mem.add(sentence(n))
        home = store_of(mem).context.home
    (path,) = machine.home.glob("journal/*.jsonl")
    first, _, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(first + last)
    assert accept_gaps(home, Journal(home.journal, home.quarantine))
    with machine.open() as mem:
        assert doctor(mem, "journal").ok


def test_pruned_decisions_are_not_missed(machine: Machine) -> None:
    with machine.open() as mem:
        memory_id = mem.add(sentence(1)).id
        for n in range(2, 5):
            mem.update(memory_id, statement=sentence(n))
        assert mem.store.prune(mem._clock() + timedelta(days=400), 100, 0, 0, dry_run=False).images == 3
        assert doctor(mem, "journal").ok


def test_a_lost_task_shows(machine: Machine) -> None:
    with machine.open() as mem:
        task = mem.tasks.start("Move the release train")
        assert doctor(mem, "tasks").ok
    (machine.home / "tasks" / f"{task.id}.json").unlink()
    with machine.open() as mem:
        assert task.id in doctor(mem, "tasks").message and not doctor(mem, "tasks").ok


@pytest.mark.parametrize("which", [0, -1], ids=["the first", "the last"])
def test_a_lost_checkpoint_shows(which: int, machine: Machine) -> None:
    with machine.open() as mem:
        task = mem.tasks.start("Move the release train")
        for n in range(3):
            mem.tasks.checkpoint(task.id, f"Step {n} is done")
        assert doctor(mem, "tasks").ok
    (path,) = machine.home.glob("tasks/*.checkpoints.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    del lines[which]
    path.write_bytes(b"".join(lines))
    with machine.open() as mem:
        assert "checkpoint" in doctor(mem, "tasks").message and not doctor(mem, "tasks").ok


# -- sessions


SECRET = "The merger with Umbrella is signed on Friday"


def told_in_private(machine: Machine) -> tuple[str, Path]:
    with machine.open() as mem:
        with mem.session("Prepare the merger", scope="project:private") as running:
            running.observe("user", SECRET)
        return running.id, session_path(store_of(mem).context.home, running.id)


def scopes_of_events(mem: Engram) -> set[str]:
    return {scope for (scope,) in store_of(mem).context.index.db.execute("SELECT scope FROM docs WHERE kind = 'event'")}


@pytest.mark.parametrize("left", [None, b"", b"\0" * 80], ids=["gone", "empty", "zeros"])
def test_events_of_a_session_whose_file_is_lost_are_not_shown_to_everybody(
    left: bytes | None, machine: Machine
) -> None:
    session, path = told_in_private(machine)
    put(path, left)
    with machine.open() as mem:
        mem.rebuild_index()
        assert scopes_of_events(mem) and "global" not in scopes_of_events(mem)
        assert not doctor(mem, "sessions").ok
        assert [event.content for event in mem.store.events(session)] == [SECRET]


def test_events_of_a_task_whose_file_is_lost_are_not_shown_to_everybody(machine: Machine) -> None:
    with machine.open() as mem:
        task = mem.tasks.start("Prepare the merger", scope="project:private")
        mem.tasks.record_event(task.id, "user", SECRET)
    (machine.home / "tasks" / f"{task.id}.json").write_bytes(b"")
    with machine.open() as mem:
        mem.rebuild_index()
        assert scopes_of_events(mem) and "global" not in scopes_of_events(mem)


def test_a_session_is_on_disk_before_anything_is_said_in_it(machine: Machine) -> None:
    session, path = told_in_private(machine)
    assert machine.is_durable(path), session


# -- when files are waited for


def mark_of(machine: Machine) -> int:
    return int(json.loads((machine.home / "state" / "durable.json").read_bytes())["seq"])


def test_closing_waits_for_what_was_written(machine: Machine) -> None:
    with machine.open() as mem:
        mem.add(sentence(1))
        assert machine.uncertain()
    assert not machine.uncertain() and mark_of(machine) == 1


@pytest.mark.parametrize("sync_waits", [True, False], ids=["together", "one by one"])
def test_closing_waits_for_a_big_batch_too(sync_waits: bool, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.store.files.reconcile.durability.MAX_FILES_SYNCED_SINGLY", 2)
    monkeypatch.setattr("engram.store.files.reconcile.durability._SYNC_WAITS", sync_waits)
    with machine.open() as mem:
        removed, *_ = mem.add_batch([{"statement": sentence(n)} for n in range(3)])
        path = place(mem, removed.id)
    assert mark_of(machine) == 1 and not machine.uncertain()
    machine.start()
    path.unlink()
    with machine.open() as mem:
        mem.upkeep.sync()
        assert mem.get(removed.id).status == "retired"


def test_closing_waits_for_the_files_of_a_killed_process_too(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engram.store.files.reconcile.durability.FILES_PER_STEP", 2)
    killed = machine.open()
    for n in range(5):
        killed.add(sentence(n))
    with machine.open() as mem:
        mem.add(sentence(9))
    assert mark_of(machine) == 6 and not machine.uncertain()
    killed.close()


def test_a_rename_after_a_restart_is_its_owners(machine: Machine) -> None:
    with machine.losing_power(random.Random(0)) as mem:
        memory_id, other = mem.add(sentence(1)).id, mem.add(sentence(2)).id
        path, data, lost = place(mem, memory_id), place(mem, memory_id).read_bytes(), place(mem, other)
    put(path, None)
    put(lost, None)
    renamed = path.with_name("my-own-name.yaml")
    put(renamed, data)
    with machine.open() as mem:
        mem.upkeep.sync()
        assert renamed.is_file() and not path.exists() and lost.is_file()
        assert place(mem, memory_id) == renamed
        assert mem.get(memory_id).status == mem.get(other).status == "active"


def test_a_long_running_process_waits_for_what_it_wrote_a_while_ago(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.store.files.log.journal.DURABLE_AFTER_SECONDS", 0.0)
    with machine.open() as mem:
        for n in range(3):
            mem.add(sentence(n))
        assert mark_of(machine) == 2


def test_where_nothing_names_the_run_of_the_machine_every_decision_waits_for_its_files(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.store.files.log.journal.boot_id", lambda: "")
    with machine.open() as mem:
        mem.add(sentence(1))
        assert not machine.uncertain() and mark_of(machine) == 1
