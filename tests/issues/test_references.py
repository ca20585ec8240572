"""Every public verb, tool and resource that takes a reference resolves it for its caller: another owner's record is as unknown as none.

The tables name every parameter that takes a reference. A verb, tool or parameter that is missing from them fails the first tests.
"""

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

import anyio.from_thread
import pytest
from mcp import MCPError
from mcp.types import ResourceTemplateReference

from engram import AsyncEngram, Engram, EngramError
from engram.mcp.protocol import TEMPLATE
from engram.mcp.tools import NO_SUCH_SESSION, TOOLS
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.memory import Evidence, Memory, Retelling
from engram.model.records import TASK_STATES, Checkpoint, Job, Session, TaskRun
from engram.rules.scopes import is_person
from engram.store.ledger import ledger_scope
from engram.store.protocol import Filters, Store
from tests.backends import Backend
from tests.issues.test_owners import whole
from tests.mcp.talking import Talk, said, talking_inside
from tests.surface import parameters, public_calls

Owner = dict[str, Any]
ANA: Owner = {"agent_id": "shop", "user_id": "ana"}
BEN: Owner = {"agent_id": "shop", "user_id": "ben"}
HERE: Owner = {"scope": "project:org/a"}
THERE: Owner = {"scope": "project:org/b"}
PAIRS = {"two users": (ANA, BEN), "two projects": (HERE, THERE)}
MARK = "quokka"
"""In every text of the owner whose records are foreign, and in nothing that the caller says."""
_numbers = count(1)


@dataclass
class World:
    """A store, which `mem` calls; `direct` is the same store without a detour."""

    mem: Any
    direct: Engram
    folder: Path

    @property
    def store(self) -> Store:
        return self.direct.store

    def seen(self, owner: Owner) -> Any:
        """What a facet takes for an owner."""
        return self.direct.scopes_for(**owner)


# -- records to refer to


def add(world: World, owner: Owner, animal: str, **fields: Any) -> Memory:
    number = next(_numbers)
    return world.direct.add(f"The {animal} number {number} lives in burrow {number}", **{**owner, **fields})


def memory(world: World, owner: Owner, animal: str) -> str:
    """A fact with two versions."""
    first = add(world, owner, animal)
    number = next(_numbers)
    return world.direct.revise(first.id, statement=f"The {animal} number {number} moved to burrow {number}").id


def named(world: World, owner: Owner, animal: str) -> str:
    return add(world, owner, animal, name=f"burrow-{next(_numbers)}").name


def candidate(world: World, owner: Owner, animal: str) -> str:
    return add(world, owner, animal, status="candidate").id


def conflict(world: World, owner: Owner, animal: str) -> str:
    old = add(world, owner, animal)
    new = world.direct.learn(
        f"The {animal} has no burrow", relation="contradiction", supersedes=[old.id], source="agent"
    )
    assert new.memory is not None
    return new.memory.id


def decision(world: World, owner: Owner, animal: str) -> str:
    return world.direct.review.reject_all([candidate(world, owner, animal)]).id


def task(world: World, owner: Owner, animal: str) -> str:
    started = world.direct.start_task(f"Feed the {animal} number {next(_numbers)}", **owner)
    world.direct.record_turn(started.id, user=f"The {animal} eats leaves in winter.")
    return started.id


def paused(world: World, owner: Owner, animal: str) -> str:
    return world.direct.pause_task(task(world, owner, animal)).id


def session(world: World, owner: Owner, animal: str) -> str:
    begun = world.direct.session("", **owner)
    begun.observe("user", f"The {animal} number {next(_numbers)} is awake.")
    return begun.id


def buffered(world: World, owner: Owner, animal: str) -> str:
    name = f"talk-{next(_numbers)}"
    world.direct.capture(name, "user", f"The {animal} is awake.", **owner)
    return name


def event(world: World, owner: Owner, animal: str) -> str:
    return world.direct.list_events(task(world, owner, animal))[0].id


def chunk(world: World, owner: Owner, animal: str) -> str:
    started = task(world, owner, animal)
    world.direct.record_long_input(started, f"# Burrows\n\nThe {animal} must sleep at noon.\n", kind="markdown")
    return next(one.id for one in world.direct.list_events(started) if one.event_type == "artifact")


def job(world: World, owner: Owner, animal: str) -> str:
    task(world, owner, animal)
    now = world.direct.upkeep.clock()
    for leased in world.store.lease_jobs("test", now, now + timedelta(minutes=5), limit=100):
        world.store.settle_job(leased, replace(leased, status="dead", leased_until=None))
    return world.direct.jobs.list("dead", limit=None, scopes=world.seen(owner))[-1].id


def linked(world: World, owner: Owner, animal: str) -> str:
    """A memory with a relation to another of the same owner."""
    source = add(world, owner, animal)
    world.direct.relate(source.id, add(world, owner, animal, aliases=[f"target-of-{source.id}"]).id)
    return source.id


Make = Callable[[World, Owner, str], str]
UNKNOWN: dict[Make, str] = {
    task: "TASK-20200101-000000-aaaaaa",
    paused: "TASK-20200101-000000-aaaaaa",
    session: "S-20200101-000000-aaaaaa",
}
"""References that nothing has, by what is referred to; "nothing-has-this" for the others."""


@dataclass(frozen=True)
class Verb:
    """How a verb is called with a reference, and what becomes of a foreign one."""

    make: Make
    call: Callable[[World, str, Owner], Any]
    foreign: Literal["unknown", "refused", "ignored", "reported"] = "unknown"
    """`unknown`: NotFound, in the words for an unknown reference. `refused`: a name is taken. `ignored`: the answer has nothing of it.
    `reported`: the answer names it as not found."""
    own: tuple[type[Exception], ...] = ()
    """The errors that the verb may raise about a record of the caller's own which it has found."""


