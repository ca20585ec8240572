"""What recall shows and hands out holds for odd stores, too: other owners, other languages, other times."""

from contextlib import suppress
from threading import Barrier, Thread

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, NotFound
from engram.review.bulk import BulkDecision
from tests.backends import Backend


def test_what_others_say_decides_no_correction(backend: Backend) -> None:
    with backend.client() as mem:
        mem.add("The Zorblattern harbour has three cranes", source="human", agent_id="other", user_id="eve")
        question = "how many cranes has the zorblatern harbour?"
        alone = mem.search(question, agent_id="other", user_id="eve").warnings
        mem.add("Project Zorblatern launches in May", source="human", agent_id="shop", user_id="ana")
        assert alone == ["Nothing mentions “zorblatern”; searched for “zorblattern”."]
        assert mem.search(question, agent_id="other", user_id="eve").warnings == alone


def test_a_statement_in_another_language_lacks_cues_until_it_has_some(backend: Backend) -> None:
    with backend.client() as mem:
        german = mem.add("Unsere Rechnungen über 500 Euro brauchen eine Anzahlung", source="human")
        mem.add("Staging listens on 6543", source="human", cues=["psql port"])
        assert [memory.id for memory in mem.enrichment.next_batch()] == [german.id]
        mem.enrichment.apply({german.id: ["deposit for large invoices"]})
        assert not mem.enrichment.count()


@pytest.mark.parametrize("again", [["{}?", "{}!", "“{}”", "{} …"], ["{}"] * 8, ["???", "…", "-"]])
def test_a_wording_that_says_the_same_lowers_no_relevance(backend: Backend, again: list[str]) -> None:
    question = "which port does staging use"
    with backend.client() as mem:
        mem.add("Staging listens on port 6543", source="human")
        mem.add("Ana likes tea", source="human")
        alone = mem.recall(question).hits
        repeated = mem.recall(question, wordings=[one.format(question.upper()) for one in again]).hits
        assert [(hit.id, hit.relevance) for hit in repeated] == [(hit.id, hit.relevance) for hit in alone]
        assert alone


@pytest.mark.parametrize("given", ["psql", None, 5, ["psql"]])
def test_cues_that_are_no_mapping_are_refused(given: object) -> None:
    with Engram.open(ephemeral=True) as mem, pytest.raises(InvalidInput, match="cues must be a mapping"):
        mem.enrichment.apply(given)  # type: ignore[arg-type]


def test_what_was_forgotten_is_in_no_answer_about_another_time(backend: Backend) -> None:
    question, then = "which port does the otter service use", "2026-01-15"
    with backend.client() as mem:
        forgotten = mem.add("The otter service listens on port 7001", source="human", created="2026-01-01T00:00:00Z")
        mem.forget(forgotten.id)
        assert not mem.search(question, known_at="2030-01-01", as_of=then)
        answer = mem.recall(question, known_at="2030-01-01", as_of=then, min_relevance=0)
        assert not answer.hits
        assert not answer.possible


def test_only_one_of_several_callers_takes_cues_back(backend: Backend) -> None:
    with backend.client() as mem:
        memory = mem.add("Staging listens on port 6543", source="human")
        mem.enrichment.apply({memory.id: ["psql port"]})
        ready, undone = Barrier(4), list[BulkDecision]()

        def undo() -> None:
            ready.wait()
            with suppress(NotFound):  # the others were faster
                undone.append(mem.enrichment.undo())

        callers = [Thread(target=undo) for _ in range(ready.parties)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert [one.id for each in undone for one in each.done] == [memory.id]
        assert [image.op for image in mem.history(memory.id)] == ["add", "enrich", "undo"]
