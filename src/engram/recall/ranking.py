"""From candidates to an order: what each retriever found, judged together and scaled to 0–10.

Keyword and semantic search stay pure: one retriever's order. Hybrid judges every candidate by all the evidence there is
(`fuse.evidence_of`), a turn of a conversation with its neighbours and its session; `fusion="rrf"` is spec 1's rule instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING

from engram.model.event import DOCUMENT_ROLE
from engram.model.hit import Part
from engram.model.memory import Memory
from engram.rules.numbers import RELEVANCE_SCALE
from engram.store.documents import memory_document
from engram.store.protocol import Candidates, Filters, Placed, Query, Stand, Store, Stretch

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors
    from engram.recall.fuse import Judged
    from engram.recall.likeness import Floats, Integers, Lexicon
    from engram.recall.passages import Passages

SESSIONS_READ = 60
"""Sessions read whole for one question: those whose turns the retrievers liked best."""
JUDGED = 48
"""Documents that stand alone judged for one question: the best by either retriever's raw score."""
READ_WHOLE = 1_000
"""The longest session that is read whole; of a longer one only what is near a candidate."""
AROUND = 2
"""Places read on either side of a candidate there: what a turn that is farther away lends is little."""
Windows = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document's place: how well it matches (of ten), the parts that sum to it, who found it at which rank, the raw scores,
    and the probability that it is about the question.
    """

    n: int
    match: float
    parts: tuple[Part, ...] = ()
    found_by: Mapping[str, int] = field(default_factory=dict)
    raw: Mapping[str, float] = field(default_factory=dict)
    relevance: float = 0.0


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Everything `rank` needs to know of one search. `then` holds what was known at an asked-for moment, by number."""

    query: Query
    mode: str
    fusion: str | None
    filters: Filters
    wanted: int = 30
    """How many places to fill."""
    windows: Windows = ()
    then: Mapping[int, Memory] = field(default_factory=dict)
    text: str = ""
    """The question as it was asked."""
    terms: tuple[str, ...] = ()
    """Its terms, whether or not they are searched for."""


def rank(store: Store, candidates: Candidates, retrieval: Retrieval) -> list[Ranked]:
    """Documents in their order, best first, each with the probability that it is about the question."""
    lists = {"keyword": candidates.lexical, "semantic": candidates.semantic}
    placed: list[Placed] = []
    judged: Judged | None = None
    if retrieval.mode != "hybrid" and not retrieval.then:
        parts = _pure(lists)
    elif retrieval.fusion == "rrf" and not retrieval.then:
        parts = _reciprocal(lists)
    else:
        placed, judged = judge(store, candidates, retrieval)
        parts = _by_document(placed, judged)
    ranked = _scaled(parts, lists, retrieval.wanted)
    if judged is not None and retrieval.query.vector is not None:
        return _with_relevance(store, ranked, retrieval, placed, judged)
    return _with_relevance_alone(store, ranked, retrieval)


def _with_relevance(
    store: Store, ranked: Sequence[Ranked], retrieval: Retrieval, placed: Sequence[Placed], judged: "Judged"
) -> list[Ranked]:
    """The places with their relevance, read off the same passages that were judged."""
    import numpy as np

    from engram.recall.relevance import probabilities

    rows = {place.n: row for row, place in enumerate(placed)}
    wanted = np.array([rows[place.n] for place in ranked], dtype=np.int64)
    lexicon = _lexicon(alike=True)
    cosines = judged.cosines[wanted] if _is_bundled(store) else _cosines(retrieval, judged.passages, wanted)
    found = probabilities(retrieval.text, cosines, judged.passages, wanted, lexicon).tolist()
    return [replace(place, relevance=relevance) for place, relevance in zip(ranked, found, strict=True)]


def _with_relevance_alone(store: Store, ranked: Sequence[Ranked], retrieval: Retrieval) -> list[Ranked]:
    """The same for an order that one retriever alone gave: each document by itself, without what stands around it."""
    import numpy as np

    from engram.recall.passages import Passage, Passages
    from engram.recall.relevance import probabilities

    if not ranked:
        return []
    read = {place.n: place for place in store.passages([place.n for place in ranked], (), retrieval.filters)}
    known = [place for place in ranked if place.n in read]
    lexicon = _lexicon(alike=True)
    lexicon.trim()
    items = [Passage(read[p.n].fields, "", read[p.n].fields[1] if read[p.n].parent else "") for p in known]
    passages, wanted = Passages(items, lexicon), np.arange(len(items))
    found = probabilities(retrieval.text, _cosines(retrieval, passages, wanted), passages, wanted, lexicon).tolist()
    return [replace(place, relevance=relevance) for place, relevance in zip(known, found, strict=True)]