def own_memory(w: World, o: Owner) -> str:
    return add(w, o, "wombat").id


def own_task(w: World, o: Owner) -> str:
    return task(w, o, "wombat")


def text() -> str:
    number = next(_numbers)
    return f"The wombat number {number} sleeps in hollow {number} near the northern fence"


def call_with_field(verb: str, field: str, w: World, ref: str, o: Owner) -> Any:
    """Write a memory with a field that names another record."""
    value = {"associations": [{"target": ref}], "evidence": [{"event": ref}]}.get(field, ref)
    if verb == "lineages.revise":
        return w.mem.lineages.revise(own_memory(w, o), **{field: value}, scopes=w.seen(o))
    written = own_memory(w, o) if verb in ("revise", "update") else text()
    return getattr(w.mem, verb)(written, **{field: value}, **o)


VERBS: dict[tuple[str, str], Verb] = {
    # reading
    ("get", "ref"): Verb(memory, lambda w, r, o: w.mem.get(r, **o)),
    ("history", "ref"): Verb(named, lambda w, r, o: w.mem.history(r, **o)),
    ("get_current", "ref"): Verb(memory, lambda w, r, o: w.mem.get_current(r, **o)),
    ("lineage", "ref"): Verb(memory, lambda w, r, o: w.mem.lineage(r, **o)),
    ("get_lineage", "ref"): Verb(memory, lambda w, r, o: w.mem.get_lineage(r, **o)),
    ("explain_memory", "ref"): Verb(named, lambda w, r, o: w.mem.explain_memory(r, **o)),
    ("cite", "ref"): Verb(chunk, lambda w, r, o: w.mem.cite(r, **o)),
    ("traverse", "start"): Verb(memory, lambda w, r, o: w.mem.traverse(r, direction="any", **o)),
    ("traverse_many", "seeds"): Verb(memory, lambda w, r, o: w.mem.traverse_many([r], direction="any", **o)),
    ("search", "session"): Verb(
        session, lambda w, r, o: w.mem.search("awake", kinds=("event",), session=r, **o), "ignored"
    ),
    ("deep_search", "session"): Verb(
        session, lambda w, r, o: w.mem.deep_search("awake", kinds=("event",), session=r, **o), "ignored"
    ),
    ("list", "session"): Verb(session, lambda w, r, o: w.mem.list(kinds=("event",), session=r, **o), "ignored"),
    ("get_memories", "session"): Verb(
        session, lambda w, r, o: w.mem.get_memories(kinds=("event",), session_id=r, **o), "ignored"
    ),
    ("list_recent", "session"): Verb(
        session, lambda w, r, o: w.mem.list_recent(kinds=("event",), session=r, **o), "ignored"
    ),
    ("recall", "session"): Verb(session, lambda w, r, o: w.mem.recall("Who is awake?", session=r, **o), "ignored"),
    ("inject", "session"): Verb(session, lambda w, r, o: w.mem.inject("Wake them", session=r, **o), "ignored"),
    ("get_context_block", "session"): Verb(session, lambda w, r, o: w.mem.get_context_block("Who?", session=r, **o)),
    ("get_task", "task"): Verb(task, lambda w, r, o: w.mem.get_task(r, **o)),
    ("list_events", "task"): Verb(task, lambda w, r, o: w.mem.list_events(r, **o)),
    ("search_events", "task"): Verb(task, lambda w, r, o: w.mem.search_events("leaves", task=r, **o)),
    ("build_context", "task"): Verb(task, lambda w, r, o: w.mem.build_context(r, **o)),
    ("build_long_input_context", "task"): Verb(task, lambda w, r, o: w.mem.build_long_input_context(r, "noon", **o)),
    # writing
    ("learn", "supersedes"): Verb(memory, lambda w, r, o: w.mem.learn(text(), supersedes=[r], **o)),
    ("remember", "supersedes"): Verb(memory, lambda w, r, o: w.mem.remember(text(), supersedes=[r], **o)),
    ("add", "supersedes"): Verb(memory, lambda w, r, o: w.mem.add(text(), supersedes=[r], **o)),
    ("add_batch", "items"): Verb(
        memory, lambda w, r, o: w.mem.add_batch([{"statement": text(), "supersedes": r, **o}])
    ),
    ("learn", "session"): Verb(session, lambda w, r, o: w.mem.learn(text(), session=r, **o), "ignored"),
    ("remember", "session"): Verb(session, lambda w, r, o: w.mem.remember(text(), session=r, **o), "ignored"),
    ("add", "session"): Verb(session, lambda w, r, o: w.mem.add(text(), session=r, **o), "ignored"),
    ("revise", "ref"): Verb(memory, lambda w, r, o: w.mem.revise(r, statement=text(), **o)),
    ("revise", "supersedes"): Verb(memory, lambda w, r, o: w.mem.revise(own_memory(w, o), supersedes=[r], **o)),
    ("update", "ref"): Verb(memory, lambda w, r, o: w.mem.update(r, importance=0.1, **o)),
    ("update", "supersedes"): Verb(
        memory, lambda w, r, o: w.mem.update(own_memory(w, o), supersedes=[r], **o), own=(InvalidInput,)
    ),
    **{
        (verb, field): Verb(make, partial(call_with_field, verb, field), own=own)
        for field, make in (
            ("lineage", memory),
            ("superseded_by", memory),
            ("associations", memory),
            ("evidence", event),
        )
        for verb in ("learn", "remember", "add", "revise", "update", "lineages.revise")
        for own in [(InvalidInput,) if verb == "update" and field in ("lineage", "superseded_by") else ()]
    },
    ("pin", "ref"): Verb(named, lambda w, r, o: w.mem.pin(r, **o)),
    ("verify", "ref"): Verb(named, lambda w, r, o: w.mem.verify(r, **o)),
    ("reinforce", "ref"): Verb(memory, lambda w, r, o: w.mem.reinforce(r, **o)),
    ("forget", "ref"): Verb(memory, lambda w, r, o: [w.mem.forget(r, **o), w.mem.forget(r, purge=True, **o)]),
    ("undo", "ref"): Verb(memory, lambda w, r, o: w.mem.undo(r, **o)),
    ("feedback", "ref"): Verb(memory, lambda w, r, o: w.mem.feedback(r, "negative", **o)),
    ("feedback", "session"): Verb(
        session, lambda w, r, o: w.mem.feedback(own_memory(w, o), "neutral", session=r, **o), "ignored"
    ),
    ("relate", "source"): Verb(memory, lambda w, r, o: w.mem.relate(r, own_memory(w, o), **o)),
    ("relate", "target"): Verb(memory, lambda w, r, o: w.mem.relate(own_memory(w, o), r, **o)),
    ("add_conversation", "session"): Verb(
        session, lambda w, r, o: w.mem.add_conversation("Hello.", session=r, **o), "refused"
    ),
    ("add_conversation", "session_id"): Verb(
        session, lambda w, r, o: w.mem.add_conversation("Hello.", session_id=r, **o), "refused"
    ),
    ("observe", "session_id"): Verb(session, lambda w, r, o: w.mem.observe(r, "user", "Hello.", **o), "refused"),
    ("observe_batch", "session_id"): Verb(
        session, lambda w, r, o: w.mem.observe_batch(r, [{"role": "user", "content": "Hello."}], **o), "refused"
    ),
    ("capture", "session_id"): Verb(session, lambda w, r, o: w.mem.capture(r, "user", "Hello.", **o), "refused"),
    ("flush_captures", "session_id"): Verb(buffered, lambda w, r, o: w.mem.flush_captures(r, **o)),
    ("pause_task", "task"): Verb(task, lambda w, r, o: w.mem.pause_task(r, **o)),
    ("resume_task", "task"): Verb(paused, lambda w, r, o: w.mem.resume_task(r, **o)),
    ("complete_task", "task"): Verb(task, lambda w, r, o: w.mem.complete_task(r, **o)),
    ("fail_task", "task"): Verb(task, lambda w, r, o: w.mem.fail_task(r, **o)),
    ("cancel_task", "task"): Verb(task, lambda w, r, o: w.mem.cancel_task(r, **o)),
    ("soft_delete_task", "task"): Verb(task, lambda w, r, o: w.mem.soft_delete_task(r, **o)),
    ("record_event", "task"): Verb(task, lambda w, r, o: w.mem.record_event(r, "user", "Hello.", **o)),
    ("record_turn", "task"): Verb(task, lambda w, r, o: w.mem.record_turn(r, "Hello.", **o)),
    ("create_checkpoint", "task"): Verb(task, lambda w, r, o: w.mem.create_checkpoint(r, "Half", **o)),
    ("create_checkpoint", "source_event_ids"): Verb(
        event, lambda w, r, o: w.mem.create_checkpoint(own_task(w, o), "Half", source_event_ids=[r], **o)
    ),
    ("record_long_input", "task"): Verb(task, lambda w, r, o: w.mem.record_long_input(r, "A text.", **o)),
    ("ingest", "task"): Verb(task, lambda w, r, o: w.mem.ingest(paper(w), task=r, **o)),
    # facets
    ("lineages.versions", "ref"): Verb(memory, lambda w, r, o: w.mem.lineages.versions(r, scopes=w.seen(o))),
    ("lineages.current", "ref"): Verb(memory, lambda w, r, o: w.mem.lineages.current(r, scopes=w.seen(o))),
    ("lineages.revise", "ref"): Verb(
        memory, lambda w, r, o: w.mem.lineages.revise(r, statement=text(), scopes=w.seen(o))
    ),
    ("lineages.revise", "supersedes"): Verb(
        memory,
        lambda w, r, o: w.mem.lineages.revise(own_memory(w, o), supersedes=[r], scopes=w.seen(o)),
    ),
    ("lineages.forget", "ref"): Verb(memory, lambda w, r, o: w.mem.lineages.forget(r, scopes=w.seen(o))),
    ("graph.relate", "source"): Verb(memory, lambda w, r, o: w.mem.graph.relate(r, own_memory(w, o), scopes=w.seen(o))),
    ("graph.relate", "target"): Verb(memory, lambda w, r, o: w.mem.graph.relate(own_memory(w, o), r, scopes=w.seen(o))),
    ("graph.unrelate", "source"): Verb(
        linked, lambda w, r, o: w.mem.graph.unrelate(r, f"target-of-{r}", scopes=w.seen(o))
    ),
    ("graph.unrelate", "target"): Verb(memory, lambda w, r, o: unrelate_target(w, r, o)),
    ("graph.traverse", "start"): Verb(memory, lambda w, r, o: w.mem.graph.traverse(r, scope=w.seen(o))),
    ("graph.traverse_many", "seeds"): Verb(memory, lambda w, r, o: w.mem.graph.traverse_many([r], scope=w.seen(o))),
    ("review.queue", "about"): Verb(
        candidate, lambda w, r, o: w.mem.review.queue(about=r, scopes=w.seen(o)), "ignored"
    ),
    ("review.provenance", "ref"): Verb(memory, lambda w, r, o: w.mem.review.provenance(r, scopes=w.seen(o))),
    ("review.resolve", "ref"): Verb(conflict, lambda w, r, o: w.mem.review.resolve(r, "new", scopes=w.seen(o))),
    ("review.approve", "ref"): Verb(candidate, lambda w, r, o: w.mem.review.approve(r, scopes=w.seen(o))),
    ("review.reject", "ref"): Verb(candidate, lambda w, r, o: w.mem.review.reject(r, scopes=w.seen(o))),
    ("review.retire", "ref"): Verb(memory, lambda w, r, o: w.mem.review.retire(r, scopes=w.seen(o))),
    ("review.reinforce", "ref"): Verb(memory, lambda w, r, o: w.mem.review.reinforce(r, scopes=w.seen(o))),
    ("review.edit", "ref"): Verb(candidate, lambda w, r, o: w.mem.review.edit(r, statement=text(), scopes=w.seen(o))),
    ("review.merge", "refs"): Verb(
        candidate, lambda w, r, o: w.mem.review.merge([r, own_memory(w, o)], text(), scopes=w.seen(o))
    ),
    ("review.separate", "ref"): Verb(
        memory, lambda w, r, o: w.mem.review.separate(r, scopes=w.seen(o)), own=(InvalidInput,)
    ),
    ("review.promote_all", "refs"): Verb(
        candidate, lambda w, r, o: w.mem.review.promote_all([r], scopes=w.seen(o)), "reported"
    ),
    ("review.reject_all", "refs"): Verb(
        candidate, lambda w, r, o: w.mem.review.reject_all([r], scopes=w.seen(o)), "reported"
    ),
    ("review.undo_bulk", "decision"): Verb(decision, lambda w, r, o: w.mem.review.undo_bulk(r, scopes=w.seen(o))),
    ("sessions.get", "session_id"): Verb(session, lambda w, r, o: w.mem.sessions.get(r, scopes=w.seen(o))),
    ("sessions.events", "session_id"): Verb(session, lambda w, r, o: w.mem.sessions.events(r, scopes=w.seen(o))),
    ("sessions.summarise", "session_id"): Verb(session, lambda w, r, o: w.mem.sessions.summarise(r, scopes=w.seen(o))),
    ("sessions.end", "session_id"): Verb(session, lambda w, r, o: w.mem.sessions.end(r, scopes=w.seen(o))),
    ("sessions.observe_batch", "session_id"): Verb(
        session,
        lambda w, r, o: w.mem.sessions.observe_batch(r, [{"role": "user", "content": "Hello."}], scope=w.seen(o)[0]),
        "refused",
    ),
    ("tasks.get", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.get(r, scopes=w.seen(o))),
    ("tasks.move", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.move(r, "paused", scopes=w.seen(o))),
    ("tasks.pause", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.pause(r, scopes=w.seen(o))),
    ("tasks.resume", "task_id"): Verb(paused, lambda w, r, o: w.mem.tasks.resume(r, scopes=w.seen(o))),
    ("tasks.complete", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.complete(r, scopes=w.seen(o))),
    ("tasks.fail", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.fail(r, scopes=w.seen(o))),
    ("tasks.cancel", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.cancel(r, scopes=w.seen(o))),
    ("tasks.delete", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.delete(r, scopes=w.seen(o))),
    ("tasks.record_event", "task_id"): Verb(
        task, lambda w, r, o: w.mem.tasks.record_event(r, "user", "Hello.", scopes=w.seen(o))
    ),
    ("tasks.record_events", "task_id"): Verb(
        task,
        lambda w, r, o: w.mem.tasks.record_events(r, [{"role": "user", "content": "Hello."}], scopes=w.seen(o)),
    ),
    ("tasks.record_turn", "task_id"): Verb(
        task, lambda w, r, o: w.mem.tasks.record_turn(r, "Hello.", scopes=w.seen(o))
    ),
    ("tasks.events", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.events(r, scopes=w.seen(o))),
    ("tasks.search_events", "task"): Verb(
        task, lambda w, r, o: w.mem.tasks.search_events("leaves", task=r, scopes=w.seen(o))
    ),
    ("tasks.checkpoint", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.checkpoint(r, "Half", scopes=w.seen(o))),
    ("tasks.checkpoint", "source_event_ids"): Verb(
        event,
        lambda w, r, o: w.mem.tasks.checkpoint(own_task(w, o), "Half", source_event_ids=[r], scopes=w.seen(o)),
    ),
    ("tasks.checkpoints", "task_id"): Verb(task, lambda w, r, o: w.mem.tasks.checkpoints(r, scopes=w.seen(o))),
    ("tasks.idle_since", "task"): Verb(task, lambda w, r, o: w.mem.tasks.idle_since(r, scopes=w.seen(o))),
    ("jobs.retry", "job_id"): Verb(job, lambda w, r, o: w.mem.jobs.retry(r, scopes=w.seen(o))),
    ("upkeep.purge", "ids"): Verb(event, lambda w, r, o: w.mem.upkeep.purge([r], actor="manual", scopes=w.seen(o))),
    ("SessionHandle.feedback", "ref"): Verb(
        memory,
        lambda w, r, o: w.direct.session("", **o).feedback(r, "positive"),
    ),
}
"""Every parameter of a public call that takes a reference, and how it is called with one."""
REFERENCES = frozenset(
    [
        "ref",
        "refs",
        "start",
        "seeds",
        "task",
        "task_id",
        "session",
        "session_id",
        "job_id",
        "decision",
        "ids",
        "target",
        "supersedes",
        "superseded_by",
        "lineage",
        "associations",
        "evidence",
        "source_event_ids",
        "about",
    ]
)
"""Names of parameters that may take a reference."""
NO_REFERENCE = {
    *((verb, "task") for verb in ("session", "inject", "prepare", "sessions.start")),  # what it is about, in words
    *((verb, "about") for verb in ("timeline",)),
    *((verb, "task") for verb in ("observe", "tasks.record_event", "SessionHandle.observe")),  # a label of an event
    *((verb, "task") for verb in ("learn", "remember", "add", "revise", "update", "lineages.revise", "review.edit")),
    *((verb, "session") for verb in ("revise", "update", "lineages.revise", "review.edit")),  # a label of a memory
    *((verb, "session") for verb in ("start_task", "tasks.start")),
    ("upkeep.backup", "target"),  # a file
    # an edit takes no such field
    *(("review.edit", name) for name in ("supersedes", "superseded_by", "lineage", "associations", "evidence")),
}
"""Parameters with such a name that take words or a label instead."""


