"""A pair model whose answers a test chooses: what follows from a relation is tested apart from how it is found."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from engram.models import pairs

NAMES = ("same", "update", "contradiction", "refinement", "different")


@dataclass(frozen=True)
class ChosenRelation:
    """How two statements relate, by the test's word."""

    same: float = 0.0
    update: float = 0.0
    contradiction: float = 0.0
    refinement: float = 0.0
    different: float = 0.0
    reason: str = "by the test's word"

    @property
    def label(self) -> str:
        return max(NAMES, key=lambda name: getattr(self, name))

    @property
    def change(self) -> float:
        return self.update + self.contradiction


SURE = ChosenRelation(update=1.0)
LIKELY = ChosenRelation(update=pairs.SURE_UPDATE - 0.01, contradiction=1.01 - pairs.SURE_UPDATE)
SAME = ChosenRelation(same=1.0)
DIFFERENT = ChosenRelation(different=1.0)

Chosen = Callable[[str, str], ChosenRelation]


def choose(monkeypatch: pytest.MonkeyPatch, relation: Chosen) -> None:
    """Let this function relate every older statement to a newer one."""

    def relate_all(older: Sequence[str], newer: str, cosines: Sequence[float] | None = None) -> list[ChosenRelation]:
        return [relation(text, newer) for text in older]

    monkeypatch.setattr(pairs, "relate_all", relate_all)


def changes(*words: str, relation: ChosenRelation = SURE) -> Chosen:
    """Two statements that share one of these words relate so; all others are different."""

    def chosen(older: str, newer: str) -> ChosenRelation:
        return relation if any(word in older and word in newer for word in words) else DIFFERENT

    return chosen
