"""Deep search: a question and its rewordings in one search, each score told by its trace."""

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, ModelUnavailable
from engram.model.hit import Hits
from engram.recall.query import SearchQuery
from engram.recall.questions import deep_search, permutations


def test_a_wording_finds_what_the_question_misses(mem: Engram) -> None:
    wanted = mem.add("Kestrel nests under the bridge")
    mem.add_batch([{"statement": f"Please tell me about which birds number {n} you know"} for n in range(30)])

    def worded(question: str, count: int) -> Sequence[str]:
        return ["kestrel nests bridge"]

    question = "Please tell me which birds you know about"
    ask = SearchQuery(question, 5, "keyword")
    plain = mem._searcher.search(ask)
    assert wanted.id not in {hit.id for hit in plain}
    deep = deep_search(mem._searcher, ask, 2, worded)
    assert wanted.id in {hit.id for hit in deep}


def test_a_broad_question_is_split_by_rules(mem: Engram) -> None:
    mem.add("Ana Lopes repairs roofs")
    mem.add("The cellar of the house floods in spring")
    deep = mem.deep_search("What do you know about Ana Lopes and the cellar that floods?", n_queries=4)
    assert {hit.text for hit in deep} == {"Ana Lopes repairs roofs", "The cellar of the house floods in spring"}


def test_wordings_keep_what_tells_and_differ_from_the_question() -> None:
    found = permutations("What do you know about Ana Lopes and the flooded cellar?", 3)
    assert found[0] == "Ana Lopes and flooded cellar"
    assert len(set(found)) == len(found) == 3
    assert permutations("what is it?", 4) == []
    assert permutations("", 4) == []


def test_scores_replay_from_the_trace(mem: Engram) -> None:
    for number in range(6):
        mem.add(f"Kestrel {number} nests under the bridge of town {number}")
    deep = mem.deep_search("Where do I find the kestrel that nests under the bridge?", n_queries=3, limit=4)
    assert len(deep) == 4
    for hit in deep:
        assert hit.trace is not None
        assert hit.score == pytest.approx(hit.trace.replay())
    assert [hit.score for hit in deep] == sorted((hit.score for hit in deep), reverse=True)


@dataclass
class Recorder:
    """A searcher that records what it is asked for."""

    asked: list[SearchQuery]

    def search(self, ask: SearchQuery) -> Hits:
        self.asked.append(ask)
        return Hits([])


def test_the_rewordings_are_part_of_one_search() -> None:
    recorder = Recorder([])
    deep_search(recorder, SearchQuery("a"), 3, lambda question, count: ["b", "c"])  # type: ignore[arg-type]
    assert [(ask.text, ask.wordings) for ask in recorder.asked] == [("a", ("b", "c"))]


def test_a_model_that_fails_costs_its_wordings_and_no_more(mem: Engram) -> None:
    kept = mem.add("Kestrel nests under the bridge")

    def fails(question: str, count: int) -> Sequence[str]:
        raise ModelUnavailable("nobody is at home")

    found = deep_search(mem._searcher, SearchQuery("Where does the kestrel nest?"), 4, fails)
    assert [hit.id for hit in found] == [kept.id]
    assert any("nobody is at home" in warning for warning in found.warnings)


def test_one_query_is_the_question_itself(mem: Engram) -> None:
    mem.add("Kestrel nests under the bridge")
    assert [h.id for h in mem.deep_search("kestrel", n_queries=1)] == [h.id for h in mem.search("kestrel")]


@pytest.mark.parametrize("count", [0, 9, -1, "4", True])
def test_a_number_of_wordings_that_makes_no_sense_is_refused(files: Engram, count: int) -> None:
    with pytest.raises(InvalidInput, match="n_queries"):
        files.deep_search("kestrel", n_queries=count)


def test_filters_hold_for_every_wording(mem: Engram) -> None:
    mem.add("Kestrel nests under the bridge", scope="project:a")
    here = mem.add("Kestrel nests in the tower", scope="project:b")
    found = mem.deep_search("Where does the kestrel nest near the bridge?", scope="project:b", types=None)
    assert [hit.id for hit in found] == [here.id]


def test_what_lies_near_every_wording_does_not_outvote_the_answers(mem: Engram) -> None:
    mem.add_batch([{"statement": f"I am allergic to thing{n}"} for n in range(40)])
    mem.add_batch([{"statement": "My favourite colour is blue"}, {"statement": "The user lives in Lisbon"}])
    found = mem.deep_search("where does the user live and what is the favourite colour")
    assert {hit.text for hit in found[:2]} == {"My favourite colour is blue", "The user lives in Lisbon"}
