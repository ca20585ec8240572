"""Feedback and facts: given by their parts, broadened by repetition, and settled by choice where they contradict each other."""

from typing import Any

import pytest

from engram.client import Engram
from engram.model.decision import Decision, Outcome
from engram.model.errors import InvalidInput

TDD: dict[str, Any] = {
    "situation": "implementing new features",
    "behavior": "skipped writing tests before implementation",
    "impact": "bugs found late, rework required",
    "action": "always write failing test first (TDD red phase)",
}
TARG: dict[str, Any] = {"situation": "building engram", "subject": "engram", "predicate": "uses", "object": "targ"}
MAKE = {**TARG, "object": "plain make"}


def test_feedback_is_given_by_its_parts(mem: Engram) -> None:
    decision = mem.learn(**TDD)
    memory = decision.memory
    assert decision.outcome == Outcome.CREATED and memory is not None
    assert (memory.type, memory.name, memory.situation) == ("feedback", "implementing-new-features", TDD["situation"])
    assert memory.form == {part: TDD[part] for part in ("behavior", "impact", "action")}
    assert memory.statement == (
        "always write failing test first (TDD red phase). "
        "skipped writing tests before implementation: bugs found late, rework required."
    )


def test_a_fact_is_given_by_its_parts(mem: Engram) -> None:
    memory = mem.learn(**TARG).memory
    assert memory is not None
    assert (memory.type, memory.name, memory.statement) == ("fact", "building-engram", "engram uses targ")
    assert memory.memory_kind == "note"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"behavior": "x"}, "feedback needs situation, impact, action"),
        ({**TARG, "object": " "}, "fact needs object"),
        ({**TDD, "situation": ""}, "feedback needs situation"),
        ({**TDD, "subject": "x"}, "belongs to the other form"),
        ({**TARG, "form": {"subject": "x"}}, "not both"),
        ({**TARG, "object": 7}, "not text"),
        ({**TARG, "on_conflict": "shrug"}, "Unknown on_conflict"),
    ],
)
def test_what_a_form_lacks_is_named(mem: Engram, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        mem.learn(**given)


def test_a_second_memory_of_a_situation_gets_a_number(mem: Engram) -> None:
    mem.learn(**TARG)
    second = mem.learn(**{**TARG, "predicate": "is written in", "object": "Go"}).memory
    third = mem.learn(**{**TARG, "predicate": "is released under", "object": "the MIT licence"}).memory
    assert second is not None and third is not None
    assert (second.name, third.name) == ("building-engram-2", "building-engram-3")


def test_a_long_situation_makes_a_short_name_and_signs_alone_make_one_too(mem: Engram) -> None:
    long = mem.learn(
        **{
            **TARG,
            "situation": "writing tests for the importer, the exporter, the parser, the renderer, the scheduler and the reporter",
        }
    ).memory
    signs = mem.learn(**{**TARG, "situation": "!!!", "subject": "myapp"}).memory
    hindi = mem.learn(**{**TARG, "situation": "हिन्दी में लिखना", "subject": "otherapp"}).memory
    assert long is not None and signs is not None and hindi is not None
    assert len(long.name) <= 60 and signs.name and hindi.name == "हिन्दी-में-लिखना"


def test_an_update_of_a_part_renders_the_statement_again(mem: Engram) -> None:
    mem.learn(**TARG)
    changed = mem.update("building-engram", object="make")
    assert changed.statement == "engram uses make"
    assert changed.form == {"subject": "engram", "predicate": "uses", "object": "make"}


def test_a_revision_of_a_part_is_a_new_version(mem: Engram) -> None:
    mem.learn(**TARG)
    assert mem.revise("building-engram", object="make").statement == "engram uses make"
    assert [version.statement for version in mem.lineage("building-engram")] == ["engram uses targ", "engram uses make"]


@pytest.mark.parametrize("changes", [{"action": "x"}, {"object": ""}])
def test_a_part_of_the_other_form_or_an_empty_one_is_refused(mem: Engram, changes: dict[str, str]) -> None:
    mem.learn(**TARG)
    with pytest.raises(InvalidInput):
        mem.update("building-engram", **changes)  # type: ignore[arg-type]


# -- duplicates


def test_a_duplicate_broadens_the_situation_and_is_found_by_either_wording(mem: Engram) -> None:
    first = mem.learn(**TARG).memory
    again = mem.learn(**{**TARG, "situation": "compiling the command line program"})
    assert first is not None and again.memory is not None
    assert (again.outcome, again.memory.id) == (Outcome.DUPLICATE, first.id)
    assert again.memory.situation == "building engram; compiling the command line program"
    for words in ("building engram", "compiling the command line program"):
        assert [hit.id for hit in mem.search(words, mode="keyword")] == [first.id]


def test_feedback_in_other_words_is_a_duplicate(mem: Engram) -> None:
    mem.learn(**TDD)
    again = mem.learn(
        situation="adding a new feature", behavior="wrote the code before its tests", impact="late bugs",
        action="write a failing test first",
    )  # fmt: skip
    assert again.outcome == Outcome.DUPLICATE and again.memory is not None
    assert again.memory.situation == "implementing new features; adding a new feature"


def test_a_situation_that_is_covered_changes_nothing(mem: Engram) -> None:
    mem.learn(**TARG)
    again = mem.learn(**{**TARG, "situation": "building"})
    assert again.memory is not None and again.memory.situation == "building engram"


def test_no_agent_broadens_what_a_person_said_but_it_is_proposed(mem: Engram) -> None:
    first = mem.learn(source="human", **TARG).memory
    again = mem.learn(**{**TARG, "situation": "compiling the program"})
    assert first is not None and again.outcome == Outcome.DUPLICATE
    assert mem.get(first.id).situation == "building engram"
    (waiting,) = mem.list(status="candidate")
    assert (waiting.situation, waiting.supersedes) == ("building engram; compiling the program", (first.id,))
    assert waiting.id in again.reason
    mem.learn(**{**TARG, "situation": "compiling the program"})
    assert len(mem.list(status="candidate")) == 1


def test_a_proposed_broadening_takes_effect_when_a_person_approves_it(mem: Engram) -> None:
    mem.learn(source="human", **TARG)
    mem.learn(**{**TARG, "situation": "compiling the program"})
    (waiting,) = mem.list(status="candidate")
    mem.review.approve(waiting.id, actor="human")
    (current,) = mem.list()
    assert (current.id, current.situation) == (waiting.id, "building engram; compiling the program")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"type": "fact"}, "fact takes subject, predicate, object"),
        ({"memory_type": "fact"}, "fact takes subject, predicate, object"),
        ({"statement": "write tests first"}, "change these instead: behavior, impact, action"),
        ({"subject": "engram"}, "no part of feedback"),
    ],
)
def test_no_change_takes_the_parts_from_a_form(mem: Engram, changes: dict[str, Any], message: str) -> None:
    stored = mem.learn(**TDD).memory
    assert stored is not None
    for change in (mem.update, mem.revise):
        with pytest.raises(InvalidInput, match=message):
            change(stored.id, **changes)
    assert mem.get(stored.id).form == stored.form


