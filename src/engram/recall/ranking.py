"""Ranking: the candidates of each retriever, fused into one order and scaled to 0–10.

Keyword and semantic search stay pure: one retriever's order. Hybrid ranks every candidate by all the evidence
(`fusion.evidence_of`), a turn of a conversation with its neighbours and its session; `fusion="rrf"` uses spec 1's rule instead.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

from engram.embedding.vectors import dot
from engram.model.hit import Part
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.model.records import DOCUMENT_ROLE
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.documents import memory_document
from engram.store.protocol import Candidates, DocumentPosition, IndexedPassage, PassageRange, PassageReader

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors
    from engram.model.hit import Hits
    from engram.recall.coverage import Floats, Integers, Lexicon
    from engram.recall.fusion import JudgedEvidence
    from engram.recall.passages import Passages
    from engram.recall.query import RetrievedQuery, SearchQuery

MAX_SESSIONS_READ = 60
"""Sessions read whole for one question: those with the best-scoring turns."""
MAX_JUDGED_DOCUMENTS = 48
"""Standalone documents ranked for one question: the best by the raw score of either retriever."""
MAX_WHOLE_SESSION = 1_000
"""The longest session that is read whole; in a longer one, only the neighbourhood of candidates is read."""
MIN_WORDING_RELEVANCE = 0.001
"""The relevance a wording contributes for a document it does not find."""
MATCH_POWER = 3
"""The power of the power mean over a document's matches by several wordings. Among 916 sessions, the first five contain
all answers for .75 of LongMemEval's questions, compared with .69 for the mean and .68 for the maximum; a power of 4
does as well.
"""
NEIGHBOUR_POSITIONS = 2
"""Positions read on either side of a candidate in a longer session; turns farther away contribute little."""


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """A ranked document: its match (of ten), the parts that add up to it, the rank by each retriever that found it, the
    raw scores, and the probability that it is about the question.
    """

    n: int
    match: float
    shares: Mapping[str, float] = field(default_factory=dict)
    found_by: Mapping[str, int] = field(default_factory=dict)
    raw: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0
    wording: str = ""
    """The wording of the question that it matches best; "" for the question itself."""
    evidence: "Floats | None" = field(default=None, compare=False, repr=False)
    """The evidence from which the relevance was computed; None if there is none."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts that add up to the match, by name."""
        return tuple(Part(name, value) for name, value in self.shares.items())


JudgedPassage: TypeAlias = "tuple[float, Floats | None]"
"""The relevance of a passage, and the evidence it was computed from."""


def rank(store: PassageReader, asked: "Sequence[RetrievedQuery]") -> list[list[RankedDocument]]:
    """Rank the documents for each wording of a question, best first, with the probability that each is about that wording."""
    query = asked[0][1]
    if query.known_memories or query.is_in_context:
        return _rank_in_context(store, asked)
    return [_rank_alone(store, candidates, each) for candidates, each in asked]


def join_readings(*readings: Sequence[RankedDocument]) -> list[RankedDocument]:
    """Join the rankings of one question in two languages.

    Each document keeps the reading in which it is more relevant, and each reading is weighted by its best document.
    """
    from engram.recall.relevance import as_match

    weights = [as_match(max((ranked.relevance for ranked in ranking), default=0.0)) for ranking in readings]
    best: dict[int, RankedDocument] = {}
    for ranking, weight in zip(readings, weights, strict=True):
        for ranked in ranking:
            shares = {name: share * weight for name, share in ranked.shares.items()}
            found = replace(ranked, shares=shares, match=ranked.match * weight)
            if ranked.n not in best or best[ranked.n].relevance < ranked.relevance:
                best[ranked.n] = found
    joined = sorted(best.values(), key=lambda ranked: (-ranked.match, ranked.n))
    return scale_matches(joined, [ranked.shares for ranked in joined])


def _rank_in_context(store: PassageReader, asked: "Sequence[RetrievedQuery]") -> list[list[RankedDocument]]:
    """A ranking for each wording of the documents that any of them found; the documents are read once."""
    placed, judged = judge(store, asked)
    if not placed:
        return [[] for _ in asked]
    best = [_best_judged(placed, each, query) for (_, query), each in zip(asked, judged, strict=True)]
    if asked[0][1].vector is not None:
        relevance = _relevance_in_context(store, asked, judged, [rows for _, rows in best])
    else:
        relevance = [
            _relevance_alone(store, candidates, query, list(parts))
            for (candidates, query), (parts, _) in zip(asked, best, strict=True)
        ]
    return [
        _scale_parts(parts, _lists(candidates), found)
        for (candidates, _), (parts, _), found in zip(asked, best, relevance, strict=True)
    ]


