"""How a proposal relates to its neighbours: by the exact rules and by the trained model, on statements that leave no doubt."""

import math
from typing import Any

import pytest

from engram.gates.neighbourhood import Neighbourhood, in_conflict
from engram.gates.proposal import Conflict, Neighbour, Proposal
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.tokens import tokens
from tests.relations import LIKELY, SURE, ChosenRelation, choose


def known(statement: str, number: int = 1, **fields: Any) -> Memory:
    return Memory(**{"id": f"ENG-2026-0101-{number:03}", "statement": statement, "source": "human"} | fields)


def near(statement: str, *stored: Memory, named: tuple[Memory, ...] = (), **fields: Any) -> Neighbourhood:
    relation = fields.pop("relation", "")
    memory = Memory(**{"id": "", "statement": statement, "source": "agent"} | fields)
    proposal = Proposal(memory, False, content_hash(statement), tuple(tokens(statement)), named, relation)
    return Neighbourhood(proposal, [Neighbour(one, 0.8) for one in stored])


def conflict_of(statement: str, *stored: Memory, **fields: Any) -> Conflict | None:
    return next(iter(near(statement, *stored, **fields).conflicts()), None)


# -- things that are many

MANY = [
    ("Room 12 seats 8 people.", "Room 14 seats 20 people."),
    ("Widget 3 weighs 40 grams.", "Widget 4 weighs 55 grams."),
    ("The user has a sister called Ana.", "The user has a sister called Mia."),
    ("The user speaks German.", "The user speaks French."),
    ("The user is allergic to peanuts.", "The user is allergic to shellfish."),
    ("Kim's birthday is on 3 May.", "Leo's birthday is on 9 June."),
    ("The billing service is written in Go.", "The search service is written in Rust."),
    ("The user likes hiking.", "The user likes swimming."),
]


def test_things_that_are_many_are_not_in_conflict() -> None:
    pairs = [*MANY, *((new, old) for old, new in MANY)]
    found = {(old, new): conflict_of(new, known(old)) for old, new in pairs}
    assert [pair for pair, conflict in found.items() if conflict is not None and conflict.is_likely] == []


CHANGED = [
    ("The user lives in Berlin.", "The user moved to Lisbon and no longer lives in Berlin."),
    ("The team uses npm.", "The team switched from npm to pnpm."),
    ("The standup is at 9:30.", "The standup has been moved to 10:00."),
]


def test_what_plainly_changed_is_noticed() -> None:
    missed = [(old, new) for old, new in CHANGED if not in_conflict(known(old), known(new, 2))]
    assert not missed


# -- what follows from the model's answer


def test_the_most_likely_conflict_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    weak = ChosenRelation(contradiction=0.5, different=0.3, refinement=0.2)
    chosen = {"The lift is slow.": weak, "The office is in Bonn.": SURE, "The rent of the office is low.": LIKELY}
    choose(monkeypatch, lambda older, newer: chosen[older])
    found = near("The office moved to Kiel.", *(known(text, place) for place, text in enumerate(chosen, 1))).conflicts()
    assert [conflict.other.statement for conflict in found] == [
        "The office is in Bonn.", "The rent of the office is low.", "The lift is slow.",
    ]  # fmt: skip
    assert [(conflict.is_sure, conflict.is_likely) for conflict in found] == [
        (True, True), (False, True), (False, False),
    ]  # fmt: skip


@pytest.mark.parametrize("relation", ["update", "refinement", "same", "different"])
def test_what_the_caller_names_is_not_compared_again(monkeypatch: pytest.MonkeyPatch, relation: str) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    old = known("The office is on Elm Street.", source="agent")
    assert conflict_of("The office is in the harbour.", old) is not None
    assert conflict_of("The office is in the harbour.", old, named=(old,), relation=relation) is None


def test_the_callers_contradiction_needs_no_model() -> None:
    old = known("The office is on Elm Street.")
    found = conflict_of("It rains in Oslo.", old, named=(old,), relation="contradiction")
    assert found is not None
    assert (found.other, found.relation, found.probability) == (old, "contradiction", 1.0)


def test_without_an_embedder_the_model_is_told_no_cosine(monkeypatch: pytest.MonkeyPatch) -> None:
    from engram.models import pairs

    seen: list[float] = []

    def relate_all(older: Any, newer: str, cosines: Any = None) -> list[ChosenRelation]:
        seen.extend(cosines)
        return [SURE for _ in older]

    monkeypatch.setattr(pairs, "relate_all", relate_all)
    proposal = Proposal(Memory("", "The office is in the harbour."), False, "", ())
    Neighbourhood(proposal, [Neighbour(known("The office is on Elm Street."), -1.0)]).conflicts()
    assert len(seen) == 1 and math.isnan(seen[0])


def test_another_scope_or_situation_and_what_held_before_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    elsewhere = known("The office is on Elm Street.", scope="project:other")
    in_winter = known("The office is on Elm Street.", 2, situation="winter break")
    assert conflict_of("The office is in the harbour.", elsewhere) is None
    assert conflict_of("The office is in the harbour.", in_winter, situation="summer camp") is None


def test_what_happened_may_outdate_a_fact_but_never_what_happened_before(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    fact, event = known("The user lives in Berlin."), known("The user flew to Berlin.", 2, type="episodic")
    assert conflict_of("The user moved to Lisbon.", fact, type="episodic") is not None
    assert conflict_of("The user moved to Lisbon.", event, type="episodic") is None


def test_what_happened_may_change_what_was_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: SURE)
    planned = known("The review is on Monday.", type="commitment")
    assert conflict_of("The review was moved to Thursday.", planned, type="episodic") is not None


def test_a_model_that_is_sure_of_everything_known_about_somebody_is_sure_of_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apart = ChosenRelation(different=1.0)
    choose(monkeypatch, lambda older, newer: SURE if newer.startswith("Femke moved") else apart)
    stored = (known("Femke lives in Rotterdam."), known("Femke works in Delft.", 2))
    assert [each.is_sure for each in near("Femke moved to Haarlem.", *stored).conflicts()] == [False, False]
    assert [each.is_sure for each in near("Femke moved to Haarlem.", stored[0]).conflicts()] == [True]


def test_nor_is_one_that_is_sure_of_one_thing_and_likely_thinks_so_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"Femke lives in Rotterdam.": SURE, "Femke works in Delft.": LIKELY}
    apart = ChosenRelation(different=1.0)
    choose(monkeypatch, lambda older, newer: chosen[older] if newer.startswith("Femke moved") else apart)
    stored = [known(statement, number) for number, statement in enumerate(chosen, 1)]
    assert not any(each.is_sure for each in near("Femke moved to Haarlem.", *stored).conflicts())


def test_what_the_caller_names_does_not_hide_another_contradiction(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: LIKELY)
    named, other = known("The gym has a sauna."), known("The garage closes at 22:00.", 2)
    found = near("The garage closes at 20:00.", named, other, named=(named,), relation="contradiction").conflicts()
    assert [each.other for each in found] == [named, other]