# -- contradictions


def conflict(mem: Engram, **more: Any) -> Decision:
    mem.learn(**TARG)
    return mem.learn(**MAKE, **more)


def test_a_contradiction_waits_for_review(mem: Engram) -> None:
    decision = conflict(mem)
    assert decision.outcome == Outcome.CONTRADICTION and decision.memory is not None and decision.other is not None
    assert (decision.memory.status, decision.other.statement) == ("candidate", "engram uses targ")


def test_a_contradiction_is_found_among_many_facts_about_the_subject(mem: Engram) -> None:
    mem.learn(**TARG)
    for number in range(12):
        for subject, predicate in (("engram", f"had {number} modules for"), (f"tool {number}", "uses")):
            mem.add(situation="building engram", subject=subject, predicate=predicate, object="plain make")
    found = mem.learn(**MAKE, on_conflict="skip")
    assert found.other is not None
    assert (found.outcome, found.other.statement) == (Outcome.CONTRADICTION, "engram uses targ")


@pytest.mark.parametrize("more", [{"on_conflict": "skip"}, {"autonomous": True}])
def test_a_skipped_contradiction_stores_nothing_and_names_the_other(mem: Engram, more: dict[str, Any]) -> None:
    decision = conflict(mem, **more)
    assert decision.outcome == Outcome.CONTRADICTION and decision.other is not None
    assert (decision.memory, decision.has_new_memory) == (None, False)
    assert "nothing was stored" in decision.reason
    assert [memory.statement for memory in mem.list(status="any")] == ["engram uses targ"]


def test_an_update_changes_the_existing_memory(mem: Engram) -> None:
    decision = conflict(mem, on_conflict="update")
    assert decision.outcome == Outcome.UPDATED and decision.memory is not None
    assert [(memory.name, memory.statement) for memory in mem.list(status="any")] == [
        ("building-engram", "engram uses plain make")
    ]


def test_a_replacement_supersedes_the_existing_memory(mem: Engram) -> None:
    decision = conflict(mem, on_conflict="replace")
    assert decision.outcome == Outcome.SUPERSEDED
    assert [memory.statement for memory in mem.list()] == ["engram uses plain make"]


def test_both_are_kept(mem: Engram) -> None:
    decision = conflict(mem, on_conflict="keep-both")
    assert decision.outcome == Outcome.CREATED
    assert {memory.statement for memory in mem.list()} == {"engram uses targ", "engram uses plain make"}


