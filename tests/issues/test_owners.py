"""What one owner said is nobody else's: every public read, asked by two owners, on every backend."""

import asyncio
import inspect
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest

from engram import AsyncEngram, Engram
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.records import Event, Session
from engram.store.files.log.ledger import ledger_name
from engram.store.home import open_home
from engram.store.intake import NewEvent
from engram.store.ledger import Head, chained_events, ledger_scope
from engram.store.postgres.connections import connect
from engram.store.postgres.schema import migrate
from tests.backends import Backend
from tests.clock import Clock
from tests.homes import home_of
from tests.postgres.test_migrations import at_version
from tests.surface import facets, target


class Named(TypedDict):
    """An owner, as every call takes one."""

    agent_id: str
    user_id: str


ANA: Named = {"agent_id": "shop", "user_id": "ana"}
EVE: Named = {"agent_id": "other", "user_id": "eve"}
SECRET = "quokka"
"""In every sentence of Ana's, and in no question."""
QUESTION = "When does the parade in Lisbon begin?"
SAID = "What did the user say about the parade in Lisbon?"


@dataclass
class World:
    """Ana's things by id, and a store that holds them beside Eve's."""

    mem: Engram
    session: str
    named: str
    task: str
    event: str
    chunk: str
    memory: str
    old: str
    linked: str
    marks: tuple[str, ...]
    """What shows that an answer holds something of Ana's."""

    def shown(self, answer: Any) -> list[str]:
        """The marks of Ana's that an answer holds, anywhere in it."""
        told = f"{whole(answer)} {getattr(answer, 'warnings', '')} {getattr(answer, 'filtered', '')}"
        return [mark for mark in self.marks if mark in told]


def whole(answer: Any) -> Any:
    """An answer with every field of every record in it: a `repr` leaves some out."""
    if is_dataclass(answer) and not isinstance(answer, type):
        return {field.name: whole(getattr(answer, field.name)) for field in fields(answer)}
    if isinstance(answer, list | tuple):
        return [whole(item) for item in answer]
    return answer


def filled(mem: Engram) -> World:
    """A store in which Ana and Eve speak of the same matter."""
    old = mem.add("The quokka parade in Lisbon begins at eight", type="decision", name="parade", **ANA)
    memory = mem.revise(old.id, statement="The quokka parade in Lisbon begins at nine")
    linked = mem.add("The quokka band of the parade practises in Sintra", **ANA)
    mem.relate(memory.id, linked.id, "supports")
    mem.pin(memory.id)
    critical = mem.add("The quokka parade stops for nobody in Lisbon", critical_slot="safety", **ANA)
    waits = mem.learn("The quokka parade in Lisbon has a budget of nine hundred euros", type="fiscal", **ANA)
    mem.add_conversation("I lead the quokka parade in Lisbon myself.", "Noted.", **ANA)
    talk = mem.add_conversation("Our quokka parade in Lisbon has forty drums.", session="chat", **ANA)
    with mem.session("The parade in Lisbon", **ANA) as session:
        session.observe("user", "We decided that the quokka parade in Lisbon begins at nine.")
        session.summarise()
    task = mem.start_task("Plan the quokka parade in Lisbon", **ANA)
    said = mem.record_turn(task.id, user="The quokka parade in Lisbon needs a permit by Monday.", **ANA)[0]
    mem.create_checkpoint(task.id, "The quokka parade is planned", source_event_ids=[said.id], **ANA)
    book = "# Parade\n\nThe quokka parade in Lisbon begins at nine and must end at noon.\n"
    mem.record_long_input(task.id, book, title="Parade", kind="markdown", **ANA)
    chunk = next(event for event in mem.list_events(task.id) if event.event_type == "artifact")
    mem.add("The parade of Porto begins at ten", **EVE)
    mem.add_conversation("I saw a parade once.", session="eves", **EVE)
    mem.start_task("Watch a parade", **EVE)
    memories = [old.id, memory.id, linked.id, critical.id, *([waits.memory.id] if waits.memory else [])]
    ids = (*memories, *talk.events, session.id, task.id, said.id, chunk.id)
    return World(mem, session.id, "chat", task.id, said.id, chunk.id, memory.id, old.id, linked.id, (SECRET, *ids))