def _cosines(retrieval: Retrieval, passages: "Passages", wanted: "Integers") -> "Floats":
    """Cosines of the question and the wanted passages by the bundled model, made of their words' vectors."""
    import numpy as np

    from engram.embedding.static import StaticEmbedder

    known = _lexicon(alike=True).vectors(passages.vocabulary)
    if known is None:
        return np.zeros(len(wanted), dtype=np.float32)
    rows, weights = known
    question = StaticEmbedder().embed([retrieval.text])[0]
    towards, lengths = (rows @ question) * weights, np.zeros(len(wanted), dtype=np.float32)
    for row, place in enumerate(wanted.tolist()):
        words = passages.words[passages.places == place]
        summed = weights[words] @ rows[words]
        lengths[row] = towards[words].sum() / max(float(np.linalg.norm(summed)), 1e-9)
    return lengths


def _is_bundled(store: Store) -> bool:
    """Whether the store's vectors are the bundled model's."""
    from engram.embedding.static import NAME

    return store.embedder_name() == NAME


def _pure(lists: Mapping[str, Sequence[tuple[int, float]]]) -> dict[int, dict[str, float]]:
    return {n: {name: score} for name, found in lists.items() for n, score in found}


def _reciprocal(lists: Mapping[str, Sequence[tuple[int, float]]]) -> dict[int, dict[str, float]]:
    from engram.recall.fuse import reciprocal_ranks

    return reciprocal_ranks({name: [n for n, _ in found] for name, found in lists.items()})


def _scaled(
    parts: Mapping[int, Mapping[str, float]], lists: Mapping[str, Sequence[tuple[int, float]]], wanted: int
) -> list[Ranked]:
    """The best places, with their parts scaled so that the first one has the whole of the scale."""
    totals = {n: sum(values.values()) for n, values in parts.items()}
    order = sorted(totals, key=lambda n: (-totals[n], n))[:wanted]
    best = totals[order[0]] if order else 0.0
    scale = RELEVANCE_SCALE / best if best > 0 else 0.0
    ranks = {name: {n: i for i, (n, _) in enumerate(found, 1)} for name, found in lists.items()}
    raw = {name: dict(found) for name, found in lists.items()}
    ranked = []
    for n in order:
        scaled = tuple(Part(name, value * scale) for name, value in parts[n].items() if value)
        found_by = {name: ranks[name][n] for name in lists if n in ranks[name]}
        match = sum(part.value for part in scaled)
        ranked.append(Ranked(n, match, scaled, found_by, {name: raw[name][n] for name in found_by}))
    return ranked


def _by_document(placed: Sequence[Placed], judged: "Judged | None") -> dict[int, dict[str, float]]:
    from engram.recall.fuse import weighed

    if judged is None:
        return {}
    parts = weighed(judged.evidence)
    rows = [values.tolist() for values in parts.values()]
    return {
        place.n: {name: row[i] for name, row in zip(parts, rows, strict=True)}
        for i, place in enumerate(placed)
        if place.eligible
    }


def judge(store: Store, candidates: Candidates, retrieval: Retrieval) -> "tuple[list[Placed], Judged | None]":
    """Every document considered, and what speaks for each; None where there is none."""
    from engram.recall.fuse import Asked, evidence_of
    from engram.recall.passages import Passage, Passages

    placed = _placed(store, candidates, retrieval)
    if not placed:
        return [], None
    query = retrieval.query
    lexicon = _lexicon(alike=query.vector is not None)
    lexicon.trim()
    items = [
        Passage(place.fields, group, place.fields[1] if group else "", place.time)
        for place, group in zip(placed, _groups(placed), strict=True)
    ]
    asked = Asked(retrieval.text, query.terms, query.vector, retrieval.windows, candidates.frequency, candidates.total)
    meanings = _meanings(store, placed, retrieval)
    judged = evidence_of(Passages(items, lexicon), asked, meanings, lexicon, stretched=_is_bundled(store))
    return placed, judged