@pytest.mark.parametrize("choice", ["update", "replace", "keep-both"])
def test_no_choice_of_an_agent_settles_a_conflict_with_what_a_person_said(mem: Engram, choice: str) -> None:
    mem.learn(source="human", **TARG)
    decision = mem.learn(**MAKE, on_conflict=choice)
    assert decision.outcome == Outcome.CONTRADICTION
    assert [memory.statement for memory in mem.list()] == ["engram uses targ"]
    assert [memory.statement for memory in mem.list(status="candidate")] == ["engram uses plain make"]


@pytest.mark.parametrize("source", ["agent", "human"])
@pytest.mark.parametrize(
    ("choice", "outcome", "current", "waiting"),
    [
        ("update", Outcome.UPDATED, {"engram uses plain make"}, 0),
        ("replace", Outcome.SUPERSEDED, {"engram uses plain make"}, 0),
        ("keep-both", Outcome.UPDATED, {"engram uses targ", "engram uses plain make"}, 0),
        ("skip", Outcome.DUPLICATE, {"engram uses targ"}, 1),
    ],
)
def test_a_later_choice_settles_a_contradiction_that_waits(
    mem: Engram, source: str, choice: str, outcome: Outcome, current: set[str], waiting: int
) -> None:
    conflict(mem)
    decision = mem.learn(source=source, **MAKE, on_conflict=choice)
    assert decision.outcome == outcome
    assert {memory.statement for memory in mem.list()} == current
    assert len(mem.list(status="candidate")) == waiting
    assert ("skip changes neither" in decision.reason) == (choice == "skip")


def test_a_later_choice_to_replace_settles_every_contradiction_that_waits(mem: Engram) -> None:
    conflict(mem, on_conflict="keep-both")
    third = {**TARG, "object": "bazel"}
    mem.learn(**third)
    assert mem.learn(**third, on_conflict="replace").outcome == Outcome.SUPERSEDED
    assert [memory.statement for memory in mem.list()] == ["engram uses bazel"]


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        ("update", "stays as it is until a person decides"),
        ("replace", "outranks agent"),
        ("keep-both", "outranks agent"),
    ],
)
def test_no_later_choice_of_an_agent_settles_what_waits_for_a_person(mem: Engram, choice: str, reason: str) -> None:
    mem.learn(source="human", **TARG)
    mem.learn(**MAKE)
    decision = mem.learn(**MAKE, on_conflict=choice)
    assert decision.outcome == Outcome.DUPLICATE and reason in decision.reason
    assert [memory.statement for memory in mem.list()] == ["engram uses targ"]
    assert [memory.statement for memory in mem.list(status="candidate")] == ["engram uses plain make"]


def test_an_update_takes_the_reason_and_the_tags_along(mem: Engram) -> None:
    mem.learn(**TARG, rationale="It is fast.", tags=["targ"])
    mem.learn(**MAKE, on_conflict="update", rationale="It is everywhere.", tags=["make"])
    (current,) = mem.list()
    assert (current.rationale, current.tags) == ("It is everywhere.", ("make",))
    mem.learn(**TARG, on_conflict="update")
    assert mem.get(current.id).rationale == ""


def test_a_person_who_skips_confirms_nothing(mem: Engram) -> None:
    waiting = conflict(mem).memory
    assert waiting is not None and waiting.status == "candidate"
    skipped = mem.learn(**MAKE, source="human", on_conflict="skip")
    assert skipped.reason.endswith("skip changes neither")
    assert mem.get(waiting.id) == waiting


def test_an_update_of_one_of_several_memories_says_what_became_of_them(mem: Engram) -> None:
    conflict(mem, on_conflict="keep-both")
    third = {**TARG, "object": "bazel"}
    waits = mem.learn(**third, on_conflict="update")
    assert waits.outcome == Outcome.CONTRADICTION and waits.memory is not None
    assert "`update` changes one memory, and this contradicts" in waits.reason
    assert "Nothing was changed" not in waits.reason
    updated = mem.learn(source="human", **third, on_conflict="update")
    assert updated.outcome == Outcome.UPDATED and "it still contradicts" in updated.reason
    assert len(mem.list()) == 2


# -- situations


def test_a_situation_in_hindsight_is_stored_with_a_warning(mem: Engram) -> None:
    decision = mem.learn(**{**TDD, "situation": "after the deploy to staging failed"})
    assert decision.outcome == Outcome.CREATED
    assert ["“deploying to staging”" in warning for warning in decision.warnings] == [True]
    assert mem.learn(**TARG).warnings == ()


def test_autonomous_feedback_without_a_home_here_is_refused_with_a_better_one(mem: Engram) -> None:
    given = {**TDD, "situation": "releasing", "action": "bump the version, then tag, then push, finally publish"}
    decision = mem.learn(autonomous=True, **given)
    assert (decision.outcome, decision.gate) == (Outcome.REJECTED, "documentation")
    assert "a better home is a skill" in decision.reason
