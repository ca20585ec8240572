"""Questions and memories in different languages, without wordings."""

import pytest

from engram import Engram
from tests.backends import Backend

MEMORIES = (
    "The washing machine has a five-year guarantee; the receipt is in the folder called House.",
    "Money is always an integer in minor units together with a currency code. Floats are banned for amounts.",
    "Iris wears glasses because her left eye is weaker.",
    "The train to Leeds leaves from platform nine.",
    "Rurik reviews every pull request before it is merged.",
    "The neighbour waters the tomatoes in August.",
)
QUESTIONS = {
    "Ist auf der Waschmaschine noch Garantie?": 0,
    "¿Qué ojo de Iris es más débil?": 2,
    "Comment stocke-t-on les montants d'argent ?": 1,
    "Chi annaffia i pomodori?": 5,
    "De que plataforma sai o comboio para Leeds?": 3,
    "Wie controleert elke pull request?": 4,
}


@pytest.fixture
def mem(backend: Backend) -> Engram:
    return backend.client()


GERMAN = "Meine Tochter Mia ist gegen Erdnüsse allergisch."


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_in_another_language_finds_the_english_memory(mem: Engram, question: str) -> None:
    stored = [mem.add(text, scope="global") for text in MEMORIES]
    found = mem.recall(question)
    assert [hit.id for hit in (*found.hits, *found.possible)][:1] == [stored[QUESTIONS[question]].id]
    assert found.question == question


def test_an_english_question_finds_a_memory_in_another_language(mem: Engram) -> None:
    stored = mem.add(GERMAN, scope="global")
    for text in MEMORIES:
        mem.add(text, scope="global")
    assert mem.recall("What is Mia allergic to?").hits[0].id == stored.id
    assert mem.search("daughter peanuts", mode="keyword")[0].id == stored.id


def test_a_question_finds_a_memory_of_its_own_language(mem: Engram) -> None:
    stored = mem.add(GERMAN, scope="global")
    for text in MEMORIES:
        mem.add(text, scope="global")
    assert mem.recall("Wogegen ist Mia allergisch?").hits[0].id == stored.id
    assert mem.search("Erdnüsse", mode="keyword")[0].id == stored.id


def test_the_memory_keeps_its_words_and_cues(mem: Engram) -> None:
    stored = mem.add(GERMAN, scope="global", cues=["nuts"])
    assert stored.statement == GERMAN and stored.cues == ("nuts",)


def test_what_two_readings_of_a_question_find_is_fused_with_its_wordings(mem: Engram) -> None:
    stored = [mem.add(text, scope="global") for text in MEMORIES]
    found = mem.recall("Ist auf der Waschmaschine noch Garantie?", wordings=["warranty of the washing machine"])
    assert found.hits[0].id == stored[0].id


def test_a_question_without_an_answer_in_another_language_gets_none(mem: Engram) -> None:
    for text in MEMORIES:
        mem.add(text, scope="global")
    assert not mem.recall("Welche Schuhgröße hat mein Großvater?").hits
