"""Ranks passages in context: by their best excerpt, neighbours, session, speaker and time.

The turn that answers a question rarely contains all of its words. A turn is therefore ranked together with the turns
around it, nearer ones counting more, and a long turn by the excerpt that covers most of the question. For a long hit,
the sentences about the question are shown instead of the whole text.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from engram.embedding.vectors import dot
from engram.model.hit import Hits
from engram.model.lazy import cached_property, dataclass, replace
from engram.recall.coverage import Floats, Integers, Lexicon, WordMatches, match_words, rarity
from engram.recall.query import Windows
from engram.rules.numbers import FIELD_WEIGHTS
from engram.text.tokens import SENTENCE_END, tokens

__all__ = [
    "MAX_EXCERPT_TERMS",
    "MAX_WHOLE_TERMS",
    "Excerpts",
    "Mentions",
    "Passage",
    "Passages",
    "TermCounts",
    "Words",
    "add_excerpts",
    "best_parents",
    "count_terms",
    "excerpt_of",
    "near_in_time",
    "spoken_by",
    "standing_instructions",
    "truncate_fields",
    "word_evidence",
]

NEIGHBOUR_DECAY = 0.6
"""The weight of the words of a turn one position away. Results are flat from .5 to .7 on every development set."""
NEIGHBOUR_TURNS = 4
"""Turns read on either side; at a greater distance the weight is below a tenth."""
MAX_NEIGHBOUR_TERMS = 40.0
"""The maximum number of terms a neighbour contributes; an answer of 300 words would drown the turn next to it. Without
the cap, assistant chats lose .02 and group talk .04.
"""
MAX_SIMILAR_WEIGHT = 0.5
"""The maximum that similar words together count for a term: many similar words do not equal the term itself."""
QUESTION_TURN_WEIGHT = 0.5
"""The weight of a question's words in the turn that asks, if another turn follows: the asker does not know the
answer.
"""
ANSWER_TURN_WEIGHT = 1.0
"""Their weight in the next turn, which answers. The words of a user's question to an assistant stay with the user."""
SATURATION, LENGTH = 1.2, 0.75
"""BM25's k1 and b, at their customary values."""
EXCERPT, LONG = 40, 60
"""Terms of an excerpt (two or three sentences), and the length from which a passage is split into excerpts."""
MAX_FIELD_CHARACTERS = 24_000
"""Characters of a field that are read, about 4,000 terms: twice what is embedded. A book is ranked only by its
beginning.
"""
FORGETTING_DAYS = 7.0
"""People usually talk about an event within about a week."""
USERS = frozenset(tokens("user human"))
ASSISTANTS = frozenset(tokens("assistant ai agent model"))
ROLES = USERS | ASSISTANTS | frozenset(tokens("system tool"))
"""Speakers that are roles, not names, as index terms."""
STANDING_TERMS = tuple(f" {term} " for term in tokens("always never prefer rather"))
_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate, or a neighbour of one. `fields` are index terms separated by spaces, as `marked_terms` writes
    them.
    """

    fields: tuple[str, ...]
    parent: str = ""
    speaker: str = ""
    """The speaker, as index terms."""
    time: float | None = None


def truncate_fields(fields: tuple[str, ...]) -> tuple[str, ...]:
    """The fields, each cut at a term boundary if it is very long."""
    if max(map(len, fields), default=0) <= MAX_FIELD_CHARACTERS:
        return fields
    return tuple(
        text if len(text) <= MAX_FIELD_CHARACTERS else text[:MAX_FIELD_CHARACTERS].rpartition(" ")[0] for text in fields
    )


@dataclass(frozen=True, slots=True)
class Excerpts:
    """The excerpts of passages, in their order: overlapping pairs of blocks of the first field's words."""

    passage: Integers
    """The passage of each excerpt."""
    first: Integers
    """The first block of each excerpt, and the block after its last."""
    behind: Integers
    starts: Integers
    """The first excerpt of each passage."""

    def best(self, values: Floats) -> Integers:
        """The excerpt of each passage with the highest value; the first if several are equal."""
        if len(values) == len(self.starts):
            return self.starts
        top = np.maximum.reduceat(values, self.starts)[self.passage]
        places = np.where(values >= top, np.arange(len(values)), len(values))
        return np.minimum.reduceat(places, self.starts)

    def sums(self, blocks: Floats) -> Floats:
        """(rows x excerpts) the sum of each excerpt's blocks, from (rows x blocks)."""
        if blocks.shape[1] == len(self.first):
            return blocks
        paired = np.zeros(blocks.shape[1] - 1, dtype=np.float32)
        paired[self.first[self.behind - self.first > 1]] = 1
        out = blocks.copy()
        out[:, :-1] += blocks[:, 1:] * paired
        return out.take(self.first, axis=1)


