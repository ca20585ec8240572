"""What a crowd of writers was told, held against what is there."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from engram import Engram
from engram.model.records import Session
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.starting import Crowd

PATIENCE = 120.0
RATED = "Everyone rates this one"


def wait_for(true: Callable[[], bool], what: str) -> None:
    """Look until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def wait_for_acknowledgements(everyone: Crowd, more: int) -> None:
    """Until so many more writes were acknowledged than when asked."""

    def acknowledged() -> int:
        return sum(1 for line in everyone.told if line.keys() & {"made", "observed", "rated"})

    wanted = acknowledged() + more
    wait_for(lambda: acknowledged() >= wanted, "nobody writes any more")


def assert_kept(url: str, tenant: str, told: list[dict[str, Any]], shared: str) -> None:
    """Everything acknowledged is there once, batches are whole, and the tables agree."""
    made = [pair for line in told for pair in line.get("made", {}).items()]
    observed = {i: text for line in told for i, text in line.get("observed", {}).items()}
    assert len(dict(made)) == len(made), "an id was given out twice"
    with Engram.open(url=url, tenant=tenant) as mem:
        kept = {memory.id: memory.statement for memory in mem.list(limit=None)}
        events = {e.id: e.content for s in mem.store.list_records(Session) for e in mem.store.events(s.id)}
        events |= {e.id: e.content for n in range(3) for e in mem.store.events(f"talk-{n}")}
        mem.upkeep.fold()
        ratings = mem.get(shared).feedback.positive
        noted = sum(use.kind == "rated" for use in mem.store.uses([shared]))
    assert dict(made).items() <= kept.items()
    assert observed.items() <= events.items()
    assert max(Counter(kept.values()).values()) == 1
    assert max(Counter(events.values()).values()) == 1
    batches = Counter(text.partition(" part ")[0] for text in kept.values() if " part " in text)
    assert set(batches.values()) == {4}
    tried = {line["tried"] for line in told if "tried" in line} | {RATED}
    assert {text.partition(" part ")[0] for text in kept.values()} <= tried
    assert ratings == noted
    assert disagreements(url, tenant) == []
