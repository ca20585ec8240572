"""The trace of a recall accounts for the answer that `recall` gives: the same hits, and how they came about."""

from datetime import UTC, datetime

import pytest

from engram import Engram
from engram.model.records import Use
from engram.recall.recaller import Recall
from engram.recall.trace import Trace


def on(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 12, tzinfo=UTC)


ASKED = on(2026, 3, 14)
QUESTIONS: dict[str, tuple[str, ...]] = {
    "current": (
        "Where do I live?",
        "What is my cat called?",
        "What is new since last year?",
        "Where does Ingrid live?",
        "Which printer do we use?",
        "asdkjhasd",
    ),
    "historical": (
        "Where did I live before?",
        "Where did I live in March 2023?",
        "Where did I live before I moved to Porto?",
        "Where did I live after I moved to Porto?",
        "Where did I live before the earthquake?",
        "Where did I live in June 2021?",
        "What was my first home?",
    ),
    "event": (
        "What did I say about the invoice?",
        "What did I say about the invoice last week?",
        "What happened last week?",
        "When did I move to Porto?",
        "What did I say about the invoice yesterday?",
    ),
    "lineage": (
        "How has my home changed over time?",
        "How has my home changed since 2025?",
        "What changed in 2024?",
    ),
}


def known(mem: Engram) -> None:
    """Three homes one after the other, a move, a pet, and what was said about invoices."""
    for town, since in (("Lisbon", on(2022, 1, 1)), ("Porto", on(2024, 5, 1)), ("Faro", on(2025, 9, 1))):
        mem.add(f"I live in {town}", valid_from=since, conflict_key="user:home", scope="global")
    mem.add("I moved to Porto", occurred_at=on(2024, 5, 1), scope="global")
    mem.add("My cat is called Miso", valid_from=on(2020, 1, 1), scope="global")
    mem.add("Invoices are kept in the blue folder", scope="global", source="document:office.md")
    mem.observe("chat", "user", "The invoice of the plumber is wrong", at=on(2026, 3, 4))
    mem.observe("chat", "user", "The printer in use is the old laser one", at=on(2026, 3, 5))


def answer(found: Recall) -> tuple[object, ...]:
    """All that a caller gets of a recall; the clock moves between two, and recency with it."""
    hits = [(hit.id, round(hit.score, 6), hit.text, hit.note) for hit in found.hits]
    return hits, found.intent, found.window, found.text, found.warnings


def traced(found: Recall) -> Trace:
    assert found.trace is not None
    return found.trace


@pytest.mark.parametrize(
    "given", [{}, {"limit": 1}, {"mode": "keyword"}, {"as_of": on(2024, 7, 1)}, {"kinds": ("event",)}]
)
def test_the_answer_is_the_same_with_and_without_its_trace(mem: Engram, given: dict[str, object]) -> None:
    known(mem)
    missed = []
    for intent, questions in QUESTIONS.items():
        for question in questions:
            asked = {"question_date": ASKED, **given}
            account = mem.trace_recall(question, **asked)  # type: ignore[arg-type]
            plain = mem.recall(question, **asked)  # type: ignore[arg-type]
            told = account.recall
            same = told.hits.filtered == plain.hits.filtered and answer(told) == answer(plain)
            replays = all(hit.trace and hit.trace.replay() == pytest.approx(hit.score) for hit in told.hits)
            trace = traced(told)
            whole = (
                trace.method and trace.origins.keys() == {hit.id for hit in told.hits} and all(trace.origins.values())
            )
            if not (same and replays and whole and trace.question.intent == intent and plain.trace is None):
                missed.append((question, told.intent, same, replays, whole))
    assert missed == []