def paper(world: World) -> Path:
    path = world.folder / "paper.txt"
    path.write_text("A text about leaves.\n")
    return path


def unrelate_target(world: World, ref: str, owner: Owner) -> Any:
    """Take back a relation to a memory that the store's operator made."""
    source = own_memory(world, owner)
    if world.store.get(ref) is not None:
        world.direct.relate(source, ref)
    try:
        return world.mem.graph.unrelate(source, ref, scopes=world.seen(owner))
    except NotFound as error:
        raise NotFound(str(error).replace(source, "SOURCE")) from None


# -- completeness


def test_every_parameter_of_a_public_call_that_takes_a_reference_is_in_the_table() -> None:
    found = {(verb, name) for verb, call in public_calls().items() for name in parameters(call) & REFERENCES}
    by_hand = {(verb, name) for verb, name in VERBS if name in ("source", "items")}
    assert found - NO_REFERENCE == VERBS.keys() - by_hand
    assert found >= NO_REFERENCE
    public = public_calls()
    assert all(name in parameters(public[verb]) for verb, name in by_hand)


def test_every_call_with_a_reference_takes_an_owner() -> None:
    public = public_calls()
    missing = [
        verb
        for verb, _ in VERBS
        if not parameters(public[verb]) & {"scopes", "scope", "agent_id"}
        and verb not in ("add_batch", "SessionHandle.feedback")  # each item names its owner; a session has one
    ]
    assert missing == []


