"""A damaged file costs only itself: a purge beside it goes through, everything else goes on, and the damage is reported."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engram import Engram
from engram.cli.main import main
from engram.model.errors import StoreCorrupt
from engram.model.records import Job, Session
from engram.store.files.store import purge
from engram.store.files.store.purge_plan import MARKER_FILE
from engram.store.reports import Purged
from tests.faults.consistency import free_of
from tests.homes import home_of

SECRET = "The quagga enclosure opens with the brindled keycard"
NULS = b"\0" * 200


class Told(NamedTuple):
    """A store with one memory to purge, and what lies beside it."""

    folder: Path
    target: str
    task: str

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def opened(self) -> Engram:
        return Engram.open(self.home, cache=self.folder / "cache", directory=self.folder)


@pytest.fixture
def told(tmp_path: Path) -> Told:
    found = Told(tmp_path, "", "")
    with found.opened() as mem:
        mem.add("Okapis are fed at noon")
        target = mem.add(SECRET).id
        mem.observe("unrelated", "user", "The rain stopped in the evening")
        mem.observe("unrelated", "user", "The sun came out after that")
        mem.observe("talk", "user", f"They said: {SECRET}")
        task = mem.start_task("Paint the fence").id
        mem.create_checkpoint(task, "One side is painted")
        mem.create_checkpoint(mem.start_task("Mow the lawn").id, "Half of it is mown")
        mem.session("Walk the dog").end("It was a long walk")
    return found._replace(target=target, task=task)


def _write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _flip(path: Path, at: int = 0) -> Path:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    return _write(path, bytes(data))


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def _only(folder: Path, pattern: str) -> Path:
    return sorted(folder.glob(pattern))[0]


DAMAGE: dict[str, Callable[[Told], Path]] = {
    "a job of NULs": lambda told: _write(told.home / "state/jobs/x.json", NULS),
    "a folder named like a job": lambda told: _folder(told.home / "state/jobs/x.json"),
    "a torn checkpoint": lambda told: _write(
        path := told.home / f"tasks/{told.task}.checkpoints.jsonl", path.read_bytes() + b'{"id":"CKP'
    ),
    "a checkpoint that is no JSON": lambda told: _flip(told.home / f"tasks/{told.task}.checkpoints.jsonl"),
    "a task of NULs": lambda told: _write(told.home / f"tasks/{told.task}.json", NULS),
    "a folder named like a task": lambda told: _folder(told.home / "tasks/x.json"),
    "a flipped byte in an unrelated ledger": lambda told: _flip(told.home / "ledger/unrelated.jsonl"),
    "a flipped byte in its own ledger": lambda told: _flip(told.home / "ledger/talk.jsonl"),
    "a session that was cut": lambda told: _write(
        path := _only(told.home / "state/sessions", "*.json"), path.read_bytes()[:40]
    ),
    "a session that is a list": lambda told: _write(told.home / "state/sessions/x.json", b"[1]"),
    "a flipped byte in the journal": lambda told: _flip(_only(told.home / "journal", "*.jsonl")),
    "a folder in quarantine": lambda told: _write(told.home / "quarantine/folder/inside.txt", SECRET.encode()).parent,
}
UNREPORTED = {"a folder in quarantine"}
"""It is searched like anything else there."""
BY_CRASHES = {"a torn checkpoint"}
"""What a crash leaves is no checkpoint, and nothing is wrong with the others."""
COSTS_A_TASK = {"a task of NULs"}


@pytest.fixture(params=DAMAGE)
def damaged(request: pytest.FixtureRequest, told: Told) -> tuple[str, Told, Path]:
    return request.param, told, DAMAGE[request.param](told)


def test_a_purge_goes_through_and_names_what_it_could_not_read(damaged: tuple[str, Told, Path]) -> None:
    kind, told, path = damaged
    with told.opened() as mem:
        purged = mem.upkeep.purge([told.target])
        assert told.target in purged.ids
        assert any(str(path) in line for line in purged.remaining) is (kind not in UNREPORTED)
        assert all(str(path) in line for line in purged.remaining)
    assert not (told.home / "state" / MARKER_FILE).exists()
    assert free_of(told.folder, b"quagga")


@pytest.mark.heavy
def test_everything_else_goes_on(damaged: tuple[str, Told, Path]) -> None:
    kind, told, _ = damaged
    with told.opened() as mem:
        mem.upkeep.purge([told.target])
    with told.opened() as mem:
        assert [memory.statement for memory in mem.list()] == ["Okapis are fed at noon"]
        assert mem.add("Giraffes are tall").id != told.target
        goals = {"Mow the lawn"} if kind in COSTS_A_TASK else {"Mow the lawn", "Paint the fence"}
        assert {task.goal for task in mem.list_tasks()} == goals
        assert len(mem.tasks.checkpoints(next(task.id for task in mem.list_tasks() if task.id != told.task))) == 1
        assert mem.store.list_records(Job) == []
        assert mem.upkeep.backup(told.folder / "saved.tgz")["files"] > 5
        assert isinstance(mem.store.verify_ledgers(), list)
        assert [one.content for one in mem.store.events("unrelated")][1] == "The sun came out after that"
        mem.observe("fresh", "user", "Hello again, all of you")
        assert [one.content for one in mem.store.events("fresh")] == ["Hello again, all of you"]


@pytest.mark.heavy
def test_the_doctor_names_it_and_repair_goes_through(
    damaged: tuple[str, Told, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kind, told, path = damaged
    monkeypatch.setenv("XDG_CACHE_HOME", str(told.folder))
    monkeypatch.setenv("ENGRAM_CACHE", str(told.folder / "cache"))
    monkeypatch.chdir(told.folder)
    found = _asked(told, capsys, "doctor")
    assert (str(path) in json.dumps(found["checks"])) is (kind not in UNREPORTED | BY_CRASHES)
    assert "repaired" in _asked(told, capsys, "doctor", "--repair")
    with told.opened() as mem:
        assert told.target in mem.upkeep.purge([told.target]).ids
        assert [memory.statement for memory in mem.list()] in (["Okapis are fed at noon"], [])
    assert free_of(told.folder, b"quagga")


def _asked(told: Told, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    with contextlib.suppress(SystemExit):
        main([*words, "--json", "--home", str(told.home)])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


# -- an interrupted purge


@contextlib.contextmanager
def _interrupted(told: Told, monkeypatch: pytest.MonkeyPatch, step: str) -> Iterator[None]:
    with told.opened() as mem, monkeypatch.context() as crashing:
        crashing.setattr(purge, step, lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mem.upkeep.purge([told.target])
    yield


STEPS = ("_clean_sessions", "_note_redactions", "_remove_files", "_blank_journal", "reindex_journal", "_compact")


@pytest.mark.parametrize("step", STEPS)
def test_readers_neither_end_an_interrupted_purge_nor_show_what_it_is_about(
    told: Told, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with _interrupted(told, monkeypatch, step), told.opened() as mem:
        assert [memory.statement for memory in mem.list(status="any")] == ["Okapis are fed at noon"]
        assert mem.store.get(told.target) is None
        assert not any("quagga" in hit.text for hit in mem.search(SECRET, kinds=("memory", "event")))
        assert not any(image.memory for image in mem.store.history(told.target))
        assert [event.content for event in mem.store.events("talk")] == [""]
        check = mem.doctor()["purge"]
        assert not check.ok and "--repair" in check.fix
        assert (told.home / "state" / MARKER_FILE).exists()


@pytest.mark.parametrize("how", ["add", "observe", "sync", "purge"])
def test_the_next_writer_ends_it(told: Told, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    with _interrupted(told, monkeypatch, "_remove_files"), told.opened() as mem:
        writers: dict[str, Callable[[], object]] = {
            "add": lambda: mem.add("Giraffes are tall"),
            "observe": lambda: mem.observe("talk", "user", "Something else entirely"),
            "sync": mem.upkeep.sync,
            "purge": lambda: mem.upkeep.purge([mem.list()[0].id]),
        }
        writers[how]()
        assert not (told.home / "state" / MARKER_FILE).exists()
        assert mem.store.verify_ledgers() == []
    assert free_of(told.folder, b"quagga")


def test_an_index_made_anew_meanwhile_does_not_show_it_either(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    with _interrupted(told, monkeypatch, "_remove_files"):
        other = Engram.open(told.home, cache=told.folder / "other", directory=told.folder)
        with other as mem:
            assert [memory.statement for memory in mem.list()] == ["Okapis are fed at noon"]
            mem.upkeep.sync()
        assert free_of(told.home, b"quagga") and free_of(told.folder / "other", b"quagga")


def test_a_purge_that_cannot_be_ended_keeps_nobody_from_writing(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    marker = told.home / "state" / MARKER_FILE
    marker.write_bytes(NULS)
    with told.opened() as mem:
        assert len(mem.list()) == 2
        mem.add("Giraffes are tall")
        assert any(str(marker) in warning for warning in mem.store.warnings)
        check = mem.doctor()["purge"]
        assert not check.ok


def test_a_purge_that_begins_while_another_cannot_be_ended_ends_both(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _interrupted(told, monkeypatch, "_remove_files"), told.opened() as mem:
        with monkeypatch.context() as failing:
            failing.setattr(purge, "resume", lambda _: (_ for _ in ()).throw(OSError(5, "Input/output error")))
            mem.upkeep.purge([mem.list()[0].id])
        assert mem.list(status="any") == []
    assert not (told.home / "state" / MARKER_FILE).exists()
    assert free_of(told.folder, b"quagga") and free_of(told.folder, b"Okapis")


def test_a_marker_of_an_older_engram_is_ended_too(told: Told) -> None:
    (told.home / "state" / MARKER_FILE).write_text(json.dumps({"ids": [told.target], "drawn": [], "actor": "human"}))
    with told.opened() as mem:
        assert mem.store.get(told.target) is None
        mem.add("Giraffes are tall")
        assert not (told.home / "state" / MARKER_FILE).exists()
    assert free_of(told.folder, b"quagga")


def test_a_file_that_cannot_be_read_is_left_out_of_a_backup_and_named(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = told.home / "ledger/unrelated.jsonl"
    reads = Path.read_bytes

    def failing(path: Path) -> bytes:
        if path == broken:
            raise OSError(5, "Input/output error")
        return reads(path)

    with told.opened() as mem:
        whole = mem.upkeep.backup(told.folder / "whole.tgz")["files"]
        monkeypatch.setattr(Path, "read_bytes", failing)
        assert mem.upkeep.backup(told.folder / "part.tgz")["files"] == whole - 1
        assert any(str(broken) in warning for warning in mem.store.warnings)


def test_the_words_in_a_line_that_cannot_be_read_go_too(told: Told) -> None:
    ledger = told.home / "ledger/unrelated.jsonl"
    _write(ledger, ledger.read_bytes() + f'{{"content": "{SECRET}", broken\n'.encode())
    with told.opened() as mem:
        home_of(mem)
        purged = mem.upkeep.purge([told.target])
        assert any(str(ledger) in line for line in purged.remaining)
    assert free_of(told.folder, b"quagga")


# -- what lies beside the words


def _many(told: Told) -> tuple[Path, str]:
    """Three memories written by hand into one file, and a fourth of which only half is typed; the first one's id."""
    path = told.home / "engrams/global/many.yaml"
    words = ("The zebra gate is never locked", "Lions sleep until ten", "Otters like the rain")
    whole = "".join(
        f"- id: ENG-2026-01-01-00{n}\n  statement: {text}\n  scope: global\n" for n, text in enumerate(words)
    )
    _write(path, whole.encode())
    with told.opened() as mem:
        mem.upkeep.sync()
        assert len(mem.list()) == 5
    _write(path, whole.encode() + b'- id: ENG-2026-01-01-009\n  statement: "Pandas are\n  scope: [glo')
    return path, "ENG-2026-01-01-000"


