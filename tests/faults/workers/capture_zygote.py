"""The forking program with the writes of live capture: a turn that waits, one that is read at once, a flush."""

from engram import Engram
from tests.faults.workers import zygote
from tests.faults.workers.operations import Ack

SESSION = "chat"


def waiting(mem: Engram, n: int) -> Ack:
    """A turn that waits in the buffer; said again, the same turn."""
    result = mem.capture(SESSION, "user", f"My sister Ulla lives in house {n} in Oslo.", key=f"turn-{n}")
    return {"event": result.event, "waiting": result.waiting, "warnings": list(result.warnings)}


def high(mem: Engram, n: int) -> Ack:
    """A turn that is read at once, with those that wait; said again, the same turn."""
    result = mem.capture(SESSION, "user", f"I never eat the fruit from field {n}.", key=f"turn-{n}")
    return {"event": result.event, "waiting": result.waiting, "warnings": list(result.warnings)}


def flush(mem: Engram, n: int) -> Ack:
    """All that waits, read."""
    return {"waiting": [result.waiting for result in mem.flush_captures()]}


if __name__ == "__main__":
    setattr(zygote, "OPERATIONS", {"waiting": waiting, "high": high, "flush": flush})  # noqa: B010
    zygote.main()
