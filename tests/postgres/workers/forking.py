"""Forks in the middle of use: with pooled connections open, inside a decision, while other threads write."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable

from engram import Engram
from engram.model.errors import StoreError
from tests.faults.workers.operations import sentence

PATIENCE = 60.0
HUNG = 99


def _in_child(work: Callable[[], object]) -> int:
    """Exit status of a forked child that runs `work`."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            os._exit(status)
    return _status(process)


def _status(process: int) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.kill(process, 9)
    os.waitpid(process, 0)
    return HUNG


def after_use(mem: Engram) -> dict[str, object]:
    """A child of an idle parent reads and writes through the object it inherited, and so does the parent afterwards."""
    mem.add(sentence(1))

    def work() -> None:
        assert mem.search(sentence(1))[0].text == sentence(1)
        mem.add(sentence(2))
        mem.close()

    status = _in_child(work)
    mem.add(sentence(3))
    found = sorted(memory.statement for memory in mem.list())
    return {"status": status, "found": found == sorted(sentence(n) for n in (1, 2, 3))}


def inside_a_decision(mem: Engram) -> dict[str, object]:
    """A child that leaves its parent's block commits nothing and says why; the parent's decision stands."""
    target, told, process = mem.add(sentence(1)), "", 0
    try:
        with mem.store.deciding("update", actor="test", about=[target.id]) as deciding:
            deciding.put(target.replace(rationale="the parent decided"))
            process = os.fork()
    except StoreError as error:
        told = str(error)
    if process == 0:
        os._exit(0 if "forked" in told else 1)
    status = _status(process)
    kept = mem.get(target.id)
    return {"status": status, "found": kept.rationale == "the parent decided" and len(mem.history(target.id)) == 2}


def working_inside_a_decision(mem: Engram) -> dict[str, object]:
    """A child forked inside a block may use the store for itself, but not the block."""
    target = mem.add(sentence(1))
    with mem.store.deciding("update", actor="test", about=[target.id]) as deciding:
        deciding.put(target.replace(rationale="the parent decided"))

        def work() -> None:
            assert mem.get(target.id).rationale == ""
            mem.add(sentence(2))
            try:
                deciding.get("ENG-2020-0101-001")
            except StoreError as error:
                assert "forked" in str(error)
            else:
                raise AssertionError("the child reads on its parent's connection")

        status = _in_child(work)
    kept = mem.get(target.id)
    return {"status": status, "found": kept.rationale == "the parent decided" and len(mem.list()) == 2}


def while_threads_write(mem: Engram) -> dict[str, object]:
    """Children forked while other threads hold connections and locks of the pool can use the store."""
    mem.add(
        sentence(80_000)
    )  # Loads the modules: a child that is forked while one is being imported waits for it for ever.
    stop, errors = threading.Event(), []

    def busy(number: int) -> None:
        for i in range(1000):
            if stop.is_set():
                return
            try:
                mem.add(sentence(number * 10_000 + i))
            except BaseException as error:
                errors.append(repr(error))

    threads = [threading.Thread(target=busy, args=(n,)) for n in (1, 2, 3)]
    for thread in threads:
        thread.start()
    statuses = [_in_child(lambda n=n: mem.add(sentence(90_000 + n))) for n in range(8)]  # type: ignore[misc]
    stop.set()
    for thread in threads:
        thread.join()
    children = {memory.statement for memory in mem.list(limit=None)} & {sentence(90_000 + n) for n in range(8)}
    return {"status": max(statuses), "found": len(children) == 8 and not errors}


CASES = {case.__name__: case for case in (after_use, inside_a_decision, working_inside_a_decision, while_threads_write)}

if __name__ == "__main__":
    with Engram.open(url=sys.argv[2], tenant=sys.argv[3]) as opened:
        sys.stdout.write(json.dumps(CASES[sys.argv[1]](opened)) + "\n")