# -- the walk


def outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """What a call said: the type and text of its error, or its whole answer."""
    try:
        answer = call()
    except EngramError as error:
        return type(error).__name__, str(error)
    return "", f"{whole(answer)} {getattr(answer, 'warnings', '')}"


def records_of(store: Store, scope: str) -> Any:
    """Everything that belongs to a scope."""
    ledgers = [name for name in store.ledgers() if ledger_scope(store, name) == scope]
    memories = store.listing(Filters(statuses=None, scopes=(scope,)))
    return [
        sorted((whole(one) for one in memories), key=str),
        [len(store.history(one.id)) for one in memories],
        store.list_records(TaskRun, statuses=TASK_STATES, limit=None, scopes=[scope]),
        [
            store.list_records(Checkpoint, of=one.id)
            for one in store.list_records(TaskRun, statuses=TASK_STATES, limit=None, scopes=[scope])
        ],
        store.list_records(Session, limit=None, scopes=[scope]),
        {name: store.events(name) for name in ledgers},
        # In one project's session one may ask about another; only people are kept apart.
        {name: store.uses(session=name) for name in ledgers if is_person(scope)},
        [
            replace(one, run_after=one.created)
            for one in store.list_records(Job, statuses=None, limit=None, scopes=[scope])
        ],
        {name: store.state(name) for name in store.states("buffer/") if store.state(name).get("scope") == scope},
    ]