def _rank_alone(store: PassageReader, candidates: Candidates, query: "SearchQuery") -> list[RankedDocument]:
    """The order of a single retriever, or of both by spec 1's rule."""
    lists = _lists(candidates)
    parts = _best(_reciprocal(lists) if query.mode == "hybrid" else _raw_scores(lists), query.rank_limit)
    return _scale_parts(parts, lists, _relevance_alone(store, candidates, query, list(parts)))


def _lists(candidates: Candidates) -> dict[str, list[tuple[int, float]]]:
    return {"keyword": candidates.lexical, "semantic": candidates.semantic}


def fuse_wordings(rankings: Sequence[Sequence[RankedDocument]], texts: Sequence[str]) -> list[RankedDocument]:
    """Fuse several rankings into one. A document's match is the power mean of its matches, so documents found by several wordings come
    first, and a document found by one wording is not lost if it has nothing to do with the others.

    Five chances to match are not five times the evidence, see `fuse_relevance`.
    """
    count = len(rankings)
    if count == 1:
        return list(rankings[0])
    found: dict[int, list[tuple[float, int, RankedDocument]]] = {}
    for place, ranking in enumerate(rankings):
        for ranked in ranking:
            found.setdefault(ranked.n, []).append((-ranked.relevance, place, ranked))
    fused: list[tuple[float, RankedDocument, dict[str, float]]] = []
    for n, matches in found.items():
        matches.sort(key=itemgetter(0, 1))
        _, place, best = matches[0]
        total = powers = 0.0
        for _, _, ranked in matches:
            total += ranked.match
            powers += max(ranked.match, 0.0) ** MATCH_POWER
        scale = (powers / count) ** (1 / MATCH_POWER) / total if total > 0 else 0.0
        shares: dict[str, float] = {}
        for _, _, ranked in matches:
            for name, value in ranked.shares.items():
                shares[name] = shares.get(name, 0.0) + value * scale
        relevance = fuse_relevance([-negative for negative, _, _ in matches], count)
        wording = texts[place] if place else ""
        match = sum(shares.values())
        fused.append((-match, RankedDocument(n, match, {}, best.found_by, best.raw, relevance, wording), shares))
    fused.sort(key=lambda one: (one[0], one[1].n))
    return scale_matches([ranked for _, ranked, _ in fused], [shares for _, _, shares in fused])


def fuse_relevance(best_first: Sequence[float], count: int) -> float:
    """The relevance of a document that some of `count` wordings match: the geometric mean of the two best odds, divided by half of `count`.

    Of several ways to combine them it lost the fewest answers where seven of ten unanswerable questions got none.
    """
    first, second = (
        min(max(value, MIN_WORDING_RELEVANCE), 1 - MIN_WORDING_RELEVANCE)
        for value in (*best_first[:2], MIN_WORDING_RELEVANCE)[:2]
    )
    odds = math.sqrt(first / (1 - first) * second / (1 - second)) * 2 / count
    return odds / (1 + odds)


def _best_judged(
    placed: Sequence[IndexedPassage], judged: "JudgedEvidence", query: "SearchQuery"
) -> "tuple[dict[int, Mapping[str, float]], Integers]":
    """The best documents by their evidence, with the parts of their scores and their rows among the documents read."""
    import numpy as np

    from engram.recall.cutoff import asks_for_several
    from engram.recall.fusion import copy_penalties, repetition_penalties, score, weigh_evidence

    parts = weigh_evidence(judged.evidence)
    eligible = np.array([row for row, place in enumerate(placed) if place.eligible], dtype=np.int64)
    has_sessions = any(place.parent for place in placed)
    if has_sessions:
        parts["copied"] = copy_penalties(score(parts), judged.passages, eligible)
    if has_sessions and asks_for_several(query.text):
        parts["repeated"] = repetition_penalties(score(parts), [place.parent for place in placed])
    numbers = np.array([place.n for place in placed], dtype=np.int64)
    rows = eligible[np.lexsort((numbers[eligible], -score(parts)[eligible]))][: query.rank_limit]
    columns = {name: values[rows].tolist() for name, values in parts.items()}
    return {
        n: {name: values[place] for name, values in columns.items()} for place, n in enumerate(numbers[rows].tolist())
    }, rows


