"""Purges to be killed, each of something that a test has stored under a known name."""

from collections.abc import Callable, Mapping
from pathlib import Path

from engram import Engram
from engram.model.records import Session
from engram.store.reports import Purged

NAME, ALIAS, SCOPE = "doomed", "the-doomed-one", "project:doomed"
WORDS = "The stairs of the lighthouse have nineteen wide turns"
HEARD, DRAWN = "We decided to paint the pier dark violet", "The pier of the harbour is painted dark violet"
GONE: Mapping[str, tuple[str, ...]] = {
    "purge_memory": (WORDS,),
    "purge_event": (HEARD, DRAWN),
    "purge_scope": (WORDS, HEARD, DRAWN),
}
"""The words that each purge removes."""


def store_doomed(home: Path, cache: Path) -> None:
    """Store a memory that was reworded, what it was said in, and a session whose summary quotes an event."""
    with Engram.open(home, cache=cache, directory=home) as mem:
        session = mem.session("paint the pier", scope=SCOPE)
        heard = session.observe("user", HEARD)
        session.summarise()
        session.end()
        said = mem.observe_batch("doomed-talk", [{"role": "user", "content": f"{WORDS}, she said"}], scope=SCOPE)[0]
        memory = mem.add(WORDS, scope=SCOPE, name=NAME, aliases=[ALIAS], evidence=[{"event": said.id}])
        mem.update(memory.id, statement=f"{WORDS} to the left")
        mem.add(DRAWN, scope=SCOPE, evidence=[{"event": heard.id}])
        mem.add("Ravens nest above the harbour office in spring")


def _heard(mem: Engram) -> str:
    session = next(one for one in mem.store.list_records(Session) if one.task in ("paint the pier", ""))
    return mem.store.events(session.id)[0].id


def purge_memory(mem: Engram) -> Purged:
    purged = mem.forget(ALIAS, purge=True)
    assert isinstance(purged, Purged)
    return purged


def purge_event(mem: Engram) -> Purged:
    return mem.upkeep.purge([_heard(mem)])


def purge_scope(mem: Engram) -> Purged:
    return mem.purge(SCOPE, actor="human")


PURGES: Mapping[str, Callable[[Engram], Purged]] = {
    purge.__name__: purge for purge in (purge_memory, purge_event, purge_scope)
}
