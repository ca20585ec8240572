"""What a ranking is worth: any-hit, all-hit and fractional recall at a cut, NDCG, reciprocal rank. Keys in, numbers out."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

__all__ = ["CUTS", "Tally", "all_hit", "any_hit", "fraction", "ndcg", "reciprocal_rank", "sessions_in_order"]

CUTS = (5, 10)


def any_hit(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """1 when one wanted key is among the first."""
    return float(not set(wanted).isdisjoint(ranking[:cut]))


def all_hit(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """1 when every wanted key is among the first."""
    return float(set(wanted).issubset(ranking[:cut]))


def fraction(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """The share of the wanted keys that is among the first."""
    keys = set(wanted)
    return len(keys.intersection(ranking[:cut])) / len(keys) if keys else 0.0


def ndcg(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """Discounted gain of the first, against the best order there could be."""
    keys = set(wanted)
    gain = sum(_discount(place) for place, key in enumerate(ranking[:cut]) if key in keys)
    ideal = sum(_discount(place) for place in range(min(cut, len(keys))))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """One divided by the place of the first wanted key; 0 when none is among the first."""
    keys = set(wanted)
    return next((1 / place for place, key in enumerate(ranking[:cut], 1) if key in keys), 0.0)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def sessions_in_order(ranking: Iterable[str], session_of: Mapping[str, str]) -> list[str]:
    """Sessions in the order of their best turn."""
    return list(dict.fromkeys(session_of[key] for key in ranking))


@dataclass(slots=True)
class Tally:
    """Means over questions, overall and by category."""

    _values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, category: str, ranking: Sequence[str], wanted: Sequence[str], level: str = "") -> None:
        """Count one question; `level` (such as "session") sets measures of another ranking apart."""
        prefix = f"{level} " if level else ""
        for cut in CUTS:
            for name, measure in (("any", any_hit), ("all", all_hit), ("fraction", fraction)):
                self._note(category, f"{prefix}{name}@{cut}", measure(ranking, wanted, cut))
        self._note(category, f"{prefix}ndcg@10", ndcg(ranking, wanted, 10))
        self._note(category, f"{prefix}mrr@10", reciprocal_rank(ranking, wanted, 10))

    def _note(self, category: str, measure: str, value: float) -> None:
        self._values.setdefault(measure, {}).setdefault(category, []).append(value)

    def means(self) -> dict[str, float]:
        """Each measure over all questions."""
        return {name: _mean(value for values in by.values() for value in values) for name, by in self._values.items()}

    def by_category(self, measure: str) -> dict[str, float]:
        """One measure, category by category."""
        return {category: _mean(values) for category, values in sorted(self._values.get(measure, {}).items())}

    @property
    def questions(self) -> int:
        """How many questions were counted."""
        first = next(iter(self._values.values()), {})
        return sum(len(values) for values in first.values())


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
