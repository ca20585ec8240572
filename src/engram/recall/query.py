"""A search as one value: what the caller asks for, and what was read out of the question on the way to the ranking."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.recall.cutoff import checked_relevance
from engram.recall.filters import ever
from engram.store.protocol import Filters, Query

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["FUSIONS", "MODES", "SearchQuery", "Windows"]

MODES = ("hybrid", "semantic", "keyword")
FUSIONS = (None, "best", "rrf")
POOL = 60
"""Candidates per retriever; enough that the cut loses nothing that could still reach the first ten."""
WEIGHED = 2
"""How many times the limit is weighed: state, feedback and confidence can lift a hit past this many others."""
Windows: TypeAlias = Sequence[tuple[float, float]]
"""Time spans a question names: since, until, in seconds."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """One search. Callers give the fields up to `purpose`; `Searcher` fills in the rest before it ranks."""

    text: str
    limit: int = 10
    mode: str = "hybrid"
    fusion: str | None = None
    filters: Filters = field(default_factory=Filters)
    explain: bool = False
    narrowed: bool = False
    """Whether the caller's filters decide where to search; then the question's intent does not."""
    min_relevance: float = 0.0
    """Hits with a lower relevance are left out before the limit cuts."""
    everything: bool = False
    """Whether to return all that passes the filters, whatever it says; each such hit has relevance 1."""
    purpose: str = "the question"
    """What the search is for, as a trace shows it."""
    terms: tuple[str, ...] = ()
    """The question's index terms, without those of its dates."""
    vector: "Vectors | None" = None
    """The question's embedding; None in keyword mode and without an embedder."""
    windows: Windows = ()
    """The time spans its dates name."""
    known_then: Mapping[int, Memory | None] = field(default_factory=dict)
    """For `known_at`: the memories that changed since, as they were then, by number; None for one not yet known."""

    def checked(self) -> "SearchQuery":
        """The query itself; raises `InvalidInput` where a field has no valid value."""
        if self.mode not in MODES:
            raise InvalidInput(f"Unknown mode {self.mode!r}; choose hybrid, semantic or keyword.")
        if self.fusion not in FUSIONS:
            raise InvalidInput(f"Unknown fusion {self.fusion!r}; choose 'rrf', or leave it out for the default.")
        if not isinstance(self.text, str):
            raise InvalidInput(f"A question must be text, not {type(self.text).__name__}.")
        if type(self.limit) is not int or not 1 <= self.limit <= 1000:
            raise InvalidInput(f"limit {self.limit} must be a whole number between 1 and 1000")
        checked_relevance(self.min_relevance)
        return self

    @property
    def lexical_terms(self) -> tuple[str, ...]:
        """The terms the keyword index is searched for; none in semantic mode."""
        return () if self.mode == "semantic" else self.terms

    @property
    def store_query(self) -> Query:
        """What the store's retrievers are asked."""
        return Query(self.lexical_terms, self.vector, max(POOL, self.limit * WEIGHED))

    @property
    def store_filters(self) -> Filters:
        """What the store filters by; with `known_at` without what changes over time, which `Searcher` checks itself."""
        return self.filters if self.filters.known_at is None else ever(self.filters)

    @property
    def places(self) -> int:
        """How many ranked documents to weigh; with `known_at` more, since some were not known yet."""
        return self.store_query.limit * 2 if self.known_then else self.limit * WEIGHED

    @property
    def images(self) -> dict[int, Memory]:
        """The memories of `known_then` that were known."""
        return {n: memory for n, memory in self.known_then.items() if memory is not None}
