"""How two statements relate: a table of fresh pairs, what is never a change, and input of any kind."""

import math

import pytest

from engram.model.lazy import replace
from engram.models.pairs import LABELS, LIKELY_CHANGE, MIN_SAME, SURE_UPDATE, Relation, relate, relate_all, relate_pairs
from tests.tables import table

PAIRS = """
update || The team deploys with Jenkins. || The team moved from Jenkins to GitHub Actions.
update || The user's manager is Oskar. || My new manager is Pia.
update || The launch is planned for March. || The launch slipped to April.
update || The user lives in Leeds. || The user now lives in Bristol.
update || The API listens on port 8080. || The API listens on port 9090 now.
update || The weekly sync is on Tuesday at 10:00. || The weekly sync was moved to Thursday at 10:00.
update || The user takes 20 mg of omeprazole. || The user takes 40 mg of omeprazole.
update || Invoices are sent by Marta. || Marta left, invoices are sent by Joel now.
update || The project uses yarn. || We switched from yarn to pnpm.
update || The user drives a Golf. || I sold the Golf and bought a Skoda.
update || The gym costs 30 euros a month. || The gym costs 35 euros a month since January.
update || The staging database is Postgres 14. || The staging database has been upgraded to Postgres 16.
contradiction || The warehouse has two loading docks. || The warehouse has three loading docks.
contradiction || Ravi is vegetarian. || Ravi is not vegetarian.
contradiction || The contract ends on 30 June. || The contract ends on 31 July.
same || The user is allergic to peanuts. || The user has a peanut allergy.
same || The office opens at half past eight. || The office opens at 8:30.
same || Lena is the user's sister. || Lena's my sister
same || The server is backed up every night. || Every night the server is backed up.
refinement || The user plays tennis. || The user plays tennis on Saturdays with Jonas at the club in Freising.
refinement || The user has a dog. || The user has a dog called Pepper, a border collie of four years.
different || The user's sister lives in Graz. || The user's brother lives in Linz.
different || The kitchen is painted white. || The hall is painted green.
different || Ana likes hiking. || Ana works at a bank.
different || The train to Vienna leaves at 7:10. || The dentist is on Tuesday.
different || The backend is written in Go. || The frontend is written in TypeScript.
different || Mrs Kent pays in cash. || Mr Boyle pays by card.
"""
MANY = (
    ("Room 12 seats 8 people.", "Room 14 seats 20 people."),
    ("Widget 3 weighs 40 grams.", "Widget 4 weighs 65 grams."),
    ("The user has a sister called Anna.", "The user has another sister called Berta."),
    ("The user speaks French.", "The user also speaks Spanish."),
    ("The user is allergic to penicillin.", "The user is allergic to cats too."),
    ("The user's brother lives in Oslo.", "The user's aunt lives in Bergen."),
)
ODD = (
    "",
    " ",
    "?",
    "🙂🙂",
    "用户住在柏林。",
    "Пользователь живёт в Берлине.",
    "المستخدم يسكن في برلين",
    "\x00\udc80",
    "'5 '",
    "1:2:3:4 99/99",
)


def _pairs() -> list[tuple[str, str, str]]:
    return [
        (label, older, newer) for label, older, newer in (line.split(" || ") for line in PAIRS.strip().splitlines())
    ]


def test_most_fresh_pairs_are_read_right() -> None:
    missed = [(label, relate(older, newer)) for label, older, newer in _pairs() if relate(older, newer).label != label]
    assert len(missed) <= 0.35 * len(_pairs()), missed


def test_a_change_is_told_from_a_look_alike() -> None:
    changes: list[float] = []
    others: list[float] = []
    for label, older, newer in _pairs():
        (changes if label in ("update", "contradiction") else others).append(relate(older, newer).change)
    assert sum(each >= 0.5 for each in changes) >= 0.7 * len(changes), changes
    assert sum(each >= LIKELY_CHANGE for each in others) <= 0.1 * len(others), others


@table(("older", "newer"), MANY)
def test_things_that_are_many_are_no_change(older: str, newer: str) -> None:
    found = relate(older, newer)
    assert found.change < LIKELY_CHANGE, found
    assert found.update < SURE_UPDATE, found


@pytest.mark.parametrize(
    "statement", ["The user lives in Leeds.", "API port: 8080", "Room 12 seats 8 people.", "用户住在柏林。"]
)
def test_a_statement_is_the_same_as_itself(statement: str) -> None:
    found = relate(statement, statement)
    assert found.label == "same"
    assert found.same >= MIN_SAME


def test_neighbours_together_are_read_as_each_alone() -> None:
    older = [older for _, older, _ in _pairs()]
    together = relate_all(older, "My new manager is Pia.")
    assert [each.label for each in together] == [relate(each, "My new manager is Pia.").label for each in older]
    assert together == relate_all(older, "My new manager is Pia.")
    alone = [relate(each, "My new manager is Pia.").change for each in older]
    assert [each.change for each in together] == pytest.approx(alone, abs=1e-4)


@table("odd", [*ODD, "x" * 200_000, "moved from a to b " * 20_000, "9" * 50_000])
def test_any_text_gets_probabilities(odd: str) -> None:
    for older, newer in ((odd, "The user lives in Leeds."), ("The user lives in Leeds.", odd), (odd, odd)):
        found = relate(older, newer)
        shares = [getattr(found, label) for label in LABELS]
        assert all(0 <= each <= 1 for each in shares)
        assert math.isclose(sum(shares), 1, abs_tol=1e-3)
        assert len(found.reason) <= 80


def test_unlike_statements_are_not_compared() -> None:
    assert relate("The user lives in Leeds.", "The user lives in York.", cosine=0.01) == Relation(0, 0, 0, 0, 1)
    assert relate_all([], "The user lives in York.") == []


def test_the_reason_names_what_was_replaced() -> None:
    assert relate("The API listens on port 8080.", "The API listens on port 9090 now.").reason.startswith("8080 → 9090")
    assert relate("The launch is in March.", "The launch slipped to April").reason.startswith("march → april")


def test_without_reasons_the_probabilities_are_the_same() -> None:
    pair = ("The project uses yarn.", "We switched from yarn to pnpm.")
    (plain,), (explained,) = relate_pairs([pair], reasons=False), relate_pairs([pair])
    assert plain == replace(explained, reason="")
    assert explained.reason