def _best(parts: Mapping[int, Mapping[str, float]], wanted: int) -> dict[int, Mapping[str, float]]:
    totals = {n: sum(values.values()) for n, values in parts.items()}
    return {n: parts[n] for n in sorted(totals, key=lambda n: (-totals[n], n))[:wanted]}


def _relevance_in_context(
    store: PassageReader,
    asked: "Sequence[RetrievedQuery]",
    judged: "Sequence[JudgedEvidence]",
    rows: "Sequence[Integers]",
) -> list[dict[int, JudgedPassage]]:
    """For each wording the relevance of its rows, computed from the same passages, by position in the order."""
    from engram.recall.relevance import RelevanceQuery, judge_passages

    passages, is_bundled = judged[0].passages, _is_bundled(store)
    questions = [
        RelevanceQuery(
            query,
            candidates,
            each.alike,
            each.cosines[own] if is_bundled else _cosines_by_words(query, passages, own),
            own,
        )
        for (candidates, query), each, own in zip(asked, judged, rows, strict=True)
    ]
    return [dict(enumerate(_with_evidence(*found))) for found in judge_passages(questions, passages)]


def _with_evidence(relevance: "Floats", evidence: "Floats | None") -> list[JudgedPassage]:
    rows: list[Floats | None] = [None] * len(relevance) if evidence is None else list(evidence)
    return list(zip(relevance.tolist(), rows, strict=True))


def _relevance_alone(
    store: PassageReader, candidates: Candidates, query: "SearchQuery", numbers: Sequence[int]
) -> dict[int, JudgedPassage]:
    """The same for the order of a single retriever, with each document by itself and without its neighbours."""
    import numpy as np

    from engram.recall.coverage import match_words
    from engram.recall.passages import Passage, Passages, truncate_fields
    from engram.recall.relevance import RelevanceQuery, judge_passages

    lexicon = shared_lexicon(alike=True)
    lexicon.trim()
    read = {place.n: place for place in store.passages(numbers, (), query.store_filters)[0]} if numbers else {}
    known = [(place, read[n]) for place, n in enumerate(numbers) if n in read]
    items = [Passage(truncate_fields(found.fields), "", found.fields[1] if found.parent else "") for _, found in known]
    passages, rows = Passages(items, lexicon), np.arange(len(items))
    likeness = match_words(query.terms, passages.vocabulary, lexicon)
    asked = RelevanceQuery(query, candidates, likeness, _cosines_by_words(query, passages, rows), rows)
    found = _with_evidence(*judge_passages([asked], passages)[0])
    return {place: judged for (place, _), judged in zip(known, found, strict=True)}


def _cosines_by_words(query: "SearchQuery", passages: "Passages", wanted: "Integers") -> "Floats":
    """The bundled model's cosines of the question and the wanted passages, computed from the vectors of their words."""
    import numpy as np

    from engram.embedding.static import StaticEmbedder

    cosines = np.zeros(len(wanted), dtype=np.float32)
    known = shared_lexicon(alike=True).vectors(passages.vocabulary)
    if known is None:
        return cosines
    rows, weights = known
    question = StaticEmbedder().embed([query.text])[0]
    for row, place in enumerate(wanted.tolist()):
        words = passages.words[passages.places == place]
        summed = dot(weights[words], rows[words])
        cosines[row] = dot(summed, question) / max(float(np.linalg.norm(summed)), 1e-9)
    return cosines


def _is_bundled(store: PassageReader) -> bool:
    """Whether the store's vectors come from the bundled model."""
    from engram.embedding.static import NAME

    return store.embedder_name() == NAME


def _raw_scores(lists: Mapping[str, Sequence[tuple[int, float]]]) -> dict[int, dict[str, float]]:
    return {n: {name: score} for name, found in lists.items() for n, score in found}