@pytest.fixture
def world(backend: Backend) -> World:
    return filled(backend.client())


Read = Callable[[World, Named], Any]


def _seen(world: World, owner: Named) -> tuple[str, ...] | None:
    return world.mem.scopes_for(**owner)


READS: dict[str, Read] = {
    "get": lambda w, o: w.mem.get(w.memory, **o),
    "list": lambda w, o: w.mem.list(**o),
    "get_memories": lambda w, o: w.mem.get_memories(**o),
    "list_recent": lambda w, o: w.mem.list_recent(**o),
    "search": lambda w, o: w.mem.search(QUESTION, kinds=("memory", "event"), **o),
    "deep_search": lambda w, o: w.mem.deep_search(QUESTION, kinds=("memory", "event"), **o),
    "recall": lambda w, o: [w.mem.recall(q, compose_answer=True, **o) for q in (QUESTION, SAID)],
    "recall_critical": lambda w, o: w.mem.recall_critical(**o),
    "trace_recall": lambda w, o: w.mem.trace_recall(QUESTION, expected_terms=["Lisbon"], **o),
    "timeline": lambda w, o: [w.mem.timeline(**o), w.mem.timeline(QUESTION, **o)],
    "context_text": lambda w, o: w.mem.context_text(tier=3, **o),
    "get_context_block": lambda w, o: w.mem.get_context_block(QUESTION, **o),
    "gen_context": lambda w, o: w.mem.gen_context("AGENTS.md", dry_run=True, **o),
    "inject": lambda w, o: w.mem.inject("Begin the parade in Lisbon", **o),
    "history": lambda w, o: w.mem.history(w.memory, **o),
    "get_current": lambda w, o: w.mem.get_current(w.old, **o),
    "lineage": lambda w, o: w.mem.lineage(w.memory, **o),
    "get_lineage": lambda w, o: w.mem.get_lineage(w.memory, **o),
    "explain_memory": lambda w, o: w.mem.explain_memory(w.memory, **o),
    "get_history": lambda w, o: w.mem.get_history(**o),
    "traverse": lambda w, o: w.mem.traverse(w.memory, **o),
    "traverse_many": lambda w, o: w.mem.traverse_many([w.memory, w.linked], direction="any", **o),
    "get_task": lambda w, o: w.mem.get_task(w.task, **o),
    "list_tasks": lambda w, o: w.mem.list_tasks(**o),
    "list_events": lambda w, o: w.mem.list_events(w.task, **o),
    "search_events": lambda w, o: w.mem.search_events(QUESTION, **o),
    "build_context": lambda w, o: w.mem.build_context(w.task, **o),
    "build_long_input_context": lambda w, o: w.mem.build_long_input_context(w.task, QUESTION, **o),
    "cite": lambda w, o: w.mem.cite(w.chunk, **o),
    "tasks.get": lambda w, o: w.mem.tasks.get(w.task, scopes=_seen(w, o)),
    "tasks.list": lambda w, o: w.mem.tasks.list(scopes=_seen(w, o)),
    "tasks.events": lambda w, o: w.mem.tasks.events(w.task, scopes=_seen(w, o)),
    "tasks.search_events": lambda w, o: w.mem.tasks.search_events(QUESTION, scopes=_seen(w, o)),
    "tasks.checkpoints": lambda w, o: w.mem.tasks.checkpoints(w.task, scopes=_seen(w, o)),
    "tasks.idle_since": lambda w, o: (w.task, w.mem.tasks.idle_since(w.task, scopes=_seen(w, o))),
    "sessions.get": lambda w, o: w.mem.sessions.get(w.session, scopes=_seen(w, o)),
    "sessions.list": lambda w, o: w.mem.sessions.list(scopes=_seen(w, o)),
    "sessions.events": lambda w, o: w.mem.sessions.events(w.named, scopes=_seen(w, o)),
    "sessions.summarise": lambda w, o: w.mem.sessions.summarise(w.session, scopes=_seen(w, o)),
    "sessions.end": lambda w, o: w.mem.sessions.end(w.session, scopes=_seen(w, o)),
    "enrichment.next_batch": lambda w, o: w.mem.enrichment.next_batch(200, scopes=_seen(w, o)),
    "jobs.list": lambda w, o: w.mem.jobs.list(scopes=_seen(w, o)),
    "graph.traverse": lambda w, o: w.mem.graph.traverse(w.memory, scope=_seen(w, o)),
    "graph.traverse_many": lambda w, o: w.mem.graph.traverse_many([w.memory], scope=_seen(w, o)),
    "lineages.versions": lambda w, o: w.mem.lineages.versions(w.memory, scopes=_seen(w, o)),
    "lineages.current": lambda w, o: w.mem.lineages.current(w.old, scopes=_seen(w, o)),
    "review.queue": lambda w, o: w.mem.review.queue(scopes=_seen(w, o)),
    "review.candidates": lambda w, o: w.mem.review.candidates(scopes=_seen(w, o)),
    "review.page": lambda w, o: w.mem.review.page(scopes=_seen(w, o)),
    "review.plan_promotion": lambda w, o: w.mem.review.plan_promotion(scopes=_seen(w, o)),
    "review.provenance": lambda w, o: w.mem.review.provenance(w.memory, scopes=_seen(w, o)),
}
"""Every call that shows something of an owner's, asked for what is Ana's."""
WRITES = frozenset(
    (
        "review.separate",
        "learn",
        "remember",
        "add",
        "add_batch",
        "add_conversation",
        "capture",
        "flush_captures",
        "read_due_captures",
        "revise",
        "update",
        "pin",
        "verify",
        "reinforce",
        "forget",
        "purge",
        "undo",
        "feedback",
        "relate",
        "session",
        "observe",
        "observe_batch",
        "start_task",
        "pause_task",
        "resume_task",
        "complete_task",
        "fail_task",
        "cancel_task",
        "soft_delete_task",
        "record_event",
        "record_turn",
        "create_checkpoint",
        "record_long_input",
        "ingest",
        "tasks.start",
        "tasks.move",
        "tasks.pause",
        "tasks.resume",
        "tasks.complete",
        "tasks.fail",
        "tasks.cancel",
        "tasks.delete",
        "tasks.record_event",
        "tasks.record_events",
        "tasks.record_turn",
        "tasks.checkpoint",
        "sessions.start",
        "sessions.observe_batch",
        "graph.relate",
        "graph.unrelate",
        "lineages.revise",
        "lineages.forget",
        "enrichment.apply",
        "review.resolve",
        "review.approve",
        "review.reject",
        "review.retire",
        "review.reinforce",
        "review.edit",
        "review.merge",
        "review.promote_all",
        "review.reject_all",
    )
)
"""What changes something that the caller names, and answers with that."""
OPERATORS = frozenset(
    (
        "recall_context",
        "prepare",
        "infer_scope",
        "doctor",
        "health_check",
        "rebuild_index",
        "process_memory_jobs",
        "harvest",
        "harvest_spooled",
        "import_chats",
        "import_memories",
        "enrichment.count",
        "enrichment.run",
        "enrichment.schedule",
        "enrichment.undo",
        "jobs.retry",
        "jobs.work",
        "jobs.run",
        "review.promote_eligible",
        "review.undo_bulk",
        "review.undo_last",
        "review.distrust",
        "review.restore_trust",
        "upkeep.sync",
        "upkeep.rebuild_index",
        "upkeep.reembed",
        "upkeep.purge",
        "upkeep.backup",
        "upkeep.fold",
        "upkeep.prune",
        "upkeep.paused",
        "upkeep.pause",
        "upkeep.resume",
        "upkeep.doctor",
        "upkeep.status",
        "scope_notices",
        "open",
        "close",
    )
)
"""What is about the whole store, for whoever runs it."""
PURE = frozenset(
    (
        "extract",
        "scope_for",
        "scopes_for",
        "scope_here",
        "render_graph_context",
        "graph.render",
    )
)
"""What answers from its arguments alone."""