def test_every_document_that_a_search_found_is_in_the_answer_or_left_out_with_a_reason(mem: Engram) -> None:
    known(mem)
    for question in (question for questions in QUESTIONS.values() for question in questions):
        found = mem.recall(question, question_date=ASKED, limit=2, explain=True)
        trace = traced(found)
        seen = {name for s in trace.searches if s.text != trace.question.anchor for name in (*s.found, *s.cut)}
        left = [one.id for one in trace.filtered]
        shown = {hit.id for hit in found.hits} | found.parts.ids
        assert seen <= shown | set(left), question
        assert len(left) == len(set(left)) and not set(left) & shown, question
        assert all(one.reason for one in trace.filtered)


def test_a_trace_says_where_each_search_looked_and_what_it_got(mem: Engram) -> None:
    known(mem)
    trace = traced(
        mem.recall("Where did I live before I moved to Porto?", question_date=ASKED, scope="global", explain=True)
    )
    anchor, facts, parts = trace.searches
    assert (anchor.purpose, anchor.text) == ("when “I moved to Porto” was", "I moved to Porto")
    assert trace.anchor == anchor.found[0]
    assert facts.where == "memories; status active, dormant, superseded, archived; scope global, user"
    assert facts.terms == ("live",) and facts.candidates["keyword"] == 3
    assert (parts.purpose, parts.text) == ("what else matches", "Where did I live before I moved to Porto?")
    assert trace.method == "the versions of that time, latest first"
    assert trace.window is not None and trace.window.until == on(2024, 5, 1)


def test_a_trace_says_which_stage_added_a_hit(mem: Engram) -> None:
    known(mem)
    ways = traced(mem.recall("How has my home changed over time?", question_date=ASKED, explain=True))
    assert any(origin.startswith("another version of ENG-") for origin in ways.origins.values())
    changes = traced(mem.recall("What changed in 2024?", question_date=ASKED, explain=True))
    assert set(changes.origins.values()) == {"looked up: a version on either side of a change"}
    assert [search.purpose for search in changes.searches] == ["what else matches"]
    ledger = mem.recall("Which printer do we use?", question_date=ASKED, explain=True)
    assert traced(ledger).method.startswith("the session log") and ledger.hits[0].kind == "event"
    purposes = [search.purpose for search in traced(ledger).searches]
    place = purposes.index("the question") + 1
    assert f"found by search {place}" in traced(ledger).origins[ledger.hits[0].id]


def test_filters_that_say_where_to_look_are_told_of(mem: Engram) -> None:
    known(mem)
    then = traced(mem.recall("Where do I live?", as_of=on(2024, 7, 1), types=["factual"], explain=True))
    [search] = then.searches
    assert "of that time; " in search.where and "type factual" in search.where
    assert "true at 2024-07-01 12:00 UTC" in search.where
    assert then.method.startswith("what the filters select")


def test_what_the_limit_cut_is_named(mem: Engram) -> None:
    cats = {
        mem.add(f"The cat {name} sleeps on the sofa", scope="global").id for name in ("Miso", "Nori", "Udon", "Soba")
    }
    found = mem.recall("Which cat sleeps on the sofa?", limit=2, explain=True)
    assert len(found.hits) == 2
    reasons = {one.id: one.reason for one in traced(found).filtered}
    assert reasons == dict.fromkeys(cats - {hit.id for hit in found.hits}, "beyond the limit of 2")


def test_what_is_below_the_floor_takes_no_place_from_what_is_above(mem: Engram) -> None:
    mem.add("The cat sleeps on the sofa all day long", scope="global")
    mem.add("The sofa came from the old house", scope="global")
    for floor in (0.0, 0.1, 0.3):
        found = mem.recall("Where does the cat sleep?", limit=1, min_relevance=floor)
        assert [hit.text for hit in found.hits] == ["The cat sleeps on the sofa all day long"]


def test_a_trace_notes_no_use_and_an_explained_recall_does(files: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    cat = files.add("My cat is called Miso", scope="global").id
    uses: list[Use] = []
    monkeypatch.setattr(files.store, "note_use", uses.append)
    files.trace_recall("What is my cat called?")
    assert uses == []
    files.recall("What is my cat called?", explain=True)
    assert [use.ids for use in uses] == [(cat,)]
