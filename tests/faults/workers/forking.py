"""Forks while the parent holds the lock, an open connection and a half-made decision."""

import json
import os
import sys
import threading
import time
from pathlib import Path

from engram import Engram
from engram.model.errors import StoreError
from engram.model.forks import ForkedLock
from tests.faults.workers.operations import sentence

PATIENCE = 60.0


def _in_child(work: object) -> int:
    """Exit status of a forked child that runs `work`; 99 if it hangs."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            assert callable(work)
            work()
            status = 0
        finally:
            os._exit(status)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return 99


def after_the_block(home: Path, cache: Path) -> dict[str, object]:
    """A child of an idle parent reads and writes through the object it inherited."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        mem.add(sentence(1))
        status = _in_child(lambda: mem.add(sentence(2)))
        mem.add(sentence(3))
        found = sorted(memory.statement for memory in mem.list(scope="everywhere"))
    return {"status": status, "found": found == sorted(sentence(n) for n in (1, 2, 3))}


def while_events_wait_for_the_index(home: Path, cache: Path) -> dict[str, object]:
    """Parent and child have both appended events that the index lacks; each is taken in once."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        for n in range(3):
            mem.observe("talk", "user", sentence(n))

        def goes_on() -> None:
            mem.observe("talk", "user", sentence(3))
            assert len(mem.store.events("talk")) == 4

        status = _in_child(goes_on)
        mem.observe("talk", "user", sentence(4))
        found = [event.content for event in mem.store.events("talk")]
        once = len(mem.search_events(sentence(1), mode="keyword", limit=50)) == 5
    return {"status": status, "found": once and found == [sentence(n) for n in range(5)]}


def inside_a_decision(home: Path, cache: Path) -> dict[str, object]:
    """A child forked inside a decision neither holds the lock nor commits what its parent decides."""
    told = []
    with Engram.open(home, cache=cache, directory=home) as mem:
        target = mem.add(sentence(1))
        process = 0
        try:
            with mem.store.deciding("update", actor="test") as deciding:
                deciding.put(target.replace(rationale="the parent decided"))
                process = os.fork()
        except StoreError as error:
            told.append(str(error))
        if process == 0:
            os._exit(0 if told and "forked" in told[0] else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        images = len(mem.history(target.id))
        return {"status": status, "found": mem.get(target.id).rationale == "the parent decided" and images == 2}


def a_child_outlives_the_lock(home: Path, cache: Path) -> dict[str, object]:
    """A child that keeps every inherited descriptor open does not keep the lock."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        target = mem.add(sentence(1))
        with mem.store.deciding("update", actor="test") as deciding:
            deciding.put(target.replace(rationale="decided"))
            process = os.fork()
            if process == 0:
                time.sleep(3 * PATIENCE)
                os._exit(0)
        mem.add(sentence(2))
        outlived = os.waitpid(process, os.WNOHANG) == (0, 0)
        os.kill(process, 9)
        os.waitpid(process, 0)
        return {"status": 0, "found": outlived and mem.get(target.id).rationale == "decided"}


def while_threads_write(home: Path, cache: Path) -> dict[str, object]:
    """Children forked while other threads hold guard and lock can use the store."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        stop = threading.Event()

        def busy(number: int) -> None:
            for i in range(1000):
                if stop.is_set():
                    return
                mem.add(sentence(number * 10_000 + i))

        threads = [threading.Thread(target=busy, args=(n,)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        statuses = [_in_child(lambda n=n: mem.add(sentence(90_000 + n))) for n in range(8)]
        stop.set()
        for thread in threads:
            thread.join()
        children = {memory.statement for memory in mem.list(limit=None, scope="everywhere")} & {
            sentence(90_000 + n) for n in range(8)
        }
    return {"status": max(statuses), "found": len(children) == 8}


def while_a_lock_is_held(home: Path, cache: Path) -> dict[str, object]:
    """A child forked while another thread holds a lock of short work can take it."""
    lock, held = ForkedLock(), threading.Event()

    def short_work() -> None:
        with lock:
            held.set()
            time.sleep(0.2)

    def takes_it() -> None:
        with lock:
            pass

    thread = threading.Thread(target=short_work)
    thread.start()
    held.wait(PATIENCE)
    status = _in_child(takes_it)
    thread.join()
    takes_it()
    with Engram.open(home, cache=cache, directory=home) as mem:
        mem.add(sentence(1))
    return {"status": status, "found": True}


if __name__ == "__main__":
    case = globals()[sys.argv[1]]
    sys.stdout.write(json.dumps(case(Path(sys.argv[2]), Path(sys.argv[3]))) + "\n")