def public_calls() -> set[str]:
    """The calls of `Engram` and of its facets."""
    own = {
        name for name, _ in inspect.getmembers(Engram, lambda part: inspect.isfunction(part) or inspect.ismethod(part))
    }
    parts = {
        f"{facet}.{name}"
        for facet, twin in facets().items()
        for name, part in vars(target(twin)).items()
        if not name.startswith("_") and (inspect.isfunction(part) or isinstance(part, property))
    }
    return {name for name in own if not name.startswith("_")} | parts


def test_every_public_call_is_a_read_that_is_walked_or_is_known_to_be_none() -> None:
    named = [*READS, *WRITES, *OPERATORS, *PURE]
    assert sorted(named) == sorted(set(named))
    assert public_calls() == set(named)


def test_nothing_of_one_owner_shows_for_another_and_all_of_it_for_themselves(world: World) -> None:
    leaks, missing = {}, []
    for name, read in READS.items():
        try:
            if found := world.shown(read(world, EVE)):
                leaks[name] = found
        except NotFound:
            pass
        if not world.shown(read(world, ANA)):
            missing.append(name)
    assert (leaks, missing) == ({}, [])


def test_whoever_names_nobody_is_the_operator_and_sees_everyones(world: World) -> None:
    mem = world.mem
    assert {task.scope for task in mem.list_tasks()} == {"agent:shop/ana", "agent:other/eve"}
    assert {hit.event.scope for hit in mem.search_events("parade") if hit.event} == {
        "agent:shop/ana",
        "agent:other/eve",
    }
    assert mem.get_task(world.task).id == world.task


