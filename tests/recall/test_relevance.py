"""Relevance: a probability read off the question and one passage, whatever else was found."""

import numpy as np
import pytest

from engram import Engram
from engram.recall.passages import excerpt_of
from engram.recall.ranking import shared_lexicon
from engram.recall.relevance import FEATURES, NONE_KNOWN, probabilities_of
from engram.text.tokens import query_terms

STATEMENTS = (
    "Anna likes tea",
    "Anna leads the design team",
    "The staging database listens on port 5433",
    "Lunch with Ben is on Tuesdays",
    "Deploy with make ship, never on Fridays",
)


def relevance(mem: Engram, question: str, mode: str = "hybrid") -> dict[str, float]:
    return {hit.text: hit.relevance for hit in mem.search(question, mode=mode)}


@pytest.fixture
def mem(tmp_path: object) -> "Engram":
    opened = Engram.open(ephemeral=True)
    for statement in STATEMENTS:
        opened.add(statement)
    return opened


@pytest.mark.parametrize(
    ("question", "answer"),
    [("Who leads the design team?", 1), ("staging database port", 2), ("When do I have lunch with Ben?", 3)],
)
def test_what_answers_is_likely_and_what_does_not_is_not(mem: Engram, question: str, answer: int) -> None:
    with mem:
        found = relevance(mem, question)
        assert found.pop(STATEMENTS[answer]) > 0.5
        assert all(value < 0.1 for value in found.values())


@pytest.mark.parametrize("question", ["Where does Anna live?", "capital of France", "asdkjhasd", "how do I bake bread"])
def test_what_nobody_knows_is_likely_nowhere(mem: Engram, question: str) -> None:
    with mem:
        assert max(relevance(mem, question).values(), default=0.0) < 0.1


def test_other_memories_hardly_change_the_relevance_of_an_answer(mem: Engram) -> None:
    with mem:
        before = relevance(mem, "Who leads the design team?")[STATEMENTS[1]]
        mem.add_batch([{"statement": f"The design review number {n} went well for team {n}"} for n in range(60)])
        assert relevance(mem, "Who leads the design team?")[STATEMENTS[1]] == pytest.approx(before, abs=0.25)


@pytest.mark.parametrize("mode", ["keyword", "semantic"])
def test_every_mode_gives_a_probability(mem: Engram, mode: str) -> None:
    with mem:
        found = relevance(mem, "staging database port", mode)
        assert found[STATEMENTS[2]] > 0.5
        assert all(0 <= value <= 1 for value in found.values())


def test_a_question_of_which_nothing_can_be_read_has_nothing_about_it(mem: Engram) -> None:
    with mem:
        assert max(relevance(mem, "???").values(), default=0.0) <= NONE_KNOWN


def test_the_shipped_trees_read_every_feature_and_give_a_probability() -> None:
    rows = np.array([[0.0] * len(FEATURES), [1.0] * len(FEATURES)], dtype=np.float32)
    found = probabilities_of(rows)
    assert found.shape == (2,) and ((found > 0) & (found < 1)).all()


def test_a_long_text_is_shown_by_the_stretch_that_bears_on_the_question() -> None:
    beside = "The meeting began late. Nobody had read the agenda. Coffee was served in the hall. "
    text = beside * 10 + "The staging database listens on port 5433. " + beside * 10
    with Engram.open(ephemeral=True) as mem:
        mem.add(text)
        mem.add("Lunch with Ben is on Tuesdays")
        (hit,) = mem.search("staging database port", limit=1)
        assert hit.stretch.startswith("… The staging database listens on port 5433. ")
        assert hit.stretch.endswith(" …") and len(hit.stretch.split()) <= 70
        assert hit.text == text
        (short,) = mem.search("lunch with Ben", limit=1)
        assert short.stretch == ""


@pytest.mark.parametrize(
    ("text", "question", "wanted"),
    [
        ("Nobody knows. " * 80 + "I recommend 2.4 bar in front and 2.7 bar in the rear. " + "So be it. " * 80, "tyre pressure in bar", "2.7 bar in the rear."),
        ("word " * 700 + "the staging port is 5433 " + "word " * 300, "staging port", "the staging port is 5433"),
        ("今天天气很好。" * 80 + "数据库的端口是五四三三。" + "晚上一起吃饭。" * 80, "数据库端口", "数据库的端口是五四三三。"),
    ],
)  # fmt: skip
def test_a_stretch_breaks_no_number_and_needs_neither_full_stops_nor_blanks(
    text: str, question: str, wanted: str
) -> None:
    found = excerpt_of(text, query_terms(question), shared_lexicon(alike=True))
    assert wanted in found and len(found) < len(text) / 2


def test_where_several_are_asked_for_sessions_take_turns() -> None:
    with Engram.open(ephemeral=True) as mem:
        garden = [
            {"role": "user", "content": f"I planted the {tree} in the garden"} for tree in ("apple", "pear", "plum")
        ]
        mem.observe_batch("garden", garden)
        mem.observe_batch(
            "yard", [{"role": "user", "content": "Some days ago I also planted a cherry behind the old yard"}]
        )
        one = mem.search("Where did I plant a tree in the garden?", kinds=("event",), limit=4, explain=True)
        all_of = mem.search("How many trees did I plant in the garden?", kinds=("event",), limit=4, explain=True)
        repeated = [part for hit in all_of if hit.trace for part in hit.trace.parts if part.name == "repeated"]
        assert len(repeated) == 2 and all(part.value < 0 for part in repeated)
        assert not [part for hit in one if hit.trace for part in hit.trace.parts if part.name == "repeated"]
        assert all(hit.trace and abs(hit.trace.replay() - hit.score) < 1e-6 for hit in all_of)


def test_what_is_known_of_somebody_else_is_less_likely_an_answer(mem: Engram) -> None:
    with mem:
        mem.add("Bruno is allergic to peanuts")
        about_bruno = relevance(mem, "Is Bruno allergic to peanuts?")["Bruno is allergic to peanuts"]
        about_anna = relevance(mem, "Is Anna allergic to peanuts?")["Bruno is allergic to peanuts"]
        assert about_anna < 0.5 < about_bruno