def _numberless(text: str) -> str:
    """An answer without the numbers that make each call's own statement different, and without where that cut the excerpt."""
    return re.sub(r"\(“[^”]*”\)", "(…)", text)


def problems(world: World, verb: Verb, caller: Owner, other: Owner) -> Iterator[str]:
    """What a verb does wrong with a record of somebody else, and with one of the caller's own."""
    ref, unknown = verb.make(world, other, MARK), UNKNOWN.get(verb.make, "nothing-has-this")
    scope = next(iter(world.seen(other)))
    before = records_of(world.store, scope)
    kind, text = outcome(lambda: verb.call(world, ref, caller))
    if records_of(world.store, scope) != before:
        yield "changed a foreign record"
    if MARK in text:
        yield f"showed a foreign text: {text[:200]}"
    said = text.replace(ref, "REF")
    if verb.foreign == "unknown":
        as_unknown = outcome(lambda: verb.call(world, unknown, caller))
        if (kind, _numberless(said)) != (as_unknown[0], _numberless(as_unknown[1].replace(unknown, "REF"))):
            yield f"told a foreign record from an unknown one: {kind} {said[:200]!r}, not {as_unknown}"
        if kind != "NotFound":
            yield f"answered {kind or 'without an error'}: {text[:200]}"
    elif verb.foreign == "refused" and kind != "Refused":
        yield f"answered {kind or 'without an error'}: {text[:200]}"
    elif verb.foreign == "ignored" and kind:
        yield f"raised {kind}: {text[:200]}"
    elif verb.foreign == "reported" and "no memory 'REF'" not in said:
        yield f"reported {said[:200]}"
    own = verb.make(world, caller, "wombat")
    kind, text = outcome(lambda: verb.call(world, own, caller))
    if kind and kind not in [one.__name__ for one in verb.own]:
        yield f"failed for the owner: {kind} {text[:200]}"