def test_another_owners_session_answers_as_one_that_is_not_there(world: World) -> None:
    mem = world.mem
    for session in (world.session, world.named, "nobody's"):
        for question in (QUESTION, SAID):
            assert not world.shown(mem.recall(question, session=session, compose_answer=True, **EVE))
        assert not world.shown(mem.inject("Begin the parade in Lisbon", session=session, **EVE))
        with pytest.raises(NotFound):
            mem.get_context_block(QUESTION, session=session, **EVE)
    assert world.shown(mem.get_context_block(QUESTION, session=world.session, **ANA))
    assert world.shown(mem.recall(QUESTION, session=world.session, **ANA))


def test_a_use_is_not_noted_in_anothers_session(world: World) -> None:
    mem = world.mem
    before = mem.store.uses(session=world.session)
    own = mem.recall("When does the parade of Porto begin?", session=world.session, **EVE).hits
    mem.inject("The parade of Porto", session=world.session, **EVE)
    assert own and mem.store.uses(session=world.session) == before


def test_the_words_of_another_do_not_tell_whether_a_name_is_known(world: World) -> None:
    world.mem.add_conversation("The quokka parade is led by Zorblax.", **ANA)
    said = [world.mem.recall("Where is Zorblax?", **owner).warnings for owner in (EVE, ANA)]
    assert ["No memory mentions “Zorblax”." in warnings for warnings in said] == [True, False]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_events_are_narrowed_to_their_owner_before_the_cut(backend: Backend, mode: str) -> None:
    mem = backend.client()
    items = [{"role": "user", "content": f"The parade in Lisbon begins at nine, {SECRET} {i}"} for i in range(300)]
    mem.observe_batch("anas", items, **ANA)
    own = mem.observe("eves", "user", "Somebody spoke of a parade.", **EVE)
    assert [hit.id for hit in mem.search_events(QUESTION, mode=mode, limit=1, **EVE)] == [own.id]
    assert [hit.id for hit in mem.search(QUESTION, kinds=("event",), mode=mode, limit=1, **EVE)] == [own.id]