def test_a_file_that_is_half_typed_loses_the_words_and_nothing_else(told: Told) -> None:
    path, first = _many(told)
    before = path.read_text()
    with told.opened() as mem:
        purged = mem.forget(first, purge=True)
        assert isinstance(purged, Purged)
        assert [str(path) in line for line in purged.remaining] == [True]
        assert path.read_text() == before.replace("The zebra gate is never locked", "[purged]")
        assert sorted(memory.statement for memory in mem.list())[:2] == [
            "Lions sleep until ten",
            "Okapis are fed at noon",
        ]
        assert any(str(path) in problem for problem in mem.upkeep.sync().problems)
        path.write_text(path.read_text().partition("- id: ENG-2026-01-01-009")[0])
        mem.upkeep.sync()
        assert mem.store.get(first) is None
        assert len(mem.list()) == 4
    assert free_of(told.folder, b"zebra")


def test_notes_that_quote_the_words_keep_their_other_lines(told: Told) -> None:
    notes = _write(told.home / "engrams/global/notes.txt", f"Ask Ben: {SECRET}!\nBuy oats\n".encode())
    with told.opened() as mem:
        assert mem.upkeep.purge([told.target]).remaining == ()
    assert notes.read_text() == "Ask Ben: [purged]!\nBuy oats\n"