@dataclass(frozen=True, slots=True)
class Mentions:
    """The words that count for one of `size` terms: the term, the word's position, and how much it counts."""

    size: int
    terms: Integers
    words: Integers
    values: Floats


class Passages:
    """Passages as arrays. Those of one parent must be adjacent, in chronological order."""

    def __init__(self, items: Sequence[Passage], lexicon: Lexicon) -> None:
        self.items = items
        lexicon.lend(self)
        numbers: list[Integers] = []
        read: list[tuple[int, int, int, int]] = []
        for place, item in enumerate(items):
            for field, text in enumerate(item.fields[: len(FIELD_WEIGHTS)]):
                if text:
                    found, spoken = lexicon.read(text)
                    numbers.append(found)
                    read.append((place, field, len(found), spoken))
        rows, fields, sizes, told = np.array(read, dtype=np.int64).reshape(-1, 4).T
        self.vocabulary, self.words = _distinct(np.concatenate(numbers) if numbers else rows)
        halves = np.stack([2 * rows, 2 * rows + 1], axis=1).ravel()
        self._places = np.repeat(halves, np.stack([told, sizes - told], axis=1).ravel())
        self._weights = np.repeat(np.array(FIELD_WEIGHTS, dtype=np.float32)[fields], sizes)
        stated = np.zeros(len(items), dtype=np.int64)
        stated[rows[fields == 0]] = sizes[fields == 0]
        self.blocks, self.block_starts, self.block_total = _blocks(sizes, fields == 0, rows, stated)

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def parents(self) -> Integers:
        """The session of each passage, numbered in order; a passage without one is a session of its own."""
        names = [item.parent for item in self.items]
        if not any(names):
            return np.arange(len(names))
        starts = [not name or name != before for name, before in zip(names, ["", *names], strict=False)]
        return np.cumsum(np.array(starts, dtype=np.int64)) - 1

    @cached_property
    def stand_alone(self) -> bool:
        """Whether no two passages belong to one session."""
        return not len(self) or int(self.parents[-1]) == len(self) - 1

    @cached_property
    def roles(self) -> "tuple[np.ndarray, np.ndarray]":
        """Which passages have a user as speaker, and which an assistant."""
        speakers = [item.speaker for item in self.items]
        if not any(speakers):
            return np.zeros(len(self), dtype=bool), np.zeros(len(self), dtype=bool)
        user, assistant = [s in USERS for s in speakers], [s in ASSISTANTS for s in speakers]
        return np.array(user, dtype=bool), np.array(assistant, dtype=bool)

    @cached_property
    def places(self) -> Integers:
        """The passage of each word."""
        return self._places >> 1

    @cached_property
    def lengths(self) -> Floats:
        """(2 x passages) weighted number of terms in statements and in questions."""
        return self._by_half(self._places, self._weights)

    @cached_property
    def excerpts(self) -> Excerpts:
        """The excerpts of every passage; a short one is a single excerpt."""
        counts = np.diff(np.append(self.block_starts, self.block_total))
        several = np.maximum(counts - 1, 1)
        passage = np.repeat(np.arange(len(self)), several)
        starts = np.cumsum(several) - several
        first = np.arange(len(passage)) - np.repeat(starts, several) + np.repeat(self.block_starts, several)
        behind = np.minimum(first + 2, np.repeat(self.block_starts + counts, several))
        return Excerpts(passage, first, behind, starts)

    @cached_property
    def rarity(self) -> Floats:
        """How rare each word of the vocabulary is among these passages."""
        said = np.bincount(self.words, minlength=len(self.vocabulary))
        return rarity(np.minimum(said, len(self)), len(self))

    def mentions(self, table: Floats) -> Mentions:
        """The words that count for a term, with their positions, by a (terms x vocabulary) table."""
        counting = np.flatnonzero(np.logical_or.reduce(table, axis=0)[self.words])
        values = table[:, self.words[counting]]
        terms, columns = np.nonzero(values)
        return Mentions(len(table), terms, counting[columns], values[terms, columns])

    def counts(self, mentions: Mentions) -> Floats:
        """(terms x 2 x passages) how often each term occurs in statements and in questions."""
        size, words = 2 * len(self), mentions.words
        at, values = mentions.terms * size + self._places[words], mentions.values * self._weights[words]
        sums = np.bincount(at, values, minlength=mentions.size * size).astype(np.float32)
        return sums.reshape(mentions.size, len(self), 2).transpose(0, 2, 1)

    def by_excerpt(self, mentions: Mentions) -> Floats:
        """(terms x excerpts) how often each term occurs in each excerpt."""
        at = mentions.terms * self.block_total + self.blocks[mentions.words]
        sums = np.bincount(at, mentions.values, minlength=mentions.size * self.block_total)
        return self.excerpts.sums(sums.reshape(mentions.size, self.block_total).astype(np.float32))

    def _by_half(self, places: Integers, weights: Floats) -> Floats:
        sums = np.bincount(places, weights, minlength=2 * len(self)).astype(np.float32)
        return sums.reshape(-1, 2).T