def test_lists_are_narrowed_to_their_owner_before_the_cut(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    own = mem.start_task("Watch a parade", **EVE)
    mem.record_turn(own.id, user="I prefer drums to flutes.", **EVE)
    with mem.session("Watch", **EVE) as session:
        pass
    for number in range(3):
        clock.forward(minutes=1)
        other = mem.start_task(f"Plan {number}", **ANA)
        mem.record_turn(other.id, user="I prefer flutes to drums.", **ANA)
        with mem.session("Plan", **ANA):
            pass
    seen = mem.scopes_for(**EVE)
    assert [task.id for task in mem.list_tasks(limit=1, **EVE)] == [own.id]
    assert [task.id for task in mem.list_tasks("running", limit=1, **EVE)] == [own.id]
    assert [one.id for one in mem.sessions.list(1, scopes=seen)] == [session.id]
    assert [job.scope for job in mem.jobs.list(limit=1, scopes=mem.scopes_for(**ANA))] == ["agent:shop/ana"]
    assert [job.payload["task"] for job in mem.jobs.list(scopes=seen)] == [own.id]


def test_a_user_sees_what_their_agent_and_everyone_has(backend: Backend) -> None:
    mem = backend.client()
    shared = mem.start_task("Keep the shop open", agent_id="shop")
    everyone = mem.start_task("Keep the lights on", scope="global")
    mem.start_task("Keep a secret", **ANA)
    assert {task.id for task in mem.list_tasks(agent_id="shop", user_id="eve")} == {shared.id, everyone.id}


def test_what_the_stores_own_person_does_is_no_part_of_what_an_agents_users_see(backend: Backend) -> None:
    mem = backend.client()
    mem.start_task("Keep a diary", scope="user")
    mem.observe("diary", "user", "Dear diary, the quokka came.", scope="user")
    assert (mem.list_tasks(**EVE), mem.list_tasks(user_id="eve")) == ([], [])
    assert mem.search_events("diary", **EVE) == []
    assert len(mem.list_tasks(scope="project:acme")) == 1


def test_two_owners_never_share_a_session_of_the_same_name(backend: Backend) -> None:
    mem = backend.client()
    said = mem.observe("chat", "user", "The quokka is mine.", key="1", **ANA)
    for write in (
        lambda: mem.observe("chat", "user", "The quokka is mine.", key="1", **EVE),
        lambda: mem.add_conversation("Hello there.", session="chat", **EVE),
        lambda: mem.add_conversation("Hello.", session="conversation:agent:shop/ana", **EVE),
    ):
        mem.add_conversation("I like drums.", **ANA)
        with pytest.raises(Refused, match="another owner"):
            write()
    assert [event.id for event in mem.store.events("chat")] == [said.id]
    assert mem.observe("chat", "user", "The quokka is mine.", key="1", **ANA).id == said.id
    assert mem.list(**EVE) == []


def test_in_a_projects_session_one_may_speak_for_what_the_project_sees(backend: Backend) -> None:
    mem = backend.client()
    with mem.session("Parade", scope="project:parade") as session:
        remembered = mem.add_conversation("I live in Lisbon.", session=session.id, scope="user")
        with pytest.raises(Refused):
            mem.add_conversation("I live in Porto.", session=session.id, scope="project:other")
    assert {memory.scope for memory in remembered} == {"user"}
    assert {event.scope for event in mem.store.events(session.id)} == {"project:parade"}


def test_what_is_said_in_an_owners_session_is_theirs_though_nobody_names_them(backend: Backend) -> None:
    mem = backend.client()
    with mem.session("Parade", **ANA) as session:
        session.observe("user", "The quokka likes drums.")
        remembered = mem.add_conversation("I live in Lisbon.", session=session.id)
    assert {event.scope for event in mem.store.events(session.id)} == {"agent:shop/ana"}
    assert {memory.scope for memory in remembered} == {"agent:shop/ana"}
    assert mem.search_events("drums", **EVE) == []


def test_a_task_is_changed_by_its_owner_and_by_the_operator_alone(world: World) -> None:
    mem = world.mem
    for change in (
        lambda owner: mem.record_event(world.task, "user", "I was here.", **owner),
        lambda owner: mem.record_turn(world.task, user="I was here.", **owner),
        lambda owner: mem.create_checkpoint(world.task, "Done", **owner),
        lambda owner: mem.record_long_input(world.task, "A text.", **owner),
        lambda owner: mem.pause_task(world.task, **owner),
        lambda owner: mem.resume_task(world.task, **owner),
        lambda owner: mem.complete_task(world.task, **owner),
        lambda owner: mem.soft_delete_task(world.task, **owner),
    ):
        with pytest.raises(NotFound):
            change(EVE)
    shared = mem.start_task("Keep the lights on", scope="global")
    with pytest.raises(Refused, match="belongs to global"):
        mem.record_event(shared.id, "user", "I was here.", **EVE)
    assert mem.record_event(world.task, "user", "The quokka is late.").scope == "agent:shop/ana"
    assert mem.pause_task(world.task, **ANA).status == "paused"


def test_a_checkpoint_does_not_tell_whether_anothers_event_is_there(world: World) -> None:
    own = world.mem.start_task("Watch", **EVE)
    with pytest.raises(NotFound):
        world.mem.create_checkpoint(own.id, "Seen", source_event_ids=[world.event], **EVE)


def test_a_name_that_two_owners_gave_means_each_ones_own(backend: Backend) -> None:
    mem = backend.client()
    hers = mem.add("The quokka parade begins at nine", name="parade", **ANA)
    own = mem.add("The wombat parade begins at ten", name="parade", **EVE)
    assert (mem.get("parade", **ANA).id, mem.get("parade", **EVE).id) == (hers.id, own.id)
    with pytest.raises(NotFound):
        mem.get(hers.id, **EVE)


def test_a_version_that_was_anothers_is_no_part_of_the_way_of_a_fact(backend: Backend) -> None:
    mem, clock = backend.client(), backend.clock
    first = mem.add("The launch of the quokka is on Monday", type="decision", name="launch", **ANA)
    clock.forward(days=2)
    public = mem.revise(first.id, statement="The launch is on Friday", new_scope="global")
    assert [one.id for one in mem.lineage(public.id, **EVE)] == [public.id]
    assert SECRET not in str(whole(mem.explain_memory(public.id, **EVE)))
    for question in ("How did the launch change over time?", "When was the launch before?", "When is the launch?"):
        assert SECRET not in repr(mem.recall(question, compose_answer=True, **EVE))


def test_an_argument_that_names_no_owner_is_refused(backend: Backend) -> None:
    mem = backend.client()
    with pytest.raises(TypeError, match=r"list_tasks.*'user'"):
        mem.list_tasks(user="ana")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"get.*'user'"):
        mem.get("parade", user="ana")  # type: ignore[call-arg]
    with pytest.raises(InvalidInput, match="user_id"):
        mem.list_tasks(user_id="")
    with pytest.raises(InvalidInput, match="not both"):
        mem.search_events("parade", scope="global", **ANA)
    with pytest.raises(InvalidInput, match="one owner"):
        mem.observe("chat", "user", "Hello.", scope=["global", "user"])


