"""An edit by hand stayed invisible to searches until a full sync: a save keeps the file's name, and an in-place save keeps its folder's time."""

import contextlib
import gc
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.reconcile import folder_watch, folders
from engram.store.files.reconcile import folder_watch as inotify
from engram.store.files.reconcile.folder_watch import FolderWatch
from engram.store.files.reconcile.folders import EditDetector
from engram.store.files.store.backend import FilesStore, trust_team_files
from engram.store.sqlite.sweep import COARSE_CLOCK_NS, SECOND_NS, Sweep, time_to_record

OLD, NEW = "platypus", "zyzzyva"
PATIENCE = 20.0


def save_in_place(path: Path, text: str) -> None:
    with path.open("r+", encoding="utf-8") as file:
        file.write(text)
        file.truncate()


def truncate_and_write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) // 2])
        file.flush()
        time.sleep(0.02)
        file.write(text[len(text) // 2 :])


def rename_over(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.swp")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


def save_like_vim(path: Path, text: str) -> None:
    path.with_name("4913").touch()
    path.with_name("4913").unlink()
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_text(text, "utf-8")
    backup.unlink()


def run_sed(path: Path, text: str) -> None:
    subprocess.run(["sed", "-i", f"s/{OLD}/{NEW}/g", str(path)], check=True)


def restore_times(path: Path, text: str) -> None:
    """Save with the same size and the old modification time, as `rsync --times` does; here `OLD` and `NEW` differ in length."""
    before = path.stat()
    text = text.replace(NEW, (NEW + " ")[: len(OLD)].ljust(len(OLD)))
    save_in_place(path, text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


SAVES = [save_in_place, truncate_and_write, rename_over, save_like_vim, run_sed, restore_times]
Save = Callable[[Path, str], None]


class Place:
    """A store, opened as often as a test wants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> Engram:
        return Engram.open(self.folder / "home", cache=self.folder / "cache", directory=self.folder)

    def file_of(self, memory_id: str) -> Path:
        with self.open() as mem:
            return Path(files_of(mem).file_of(memory_id))


def files_of(mem: Engram) -> FilesStore:
    assert isinstance(mem.store, FilesStore)
    return mem.store


def edit(path: Path, save: Save) -> None:
    save(path, path.read_text("utf-8").replace(OLD, NEW))


def statements(mem: Engram, query: str) -> list[str]:
    return [memory.statement for memory in found_memories(mem, query) if query in memory.statement]


def found_memories(mem: Engram, query: str) -> list[Memory]:
    return [hit.memory for hit in mem.search(query) if hit.memory is not None]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def memory_id(place: Place) -> str:
    with place.open() as mem:
        mem.add("The kettle is in the kitchen")
        return mem.add(f"The {OLD} sleeps in the north wing", situation=f"Feeding the {OLD}").id


def start_watch(mem: Engram) -> EditDetector:
    """Answer until the folders are watched."""
    detector = files_of(mem)._edits
    deadline = time.monotonic() + PATIENCE
    while not detector.is_current:
        files_of(mem)._refresh(force=True)
        assert time.monotonic() < deadline, "the folders are not watched"
    return detector


@pytest.fixture
def unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system without inotify, on which every look is due."""

    def refuse(self: EditDetector, context: object) -> None:
        return None

    monkeypatch.setattr(EditDetector, "_start_watch", refuse)
    monkeypatch.setattr(folders, "LOOK_INTERVAL", 0.0)


def assert_edited(mem: Engram, memory_id: str) -> None:
    assert len(statements(mem, NEW)) == 1, "the new word is not found"
    assert statements(mem, OLD) == [], "the old word is still found"
    [found] = [memory for memory in found_memories(mem, f"feeding a {NEW}") if memory.id == memory_id]
    assert NEW in found.statement and NEW in found.situation
    assert NEW in mem.get(memory_id).statement
    assert [m.statement for m in mem.list() if m.id == memory_id and NEW in m.statement]
    assert mem.history(memory_id)[-1].actor == "hand"


@pytest.mark.parametrize("save", SAVES)
def test_the_first_answer_of_a_new_process_has_the_edit(place: Place, memory_id: str, save: Save) -> None:
    edit(place.file_of(memory_id), save)
    with place.open() as mem:
        assert_edited(mem, memory_id)


@pytest.mark.parametrize("save", SAVES)
def test_a_watching_process_has_the_edit_in_its_next_answer(place: Place, memory_id: str, save: Save) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        detector = start_watch(mem)
        edit(path, save)
        assert_edited(mem, memory_id)
        assert detector.is_current


@pytest.mark.parametrize("save", SAVES)
@pytest.mark.usefixtures("unwatched")
def test_a_process_without_a_watch_has_the_edit_in_its_next_answer(place: Place, memory_id: str, save: Save) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        mem.search("kettle")
        edit(path, save)
        assert_edited(mem, memory_id)


def test_an_edit_by_another_process_is_found_while_this_one_answers(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        start_watch(mem)
        editor = subprocess.Popen(["sed", "-i", f"s/{OLD}/{NEW}/g", str(path)])
        deadline = time.monotonic() + PATIENCE
        while not statements(mem, NEW):
            assert time.monotonic() < deadline, "the edit stays invisible"
        editor.wait()
        assert_edited(mem, memory_id)


@pytest.mark.parametrize("is_watching", [True, False])
def test_new_and_removed_files_and_folders_count(place: Place, memory_id: str, is_watching: bool) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        if is_watching:
            start_watch(mem)
        text = path.read_text("utf-8").replace(memory_id, "ENG-2020-0101-001").replace(OLD, NEW)
        folder = path.parent.parent / "deeper" / "2020-01"
        folder.mkdir(parents=True)
        (folder / "ENG-2020-0101-001.yaml").write_text(text, "utf-8")
        path.unlink()
        files_of(mem)._refresh(force=True)
        assert (len(statements(mem, NEW)), statements(mem, OLD)) == (1, [])
        assert mem.get(memory_id).status == "retired"
        if is_watching:
            start_watch(mem)
        shutil.rmtree(folder.parent)
        files_of(mem)._refresh(force=True)
        assert statements(mem, NEW) == []


def test_a_decision_sees_an_edit(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        start_watch(mem)
        edit(path, save_in_place)
        assert mem.learn(f"The {NEW} sleeps in the north wing").other is not None


def test_a_truncated_file_keeps_its_memory_and_is_read_when_it_is_written(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    text = path.read_text("utf-8")
    with place.open() as mem:
        start_watch(mem)
        path.write_text("", "utf-8")
        assert OLD in mem.get(memory_id).statement
        assert len(statements(mem, OLD)) == 1
        path.write_text(text.replace(OLD, NEW), "utf-8")
        assert_edited(mem, memory_id)


def test_a_file_that_stays_empty_is_restored_by_a_later_answer(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        start_watch(mem)
        path.write_text("", "utf-8")
        mem.search("kettle")
        moment = time.time() - 60
        os.utime(path, (moment, moment))
        mem.search("kettle")
        assert OLD in path.read_text("utf-8")


def test_half_a_save_is_not_taken_for_an_edit(place: Place, memory_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lines of a memory are valid YAML; while the file changes it is left alone."""
    path = place.file_of(memory_id)
    lines = path.read_text("utf-8").replace(OLD, NEW).splitlines(keepends=True)
    with place.open() as mem:
        start_watch(mem)
        written = iter(lines[2:])
        wait = time.sleep

        def write_on(seconds: float) -> None:
            with path.open("a", encoding="utf-8") as file:
                file.writelines([next(written, "")])
            wait(seconds)

        path.write_text("".join(lines[:2]), "utf-8")
        monkeypatch.setattr("engram.store.files.reconcile.folders.time.sleep", write_on)
        monkeypatch.setattr("engram.store.files.reconcile.folders.SAVING_SECONDS", PATIENCE)
        mem.search("kettle")
        edited = [image for image in mem.history(memory_id) if image.actor == "hand"]
        assert [image.memory and image.memory.situation for image in edited] == [f"Feeding the {NEW}"]


def test_an_unparsable_save_keeps_the_last_good_version(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    good = path.read_text("utf-8")
    with place.open() as mem:
        start_watch(mem)
        path.write_text("- id: [", "utf-8")
        assert len(statements(mem, OLD)) == 1
        rename_over(path, good.replace(OLD, NEW))
        assert_edited(mem, memory_id)


def test_an_editors_own_files_are_ignored(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    text = path.read_text("utf-8").replace(OLD, NEW)
    with place.open() as mem:
        start_watch(mem)
        for name in (f".{path.name}.swp", f"{path.name}~", f"#{path.name}#", f".#{path.name}", "4913"):
            path.with_name(name).write_text(text, "utf-8")
        assert (statements(mem, NEW), len(statements(mem, OLD))) == ([], 1)
        assert files_of(mem).warnings == []


def test_a_store_of_seconds_reads_a_young_file_again() -> None:
    now = 1_700_000_000_900_000_000
    whole = memories.Stamp(1_700_000_000_000_000_000, 10, 7, 1_700_000_000_000_000_000)
    assert whole.to_record(now) != whole
    assert whole.to_record(now + COARSE_CLOCK_NS) == whole
    fine = memories.Stamp(1_700_000_000_000_000_001, 10, 7, 1_700_000_000_000_000_001)
    assert fine.to_record(now) == fine


def test_a_team_store_follows_git(place: Place, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)

    def open_here() -> Engram:
        return Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=repository)

    with open_here() as mem:
        memory_id = mem.add(f"The {OLD} sleeps in the north wing", team=True).id
        path = Path(files_of(mem).file_of(memory_id))
        assert path.is_relative_to(repository)
        old = path.read_text("utf-8")
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-qm", "one"], check=True)
        save_in_place(path, old.replace(OLD, NEW))
        assert statements(mem, OLD) == [], "an untrusted version hides the trusted one"
        trust_team_files(files_of(mem), repository)
        assert len(statements(mem, NEW)) == 1
        start_watch(mem)
        subprocess.run([*git, "checkout", "-q", "."], check=True)
        trust_team_files(files_of(mem), repository)
        assert (statements(mem, NEW), len(statements(mem, OLD))) == ([], 1)
        path.unlink()
        assert statements(mem, OLD) == []


@pytest.mark.parametrize("few", [0, 256])
def test_an_edited_memory_gets_a_new_vector(
    place: Place, memory_id: str, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Whether the edited documents are looked up or all are compared with all vectors."""
    monkeypatch.setattr("engram.store.sqlite.index._MAX_CHANGED_LOOKUPS", few)
    path = place.file_of(memory_id)
    with place.open() as mem:
        store = files_of(mem)
        [number] = store.numbers([memory_id]).values()
        before = store.vectors([number])
        edit(path, save_in_place)
        assert len(statements(mem, NEW)) == 1
        after = store.vectors([number])
        assert before is not None and after is not None and (before != after).any()
        assert not store.context.index.get("lacking")


# -- the watch


def open_queues() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}") == "anon_inode:inotify"
    return found


@pytest.mark.parametrize("is_closed", [True, False])
def test_closed_and_forgotten_stores_leave_no_queue(place: Place, memory_id: str, is_closed: bool) -> None:
    before = open_queues()
    mem = place.open()
    start_watch(mem)
    assert open_queues() == before + 1
    if is_closed:
        mem.close()
    else:
        del mem
        gc.collect()
    assert open_queues() == before


def test_a_process_watches_only_some_of_its_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_watch, "MAX_WATCHED_STORES", len(folder_watch._living) + 1)
    watch = FolderWatch([str(tmp_path)])
    with pytest.raises(OSError, match="enough stores"):
        FolderWatch([str(tmp_path)])
    watch.stop()
    FolderWatch([str(tmp_path)]).stop()


@pytest.mark.parametrize("limit", ["most_folders", "is_local"])
def test_a_store_that_may_not_be_watched_is_still_followed(
    place: Place, memory_id: str, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(inotify, limit, lambda *_: 0)
    monkeypatch.setattr(folders, "LOOK_INTERVAL", 0.0)
    path = place.file_of(memory_id)
    with place.open() as mem:
        mem.search("kettle")
        mem.search("kettle")
        assert not files_of(mem)._edits.is_current
        edit(path, save_in_place)
        assert_edited(mem, memory_id)


def test_lost_events_lead_to_a_new_watch_and_a_full_comparison(
    place: Place, memory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        detector = start_watch(mem)
        read = inotify.Inotify.read

        def overflow(self: inotify.Inotify) -> list[inotify.FolderEvent]:
            read(self)
            monkeypatch.setattr(inotify.Inotify, "read", read)
            return [inotify.FolderEvent(-1, inotify.OVERFLOW, "")]

        monkeypatch.setattr(inotify.Inotify, "read", overflow)
        edit(path, save_in_place)
        assert_edited(mem, memory_id)
        assert detector.is_current


def test_a_replaced_folder_is_noticed(place: Place, memory_id: str) -> None:
    """The parent of a watched folder is renamed: the watch itself stays silent."""
    path = place.file_of(memory_id)
    home = place.folder / "home"
    with place.open() as mem:
        start_watch(mem)
        shutil.copytree(home, place.folder / "copy")
        edit(place.folder / "copy" / path.relative_to(home), save_in_place)
        home.rename(place.folder / "former")
        (place.folder / "copy").rename(home)
        files_of(mem)._refresh(force=True)
        assert len(statements(mem, NEW)) == 1


def test_a_forked_child_leaves_its_parents_events_alone(place: Place, memory_id: str) -> None:
    path = place.file_of(memory_id)
    with place.open() as mem:
        detector = start_watch(mem)
        edit(path, save_in_place)
        child = os.fork()
        if not child:
            code = 1
            try:
                code = 0 if not detector.is_current and len(statements(mem, NEW)) == 1 else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert detector.is_current
        assert_edited(mem, memory_id)


# -- large stores


def test_a_sweep_continues_where_the_last_process_stopped(
    place: Place, memory_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no time at all each process compares one file; together they cover all."""
    monkeypatch.setattr("engram.store.sqlite.sweep.FILES_PER_STEP", 1)
    monkeypatch.setattr(folders, "FIRST_SWEEP_SECONDS", 0.0)
    edit(place.file_of(memory_id), save_in_place)
    found = []
    for _ in range(3):
        with place.open() as mem:
            files_of(mem).read_edits()
            found.append(len([image for image in mem.history(memory_id) if image.actor == "hand"]))
    assert found[-1] == 1
    assert found == sorted(found)


def test_a_sweep_visits_every_file_from_any_position(place: Place, memory_id: str) -> None:
    with place.open() as mem:
        for i in range(20):
            mem.add(f"Shelf {i} has {i} books")
        context = files_of(mem).context
        paths = [path for (path,) in context.index.db.execute("SELECT path FROM files ORDER BY path")]
        for path in paths:
            (context.home.root / path).touch()
        for position in ["", *paths]:
            sweep = Sweep(str(context.home.root), ["engrams"], position)
            assert sorted(sweep.compare(context.index.db, 60)) == paths
            assert sweep.position == ""


def test_a_folder_that_keeps_changing_does_not_hold_up_a_sweep(place: Place, memory_id: str) -> None:
    with place.open() as mem:
        context = files_of(mem).context
        [folder] = {path.rpartition("/")[0] for (path,) in context.index.db.execute("SELECT path FROM files")}
        sweep = Sweep(str(context.home.root), ["engrams"])
        for _ in range(3):
            sweep.put_first([folder])
        slices = 0
        while sweep.position:
            sweep.put_first([folder] if slices else [])
            sweep.compare(context.index.db, 0)
            slices += 1
            assert slices < 5


def test_a_folder_that_was_listed_within_a_tick_is_listed_again() -> None:
    now = 1_700_000_001_000_000_000
    assert time_to_record(now - 1, now) == 0
    assert time_to_record(now - SECOND_NS, now) == 0, "a clock of seconds"
    assert time_to_record(now - SECOND_NS - 1, now) == now - SECOND_NS - 1
    assert time_to_record(-1, now) == -1


# -- other surfaces


def test_hooks_follow_an_edit(place: Place) -> None:
    with place.open() as mem:
        memory_id = mem.add(
            f"Deploy the {OLD} service with the blue button",
            situation="Deploying a service",
            scope="global",
            pinned=True,
        ).id
    edit(place.file_of(memory_id), save_in_place)
    payload = {"session_id": "s", "cwd": str(place.folder), "prompt": "please deploy the service to production now"}
    for event in ("session-start", "prompt"):
        program = f"from engram.hooks import runner; runner.run({event!r}, {str(place.folder / 'home')!r})"
        given = json.dumps(payload | {"session_id": event})
        environment = os.environ | {"ENGRAM_CACHE": str(place.folder / "cache")}
        ended = subprocess.run(
            [sys.executable, "-c", program], input=given, text=True, capture_output=True, check=True, env=environment
        )
        assert NEW in ended.stdout and OLD not in ended.stdout, event


@pytest.fixture(autouse=True)
def _no_watch_left() -> Iterator[None]:
    before = len(folder_watch._living)
    yield
    assert len(folder_watch._living) <= before