def test_a_memorys_file_that_is_a_folder_is_named_and_stops_nothing(told: Told) -> None:
    (path,) = (path for path in (told.home / "engrams").rglob("*.yaml") if SECRET in path.read_text())
    path.unlink()
    _write(path / "inside.txt", b"Buy oats")
    with told.opened() as mem:
        purged = mem.upkeep.purge([told.target])
        assert [str(path) in line for line in purged.remaining] == [True]
        assert mem.store.get(told.target) is None
    assert (path / "inside.txt").read_bytes() == b"Buy oats"
    assert not (told.home / "state" / MARKER_FILE).exists()
    assert free_of(told.folder, b"quagga")


COPIES = {"journal/copy.jsonl.bak": "journal/*.jsonl", "engrams/global/.stversions/v.yaml": "engrams/**/*.yaml"}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_of_what_was_purged_is_named_by_its_path(told: Told, copy: str) -> None:
    (source,) = (path for path in told.home.glob(COPIES[copy]) if SECRET in path.read_text())
    path = _write(told.home / copy, source.read_bytes())
    with told.opened() as mem:
        remaining = mem.upkeep.purge([told.target]).remaining
    assert [line.partition(":")[0] for line in remaining] == [str(path)]


# -- numbers and brackets without an end

BRACKETS = b"[" * 100_000
ENDLESS = b"1e999"


