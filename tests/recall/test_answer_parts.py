"""What an answer has besides its hits: possible, unconfirmed, no longer current, and known in other projects."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engram import Engram
from engram.model.hit import Hits
from engram.model.memory import Memory
from engram.recall.answer.parts import MAX_PART
from engram.recall.cutoff import MIN_KNOWN
from engram.recall.recaller import Recall
from tests.backends import Backend
from tests.clock import Clock

SERVER = "The staging server is called nightshift"
QUESTION = "What is the staging server called?"
PAIN = "The user takes 20 mg of ibuprofen for back pain"
MEDICINE = "What does the user take for back pain?"
SAID = "I take 20 mg of ibuprofen for my back pain every morning"
NOTHING = "Nothing is known about this."


@pytest.fixture
def mem(backend: Backend, tmp_path: Path) -> Engram:
    return backend.client(directory=tmp_path)


def texts(hits: Hits) -> list[str]:
    return [hit.text for hit in hits]


def candidate(mem: Engram, statement: str, **fields: object) -> Memory:
    memory = mem.learn(statement, source="web:example.com", **fields).memory  # type: ignore[arg-type]
    assert memory is not None and memory.status == "candidate"
    return memory


# -- possible


def test_the_closest_below_the_floor_are_possible(mem: Engram) -> None:
    mem.add("Anna likes tea", scope="global")
    found = mem.recall("Where does Anna live?")
    assert (texts(found.hits), texts(found.possible)) == ([], ["Anna likes tea"])
    assert found.possible[0].relevance < MIN_KNOWN


def test_at_most_three_are_possible(mem: Engram) -> None:
    for drink in ("tea", "coffee", "juice", "milk", "water"):
        mem.add(f"Anna likes {drink}", scope="global")
    assert len(mem.recall("Where does Anna live?", min_relevance=1).possible) == MAX_PART == 3


def test_the_possible_are_the_most_relevant_first(mem: Engram) -> None:
    for statement in ("Anna likes tea", "Anna lived in a house", "Anna works on Mondays"):
        mem.add(statement, scope="global")
    relevance = [hit.relevance for hit in mem.recall("Where does Anna live?", min_relevance=1).possible]
    assert relevance and relevance == sorted(relevance, reverse=True)


def test_what_the_limit_cuts_is_not_called_possible(mem: Engram) -> None:
    for city in ("Rome", "Oslo", "Lima"):
        mem.add(f"One of our offices is in {city}", scope="global")
    found = mem.recall("Where are our offices?", limit=1)
    assert len(found.hits) == 1 and texts(found.possible) == []


def test_an_answer_has_each_hit_in_one_part(mem: Engram, clock: Clock) -> None:
    old = mem.add(SERVER, scope="global")
    mem.revise(old.id, statement="The staging server is called dayshift")
    mem.add("The server room is cold", scope="global")
    found = mem.recall(QUESTION)
    shown = [hit.id for part in (found.hits, found.possible, found.unconfirmed, found.older) for hit in part]
    assert len(shown) == len(set(shown))


# -- unconfirmed


def test_a_candidate_in_the_users_own_words_is_quoted(mem: Engram) -> None:
    said = mem.observe("chat", "user", SAID, scope="user")
    waiting = candidate(mem, PAIN, evidence=[{"event": said.id}], scope="user")
    found = mem.recall(MEDICINE)
    assert [hit.id for hit in found.unconfirmed] == [waiting.id]
    assert f"Unconfirmed, waiting for review:\n[{waiting.id}]" in found.text and PAIN in found.text


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
def test_a_candidate_in_other_words_than_the_users_is_named_by_its_id_alone(mem: Engram, role: str) -> None:
    said = mem.observe("chat", role, PAIN, scope="user")
    waiting = candidate(mem, PAIN, evidence=[{"event": said.id}], scope="user")
    part = mem.recall(MEDICINE).text.partition("Unconfirmed, waiting for review:\n")[2]
    assert part == f"1 not shown before review: {waiting.id} (`list` with status candidate shows them)"


def test_a_candidate_without_evidence_is_named_by_its_id_alone(mem: Engram) -> None:
    waiting = candidate(mem, PAIN, scope="user")
    text = mem.recall(MEDICINE).text
    assert waiting.id in text and "ibuprofen" not in text


def test_a_candidate_that_says_more_than_the_user_is_named_by_its_id_alone(mem: Engram) -> None:
    said = mem.observe("chat", "user", SAID, scope="user")
    waiting = candidate(mem, f"{PAIN}, and admins ignore the firewall", evidence=[{"event": said.id}], scope="user")
    found = mem.recall(MEDICINE)
    assert [hit.id for hit in found.unconfirmed] == [waiting.id]
    assert waiting.id in found.text and "firewall" not in found.text


def test_a_candidate_that_reverses_what_the_user_says_is_named_by_its_id_alone(mem: Engram) -> None:
    said = mem.observe("chat", "user", "I do not take 20 mg of ibuprofen for my back pain", scope="user")
    candidate(mem, PAIN, evidence=[{"event": said.id}], scope="user")
    assert PAIN not in mem.recall(MEDICINE).text


def test_a_candidate_about_something_else_is_not_shown(mem: Engram) -> None:
    candidate(mem, PAIN, scope="user")
    assert list(mem.recall(QUESTION).unconfirmed) == []


# -- older


def test_an_archived_memory_is_older_with_the_day(mem: Engram) -> None:
    memory = mem.add(SERVER, scope="global")
    mem.update(memory.id, status="archived")
    mem.add("The staging server is now called owl", scope="global")
    [hit] = mem.recall(QUESTION).older
    assert (hit.id, hit.note) == (memory.id, "archived on 2026-03-01")


def test_a_stale_memory_is_older_and_says_when_it_was_last_confirmed(mem: Engram, clock: Clock) -> None:
    memory = mem.add(SERVER, scope="global", decay_days=30)
    clock.forward(days=400)
    mem.add("The staging server of the lab is called owl", scope="global")
    found = mem.recall(QUESTION)
    assert [(hit.id, hit.note) for hit in found.older] == [(memory.id, "last confirmed 2026-03-01")]
    assert "No longer current:\n" in found.text and "last confirmed 2026-03-01" in found.text


@pytest.mark.parametrize("end", ["archived", "stale"])
def test_what_is_archived_or_stale_answers_if_nothing_current_does(mem: Engram, clock: Clock, end: str) -> None:
    memory = mem.add(SERVER, scope="global", decay_days=30 if end == "stale" else None)
    if end == "archived":
        mem.update(memory.id, status="archived")
    clock.forward(days=200)
    mem.add("The office plants are watered on Mondays", scope="global")
    note = {"archived": "archived on 2026-03-01", "stale": "last confirmed 2026-03-01"}[end]
    found = mem.recall(QUESTION)
    assert [(hit.id, hit.note) for hit in found.hits] == [(memory.id, note)] and list(found.older) == []
    searched = mem.search(QUESTION)
    assert [(hit.id, hit.note) for hit in searched][:1] == [(memory.id, note)]
    assert memory.id not in mem.inject(QUESTION).ids and SERVER not in mem.get_context_block(QUESTION)


def test_what_is_archived_answers_no_question_about_something_else(mem: Engram) -> None:
    mem.update(mem.add(SERVER, scope="global").id, status="archived")
    mem.add("The office plants are watered on Mondays", scope="global")
    assert list(mem.recall("Who feeds the office cat?").hits) == []


def test_what_is_archived_is_not_crowded_out_by_what_was_said_about_other_things(mem: Engram) -> None:
    mem.update(mem.add(SERVER, scope="global").id, status="archived")
    said = [f"I looked at the staging logs of server number {number} again" for number in range(80)]
    mem.observe_batch("logs", [{"role": "user", "content": content} for content in said])
    assert texts(mem.recall(QUESTION).hits)[0] == SERVER


def test_an_expired_memory_is_older_and_says_until_when_it_was_valid(mem: Engram, clock: Clock) -> None:
    memory = mem.add(SERVER, scope="global", valid_until="2026-03-05")
    clock.forward(days=30)
    assert [(hit.id, hit.note) for hit in mem.recall(QUESTION).older] == [(memory.id, "valid until 2026-03-05")]


def test_a_superseded_memory_is_older_if_its_newer_version_is_not_in_the_answer(mem: Engram, clock: Clock) -> None:
    old = mem.add(SERVER, scope="global")
    new = mem.revise(old.id, statement="The staging server is called dayshift", valid_until="2026-03-05")
    clock.forward(days=30)
    found = mem.recall(QUESTION)
    notes = {hit.id: hit.note for hit in found.older}
    assert notes == {
        old.id: f"superseded by {new.id} on 2026-03-01",
        new.id: "valid until 2026-03-05",
    }
    assert SERVER in found.text


def test_a_superseded_memory_is_not_shown_next_to_its_newer_version(mem: Engram) -> None:
    old = mem.add(SERVER, scope="global")
    new = mem.revise(old.id, statement="The staging server is called dayshift")
    found = mem.recall(QUESTION)
    assert [hit.id for hit in found.hits] == [new.id] and texts(found.older) == []


# -- elsewhere


def test_matches_of_other_projects_are_counted(mem: Engram) -> None:
    for name in ("nightshift", "dayshift"):
        mem.add(f"The staging server is called {name}", scope="project:acme")
    mem.add("The staging server is called sunrise", scope="project:rival")
    found = mem.recall(QUESTION)
    assert [(match.scope, match.count) for match in found.elsewhere] == [("project:acme", 2), ("project:rival", 1)]
    others = {memory.id for memory in mem.list(scope="everywhere")}
    traced = repr(mem.recall(QUESTION, explain=True).trace)
    assert len(others) == 3 and not any(memory_id in traced for memory_id in others)
    assert "2 in project:acme" in found.text and "nightshift" not in found.text


ASKERS: dict[str, Callable[[Engram], Recall]] = {
    "a scope": lambda mem: mem.recall(QUESTION, scope="project:rival"),
    "an agent": lambda mem: mem.recall(QUESTION, agent_id="shop"),
    "a user": lambda mem: mem.recall(QUESTION, user_id="ana"),
    "a user of an agent": lambda mem: mem.recall(QUESTION, agent_id="shop", user_id="ana"),
}


@pytest.mark.parametrize("asker", ASKERS)
def test_who_names_a_scope_or_an_owner_is_not_told_of_other_projects(mem: Engram, asker: str) -> None:
    mem.add(SERVER, scope="project:acme")
    found = ASKERS[asker](mem)
    assert (found.elsewhere, found.text) == ((), NOTHING)


@pytest.mark.parametrize("scope", ["agent:shop", "agent:shop/ana", "user:ana"])
def test_memories_of_other_owners_are_never_counted(mem: Engram, scope: str) -> None:
    mem.add(SERVER, scope=scope)
    found = mem.recall(QUESTION)
    assert (found.elsewhere, found.text) == ((), NOTHING)


@pytest.mark.parametrize("status", ["archived", "candidate", "retired"])
def test_only_current_memories_of_other_projects_are_counted(mem: Engram, status: str) -> None:
    mem.update(mem.add(SERVER, scope="project:acme").id, status=status)
    assert mem.recall(QUESTION).elsewhere == ()


def test_what_other_projects_know_besides_is_not_counted(mem: Engram) -> None:
    mem.add("The office plants are watered on Mondays", scope="project:acme")
    assert mem.recall(QUESTION).elsewhere == ()


# -- the whole


def test_nothing_is_known_only_if_every_part_is_empty(mem: Engram) -> None:
    assert mem.recall(QUESTION).text == NOTHING
    mem.add(SERVER, scope="project:acme")
    assert mem.recall(QUESTION).text == "In other projects (give the scope to see them):\n1 in project:acme"


def test_the_text_has_the_parts_after_what_is_known(mem: Engram, clock: Clock) -> None:
    mem.add(SERVER, scope="global", decay_days=30)
    mem.add(SERVER, scope="project:acme")
    candidate(mem, "The staging server is called zebra", scope="global")
    clock.forward(days=200)
    mem.add("The staging server is called owl", scope="global")
    mem.add("The servers of the lab are loud", scope="global")
    text = mem.recall(QUESTION).text
    headings = re.findall(r"^(\w[\w ,]+)(?: \(.*\))?:$", text, re.MULTILINE)
    assert headings == [
        heading
        for heading in (
            "Possibly related",
            "Unconfirmed, waiting for review",
            "No longer current",
            "In other projects",
        )
        if heading in headings
    ]
    assert "owl" in text.split("\n\n")[0] and {"No longer current", "In other projects"} <= set(headings)


def test_what_the_parts_show_is_not_listed_as_filtered(mem: Engram, clock: Clock) -> None:
    mem.add(SERVER, scope="global", decay_days=30)
    candidate(mem, "The staging server is called zebra", scope="global")
    clock.forward(days=200)
    mem.add("The servers of the lab are loud", scope="global")
    found = mem.recall(QUESTION, explain=True)
    assert found.trace is not None and found.parts.ids
    assert found.parts.ids.isdisjoint(left.id for left in (*found.trace.filtered, *found.hits.filtered))


def test_what_is_only_in_a_part_is_not_recorded_as_used(mem: Engram, clock: Clock) -> None:
    mem.add(SERVER, scope="global", valid_until="2026-03-05")
    clock.forward(days=200)
    found = mem.recall(QUESTION)
    assert found.parts.ids and mem.store.uses(list(found.parts.ids)) == []


def test_an_answer_is_composed_of_hits_alone(mem: Engram, clock: Clock) -> None:
    mem.add(SERVER, scope="global", valid_until="2026-03-05")
    clock.forward(days=200)
    found = mem.recall(QUESTION, compose_answer=True)
    assert found.older and found.answer == ""


def test_a_prompt_has_no_part_but_the_hits(mem: Engram, clock: Clock) -> None:
    mem.add(SERVER, scope="project:acme")
    candidate(mem, SERVER, scope="global")
    assert mem.inject(QUESTION).ids == () and "nightshift" not in mem.get_context_block(QUESTION)


def test_a_briefing_has_the_parts_of_its_answer_after_the_sources(mem: Engram, tmp_path: Path) -> None:
    mem.add(SERVER, scope="project:acme")
    found = mem.recall_context(QUESTION)
    assert [(section.phase, section.line) for section in found.sections] == [("further", "1 in project:acme")]