def all_problems(world: World, caller: Owner, other: Owner) -> dict[str, list[str]]:
    found = {f"{name}({given})": list(problems(world, verb, caller, other)) for (name, given), verb in VERBS.items()}
    return {name: wrong for name, wrong in found.items() if wrong}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_foreign_record_is_as_unknown_to_every_call_as_one_that_does_not_exist(
    backend: Backend, tmp_path: Path, pair: str
) -> None:
    mem = backend.client()
    assert all_problems(World(mem, mem, tmp_path), *PAIRS[pair]) == {}


class Blocking:
    """An `AsyncEngram`, or a facet of one, called without `await`."""

    def __init__(self, portal: "anyio.from_thread.BlockingPortal", target: Any) -> None:
        self._portal, self._target = portal, target

    def __getattr__(self, name: str) -> Any:
        part = getattr(self._target, name)
        if not callable(part):
            return Blocking(self._portal, part)
        return lambda *args, **kwargs: self._portal.call(partial(part, *args, **kwargs))


def test_the_same_holds_for_every_call_of_an_asynchronous_memory(tmp_path: Path) -> None:
    opened = AsyncEngram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)
    with (
        anyio.from_thread.start_blocking_portal() as portal,
        portal.wrap_async_context_manager(opened) as mem,
        Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as direct,
    ):
        assert all_problems(World(Blocking(portal, mem), direct, tmp_path), ANA, BEN) == {}


# -- the tools and resources of the MCP server


@pytest.fixture
def project(backend: Backend, tmp_path: Path) -> Engram:
    """A store as a server opens it in a repository."""
    repository = tmp_path / "a"
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    return backend.client(directory=repository)


FOREIGN: dict[str, Owner] = {"another project": THERE, "a user of an agent": ANA}
TOOL_ARGUMENTS: dict[tuple[str, str], tuple[Make, Callable[[World, str, Owner], dict[str, Any]]]] = {
    ("show", "id"): (memory, lambda w, r, o: {"id": r}),
    ("update", "id"): (memory, lambda w, r, o: {"id": r, "confidence": 0.1}),
    ("feedback", "id"): (named, lambda w, r, o: {"id": r, "signal": "negative"}),
    ("forget", "id"): (memory, lambda w, r, o: {"id": r}),
    ("learn", "supersedes"): (memory, lambda w, r, o: {"statement": text(), "supersedes": [r]}),
    ("remember", "supersedes"): (memory, lambda w, r, o: {"fact": text(), "supersedes": [r]}),
    ("session_end", "session_id"): (session, lambda w, r, o: {"session_id": r}),
    ("learn", "session_id"): (session, lambda w, r, o: {"statement": text(), "session_id": r}),
    ("remember", "session_id"): (session, lambda w, r, o: {"fact": text(), "session_id": r}),
    ("recall", "session_id"): (session, lambda w, r, o: {"question": "Who is awake?", "session_id": r}),
    ("feedback", "session_id"): (
        session,
        lambda w, r, o: {"id": own_memory(w, o), "signal": "neutral", "session_id": r},
    ),
}
"""Every argument of a tool that takes a reference, and how the tool is called with one."""


def test_every_argument_of_a_tool_that_takes_a_reference_is_in_the_table() -> None:
    names = {"id", "ids", "session_id", "supersedes", "ref", "target"}
    assert {(tool.name, name) for tool in TOOLS.values() for name in tool.arguments if name in names} == (
        TOOL_ARGUMENTS.keys()
    )


def answer(agent: Talk, tool: str, arguments: dict[str, Any]) -> tuple[bool, str]:
    result = agent.call(tool, **arguments)
    return bool(result.is_error), f"{said(result)} {json.dumps(result.structured_content)}"


def tool_problems(agent: Talk, world: World, place: tuple[str, str], here: Owner, other: Owner) -> Iterator[str]:
    (tool, argument), (make, arguments) = place, TOOL_ARGUMENTS[place]
    ref, unknown = make(world, other, MARK), UNKNOWN.get(make, "nothing-has-this")
    scope = next(iter(world.seen(other)))
    before = records_of(world.store, scope)
    failed, text = answer(agent, tool, arguments(world, ref, here))
    if records_of(world.store, scope) != before:
        yield "changed a foreign record"
    if MARK in text:
        yield f"showed a foreign text: {text[:200]}"
    if argument == "session_id" and tool != "session_end":
        if failed or NO_SUCH_SESSION not in text:
            yield f"used a foreign session: {text[:200]}"
    elif (failed, text.replace(ref, "REF")) != (
        True,
        answer(agent, tool, arguments(world, unknown, here))[1].replace(unknown, "REF"),
    ):
        yield f"told a foreign record from an unknown one: {text[:200]}"
    failed, text = answer(agent, tool, arguments(world, make(world, here, "wombat"), here))
    if failed or NO_SUCH_SESSION in text:
        yield f"failed for the project's own: {text[:200]}"


