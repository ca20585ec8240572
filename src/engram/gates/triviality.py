"""Triviality and importance: rejects small talk, bare questions and empty text. For autonomous capture only."""

import re

from engram.gates.tables import phrases, plain
from engram.model.memory import Memory
from engram.text.sentences import split_sentences
from engram.text.word_tables import hedge_in

__all__ = ["LEAST_IMPORTANCE", "importance_of", "triviality_problem"]

# The scale of spec 5 (reference/5 §2.5): a base, markers up, hedges down; below LEAST_IMPORTANCE nothing is stored.
LEAST_IMPORTANCE = 0.2
_TRIVIAL = 0.1
_BASE = 0.5
_CRITICAL, _HIGH, _HEDGE = 0.20, 0.12, -0.15
_BY_TYPE = {
    "correction": 0.15,
    "principle": 0.12,
    "constraint": 0.11,
    "convention": 0.11,
    "behavioral": 0.10,
    "procedural": 0.10,
    "preference": 0.10,
    "commitment": 0.10,
    "decision": 0.08,
    "relationship": 0.05,
    "skill": 0.05,
    "moment": 0.03,
    "entity": 0.02,
}
_LONG, _LONGEST_BONUS = 200, 0.1
_NUMBERED = re.compile(r"\d{2,}|version|api|config")
_LETTER = re.compile(r"[^\W\d_]")


def triviality_problem(memory: Memory) -> str:
    """Why a captured text is too trivial to store; "" if it is not."""
    words = plain(memory.statement).split()
    if not _LETTER.search(memory.statement):
        return "the statement contains no words"
    if _is_small_talk(words):
        return "small talk: only a greeting, thanks or an acknowledgement"
    if _is_question(memory.statement):
        return "a question states no fact; store the answer instead"
    if importance_of(memory.statement, memory.type) < LEAST_IMPORTANCE or memory.importance < LEAST_IMPORTANCE:
        return f"importance is below {LEAST_IMPORTANCE}"
    return ""


def importance_of(text: str, type_name: str) -> float:
    """The estimated importance of a text, 0 to 1, from its words, its type and its length."""
    prepared = plain(text)
    words = frozenset(prepared.split())
    if _is_small_talk(prepared.split()):
        return _TRIVIAL
    score = _BASE + _BY_TYPE.get(type_name, 0.0)
    for section, weight in (("critical", _CRITICAL), ("high", _HIGH)):
        score += weight if phrases("trivial.txt", section).find(prepared, words) else 0.0
    score += _HEDGE if hedge_in(prepared, "guess", "possible", "vague") else 0.0
    score += min(max(len(text) - _LONG, 0) / 1000, _LONGEST_BONUS)
    score += 0.03 if _NUMBERED.search(prepared) else 0.0
    return round(min(max(score, 0.0), 1.0), 2)


def _is_small_talk(words: list[str]) -> bool:
    """Decided by the words, never by length: "I use vim" is short and worth storing."""
    filler = phrases("trivial.txt", "filler")
    return all(word.strip("'-") in filler.words or word in filler.runs for word in words)


def _is_question(text: str) -> bool:
    sentences = split_sentences(text)
    return bool(sentences) and all(part.endswith(("?", "？", "؟")) for part in sentences)
