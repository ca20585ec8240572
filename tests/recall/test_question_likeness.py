"""What words and vectors found is compared with the question by the task vectors."""

from collections.abc import Iterator, Sequence

import pytest

from engram import Engram
from engram.model.memory import Memory
from engram.recall import situated
from engram.recall.situated import LIKENESS

PLAYER = "Our son practises the cello on Tuesdays and Thursdays after school."
KINDS = ("memory", "event")
HOME = (
    PLAYER,
    "The music teacher of our son is Mrs Lindqvist, who speaks Swedish.",
    "The school play is rehearsed in the old gym.",
    "We rent the cello from Halvorsen for 22 euros a month.",
    "After school the children may watch one episode.",
)


@pytest.fixture
def mem() -> Iterator[Engram]:
    with Engram.open(ephemeral=True) as opened:
        for text in HOME:
            opened.add(text)
        yield opened


def test_the_parts_of_a_hit_add_up_with_its_likeness(mem: Engram) -> None:
    first = mem.recall("When does our son practise?", explain=True).hits[0]
    assert first.trace is not None
    assert LIKENESS in [part.name for part in first.trace.parts]
    assert first.trace.replay() == pytest.approx(first.score)


def test_a_likeness_moves_a_memory_up(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    favourite = "The school play is rehearsed in the old gym."

    def prefer(texts: list[str], memories: list[Memory]) -> list[list[float]]:
        return [[0.9 if memory.statement == favourite else 0.0 for memory in memories] for _ in texts]

    question = "What happens after school?"
    assert mem.search(question)[0].text != favourite
    monkeypatch.setattr(situated, "likenesses_to_each", prefer)
    assert mem.search(question)[0].text == favourite


def test_a_likeness_makes_an_answer_more_likely(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    question, found = "When does our son practise the cello?", {}
    answer = mem.search(question)[0].text
    for like in (0.0, 0.8):

        def compare(texts: Sequence[str], memories: Sequence[Memory], like: float = like) -> list[list[float]]:
            return [[like if memory.statement == answer else 0.1 for memory in memories] for _ in texts]

        monkeypatch.setattr(situated, "likenesses_to_each", compare)
        found[like] = {hit.text: hit.relevance for hit in mem.search(question)}[answer]
    assert found[0.8] > found[0.0]


def test_cues_count_as_situations_in_which_a_memory_is_looked_for() -> None:
    with Engram.open(ephemeral=True) as mem:
        plain, cued = "Ring 0551 before you come", "Ring 0552 before you come"
        mem.add(plain)
        mem.add(cued, cues=["heating broke down", "radiator stays cold", "plumber emergency"])
        assert mem.search("It is freezing and the radiator stays cold, whom do I call?")[0].text == cued


def test_events_keep_the_relevance_of_their_words(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    mem.observe("chat", "user", "I drove our son to the cello lesson")
    question = "Who drove our son to the cello lesson?"
    known = {hit.text: hit.relevance for hit in mem.search(question, kinds=KINDS) if hit.event is not None}
    monkeypatch.setattr(situated, "likenesses_to_each", lambda texts, memories: [[0.9] * len(memories)] * len(texts))
    assert (
        {hit.text: hit.relevance for hit in mem.search(question, kinds=KINDS) if hit.event is not None} == known != {}
    )


def test_other_modes_are_not_reread(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(situated, "likenesses_to_each", lambda *_: pytest.fail("compared"))
    for mode in ("keyword", "semantic"):
        assert mem.search("When does our son practise?", mode=mode)
    assert mem.search("When does our son practise?", fusion="rrf")


def test_a_small_store_is_judged_by_what_is_usual(mem: Engram) -> None:
    assert mem.recall("When does our son practise the cello?").hits[0].text == PLAYER
    assert mem.recall("What is my shoe size?").hits == []
