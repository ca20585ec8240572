"""Topics: one or two words that candidates of one source have in common, as a person would recognize them."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.types import type_or_default
from engram.text.entities import verbs_after_names
from engram.text.tokens import query_terms
from engram.text.words import is_act, is_past, kind_of, read_table, word_class

Term = tuple[str, ...]
"""One or two index terms."""
MAX_TOPIC_SHARE = 0.5
"""A term in more than this share of a source's candidates is not a topic."""
MAX_TOPIC_CHARS = 500
"""How much of a statement is searched for its topic."""
PAIR_WEIGHT = 1.5
"""The extra weight of a two-word term: it is more specific, so fewer memories need to share it."""
MIN_TOPIC_MEMORIES = 2
_EDGES = ".,;:!?\"'()[]{}`<>“”‘’…"
_BREAKS = tuple(".,;:!?)]}…")
_POSSESSIVES = ("'s", "’s")


@dataclass(frozen=True, slots=True)
class TopicWord:
    """A word of a statement: its index term ("" if it cannot be a topic), its spelling, and whether a phrase ends with it."""

    term: str
    surface: str
    ends: bool


def topics_of(memories: Sequence[Memory]) -> dict[str, str]:
    """The topic of each memory of one source, by id: its domain, else the term it shares with most others, else its type."""
    terms = {memory.id: _terms(memory) for memory in memories}
    counts = Counter(term for own in terms.values() for term in own)
    most = max(MIN_TOPIC_MEMORIES, MAX_TOPIC_SHARE * len(memories))
    shared = {i: [term for term in own if MIN_TOPIC_MEMORIES <= counts[term] <= most] for i, own in terms.items()}
    chosen = {i: max(own, key=lambda term: _rank(term, counts), default=()) for i, own in shared.items()}
    sizes = Counter(chosen.values())
    # A term is useless if all its other memories have a better one.
    kept = {term for term, size in sizes.items() if size >= MIN_TOPIC_MEMORIES}
    names = _names(terms.values())
    found = {}
    for memory in memories:
        best = max(
            (term for term in shared[memory.id] if term in kept), key=lambda term: _rank(term, sizes), default=()
        )
        found[memory.id] = memory.domain or (names[best] if best else type_or_default(memory.type).kind)
    return found


def _rank(term: Term, counts: Mapping[Term, int]) -> tuple[float, int, Term]:
    return counts[term] * (PAIR_WEIGHT if len(term) > 1 else 1), len("".join(term)), term


def _names(found: Iterable[Mapping[Term, str]]) -> dict[Term, str]:
    """The most frequent spelling of each term; of equally frequent ones, the shortest."""
    written: dict[Term, Counter[str]] = {}
    for own in found:
        for term, surface in own.items():
            written.setdefault(term, Counter())[surface] += 1
    return {term: min(ways, key=lambda way: (-ways[way], len(way), way)) for term, ways in written.items()}


def _terms(memory: Memory) -> dict[Term, str]:
    """The words and pairs of adjacent words that may name a topic, each with its spelling."""
    words = _words(memory.statement[:MAX_TOPIC_CHARS])
    found: dict[Term, str] = {}
    for word, after in zip(words, [*words[1:], None], strict=True):
        if not word.term:
            continue
        found.setdefault((word.term,), word.surface)
        if after is not None and not word.ends and after.term not in ("", word.term):
            found.setdefault((word.term, after.term), f"{word.surface} {after.surface}")
    return found


def _words(text: str) -> list[TopicWord]:
    found: list[TopicWord] = []
    before = ""
    for chunk in text.split():
        whole, ends = chunk.strip(_EDGES).casefold(), chunk.endswith(_BREAKS)
        plain = whole.removesuffix(_POSSESSIVES[0]).removesuffix(_POSSESSIVES[1])
        term = _term(plain)
        if term and (
            before in _class("subject") or (_is_verb(plain) and not _is_noun_after(plain, before, found[-1:]))
        ):
            term = ""
        found.append(TopicWord(term, plain, ends))
        before = "" if ends else whole
    return found


def _is_noun_after(word: str, before: str, last: Sequence[TopicWord]) -> bool:
    """Whether this word marks the next one, otherwise a verb, as a noun: "the build", "in tests", "pull request"."""
    if before in _class("determiner") or before.endswith(_POSSESSIVES):
        return True
    if not before:
        return word.endswith("s")
    is_plain = not word.endswith(("s", "ing", "ly")) and not is_past(word)
    if before in _class("preposition"):
        return is_plain or word.endswith("s")
    return is_plain and any(one.term and not one.surface.endswith("s") for one in last)


@lru_cache(maxsize=8192)
def _term(word: str) -> str:
    """The index term of a word; "" if it has no meaning by itself."""
    if len(word) < 3 or word in _empty_words() or any(sign.isdigit() for sign in word):
        return ""
    terms = query_terms(word)
    return terms[0] if len(terms) == 1 else ""


@lru_cache(maxsize=8192)
def _is_verb(word: str) -> bool:
    """Whether a word is a verb or an adjective, unless its context suggests otherwise."""
    return bool(kind_of(word)) or is_act(word) or is_past(word) or word in verbs_after_names() or word.endswith("ly")


@lru_cache(maxsize=1)
def _empty_words() -> frozenset[str]:
    plain = {word for name in ("stopwords.txt", "questionwords.txt") for row in read_table(name) for word in row}
    dates = {word for row in read_table("timewords.txt") for word in row[2:]}
    light = word_class("wordclasses", "drop") | word_class("wordclasses", "light") | _class("nothing")
    return frozenset(plain | dates | {f"{word}s" for word in dates} | light)


def _class(label: str) -> frozenset[str]:
    return word_class("topicwords", label)
