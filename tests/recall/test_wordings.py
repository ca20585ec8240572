"""A question asked in several wordings: one ranking, in which each hit names the wording it matches best."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram import Engram
from engram.model.arguments import MAX_WORDINGS, checked_wordings
from engram.model.errors import InvalidInput
from engram.recall.ranking import MIN_WORDING_RELEVANCE, fuse_relevance
from tests.backends import Backend
from tests.cli.conftest import Console
from tests.mcp.talking import Talk, talking
from tests.tables import table

BUILD = "The arm64 image build times out because of qemu emulation"
OTHERS = ("The office plants are watered on Mondays", "Invoices are paid within fourteen days")
QUESTION = "Why is the pipeline red?"
WORDINGS = ("arm64 build failure cause", "qemu emulation timeout")


@pytest.fixture
def mem(backend: Backend) -> Engram:
    opened = backend.client()
    opened.add_batch([{"statement": statement, "scope": "global"} for statement in (BUILD, *OTHERS)])
    return opened


def test_a_wording_finds_what_the_question_alone_does_not(mem: Engram) -> None:
    assert mem.recall(QUESTION).hits == []
    assert [hit.text for hit in mem.recall(QUESTION, wordings=WORDINGS).hits] == [BUILD]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
def test_every_mode_searches_the_wordings(mem: Engram, mode: str) -> None:
    assert mem.search(QUESTION, wordings=WORDINGS, mode=mode)[0].text == BUILD


def test_reciprocal_fusion_searches_the_wordings(mem: Engram) -> None:
    assert mem.search(QUESTION, wordings=WORDINGS, fusion="rrf")[0].text == BUILD


def test_the_trace_names_the_wording_that_matches_best(mem: Engram) -> None:
    hit = mem.search(QUESTION, wordings=WORDINGS)[0]
    assert hit.trace is not None and hit.trace.wording == "qemu emulation timeout"


def test_the_trace_names_no_wording_if_the_question_matches_best(mem: Engram) -> None:
    hit = mem.search("Which image build times out because of qemu emulation?", wordings=["watering"])[0]
    assert hit.text == BUILD and hit.trace is not None and hit.trace.wording == ""


def test_scores_of_several_wordings_replay_from_the_trace(mem: Engram) -> None:
    for hit in mem.search(QUESTION, wordings=WORDINGS, explain=True):
        assert hit.trace is not None and hit.trace.replay() == pytest.approx(hit.score)


def test_without_wordings_nothing_changes(mem: Engram) -> None:
    alone, blank = mem.search("arm64 build"), mem.search("arm64 build", wordings=["", "  "])
    assert [(hit.id, hit.relevance) for hit in alone] == [(hit.id, hit.relevance) for hit in blank]


def test_the_filters_apply_to_every_wording(mem: Engram) -> None:
    assert mem.search(QUESTION, wordings=WORDINGS, scope="project:other") == []


def test_the_floor_applies_to_what_a_wording_finds(mem: Engram) -> None:
    assert mem.search(QUESTION, wordings=WORDINGS, min_relevance=0.99) == []


def test_the_intent_and_the_time_come_from_the_question_alone(mem: Engram) -> None:
    found = mem.recall(QUESTION, wordings=["what was the build cause last week", *WORDINGS])
    assert (found.intent, found.window) == ("current", None)


# -- each verb


READS: dict[str, Callable[[Engram, Sequence[str]], object]] = {
    "search": lambda mem, wordings: [hit.text for hit in mem.search(QUESTION, wordings=wordings, min_relevance=0.12)],
    "deep_search": lambda mem, wordings: [
        hit.text for hit in mem.deep_search(QUESTION, wordings=wordings, min_relevance=0.12)
    ],
    "recall": lambda mem, wordings: [hit.text for hit in mem.recall(QUESTION, wordings=wordings).hits],
    "trace_recall": lambda mem, wordings: mem.trace_recall(QUESTION, wordings=wordings).text,
    "recall_context": lambda mem, wordings: mem.recall_context(QUESTION, wordings=wordings).text,
    "prepare": lambda mem, wordings: mem.prepare(QUESTION, wordings=wordings).text,
    "build_context": lambda mem, wordings: (
        mem.build_context(mem.start_task("x", scope="global").id, QUESTION, wordings=wordings).text
    ),
}


@table("verb", READS)
def test_every_verb_that_reads_takes_wordings(mem: Engram, verb: str) -> None:
    assert BUILD not in READS[verb](mem, ()) and BUILD in READS[verb](mem, WORDINGS)  # type: ignore[operator]


@table("verb", READS)
def test_every_verb_that_reads_checks_the_wordings(mem: Engram, verb: str) -> None:
    with pytest.raises(InvalidInput, match="wordings"):
        READS[verb](mem, [f"wording {number}" for number in range(MAX_WORDINGS + 1)])


def test_sources_are_searched_in_every_wording(mem: Engram, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text(f"# Builds\n\n- {BUILD}.\n", encoding="utf-8")

    def lines(wordings: Sequence[str]) -> list[str]:
        found = mem.recall_context(QUESTION, wordings=wordings, directory=tmp_path)
        return [section.text for section in found.sections if section.phase == "instructions"]

    assert lines(()) == [] and BUILD in "".join(lines(WORDINGS))


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Console:
    for name in ("ENGRAM_HOME", "ENGRAM_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.chdir(tmp_path)
    console = Console(tmp_path)
    console("add", BUILD, "--scope", "global")
    return console


@pytest.mark.parametrize("verb", ["recall", "search", "prepare"])
def test_the_command_line_takes_wordings_with_also(cli: Console, verb: str) -> None:
    also = [word for wording in WORDINGS for word in ("--also", wording)]
    floor = ["--min-relevance", "0.12"] if verb == "search" else []
    assert BUILD not in cli(verb, QUESTION, *floor).stdout
    assert BUILD in cli(verb, QUESTION, *floor, *also).stdout


@pytest.fixture
def agent(tmp_path: Path) -> Any:
    with talking(tmp_path) as talk:
        talk.ask("learn", statement=BUILD, scope="global", type="factual")
        yield talk


@pytest.mark.parametrize(("tool", "subject"), [("recall", "question"), ("prepare", "task")])
def test_the_tools_take_wordings(agent: Talk, tool: str, subject: str) -> None:
    assert BUILD not in agent.ask(tool, **{subject: QUESTION})["text"]
    assert BUILD in agent.ask(tool, **{subject: QUESTION}, wordings=list(WORDINGS))["text"]


def test_the_tools_refuse_too_many_wordings(agent: Talk) -> None:
    assert "wordings" in agent.refusal("recall", question=QUESTION, wordings=["x"] * (MAX_WORDINGS + 1))


# -- the list of wordings


def test_wordings_are_folded_and_each_is_kept_once() -> None:
    assert checked_wordings(["  qemu\n emulation ", "QEMU emulation", "", " "]) == ("qemu emulation",)


def test_one_text_is_one_wording() -> None:
    assert checked_wordings("qemu emulation") == ("qemu emulation",)


def test_no_wordings_are_none() -> None:
    assert checked_wordings(None) == checked_wordings(()) == ()


@table("given", [7, {"a": "b"}, ["a", 7], [None], object()])
def test_what_is_not_a_list_of_texts_is_refused(given: object) -> None:
    with pytest.raises(InvalidInput, match="wordings must be"):
        checked_wordings(given)


def test_more_wordings_than_the_maximum_are_refused_and_the_error_names_it() -> None:
    assert len(checked_wordings([str(number) for number in range(MAX_WORDINGS)])) == MAX_WORDINGS
    with pytest.raises(InvalidInput, match=r"9 wordings were given \(maximum 8\)"):
        checked_wordings([str(number) for number in range(MAX_WORDINGS + 1)])


# -- their relevance

RELEVANCE = st.floats(MIN_WORDING_RELEVANCE, 1 - MIN_WORDING_RELEVANCE)


@given(st.lists(RELEVANCE, min_size=1, max_size=5), st.integers(0, 4))
def test_wordings_never_raise_the_relevance_above_the_best(found: list[float], missed: int) -> None:
    found.sort(reverse=True)
    count = max(2, len(found) + missed)
    assert fuse_relevance(found, count) <= found[0] + 1e-9


@given(RELEVANCE, st.integers(2, 9))
def test_identical_chances_do_not_raise_the_relevance(value: float, count: int) -> None:
    assert fuse_relevance([value] * count, count) <= value + 1e-9


@given(st.lists(RELEVANCE, min_size=2, max_size=5), st.lists(st.floats(0, 0.5), min_size=5, max_size=5))
def test_a_better_match_is_never_less_relevant(found: list[float], more: list[float]) -> None:
    better = [min(one + extra, 1 - MIN_WORDING_RELEVANCE) for one, extra in zip(found, more, strict=False)]
    before = fuse_relevance(sorted(found, reverse=True), len(found))
    assert fuse_relevance(sorted(better, reverse=True), len(found)) >= before - 1e-9


@given(st.lists(RELEVANCE, min_size=1, max_size=4), st.integers(4, 8))
def test_a_wording_that_finds_nothing_never_raises_the_relevance(found: list[float], count: int) -> None:
    found.sort(reverse=True)
    assert fuse_relevance(found, count + 1) <= fuse_relevance(found, count)