@pytest.mark.parametrize("whose", FOREIGN)
def test_a_tool_does_not_know_what_belongs_to(project: Engram, tmp_path: Path, whose: str) -> None:
    world, here = World(project, project, tmp_path), {"scope": project.scope_here()}
    with talking_inside(project) as agent:
        found = {place: list(tool_problems(agent, world, place, here, FOREIGN[whose])) for place in TOOL_ARGUMENTS}
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize("whose", FOREIGN)
def test_a_resource_does_not_show_what_belongs_to(project: Engram, tmp_path: Path, whose: str) -> None:
    world, here = World(project, project, tmp_path), {"scope": project.scope_here()}
    foreign = [make(world, FOREIGN[whose], MARK) for make in (memory, named)]
    own = named(world, here, "wombat")
    candidate(world, FOREIGN[whose], MARK)
    project.inject(f"Where does the {MARK} live?", **FOREIGN[whose])
    with talking_inside(project) as agent:
        assert [template.uri_template for template in agent.do("list_resource_templates").resource_templates] == [
            TEMPLATE
        ]
        for ref in foreign:
            errors = [read_error(agent, one).replace(one, "REF") for one in (ref, "nothing-has-this")]
            assert errors[0] == errors[1]
        assert "wombat" in read(agent, f"memory://memory/{own}")
        status = json.loads(read(agent, "memory://status"))
        assert (status["statuses"], status["waiting_for_review"]) == ({"active": 1}, 0)
        listed = [read(agent, str(one.uri)) for one in agent.do("list_resources").resources]
        assert MARK not in str(listed) and "wombat" in str(listed)
        typed = {"name": "id", "value": ""}
        completed = agent.do("complete", ResourceTemplateReference(uri=TEMPLATE), typed).completion.values
        assert completed == [project.get(own).id, own]


def read(agent: Talk, uri: str) -> str:
    (contents,) = agent.do("read_resource", uri).contents
    return str(contents.text)


def read_error(agent: Talk, ref: str) -> str:
    with pytest.raises(MCPError) as raised:
        read(agent, f"memory://memory/{ref}")
    return str(raised.value)


def test_a_call_that_names_another_scope_changes_only_what_is_in_it(project: Engram, tmp_path: Path) -> None:
    world = World(project, project, tmp_path)
    theirs, everyones = memory(world, THERE, MARK), add(world, {"scope": "global"}, "wombat").id
    with talking_inside(project) as agent:
        assert agent.ask("show", id=theirs, scope=THERE["scope"])["memory"]["id"] == theirs
        assert "belongs to global" in agent.refusal("update", id=everyones, confidence=0.1, scope=THERE["scope"])
        assert agent.ask("update", id=everyones, confidence=0.1)["memory"]["id"] == everyones


# -- wider scopes, moves and facts with several owners


