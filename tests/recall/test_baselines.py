"""Hybrid search is never below plain BM25 and never below keyword mode, whatever kind of conversation the store holds.

The samples are test data, written by hand: chats with an assistant, two friends, a meeting of five, an agent's transcript with
tool calls and logs, and a conversation in German and Japanese. Nothing may be fitted to them. `engram bench beam SAMPLE
--baseline bm25` prints the figures of one.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engram.bench import beam
from engram.bench.retrieval import BenchQuestion, measure

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))
QUESTIONS = 25
SLACK = 1 / QUESTIONS
"""One question: the most that a single one can move a mean of 25. A smaller difference is noise; two questions lost are not."""
MEASURES = ("fraction@10", "mrr@10")

sample = pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)


@sample
def test_hybrid_is_not_below_bm25_nor_below_keyword_mode(path: Path) -> None:
    conversations = beam.load(path)
    hybrid = measure(conversations, BenchQuestion("hybrid", baseline="bm25"))
    keyword = measure(conversations, BenchQuestion("keyword"))
    others = {"bm25": hybrid["baseline"]["measures"], "keyword": keyword["measures"]}
    losses = _losses(hybrid["measures"], others)
    assert not losses, "; ".join(losses)


def _losses(measured: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Every measure in which hybrid is behind by more than the slack, with both figures."""
    return [
        f"{measure}: hybrid {measured[measure]:.3f}, {name} {figures[measure]:.3f}"
        for name, figures in others.items()
        for measure in MEASURES
        if measured[measure] < figures[measure] - SLACK - 1e-9
    ]


@sample
def test_a_sample_has_the_agreed_size_and_every_piece_of_evidence_exists(path: Path) -> None:
    (raw,) = json.loads(path.read_text(encoding="utf-8"))
    (conversation,) = beam.load(path)
    assert 6 <= len(conversation.sessions) <= 10
    assert len(conversation.questions) == QUESTIONS
    asked = [question["evidence"] for question in raw["questions"]]
    assert [list(question.evidence) for question in conversation.questions] == asked


def test_there_is_a_sample_of_each_kind() -> None:
    assert {path.stem: sorted(_speakers(path)) for path in SAMPLES} == {
        "agent_transcript": ["alert", "assistant", "tool_call", "tool_result", "user"],
        "assistant_chats": ["assistant", "user"],
        "german_japanese": ["Jonas", "Misaki"],
        "meeting": ["Aiyana", "Callum", "Greta", "Piotr", "Ruth", "Selma"],
        "two_people": ["Nadia", "Owen"],
    }


def test_the_answers_of_the_assistant_are_long_and_what_the_user_says_is_short() -> None:
    turns = [turn for session in _sample("assistant_chats")["sessions"] for turn in session["turns"]]
    words = {
        role: [len(turn["text"].split()) for turn in turns if turn["role"] == role] for role in ("user", "assistant")
    }
    assert min(words["assistant"]) >= 150
    assert max(words["assistant"]) <= 300
    assert max(words["user"]) <= 40


def _speakers(path: Path) -> set[str]:
    return {turn["role"] for session in _sample(path.stem)["sessions"] for turn in session["turns"]}


def _sample(name: str) -> dict[str, Any]:
    (found,) = json.loads((Path(__file__).parent / "samples" / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found