def _reciprocal(lists: Mapping[str, Sequence[tuple[int, float]]]) -> dict[int, dict[str, float]]:
    from engram.recall.fusion import reciprocal_ranks

    return reciprocal_ranks({name: [n for n, _ in found] for name, found in lists.items()})


def _scale_parts(
    parts: Mapping[int, Mapping[str, float]],
    lists: Mapping[str, Sequence[tuple[int, float]]],
    relevance: Mapping[int, JudgedPassage],
) -> list[RankedDocument]:
    """The ranked documents, with their parts scaled so that the first document gets the full score."""
    found_by: dict[int, dict[str, int]] = {n: {} for n in parts}
    raw: dict[int, dict[str, float]] = {n: {} for n in parts}
    for name, found in lists.items():
        for rank, (n, score) in enumerate(found, 1):
            if n in found_by:
                found_by[n][name], raw[n][name] = rank, score
    ranked = []
    for place, (n, shares) in enumerate(zip(parts, scaled_to_best(list(parts.values())), strict=True)):
        scaled = {name: value for name, value in shares.items() if value}
        judged, evidence = relevance.get(place, (0.0, None))
        ranked.append(RankedDocument(n, sum(scaled.values()), scaled, found_by[n], raw[n], judged, evidence=evidence))
    return ranked


def scale_matches(ranking: Sequence[RankedDocument], shares: Sequence[Mapping[str, float]]) -> list[RankedDocument]:
    """Recompute the parts of each ranked document, scaled so that the best match gets the full score."""
    return [
        RankedDocument(
            ranked.n,
            sum(own.values()),
            own,
            ranked.found_by,
            ranked.raw,
            ranked.relevance,
            ranked.wording,
            ranked.evidence,
        )
        for ranked, own in zip(ranking, scaled_to_best(shares), strict=True)
    ]