def _placed(store: Store, candidates: Candidates, retrieval: Retrieval) -> list[Placed]:
    from engram.recall.passages import best_parents

    numbers = list(dict.fromkeys([n for n, _ in candidates.lexical] + [n for n, _ in candidates.semantic]))
    then = retrieval.then
    numbers += [n for n in then if n not in set(numbers)]
    stands = store.stands(numbers)
    rankings = [
        [(stands[n].parent if n in stands else "", score) for n, score in found]
        for found in (candidates.lexical, candidates.semantic)
    ]
    alone = _promising([n for n in numbers if n not in stands or not stands[n].parent], candidates, retrieval)
    near = {n: stands[n] for n in _worthiest(candidates)[:JUDGED] if n in stands and stands[n].last > READ_WHOLE}
    stretches = _stretches(best_parents(rankings, SESSIONS_READ), list(stands.values()), list(near.values()))
    placed = store.passages(alone, stretches, retrieval.filters)
    return [_as_known(p, then[p.n]) if p.n in then else p for p in placed] if then else placed


def _stretches(parents: Sequence[str], stands: Sequence[Stand], near: Sequence[Stand]) -> list[Stretch]:
    """What is read: a conversation whole; of a long ledger or document only what lies around the best candidates."""
    lasts = {stand.parent: stand.last for stand in stands}
    whole = [Stretch(parent, 0, lasts[parent]) for parent in parents if lasts[parent] <= READ_WHOLE]
    parts: list[Stretch] = []
    for stand in sorted(near, key=lambda stand: (stand.parent, stand.position)):
        first, last = max(0, stand.position - AROUND), stand.position + AROUND
        if parts and parts[-1].parent == stand.parent and first <= parts[-1].last + 1:
            parts[-1] = Stretch(stand.parent, parts[-1].first, last)
        else:
            parts.append(Stretch(stand.parent, first, last))
    return whole + parts


def _groups(placed: Sequence[Placed]) -> list[str]:
    """The session each passage is judged in. Where a ledger was read in parts, each part is one of its own: what does not
    touch is no neighbour.
    """
    groups: list[str] = []
    before: Placed | None = None
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


def _worthiest(candidates: Candidates) -> list[int]:
    """The documents found, the best by both retrievers' raw scores first."""
    worth: dict[int, float] = {}
    for found in (candidates.lexical, candidates.semantic):
        top = found[0][1] if found else 0.0
        for n, score in found:
            if top > 0:
                worth[n] = worth.get(n, 0.0) + score / top
    return sorted(worth, key=lambda n: (-worth[n], n))


def _promising(alone: list[int], candidates: Candidates, retrieval: Retrieval) -> list[int]:
    """Documents that stand alone are judged by the same words and vectors that found them: the first of them will do."""
    most = max(JUDGED, retrieval.wanted)
    if len(alone) <= most or retrieval.then:
        return alone
    standing = set(alone)
    return [n for n in _worthiest(candidates) if n in standing][:most]


def _as_known(place: Placed, memory: Memory) -> Placed:
    document = memory_document(memory)
    fields = (document.statement, document.about, document.support)
    return Placed(place.n, fields, place.parent, place.position, place.time, place.eligible)


def _meanings(store: Store, placed: Sequence[Placed], retrieval: Retrieval) -> "Vectors | None":
    if retrieval.query.vector is None:
        return None
    vectors = store.vectors([place.n for place in placed])
    changed = [(i, place.n) for i, place in enumerate(placed) if place.n in retrieval.then]
    if vectors is not None and changed:
        fresh = store.embed([memory_document(retrieval.then[n]).meaning for _, n in changed])
        if fresh is not None:
            vectors[[i for i, _ in changed]] = fresh
    return vectors


@cache
def _lexicon(*, alike: bool) -> "Lexicon":
    """Word likeness comes with meaning: without vectors exact words count.

    It is always the bundled model's, whatever embeds the documents: one word at a time is no job for a server.
    """
    from engram.embedding.static import StaticEmbedder
    from engram.recall.likeness import Lexicon

    return Lexicon(StaticEmbedder().summed if alike else None)
