"""Several topics in one question: "what do we use for CI and who owns the domain?" is answered part by part.

A memory that answers one part lacks the words of the others, so a search for the whole question finds it but ranks it as not relevant
enough.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain, zip_longest

from engram.model.hit import AnswerParts, Hit, Hits, ScopeMatches
from engram.model.lazy import replace
from engram.recall.answer.parts import MAX_PART
from engram.recall.cutoff import derive_hits
from engram.recall.trace import TracedAnswer, first_hits
from engram.text.tokens import query_terms
from engram.text.word_tables import word_class

__all__ = ["MAX_TOPICS", "merge_answers", "split_topics"]

MAX_TOPICS = 4
MAX_CHARACTERS = 400
"""A longer text tells a story; its sentences are not topics."""
MAX_LIST_WORDS = 10
"""Words of a question that only lists things."""
_SENTENCE = re.compile(r"[?;!] |\?$|\. (?=[A-Z])")
_CLAUSE = re.compile(r"(?:, ?(?:(?:and|or|also|plus) )?| (?:and|or|plus|also) )(?:also )?(?=[a-z])", re.IGNORECASE)
_AND = re.compile(r" (?:and|or|plus|as well as) ", re.IGNORECASE)
_OWNERS = frozenset(["the", "our", "my", "your", "its"])
_REFERENCE_WORDS = frozenset(
    [
        "it",
        "its",
        "they",
        "them",
        "their",
        "this",
        "that",
        "these",
        "those",
        "he",
        "him",
        "his",
        "she",
        "her",
        "there",
        "then",
        "one",
        "ones",
        "both",
    ]
)
"""Words that refer to the previous part."""
_STATEMENT_WORDS = frozenset(
    ["i", "i'm", "i've", "i'd", "we", "we're", "it", "it's", "he", "she", "they", "is", "are", "was", "were"]
)
"""Words that occur in statements, not in lists of things."""
_PAIRS = frozenset(["between", "both", "difference", "differ", "versus", "vs", "compare"])


def split_topics(question: str) -> tuple[str, ...]:
    """Split a question into questions that can be answered separately; () if it is only one."""
    question = " ".join(question.split())
    if len(question) > MAX_CHARACTERS or not _PAIRS.isdisjoint(_words(question)):
        return ()
    sentences = [sentence for sentence in _SENTENCE.split(question) if query_terms(sentence)]
    clauses = _join_referring([clause for sentence in sentences for clause in _split_clauses(sentence)])
    if len(clauses) > 1 and not all(map(_asks, clauses)):
        return ()  # a statement may belong to the question: "I'm in Berlin. Is Ana awake?"
    topics = [topic.strip(" ,.?!;") for clause in clauses for topic in _split_nouns(clause)]
    return tuple(topics) if 1 < len(topics) <= MAX_TOPICS and all(map(_has_topic, topics)) else ()


def merge_answers(whole: TracedAnswer, topics: Sequence[TracedAnswer], limit: int) -> TracedAnswer:
    """Merge into one answer: the best hit for the whole question, the hits of each topic in turn, then the others."""
    hits = _merge([whole.hits[:1]], _merge([topic.hits for topic in topics], whole.hits))
    known = {hit.id for hit in hits}
    answers = (*topics, whole)
    parts = AnswerParts(
        possible=_merge_part([answer.parts.possible for answer in answers], known),
        unconfirmed=_merge_part([answer.parts.unconfirmed for answer in answers], known),
        older=_merge_part([answer.parts.older for answer in answers], known),
        elsewhere=_merge_scopes([answer.parts.elsewhere for answer in answers]),
    )
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    made = first_hits(derive_hits(whole.hits, hits), limit)
    made.warnings = list(dict.fromkeys(warning for answer in answers for warning in answer.hits.warnings))
    return replace(whole, hits=made, notes=notes, parts=parts, method=f"{whole.method}; each topic by itself")


def _merge(lists: Sequence[Sequence[Hit]], rest: Sequence[Hit] = ()) -> list[Hit]:
    """Interleave several lists without repetition, then append the rest."""
    turns = (hit for turn in zip_longest(*lists) for hit in turn if hit is not None)
    return list({hit.id: hit for hit in reversed([*turns, *rest])}.values())[::-1]


def _merge_part(parts: Sequence[Hits], known: set[str]) -> Hits:
    return derive_hits(parts[-1], [hit for hit in _merge(parts) if hit.id not in known][:MAX_PART])


def _merge_scopes(found: Sequence[tuple[ScopeMatches, ...]]) -> tuple[ScopeMatches, ...]:
    """For each other scope, the highest count of any topic; a sum would count a memory that matches several topics twice."""
    most: dict[str, int] = {}
    for match in chain.from_iterable(found):
        most[match.scope] = max(match.count, most.get(match.scope, 0))
    return tuple(ScopeMatches(scope, count) for scope, count in sorted(most.items(), key=lambda one: -one[1]))


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z']+", text.lower())


@cache
def _asking_words() -> frozenset[str]:
    return word_class("asking", "wh") | word_class("asking", "inverted") | word_class("asking", "modal")


def _asks(clause: str) -> bool:
    """Whether a clause begins as a question: "who", "does", "by when"."""
    words = _words(clause)
    fronted = words[:1] and words[0] in word_class("asking", "fronted")
    return not _asking_words().isdisjoint(words[: 2 if fronted else 1])


def _has_topic(topic: str) -> bool:
    """Whether a part names something, unlike the "when" of "when and where do we meet"."""
    return bool(query_terms(topic)) and not set(_words(topic)) <= _asking_words()


def _split_clauses(sentence: str) -> list[str]:
    """Split a sentence into clauses before each question word: "… and who owns the domain", "…, how is it built"."""
    found, start = [], 0
    for joint in _CLAUSE.finditer(sentence):
        if _asks(sentence[joint.end() :]) and _has_topic(sentence[start : joint.start()]):
            found.append(sentence[start : joint.start()])
            start = joint.end()
    return [*found, sentence[start:]]


def _join_referring(clauses: Sequence[str]) -> list[str]:
    """Join each clause that refers to the previous one with it: "which van do we have, and where is it serviced"."""
    found: list[str] = []
    for clause in clauses:
        if found and not _REFERENCE_WORDS.isdisjoint(_words(clause)):
            found[-1] = f"{found[-1]}, {clause}"
        else:
            found.append(clause)
    return found


def _split_nouns(clause: str) -> list[str]:
    """Split a clause that asks for two things: "linting tool and unit test framework", "… the limit and the monthly budget"."""
    joint = _AND.search(clause)
    if joint is None:
        return [clause]
    before, after = clause[: joint.start()], clause[joint.end() :]
    is_list = len(_words(clause)) <= MAX_LIST_WORDS and _STATEMENT_WORDS.isdisjoint(_words(clause))
    joins = not _OWNERS.isdisjoint(_words(after)[:1]) if _asks(clause) else is_list
    several = min(len(query_terms(before)), len(query_terms(after))) > 1
    return [before, after] if joins and several else [clause]
