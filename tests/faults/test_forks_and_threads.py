"""Forked children and many threads on one store."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreBusy
from engram.store.files.lock import WriterLock
from engram.store.files.store.backend import FilesStore
from engram.store.home import open_home
from tests.faults.consistency import assert_consistent
from tests.faults.processes import finish, start
from tests.faults.workers.operations import sentence

PATIENCE = 60.0


@pytest.mark.parametrize(
    "case",
    [
        "after_the_block",
        "while_events_wait_for_the_index",
        "inside_a_decision",
        "a_child_outlives_the_lock",
        "while_threads_write",
        "while_a_lock_is_held",
    ],
)
def test_a_forked_child_is_a_process_of_its_own(tmp_path: Path, case: str) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    [answer] = finish(start("forking", case, str(home), str(cache)))
    assert answer == {"status": 0, "found": True}
    assert_consistent(home, cache)


def test_many_threads_share_one_object(tmp_path: Path) -> None:
    home, cache = tmp_path / "home", tmp_path / "cache"
    with Engram.open(home, cache=cache, directory=home) as mem:
        shared = mem.add("Everyone rates this one")

        def work(number: int) -> list[str]:
            made = []
            for i in range(6):
                text = sentence(number * 100 + i)
                decision = mem.learn(text, scope=f"project:thread-{number}")
                assert decision.memory is not None, decision
                made.append(decision.memory.id)
                assert mem.search(text, scope="everywhere")[0].text == text
                mem.feedback(shared.id, "positive")
                mem.observe(f"talk-{number}", "user", text, key=str(i))
            return made

        with ThreadPoolExecutor(8) as pool:
            made = [memory_id for ids in pool.map(work, range(8)) for memory_id in ids]
        assert len(set(made)) == 48
        assert mem.get(shared.id).feedback.positive == 48
    assert_consistent(home, cache)


def test_a_writer_that_waits_too_long_gets_a_helpful_error(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", tmp_path / "cache")
    store = FilesStore(home, deadline=0.05)
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with WriterLock(home.lock).hold():
            held.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(PATIENCE)
    try:
        with pytest.raises(StoreBusy, match="another process"), store.deciding("add", actor="test"):
            pass
    finally:
        release.set()
        thread.join()
    with store.deciding("add", actor="test"):
        pass
    store.close()


def test_an_abandoned_wait_releases_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with WriterLock(path).hold():
        for _ in range(3):
            with pytest.raises(StoreBusy), WriterLock(path).hold(0.01):
                pass
    for _ in range(3):
        with WriterLock(path).hold(PATIENCE):
            pass


def test_the_lock_is_reentrant(tmp_path: Path) -> None:
    lock = WriterLock(tmp_path / "lock")
    with lock.hold(), lock.hold(0.01):
        pass
    with WriterLock(tmp_path / "lock").hold(0.1):
        pass