def scaled_to_best(shares: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """The parts of matches, scaled so that those of the best add up to the full score."""
    best = max((sum(each.values()) for each in shares), default=0.0)
    scale = RELEVANCE_SCALE / best if best > 0 else 0.0
    return [{name: value * scale for name, value in each.items()} for each in shares]


def judge(
    store: PassageReader, asked: "Sequence[RetrievedQuery]"
) -> "tuple[list[IndexedPassage], list[JudgedEvidence]]":
    """Every document considered, and the evidence of all of them for each wording; nothing if there are no
    documents.
    """
    from engram.recall.fusion import evidence_of_each
    from engram.recall.passages import Passage, Passages, truncate_fields

    query = asked[0][1]
    placed, vectors = _read_passages(store, [candidates for candidates, _ in asked], query)
    if not placed:
        return [], []
    lexicon = shared_lexicon(alike=query.vector is not None)
    lexicon.trim()
    items = [
        Passage(truncate_fields(place.fields), group, place.fields[1] if group else "", place.time)
        for place, group in zip(placed, _groups(placed), strict=True)
    ]
    meanings = _passage_vectors(store, placed, vectors, query)
    passages, bundled = Passages(items, lexicon), _is_bundled(store)
    return placed, evidence_of_each(passages, asked, meanings, lexicon, by_excerpt=bundled)


def _read_passages(
    store: PassageReader, found: Sequence[Candidates], query: "SearchQuery"
) -> "tuple[list[IndexedPassage], Vectors | None]":
    from engram.recall.passages import best_parents

    lists = [ranking for candidates in found for ranking in (candidates.lexical, candidates.semantic)]
    numbers = list(dict.fromkeys(n for ranking in lists for n, _ in ranking))
    then = query.known_memories
    others = [n for n in then if n not in set(numbers)]
    numbers += others
    stands = {n: stand for candidates in found for n, stand in candidates.positions.items()}
    stands |= store.document_positions(others) if others else {}
    rankings = [[(stands[n].parent if n in stands else "", score) for n, score in ranking] for ranking in lists]
    worthiest = _best_found(lists)
    alone = _best_standalone([n for n in numbers if n not in stands or not stands[n].parent], worthiest, query)
    near = {
        n: stands[n] for n in worthiest[:MAX_JUDGED_DOCUMENTS] if n in stands and stands[n].last > MAX_WHOLE_SESSION
    }
    ranges = _ranges(best_parents(rankings, MAX_SESSIONS_READ), list(stands.values()), list(near.values()))
    placed, vectors = store.passages(alone, ranges, query.store_filters)
    return [_as_known(p, then[p.n]) if p.n in then else p for p in placed] if then else placed, vectors


def _ranges(
    parents: Sequence[str], stands: Sequence[DocumentPosition], near: Sequence[DocumentPosition]
) -> list[PassageRange]:
    """The ranges to read: a whole conversation, or the neighbourhood of the best candidates in a long ledger or
    document.
    """
    lasts = {stand.parent: stand.last for stand in stands}
    whole = [PassageRange(parent, 0, lasts[parent]) for parent in parents if lasts[parent] <= MAX_WHOLE_SESSION]
    parts: list[PassageRange] = []
    for stand in sorted(near, key=lambda stand: (stand.parent, stand.position)):
        first, last = max(0, stand.position - NEIGHBOUR_POSITIONS), stand.position + NEIGHBOUR_POSITIONS
        if parts and parts[-1].parent == stand.parent and first <= parts[-1].last + 1:
            parts[-1] = PassageRange(stand.parent, parts[-1].first, last)
        else:
            parts.append(PassageRange(stand.parent, first, last))
    return whole + parts


def _groups(placed: Sequence[IndexedPassage]) -> list[str]:
    """The session in which each passage is ranked.

    If a ledger was read in parts, each part is a session of its own, because passages that are not adjacent are not
    neighbours.
    """
    groups: list[str] = []
    before: IndexedPassage | None = None
    for place in placed:
        follows = (
            before is not None
            and before.parent == place.parent
            and place.position <= before.position + 1
            and place.fields[1] != DOCUMENT_ROLE
        )
        groups.append(place.parent and (groups[-1] if follows else f"{place.parent}#{place.position}"))
        before = place
    return groups


def _best_found(lists: Sequence[Sequence[tuple[int, float]]]) -> list[int]:
    """The documents found, the best by the retrievers' raw scores first."""
    worth: dict[int, float] = {}
    for found in lists:
        top = found[0][1] if found else 0.0
        for n, score in found:
            if top > 0:
                worth[n] = worth.get(n, 0.0) + score / top
    return sorted(worth, key=lambda n: (-worth[n], n))


def _best_standalone(alone: list[int], worthiest: Sequence[int], query: "SearchQuery") -> list[int]:
    """The best standalone documents. The same words and vectors that found them rank them, so the first ones are
    enough.
    """
    most = max(MAX_JUDGED_DOCUMENTS, query.rank_limit)
    if len(alone) <= most or query.known_memories:
        return alone
    wanted = set(alone)
    return [n for n in worthiest if n in wanted][:most]


def _as_known(place: IndexedPassage, memory: Memory) -> IndexedPassage:
    document = memory_document(memory)
    fields = (document.statement, document.about, document.support, document.cues)
    return IndexedPassage(place.n, fields, place.parent, place.position, place.time, place.eligible)


def _passage_vectors(
    store: PassageReader, placed: Sequence[IndexedPassage], vectors: "Vectors | None", query: "SearchQuery"
) -> "Vectors | None":
    if query.vector is None:
        return None
    changed = [(i, place.n) for i, place in enumerate(placed) if place.n in query.known_memories]
    if vectors is not None and changed:
        fresh = store.embed([memory_document(query.known_memories[n]).meaning for _, n in changed])
        if fresh is not None:
            vectors[[i for i, _ in changed]] = fresh
    return vectors


@cache
def shared_lexicon(*, alike: bool) -> "Lexicon":
    """The lexicon of word similarity; without vectors only exact words count.

    It always uses the bundled model, whatever embeds the documents: embedding single words on a server is too slow.
    """
    from engram.embedding.static import StaticEmbedder
    from engram.recall.coverage import Lexicon

    return Lexicon(StaticEmbedder().sum_texts if alike else None)


def with_excerpts(hits: "Hits", terms: Sequence[str]) -> None:
    """Add to each long hit its excerpt about the question."""
    from engram.recall.passages import add_excerpts

    add_excerpts(hits, terms, shared_lexicon(alike=True))


def excerpt(text: str, terms: Sequence[str]) -> str:
    """The sentences of a long text that are about the question; a short text whole."""
    from engram.recall.passages import excerpt_of

    return excerpt_of(text, terms, shared_lexicon(alike=True)) or text
