"""The forking program with the writes of a task: a turn with its job, a checkpoint, an end."""

from engram import Engram
from tests.faults.workers import zygote
from tests.faults.workers.operations import Ack

CALLS = ({"name": "grep", "arguments": {"for": "parser"}, "result": "two places"},)


def _only_task(mem: Engram) -> str:
    """The one task of the store; a store without any gets one."""
    known = mem.tasks.list()
    return known[0].id if known else mem.tasks.start("Ship the parser", scope="project:faults").id


def task(mem: Engram, n: int) -> Ack:
    """A task, begun."""
    return {"task": _only_task(mem)}


def turn(mem: Engram, n: int) -> Ack:
    """A turn of four events and the job that follows on it; said again, the same turn."""
    made = mem.tasks.record_turn(
        _only_task(mem), f"What about part {n}?", f"Part {n} is done", tool_calls=CALLS, key=f"turn-{n}"
    )
    return {"events": [event.id for event in made]}


def checkpoint(mem: Engram, n: int) -> Ack:
    """A checkpoint."""
    return {"number": mem.tasks.checkpoint(_only_task(mem), f"Part {n} is done", pending_steps=["test it"]).number}


def end(mem: Engram, n: int) -> Ack:
    """The task's end, or its return."""
    task_id = _only_task(mem)
    running = mem.tasks.get(task_id).status == "running"
    done = mem.tasks.fail(task_id, f"reason {n}") if running else mem.tasks.resume(task_id)
    return {"status": done.status}


if __name__ == "__main__":
    writes = {"task": task, "turn": turn, "checkpoint": checkpoint, "end": end}
    setattr(zygote, "OPERATIONS", writes)  # noqa: B010
    zygote.main()