def _with(path: Path, name: str, value: bytes) -> Path:
    """A record in which one field is something else."""
    fields = json.loads(path.read_bytes().splitlines()[-1] if path.suffix == ".jsonl" else path.read_bytes())
    spelled = json.dumps({**fields, name: "<odd>"}).encode().replace(b'"<odd>"', value) + b"\n"
    return _write(path, path.read_bytes() + spelled if path.suffix == ".jsonl" else spelled)


SMALL: dict[str, Callable[[Told], Path]] = {
    "an event": lambda told: told.home / "ledger/unrelated.jsonl",
    "a session": lambda told: _only(told.home / "state/sessions", "*.json"),
    "a task": lambda told: told.home / f"tasks/{told.task}.json",
    "checkpoints": lambda told: told.home / f"tasks/{told.task}.checkpoints.jsonl",
    "a job": lambda told: _write(
        told.home / "state/jobs/x.json",
        b'{"id":"j","kind":"learn","created":"2026-11-16T10:00:00Z","run_after":"2026-11-16T10:00:00Z"}',
    ),
    "the mark": lambda told: told.home / "state/durable.json",
    "trust": lambda told: _write(told.home / "state/trust.json", b"{}"),
    "a use": lambda told: _write(told.home / "usage/2026-11.jsonl", b"{}\n"),
    "a verdict": lambda told: _write(told.home / "state/gates.jsonl", b"{}\n"),
    "an interrupted purge": lambda told: _write(told.home / "state" / MARKER_FILE, b'{"ids":[],"actor":"human"}'),
}
NUMBERED = {"an event": "seq", "a session": "through", "checkpoints": "number", "a job": "attempts", "the mark": "seq",
            "an interrupted purge": "said"}  # fmt: skip


def _goes_on(told: Told) -> None:
    with told.opened() as mem:
        assert len(mem.list()) == 2
        assert mem.add("Giraffes are tall").id
        mem.observe("fresh", "user", "Hello again, all of you")
        assert mem.search("okapis", kinds=("memory", "event"))
        assert len(mem.list_tasks()) >= 1 and isinstance(mem.store.list_records(Session), list)
        assert isinstance(mem.store.list_records(Job), list) and isinstance(mem.store.verify_ledgers(), list)
        mem.doctor()
        mem.rebuild_index()
        assert {memory.statement for memory in mem.list()} == {"Okapis are fed at noon", SECRET, "Giraffes are tall"}


