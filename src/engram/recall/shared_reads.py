"""What the searches of one recall read from the store. They ask for much the same with different filters, so that each thing is read once."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from engram.model.lazy import replace
from engram.recall.query import RetrievedQuery
from engram.recall.ranking import MAX_JUDGED_DOCUMENTS, RankedDocument, rank
from engram.recall.typos import find_corrections
from engram.store.protocol import LIVE_STATUSES, Candidates, Filters, Query, Store, StoredRecord

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["SharedReads", "ranking_key"]


class SharedReads:
    """Reads for one recall, and no longer: what others write meanwhile is found by the next recall.

    It grows by at most a few hundred records for each search.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._vectors: dict[str, Vectors | None] = {}
        self._candidates: list[tuple[Query, Filters, Candidates]] = []
        self._records: dict[int, StoredRecord] = {}
        self._has_situations: bool | None = None
        self._corrections: dict[str, Mapping[str, str]] = {}
        self._rankings: dict[object, tuple[int, list[list[RankedDocument]]]] = {}
        self._fused: dict[object, list[RankedDocument]] = {}

    def may_have_situations(self) -> bool:
        """Whether a memory may say when it matters."""
        if self._has_situations is None:
            self._has_situations = self._store.may_have_situations()
        return self._has_situations

    def vector(self, text: str) -> "Vectors | None":
        """The vector of a text; None without an embedder."""
        self.embed([text])
        return self._vectors[text]

    def embed(self, texts: Sequence[str]) -> None:
        """Embed several texts at once."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if missing:
            found = self._store.embed(missing)
            self._vectors.update(zip(missing, [None] * len(missing) if found is None else found, strict=True))

    def corrections(self, text: str, filters: Filters) -> Mapping[str, str]:
        """Corrections of misspelled words by stored ones."""
        if text not in self._corrections:
            self._corrections[text] = find_corrections(self._store, text, filters)
        return self._corrections[text]

    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds."""
        return self.candidates_of_each([query], filters)[0]

    def candidates_of_each(self, queries: Sequence[Query], filters: Filters) -> list[Candidates]:
        """What each retriever finds for a question and its wordings."""
        known = [self._find_candidates(query, filters) for query in queries]
        missing = [query for query, found in zip(queries, known, strict=True) if found is None]
        new = self._store.candidates_of_each(missing, filters) if missing else []
        self._candidates += [(query, filters, found) for query, found in zip(missing, new, strict=True)]
        rest = iter(new)
        return [next(rest) if found is None else found for found in known]

    def _find_candidates(self, query: Query, filters: Filters) -> Candidates | None:
        for asked, given, found in self._candidates:
            if _is_same(asked, query) and given == filters:
                return found
        return None

    def rank(self, asked: Sequence[RetrievedQuery]) -> list[list[RankedDocument]]:
        """The documents ranked for each wording. A search that finds the same with other filters, as most do, takes the ranking of the first one."""
        places, key = asked[0][1].rank_limit, ranking_key(asked)
        known, rankings = self._rankings.get(key, (0, []))
        if known < places:
            known, rankings = self._rankings[key] = places, rank(self._store, asked)
        return [ranking[:places] for ranking in rankings] if known > places else rankings

    def fuse(self, key: object, fuse: Callable[[], list[RankedDocument]]) -> list[RankedDocument]:
        """The rankings of a key fused, by `fuse` unless that was done before."""
        if key not in self._fused:
            self._fused[key] = fuse()
        return self._fused[key]

    def records(self, numbers: Sequence[int]) -> dict[int, StoredRecord]:
        """Records by document number, without those that are gone."""
        missing = [n for n in numbers if n not in self._records]
        self._records.update((found.n, found) for found in (self._store.get_many(missing) if missing else ()))
        return {n: self._records[n] for n in numbers if n in self._records}


def ranking_key(asked: Sequence[RetrievedQuery]) -> object:
    """What a ranking depends on."""
    query = asked[0][1]
    # A session is read with turns that need not pass the filters.
    has_sessions = any(stand.parent for candidates, _ in asked for stand in candidates.positions.values())
    filters = (
        repr(_filters_of_turns(query.filters)) if has_sessions or query.known_then or not query.is_in_context else ""
    )
    wordings = tuple(
        (each.text, each.terms, tuple(each.windows), found.total, tuple(found.lexical), tuple(found.semantic))
        for found, each in asked
    )
    return query.mode, query.fusion, max(query.rank_limit, MAX_JUDGED_DOCUMENTS), filters, wordings


def _filters_of_turns(filters: Filters) -> Filters:
    """The filters without those that every turn passes, which is always active and valid."""
    passes = filters.statuses is None or set(LIVE_STATUSES) <= set(filters.statuses)
    return replace(filters, statuses=None, valid_at=None) if passes and not filters.as_of else filters


def _is_same(one: Query, other: Query) -> bool:
    """Whether two queries are the same; those of one text share their vector."""
    return (one.terms, one.limit, one.task) == (other.terms, other.limit, other.task) and one.vector is other.vector