def test_an_owner_reads_and_rates_what_is_wider_and_changes_none_of_it(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    world = World(mem, mem, tmp_path)
    for scope in ("agent:shop", "global"):
        shared = add(world, {"scope": scope}, "wombat")
        own = add(world, ANA, "wombat")
        mem.explain_memory(shared.id, **ANA)
        mem.relate(own.id, shared.id, **ANA)
        before = [whole(mem.get(shared.id)), len(mem.history(shared.id))]
        changes: list[Callable[..., Any]] = [
            partial(mem.update, shared.id, importance=0.1),
            partial(mem.revise, shared.id, statement=text()),
            partial(mem.forget, shared.id),
            partial(mem.forget, shared.id, purge=True),
            partial(mem.pin, shared.id),
            partial(mem.verify, shared.id),
            partial(mem.reinforce, shared.id),
            partial(mem.undo, shared.id),
            partial(mem.relate, shared.id, own.id),
            partial(mem.add, text(), supersedes=[shared.id]),
        ]
        for change in changes:
            with pytest.raises(Refused, match=f"belongs to {scope}, not to agent:shop/ana"):
                change(**ANA)
        moves: list[Callable[[], Any]] = [
            partial(mem.update, own.id, new_scope=scope, **ANA),
            partial(mem.revise, own.id, new_scope=scope, **ANA),
            partial(mem.review.edit, own.id, scope=scope, scopes=mem.scopes_for(**ANA)),
        ]
        for move in moves:
            with pytest.raises(Refused, match=f"agent:shop/ana may not move a memory to {scope}"):
                move()
        assert [whole(mem.get(shared.id)), len(mem.history(shared.id))] == before
        assert mem.feedback(shared.id, "positive", **ANA).feedback.positive == 1


def test_naming_an_owner_never_moves_a_memory_and_new_scope_does(backend: Backend) -> None:
    mem = backend.client()
    bens = mem.add("The wombat eats at noon", **BEN)
    with pytest.raises(NotFound):
        mem.update(bens.id, importance=0.1, **ANA)
    with pytest.raises(NotFound):
        mem.update(bens.id, importance=0.1, scope=mem.scope_for(**ANA))
    assert mem.get(bens.id) == bens
    assert mem.update(bens.id, importance=0.1, **BEN).scope == bens.scope
    assert mem.update(bens.id, new_scope=mem.scope_for(**ANA)).scope == "agent:shop/ana"
    assert mem.revise(bens.id, statement="The wombat eats at one", new_scope="global").scope == "global"


def test_a_move_is_not_undone_by_the_new_owner_and_shows_nothing_of_the_old_one(backend: Backend) -> None:
    mem = backend.client()
    moved = mem.add(f"The {MARK} eats at noon", name="meal", **BEN)
    mem.update(moved.id, statement="The wombat eats at noon", new_scope=mem.scope_for(**ANA))
    with pytest.raises(Refused, match="nothing was undone") as raised:
        mem.undo(moved.id, **ANA)
    assert MARK not in str(raised.value)
    assert MARK not in str(whole(mem.history(moved.id, **ANA)))
    assert mem.undo(moved.id).scope == "agent:shop/ben"


def test_a_decision_about_two_owners_is_not_undone_by_one_of_them(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    world = World(mem, mem, tmp_path)
    refs = [candidate(world, ANA, "wombat"), candidate(world, BEN, MARK)]
    bulk = mem.review.reject_all(refs)
    with pytest.raises(NotFound):
        mem.review.undo_bulk(bulk.id, scopes=mem.scopes_for(**ANA))
    (entry,) = [one for one in mem.history(refs[0], **ANA) if one.session == bulk.id]
    assert entry.ids == (refs[0],)
    assert mem.get(refs[1]).status == "rejected"


def test_a_version_of_another_owner_is_neither_restored_nor_superseded(backend: Backend) -> None:
    mem = backend.client()
    bens = mem.add(f"The {MARK} eats at noon", **BEN)
    anas = mem.revise(bens.id, statement="The wombat eats at one", new_scope=mem.scope_for(**ANA))
    before = whole(mem.get(bens.id))
    for change in (partial(mem.forget, anas.id), partial(mem.forget, anas.id, purge=True), partial(mem.undo, anas.id)):
        with pytest.raises(Refused) as raised:
            change(**ANA)
        assert bens.id not in str(raised.value) and MARK not in str(raised.value)
    with pytest.raises(NotFound):
        mem.revise(bens.id, statement="The wombat eats at two", **BEN)
    assert (whole(mem.get(bens.id)), mem.get(anas.id).status) == (before, "active")


def test_a_name_that_several_owners_gave_means_the_callers_own(backend: Backend, tmp_path: Path) -> None:
    mem = backend.client()
    world = World(mem, mem, tmp_path)
    own, theirs = (add(world, owner, "wombat", name="meal").id for owner in (ANA, BEN))
    add(world, THERE, "wombat", name="meal")
    assert mem.remember(text(), supersedes=["meal"], **ANA).outcome == "SUPERSEDED"
    assert (mem.get(own).status, mem.get(theirs).status) == ("superseded", "active")
    with pytest.raises(NotFound):
        mem.learn(text(), supersedes=["meal"], scope="project:org/c")


def test_a_rejection_by_another_owner_decides_and_is_not_shown(backend: Backend) -> None:
    mem = backend.client()
    waits = mem.learn(
        "The wombat house opens at noon", source="harness:codex:acme", rationale=f"A {MARK} said so", **BEN
    )
    assert waits.memory is not None
    mem.review.reject(waits.memory.id, actor="human")
    again = mem.learn("The wombat house opens at noon", source="agent", agent_id="shop")
    assert again.outcome == "REJECTED"
    assert waits.memory.id not in str(whole(again)) and MARK not in str(whole(again))


def test_what_everyone_reads_is_not_linked_to_what_one_person_has(backend: Backend) -> None:
    mem = backend.client()
    shared = mem.add("The wombat house opens at noon")
    own = mem.add(f"The wombat house is where Ana feeds the {MARK}", **ANA)
    with mem.session("Feed the wombat in the wombat house at noon", **ANA) as begun:
        assert {one.memory.id for one in begun.injection.items} >= {shared.id, own.id}
    assert [link.target for link in mem.get(own.id).associations] == [shared.id]
    assert mem.get(shared.id).associations == ()


def test_nobody_joins_the_lineage_of_another_owner(backend: Backend) -> None:
    mem = backend.client()
    first = mem.add("Ben plays chess on Sundays", **BEN)
    second = mem.revise(first.id, statement="Ben plays chess on Mondays", **BEN)
    for version in (first, second):
        with pytest.raises(NotFound):
            mem.add_batch([{"statement": "Ana takes over the chess club", "lineage": version.id, **ANA}])
    assert mem.get_current(first.id).id == second.id
    mem.forget(second.id, **BEN)
    assert mem.get(second.id).status == "retired"


def test_a_lineage_that_holds_a_version_of_another_owner_is_unknown(backend: Backend) -> None:
    mem = backend.client()
    first = mem.add("Ana plays chess on Sundays", **ANA)
    mem.revise(first.id, statement="Ben plays chess on Mondays", new_scope=mem.scope_for(**BEN))
    with pytest.raises(NotFound):
        mem.add("Ana plays chess on Fridays", lineage=first.id, **ANA)


def test_a_change_keeps_the_links_and_the_evidence_that_a_memory_has(backend: Backend) -> None:
    mem = backend.client()
    foreign = mem.add("Ben plays chess on Sundays", **BEN)
    heard = mem.record_event(mem.start_task("Talk", **BEN).id, "user", "I play chess")
    mine = mem.add("Ana watches chess on Sundays", **ANA)
    mine = mem.update(mine.id, associations=[{"target": foreign.id}], evidence=[{"event": heard.id}])
    own = mem.add("Ana has a chess board", name="board", **ANA)
    links = [*mine.associations, {"target": "board"}]
    for change in (mem.update, mem.revise):
        changed = change(mine.id, associations=links, evidence=mine.evidence, **ANA)
        assert [link.target for link in changed.associations] == [foreign.id, own.id]
        assert changed.evidence == mine.evidence


def test_evidence_names_no_retelling_of_another_owner(backend: Backend) -> None:
    mem = backend.client()
    heard, mine = (mem.record_event(mem.start_task("Talk", **o).id, "user", "I play chess") for o in (BEN, ANA))
    retold = Evidence(mine.id, retelling=Retelling(heard.id))
    with pytest.raises(NotFound):
        mem.add("Ana plays chess on Sundays", evidence=[retold], **ANA)