def _blocks(sizes: Integers, stated: "np.ndarray", rows: Integers, lengths: Integers) -> tuple[Integers, Integers, int]:
    """The block of each word, the first block of each passage, and the number of blocks.

    Words outside the statement belong to the first block of their passage.
    """
    half = EXCERPT // 2
    counts = np.where(lengths > LONG, -(-lengths // half), 1)
    starts = np.cumsum(counts) - counts
    blocks = np.repeat(starts[rows] if len(rows) else rows, sizes)
    if (counts > 1).any():
        behind = np.cumsum(sizes)
        within = np.arange(len(blocks)) - np.repeat(behind - sizes, sizes)
        far = np.repeat(stated & (counts[rows] > 1), sizes)
        blocks[far] += within[far] // half
    return blocks, starts, int(counts.sum())


def _distinct(numbers: Integers) -> tuple[Integers, Integers]:
    """The distinct numbers in order, and the index of each number among them; faster than sorting."""
    present = np.zeros(int(numbers.max()) + 1 if numbers.size else 0, dtype=bool)
    present[numbers] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[numbers]


@dataclass(frozen=True, slots=True)
class Words:
    """The evidence of a question's words: BM25 of each passage in its context, and the share of the question, by
    rarity, that its best excerpt and its session contain.
    """

    context: Floats
    covered: Floats
    session: Floats


@dataclass(frozen=True, slots=True)
class TermCounts:
    """How often passages contain some terms.

    A question and its wordings share terms, so all terms are counted at once and each wording takes its `rows`.
    """

    turns: Floats
    """(terms x passages) BM25 of a term in a passage and its context, for a rarity of 1."""
    said: Floats
    """(terms x excerpts) how often an excerpt contains a term."""
    covered: Floats
    """The same with similar words, at most 1."""
    session: Floats
    """(terms x passages) 1 if the session contains a term."""

    def of(self, rows: Integers) -> "TermCounts":
        """The same for the given terms."""
        return TermCounts(self.turns[rows], self.said[rows], self.covered[rows], self.session[rows])


def count_terms(passages: Passages, found: WordMatches) -> TermCounts:
    """Count terms in the passages; `found` says how much each word counts for each term."""
    same, worth = passages.mentions(found.same.astype(np.float32)), passages.mentions(found.worth)
    exact = passages.counts(same)
    counts = exact + np.minimum(passages.counts(worth), MAX_SIMILAR_WEIGHT)
    spread = _spread(np.concatenate([counts, passages.lengths[None]]), passages)
    said = passages.by_excerpt(same)
    covered = np.minimum(said + np.minimum(passages.by_excerpt(worth), MAX_SIMILAR_WEIGHT), 1)
    session = (_by_session(exact.sum(axis=1), passages) > 0).astype(np.float32)
    return TermCounts(_saturate_counts(spread[:-1], spread[-1]), said, covered, session)


def word_evidence(passages: Passages, counts: TermCounts, rarity: Floats, named: Mapping[int, Floats]) -> Words:
    """The evidence of the question's words for each passage. Changes the counts.

    `rarity` is the weight of each term. `named` (from `spoken_by`) marks, by row, the passages in which the term is the
    name of someone present: there it counts as one occurrence.
    """
    share = (rarity / max(float(rarity.sum()), 1e-6)).astype(np.float32)
    excerpt = passages.excerpts.best(dot(share, counts.covered))
    return Words(
        _weigh_terms(counts.turns, rarity, named),
        _weigh_terms((counts.said[:, excerpt] > 0).astype(np.float32), share, named),
        _weigh_terms(counts.session, share, named),
    )


def _spread(counts: Floats, passages: Passages) -> Floats:
    """(terms x 2 x passages) to (terms x passages): adds to each passage its share of its neighbours."""
    stated, asked = counts[:, 0], counts[:, 1]
    if passages.stand_alone:
        return stated + asked
    parents, lengths = passages.parents, passages.lengths.sum(axis=0)
    lending = np.minimum(1, MAX_NEIGHBOUR_TERMS / np.maximum(lengths, 1)).astype(np.float32)
    both, questions = (stated + asked) * lending, asked * lending
    answered = np.append(parents[1:] == parents[:-1], False)
    out: Floats = stated + np.where(answered, QUESTION_TURN_WEIGHT, 1.0).astype(np.float32) * asked
    for distance in range(1, min(NEIGHBOUR_TURNS, out.shape[1] - 1) + 1):
        share = (NEIGHBOUR_DECAY**distance * (parents[distance:] == parents[:-distance])).astype(np.float32)
        out[:, :-distance] += share * both[:, distance:]
        out[:, distance:] += share * both[:, :-distance]
        if distance == 1:
            user, assistant = passages.roles
            among_people = ~(user[:-1] & assistant[1:])
            out[:, 1:] += share * among_people * (ANSWER_TURN_WEIGHT / NEIGHBOUR_DECAY - 1) * questions[:, :-1]
    return out


def _by_session(counts: Floats, passages: Passages) -> Floats:
    """(rows x passages) the total over each passage's session."""
    if passages.stand_alone:
        return counts
    starts = np.flatnonzero(np.diff(passages.parents, prepend=-1))
    return np.add.reduceat(counts, starts, axis=1)[:, passages.parents]


def _saturate_counts(counts: Floats, lengths: Floats) -> Floats:
    mean = float(lengths.mean()) if lengths.size else 0.0
    room = SATURATION * (1 - LENGTH + LENGTH * lengths / (mean or 1.0))
    evidence: Floats = counts * (SATURATION + 1) / (counts + np.maximum(room, 1e-6))
    return evidence


def _weigh_terms(evidence: Floats, rarity: Floats, named: Mapping[int, Floats]) -> Floats:
    for row, present in named.items():
        evidence[row] = np.where(present > 0, 1.0, evidence[row])
        # A name shared by all passages distinguishes none, and must not outweigh the terms that do.
        evidence[row] -= evidence[row].min()
    total: Floats = dot(rarity, evidence)
    return total


def standing_instructions(passages: Passages) -> Floats:
    """Which turns of a user are standing instructions (always, never, prefer): they matter for every question on their subject."""
    out = np.zeros(len(passages), dtype=np.float32)
    for place in np.flatnonzero(passages.roles[0]).tolist():
        text = f" {passages.items[place].fields[0]} "
        out[place] = any(term in text for term in STANDING_TERMS)
    return out


def spoken_by(passages: Passages, terms: Sequence[str]) -> tuple[Floats, dict[int, Floats]]:
    """The speaker evidence if the question names someone: 1 for the passages of that person, and where they are
    present.

    The second value is for `word_evidence`; it is empty if the question consists only of names, which then count as
    plain words.
    """
    names = [_name(item.speaker) for item in passages.items]
    everyone = frozenset().union(*set(names))
    asked = [row for row, term in enumerate(terms) if term in everyone]
    speaks = np.zeros(len(passages), dtype=np.float32)
    if not asked:
        return speaks, {}
    wanted = {terms[row] for row in asked}
    speaks = np.array([not wanted.isdisjoint(name) for name in names], dtype=np.float32)
    if len(asked) == len(terms):
        return speaks, {}
    return speaks, {row: _present(passages, names, terms[row]) for row in asked}


def _present(passages: Passages, names: Sequence[frozenset[str]], term: str) -> Floats:
    said = np.array([term in name for name in names], dtype=np.float32)
    present: Floats = _by_session(said[None], passages)[0]
    return present


@lru_cache(maxsize=4096)
def _name(speaker: str) -> frozenset[str]:
    terms = frozenset(speaker.split())
    return frozenset() if terms <= ROLES else terms


def near_in_time(passages: Passages, windows: Windows) -> Floats:
    """1 inside a span the question names, decreasing with the days outside it; 0 without span or time."""
    near = np.zeros(len(passages), dtype=np.float32)
    if not windows:
        return near
    times = np.array([np.nan if item.time is None else item.time for item in passages.items], dtype=np.float64)
    for since, until in windows:
        days = np.maximum(np.maximum(since - times, times - until), 0) / _DAY
        near = np.fmax(near, np.exp(-days / FORGETTING_DAYS).astype(np.float32))
    return near


def best_parents(found: Sequence[Sequence[tuple[str, float]]], limit: int) -> list[str]:
    """The sessions worth reading whole: those whose candidates score highest, over (parent, score) rankings."""
    worth: dict[str, float] = {}
    for ranking in found:
        top = max((score for _, score in ranking), default=0.0)
        for parent, score in ranking:
            if parent and top > 0:
                worth[parent] = worth.get(parent, 0.0) + max(score, 0.0) / top
    return sorted(worth, key=lambda parent: (-worth[parent], parent))[:limit]


MAX_WHOLE_TERMS = 120
"""Index terms up to which a text is shown whole."""
MAX_EXCERPT_TERMS = 60
"""Index terms of an excerpt, unless a single sentence has more."""
MOST_SENTENCES = 2_000
"""The maximum number of sentences read; the rest of a longer text is not searched for the excerpt."""
_LONGEST_SENTENCE = 600
"""The number of characters after which text without a full stop is cut at a space."""


def add_excerpts(hits: Hits, terms: Sequence[str], lexicon: Lexicon) -> Hits:
    """Give each long hit the excerpt that is about the question."""
    for place, hit in enumerate(hits):
        if excerpt := excerpt_of(hit.text, terms, lexicon):
            hits[place] = replace(hit, stretch=excerpt)
    return hits


def excerpt_of(text: str, terms: Sequence[str], lexicon: Lexicon) -> str:
    """The sentences of a long text that cover most of the question, with an ellipsis for each gap; "" for a short
    text.
    """
    spans = list(_sentences(text))[:MOST_SENTENCES]
    read = [tokens(text[start:end]) for start, end in spans]
    sizes = [len(each) for each in read]
    if not terms or len(spans) < 2 or sum(sizes) <= MAX_WHOLE_TERMS:
        return ""
    passages = Passages([Passage((" ".join(each),)) for each in read], lexicon)
    found = match_words(terms, passages.vocabulary, lexicon)
    said = np.where(found.same, 1, np.clip(found.cosines, 0, 1) / 2).astype(np.float32)
    near = np.zeros((len(terms), len(spans)), dtype=np.float32)
    np.maximum.at(near.T, passages.places, said[:, passages.words].T)
    first, behind = _best(near, found.weights, sizes)
    start, end = spans[first][0], spans[behind - 1][1]
    shown = text[start:end].strip()
    return f"{'… ' if first else ''}{shown}{' …' if end < len(text.rstrip()) else ''}"


def _best(near: Floats, weights: Floats, sizes: Sequence[int]) -> tuple[int, int]:
    """The sentences that together cover most of the question within the limit, starting with one that adds to it."""
    ends = [_excerpt_end(first, sizes) for first in range(len(sizes))]
    worth = [float(dot(weights, near[:, first:behind].max(axis=1))) for first, behind in enumerate(ends)]
    first = max(range(len(sizes)), key=worth.__getitem__)
    while first + 1 < ends[first] and worth[first + 1] >= worth[first] - 1e-6:
        first += 1
    return first, ends[first]


def _excerpt_end(first: int, sizes: Sequence[int]) -> int:
    """The sentence after the last one that still fits."""
    behind, room = first + 1, MAX_EXCERPT_TERMS - sizes[first]
    while behind < len(sizes) and sizes[behind] <= room:
        room -= sizes[behind]
        behind += 1
    return behind


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """The start and end of each sentence; text without a full stop is cut at spaces."""
    start = 0
    for end in [*(match.end() for match in SENTENCE_END.finditer(text)), len(text)]:
        while end - start > _LONGEST_SENTENCE:
            cut = text.rfind(" ", start + 1, start + _LONGEST_SENTENCE // 2) + 1 or start + _LONGEST_SENTENCE // 2
            yield start, cut
            start = cut
        if text[start:end].strip():
            yield start, end
            start = end