def test_an_event_that_was_given_another_owner_does_not_verify(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        mem.observe("chat", "user", "The quokka is mine.", **ANA)
        assert mem.store.verify_ledgers() == []
        ledger = home_of(mem).ledger / ledger_name("chat")
    ledger.write_text(ledger.read_text().replace("agent:shop/ana", "agent:other/eve"))
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache2", directory=tmp_path) as mem:
        assert any("altered" in problem for problem in mem.store.verify_ledgers())


# -- yesterday's stores


def without_owners(
    head: Head, session: str, events: Sequence[NewEvent], token: Callable[[int], str], scope: str
) -> list[Event]:
    """New events as they were written when none carried its owner."""
    return chained_events(head, session, events, token)


def test_events_of_before_belong_to_their_task_their_session_or_the_scope_their_ledger_is_named_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.store.files.store.writer.chained_events", without_owners)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        task = mem.start_task("Plan the parade", **ANA)
        mem.record_event(task.id, "user", "The quokka is in the task.")
        with mem.session("Parade", **ANA) as session:
            session.observe("user", "The quokka is in the session.")
        mem.add_conversation("The quokka is in the conversation.", **ANA)
        mem.observe("chat", "user", "The weather is everyone's.", **ANA)
        assert {event.scope for name in mem.store.ledgers() for event in mem.store.events(name)} == {""}
    monkeypatch.undo()
    with Engram.open(tmp_path / "home", cache=tmp_path / "fresh", directory=tmp_path) as mem:
        assert mem.store.verify_ledgers() == []
        assert len([hit for hit in mem.search_events("quokka", **ANA) if "quokka" in hit.text]) == 3
        assert not [hit for hit in mem.search_events("quokka", **EVE) if "quokka" in hit.text]
        assert [hit.text for hit in mem.search_events("weather", **EVE)] == ["The weather is everyone's."]
        goes_on = mem.observe("chat", "user", "The quokka goes on.", **ANA)
        assert (goes_on.seq, goes_on.scope) == (2, "agent:shop/ana")
        with pytest.raises(Refused):
            mem.observe("chat", "user", "Hello.", **EVE)


def test_a_rebuilt_index_keeps_events_with_their_owner_though_the_session_was_lost(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        with mem.session("Parade", **ANA) as session:
            session.observe("user", "The quokka likes drums.")
        home = home_of(mem)
    (home.state / "sessions" / f"{session.id}.json").unlink()
    with Engram.open(tmp_path / "home", cache=tmp_path / "fresh", directory=tmp_path) as mem:
        assert mem.search_events("drums", **EVE) == []
        assert len(mem.search_events("drums", **ANA)) == 1


def test_the_index_looks_an_owners_events_up(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        mem.observe("chat", "user", "Hello.", **ANA)
        mem.search_events("hello")
    home = open_home(tmp_path / "home", tmp_path / "cache")
    with sqlite3.connect(home.index / "index.db") as index:
        plan = index.execute(
            "EXPLAIN QUERY PLAN SELECT n FROM docs WHERE kind = 'event' AND scope IN ('agent:shop/ana', 'global')"
        ).fetchall()
    index.close()
    assert "docs_scope" in str(plan)


def test_a_session_that_only_has_a_ledger_is_listed_with_its_owners(backend: Backend) -> None:
    mem = backend.client()
    mem.observe("chat", "user", "The quokka likes drums.", **ANA)
    mem.store.save_record(Session("chat", "", (ledger_scope(mem.store, "chat"),), backend.clock()))
    assert mem.sessions.list(scopes=mem.scopes_for(**EVE)) == []
    assert [one.owner for one in mem.sessions.list(scopes=mem.scopes_for(**ANA))] == ["agent:shop/ana"]


CONVERSATION_OF_BEFORE = """
INSERT INTO engram.documents (tenant, n, id, kind, scope, status, type, domain, parent, position, pinned, hash, change, tags,
    statement, about, support, length, meaning)
SELECT 'acme', 100 + number, 'EVT-' || number, 'event', 'global', 'active', 'message', '', parent, 1, false, '', 0, '{}',
    'quokka', '', '', 1, ''
FROM unnest(ARRAY['conversation:agent:shop/ana', 'conversation:global', 'conversation:nobody', 'chat']) WITH ORDINALITY AS
    given(parent, number);
INSERT INTO engram.memory_jobs (tenant, id, kind, status, run_after, leased_until, record)
SELECT 'acme', id, 'derive', 'waiting', '2026-03-02', NULL, json_build_object('id', id, 'kind', 'derive', 'created',
    '2026-03-02T09:00:00Z', 'run_after', '2026-03-02T09:00:00Z', 'payload', payload::json)
FROM (VALUES ('J1', '{"task": "TASK-20260301-090000-cad633"}'), ('J2', '{"scope": "agent:shop/ana", "task": ""}'))
    AS given(id, payload);
"""


def test_a_server_of_before_gives_its_rows_their_owners(empty_database: str, clock: Clock) -> None:
    with connect(empty_database) as raw:
        at_version(raw, 4)
        with raw.transaction():
            raw.execute("SELECT set_config('engram.tenant', 'acme', true)")
            raw.execute(CONVERSATION_OF_BEFORE)
        assert migrate(raw, "the server") == 4
        with raw.transaction():
            raw.execute("SELECT set_config('engram.tenant', 'acme', true)")
            rows = raw.execute("SELECT parent, scope FROM engram.documents WHERE n > 100 ORDER BY n").fetchall()
            jobs = raw.execute("SELECT id, scope FROM engram.memory_jobs WHERE id ~ '^J' ORDER BY id").fetchall()
        raw.execute("SELECT set_config('engram.tenant', 'nobody', false)")
        hidden = [
            raw.execute(f"SELECT count(*) FROM engram.{table}").fetchone() for table in ("documents", "memory_jobs")
        ]
    assert rows == [
        ("conversation:agent:shop/ana", "agent:shop/ana"),
        ("conversation:global", "global"),
        ("conversation:nobody", "global"),
        ("chat", "global"),
    ]
    assert jobs == [("J1", "project:acme"), ("J2", "agent:shop/ana")]
    assert hidden == [(0,), (0,)]
    with Engram.open(url=empty_database, tenant="acme", clock=clock) as mem:
        seen = mem.scopes_for(scope="project:acme")
        assert [one.owner for one in mem.sessions.list(1, scopes=seen)] == ["project:acme"]
        assert [task.scope for task in mem.list_tasks(limit=1, scope="project:acme")] == ["project:acme"]
        assert (mem.list_tasks(**EVE), mem.sessions.list(scopes=mem.scopes_for(**EVE))) == ([], [])
        assert "J2" in [job.id for job in mem.jobs.list(scopes=mem.scopes_for(**ANA))]
        assert mem.search_events("which day is the train", **EVE) == []
        assert mem.search_events("which day is the train", scope="project:acme")


def test_an_asynchronous_memory_tells_owners_apart(tmp_path: Path) -> None:
    async def told() -> tuple[list[str], list[str]]:
        opened = AsyncEngram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)
        async with opened as mem:
            await mem.add_conversation("The quokka likes drums.", **ANA)
            task = await mem.start_task("Feed the quokka", **ANA)
            with pytest.raises(NotFound):
                await mem.get_task(task.id, **EVE)
            seen = [await mem.search_events("drums", **owner) for owner in (ANA, EVE)]
            return [hit.text for hit in seen[0]], [hit.text for hit in seen[1]]

    assert asyncio.run(told()) == (["The quokka likes drums."], [])


SUPERSEDING: dict[str, Callable[[Engram, str], object]] = {
    "learn": lambda mem, ref: mem.learn("The kitchen opens at ten", supersedes=(ref,), **EVE),
    "remember": lambda mem, ref: mem.remember("The kitchen opens at ten", supersedes=(ref,), **EVE),
    "add": lambda mem, ref: mem.add("The kitchen opens at ten", supersedes=[ref], **EVE),
    "add by scope": lambda mem, ref: mem.add("The kitchen opens at ten", supersedes=ref, scope=mem.scope_for(**EVE)),
    "add_batch": lambda mem, ref: mem.add_batch([{"statement": "It opens at ten", "supersedes": [ref], **EVE}]),
    "revise": lambda mem, ref: mem.revise("eves", statement="The kitchen opens at ten", supersedes=(ref,), **EVE),
}


@pytest.mark.parametrize("verb", SUPERSEDING)
def test_nobody_supersedes_what_they_do_not_see(backend: Backend, verb: str) -> None:
    mem = backend.client()
    ana = mem.add("The bakery opens at six", name="bakery", **ANA)
    mem.add("The kitchen opens at nine", name="eves", **EVE)
    for ref in (ana.id, "bakery", "ENG-2020-0101-001"):
        with pytest.raises(NotFound, match=f"(?:^|: )no memory '{ref}'; `engram list` shows what there is$"):
            SUPERSEDING[verb](mem, ref)
    assert mem.get(ana.id) == ana
    assert [memory.statement for memory in mem.list(scope=mem.scope_for(**EVE))] == ["The kitchen opens at nine"]


def test_a_fact_that_became_anothers_is_not_superseded_by_its_older_version(backend: Backend) -> None:
    mem = backend.client()
    shared = mem.add("The bakery opens at six")
    anas = mem.revise(shared.id, statement="The bakery opens at five", new_scope=mem.scope_for(**ANA))
    with pytest.raises(NotFound):
        mem.add("The bakery opens at ten", supersedes=(shared.id,), **EVE)
    assert mem.get(anas.id).status == "active"


def test_an_owner_supersedes_what_is_theirs_and_nothing_wider(backend: Backend) -> None:
    mem = backend.client()
    shared, own = mem.add("The bakery opens at six"), mem.add("The kitchen opens at nine", **EVE)
    with pytest.raises(Refused, match="belongs to global"):
        mem.add("Both open at ten", supersedes=(shared.id, own.id), **EVE)
    new = mem.add("The kitchen opens at ten", supersedes=(own.id,), **EVE)
    assert (mem.get(shared.id).status, mem.get(own.id).superseded_by) == ("active", new.id)