@pytest.mark.parametrize("kind", SMALL)
def test_brackets_without_an_end_cost_only_their_file(told: Told, kind: str) -> None:
    path = SMALL[kind](told)
    _write(path, path.read_bytes() + BRACKETS + b"\n" if path.suffix == ".jsonl" else BRACKETS)
    _goes_on(told)


@pytest.mark.parametrize("kind", NUMBERED)
def test_a_number_without_an_end_costs_only_its_file(told: Told, kind: str) -> None:
    _with(SMALL[kind](told), NUMBERED[kind], ENDLESS)
    _goes_on(told)


@pytest.mark.parametrize("seq", [2**63 - 1, 2**63 - 2, 2**70, -1])
def test_a_mark_that_no_decision_can_have_set_blocks_no_write(told: Told, seq: int) -> None:
    _with(told.home / "state/durable.json", "seq", str(seq).encode())
    _goes_on(told)
    _goes_on_once_more(told)


def _goes_on_once_more(told: Told) -> None:
    with told.opened() as mem:
        assert mem.add("Zebras are striped").id


@pytest.mark.parametrize("content", [BRACKETS, b'{"format":1e999,"id":"x"}', b"[]"], ids=["deep", "endless", "list"])
def test_a_card_that_cannot_be_read_is_named(told: Told, content: bytes) -> None:
    _write(told.home / "store.json", content)
    with pytest.raises(StoreCorrupt, match=r"store\.json cannot be read"):
        told.opened()


# -- a marker that someone else wrote

WHOLE: dict[str, Any] = {
    "ids": ["ENG-1"],
    "drawn": [],
    "actor": "human",
    "said": [],
    "events": {},
    "files": [],
    "scopes": [],
}
ODD: dict[str, dict[str, Any]] = {
    "ids that are numbers": {"ids": [1]},
    "ids that are one word": {"ids": "ENG-1"},
    "words that are numbers": {"said": [1]},
    "an empty word": {"said": [""]},
    "events of numbers": {"events": {"EVT-1": 1}},
    "events in a list": {"events": ["EVT-1"]},
    "files that are numbers": {"files": [1]},
    "files outside": {"files": ["../../x.yaml"]},
    "scopes of numbers": {"scopes": [1]},
    "half of it missing": {"said": [], "files": None},
}


def _marked(told: Told, **fields: Any) -> Path:
    return _write(told.home / "state" / MARKER_FILE, json.dumps({**WHOLE, **fields}).encode())


@pytest.mark.parametrize("kind", ODD)
def test_a_marker_of_other_types_is_reported_and_set_aside_by_a_repair(
    told: Told, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = _marked(told, **ODD[kind])
    with told.opened() as mem:
        assert len(mem.list()) == 2 and mem.add("Giraffes are tall").id
        check = mem.doctor()["purge"]
        assert not check.ok and str(marker) in check.message
    monkeypatch.setenv("ENGRAM_CACHE", str(told.folder / "cache"))
    monkeypatch.chdir(told.folder)
    assert str(marker) in str(_asked(told, capsys, "doctor", "--repair")["repaired"])
    assert not marker.exists() and list((told.home / "quarantine").glob(f"{MARKER_FILE}*"))
    with told.opened() as mem:
        assert told.target in mem.upkeep.purge([told.target]).ids
    assert free_of(told.folder, b"quagga")


def test_a_marker_removes_no_file_of_a_repository_that_is_not_in_use(told: Told) -> None:
    theirs = told.folder / "repo/.engram/engrams/shared/ENG-1.yaml"
    _write(theirs, b"- id: ENG-1\n  statement: Herons wait\n")
    _marked(told, files=[str(theirs)])
    with told.opened() as mem:
        mem.add("Giraffes are tall")
        assert any(str(theirs) in warning for warning in mem.store.warnings)
    assert theirs.read_bytes() == b"- id: ENG-1\n  statement: Herons wait\n"
    assert not (told.home / "state" / MARKER_FILE).exists()
