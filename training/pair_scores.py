"""Labelled pairs of statements, and the figures for judging any model of their relation.

    python training/pair_scores.py            # the figures of the rules of engram.gates, as the baseline

`report` prints them for probabilities of `LABELS`, a row for each pair. A change is an update or a contradiction; a
look-alike is any other pair. Neighbours are similar statements of one writer from different pairs, such as a store
pairs with a new statement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from engram.models.pair_features import Alignments

ROOT = Path(__file__).resolve().parent.parent
HEARING = ROOT / "training" / "hearing"
HELD = "held"
LABELS = ("same", "update", "contradiction", "refinement", "different")
SAME, UPDATE, CONTRADICTION, REFINEMENT, DIFFERENT = range(len(LABELS))
NEAR = 12
"""Neighbours of a statement, as many as the gates compare."""
NOTICED_AT = (0.01, 0.02, 0.05)
SUPERSEDED_AT = (0.002, 0.005, 0.01)
SAME_AT = (0.005, 0.01, 0.02)


@dataclass(frozen=True)
class Pair:
    """Two statements of one writer, the older first, and their relation."""

    writer: str
    label: str
    older: str
    newer: str


def writer_pairs(folder: Path) -> list[Pair]:
    """The pairs of one writer."""
    rows = []
    for line in folder.joinpath("pairs.txt").read_text("utf-8").splitlines():
        if line.strip():
            label, older, newer = (part.strip() for part in line.split(" || "))
            rows.append(Pair(folder.name, label, older, newer))
    return rows


def every_pair(*folders: Path) -> list[Pair]:
    """The pairs of all writers except the held-out ones, and of further folders that have a folder for each writer."""
    found = sorted(path for root in (HEARING, *folders) for path in root.glob("*/pairs.txt"))
    return [pair for path in found if path.parent.name != HELD for pair in writer_pairs(path.parent)]


def held_pairs() -> list[Pair]:
    """The pairs for measuring only, which are never trained on."""
    return [pair for path in sorted((HEARING / HELD).rglob("pairs.txt")) for pair in writer_pairs(path.parent)]


def neighbours(pairs: Sequence[Pair], near: int = NEAR, seed: int = 0, share: float = 1.0) -> list[Pair]:
    """Each newer statement with the nearest older statements of the writer's other pairs, labelled `different`.

    Pairs that share a statement are left out. Of seventy of the nearest, read by eye, none was a change and one said
    the same, so the false alarms on them are nearly exact.
    """
    from engram.embedding.static import StaticEmbedder

    embed = StaticEmbedder().embed
    found = []
    chance = np.random.default_rng(seed)
    for writer in sorted({pair.writer for pair in pairs}):
        own = [pair for pair in pairs if pair.writer == writer]
        cosines = embed([pair.newer for pair in own]) @ embed([pair.older for pair in own]).T
        for at, pair in enumerate(own):
            taken = [other for other in np.argsort(-cosines[at], kind="stable") if _apart(pair, own[other])][:near]
            found += [
                Pair(writer, "different", own[other].older, pair.newer) for other in taken if chance.random() < share
            ]
    return found


def _apart(one: Pair, other: Pair) -> bool:
    """Whether two pairs share no statement."""
    return not {one.older.lower(), one.newer.lower()} & {other.older.lower(), other.newer.lower()}


def aligned(pairs: Sequence[Pair], together: int = 128) -> Iterator[Alignments]:
    """The pairs with their words aligned, in batches, because mixing long and short statements takes much space."""
    from engram.models.pair_features import Alignments
    from engram.models.pair_words import read_statement

    for at in range(0, len(pairs), together):
        some = pairs[at : at + together]
        yield Alignments([(read_statement(pair.older), read_statement(pair.newer)) for pair in some])


def gold(pairs: Sequence[Pair]) -> Any:
    """The index of each pair's label in `LABELS`."""
    return np.array([LABELS.index(pair.label) for pair in pairs])


def share_at(wanted: Any, others: Any, most: float) -> tuple[float, float]:
    """The largest share of `wanted` scores at or above a threshold that at most this share of the `others` reaches; and the threshold."""
    ranked = np.sort(others)[::-1]
    allowed = int(most * len(ranked))
    threshold = float(np.nextafter(ranked[allowed], 2)) if allowed < len(ranked) else 0.0
    return float((wanted >= threshold).mean()), threshold


def change(probabilities: Any) -> Any:
    """The probability that the newer statement changes or contradicts the older one."""
    return probabilities[:, UPDATE] + probabilities[:, CONTRADICTION]


def report(
    pairs: Sequence[Pair], probabilities: Any, near: Any = None, thresholds: tuple[float, float, float] | None = None
) -> None:
    """Print the figures for these probabilities, per writer and pooled; `near` are those of `neighbours`.

    The thresholds are `LIKELY_CHANGE`, `SURE_UPDATE` and `SAME`; without them, those that just meet the bars.
    """
    wanted = gold(pairs)
    _curves(wanted, probabilities, near)
    likely, sure, same = thresholds or _thresholds(wanted, probabilities)
    print(f"at likely change {likely:.3f}, sure update {sure:.3f}, same {same:.3f}:")
    print(
        f"  {'writer':12} pairs right  noticed (upd con) alarms (dif ref sam)  superseded wrongly (con look-alike)  same wrongly"
    )
    writers = np.array([pair.writer for pair in pairs])
    for writer in [*sorted(set(writers)), "all"]:
        own = slice(None) if writer == "all" else writers == writer
        print(f"  {writer:12} {_line(wanted[own], probabilities[own], likely, sure, same)}")
    if near is not None:
        print(f"  neighbours {len(near)}: alarms {(change(near) >= likely).mean():.4f}", end="")
        print(f", superseded {(near[:, UPDATE] >= sure).mean():.4f}, same {(near[:, SAME] >= same).mean():.4f}")
    _confusion(wanted, probabilities)
    _reliability(wanted, probabilities)


def _thresholds(wanted: Any, found: Any) -> tuple[float, float, float]:
    alike = wanted > CONTRADICTION
    alike |= wanted == SAME
    likely = share_at(change(found)[~alike], change(found)[alike], 0.02)[1]
    sure = share_at(found[wanted == UPDATE, UPDATE], found[alike, UPDATE], 0.005)[1]
    return likely, sure, share_at(found[wanted == SAME, SAME], found[wanted != SAME, SAME], 0.01)[1]


def _curves(wanted: Any, found: Any, near: Any) -> None:
    alike = (wanted > CONTRADICTION) | (wanted == SAME)
    rows: list[tuple[str, Any, Any, Any, tuple[float, ...]]] = [
        ("noticed", change(found)[~alike], change(found)[alike], None if near is None else change(near), NOTICED_AT),
        ("updates noticed", change(found)[wanted == UPDATE], change(found)[alike], None, NOTICED_AT),
        (
            "superseded",
            found[wanted == UPDATE, UPDATE],
            found[alike, UPDATE],
            None if near is None else near[:, UPDATE],
            SUPERSEDED_AT,
        ),
        (
            "same found",
            found[wanted == SAME, SAME],
            found[wanted != SAME, SAME],
            None if near is None else near[:, SAME],
            SAME_AT,
        ),
    ]
    for name, right, wrong, beside, shares in rows:
        for most in shares:
            share, threshold = share_at(right, wrong, most)
            extra = "" if beside is None else f", neighbours {(beside >= threshold).mean():.4f}"
            print(f"{name} {share:.3f} at wrongly {most:.3f} (threshold {threshold:.3f}{extra})")


def _line(wanted: Any, found: Any, likely: float, sure: float, same: float) -> str:
    noticed, superseded, alike = change(found) >= likely, found[:, UPDATE] >= sure, found[:, SAME] >= same
    looks = (wanted > CONTRADICTION) | (wanted == SAME)

    def of(hit: Any, *labels: int) -> str:
        rows = np.isin(wanted, labels)
        return f"{hit[rows].mean():.3f}" if rows.any() else "  -  "

    right = (found.argmax(1) == wanted).mean()
    return (
        f"{len(wanted):5} {right:.3f}  {of(noticed, UPDATE, CONTRADICTION)} ({of(noticed, UPDATE)} {of(noticed, CONTRADICTION)}) "
        f"{noticed[looks].mean():.3f} ({of(noticed, DIFFERENT)} {of(noticed, REFINEMENT)} {of(noticed, SAME)})  "
        f"{of(superseded, UPDATE)} ({of(superseded, CONTRADICTION)} {superseded[looks].mean():.4f})  "
        f"{of(alike, SAME)} {alike[wanted != SAME].mean():.3f}"
    )


def _confusion(wanted: Any, found: Any) -> None:
    read = found.argmax(1)
    print("read as        " + " ".join(f"{label[:6]:>6}" for label in LABELS))
    for place, label in enumerate(LABELS):
        row = [int(((wanted == place) & (read == other)).sum()) for other in range(len(LABELS))]
        print(f"{label:14} " + " ".join(f"{each:6}" for each in row))


def _reliability(wanted: Any, found: Any) -> None:
    """How often predictions are right, by tenths of the probability: a change, an update, the same."""
    kinds = (
        ("change", change(found), np.isin(wanted, (UPDATE, CONTRADICTION))),
        ("update", found[:, UPDATE], wanted == UPDATE),
        ("same", found[:, SAME], wanted == SAME),
    )
    for name, score, true in kinds:
        tenth = np.minimum((score * 10).astype(int), 9)
        cells = [
            f".{each}: {true[tenth == each].mean():.2f}/{(tenth == each).sum()}"
            for each in range(10)
            if (tenth == each).any()
        ]
        print(f"{name:7} " + "  ".join(cells))


def left_out(pairs: Sequence[Pair], predict: Callable[[Sequence[Pair], Sequence[Pair]], Any]) -> Any:
    """The probabilities of every pair by a model trained without its writer: `predict(shown, asked)`."""
    found = np.zeros((len(pairs), len(LABELS)))
    writers = np.array([pair.writer for pair in pairs])
    for writer in sorted(set(writers)):
        own = writers == writer
        shown = [pair for pair, mine in zip(pairs, own, strict=True) if not mine]
        found[own] = predict(shown, [pair for pair, mine in zip(pairs, own, strict=True) if mine])
    return found


def by_rules(pairs: Sequence[Pair]) -> Any:
    """The results of the exact rules of `engram.gates`, as probabilities of 0 and 1; a conflict counts as an update."""
    from engram.gates.comparison import relation

    places = {"opposite": UPDATE, "same": SAME}
    found = np.zeros((len(pairs), len(LABELS)))
    for at, pair in enumerate(pairs):
        found[at, places.get(relation(pair.newer, pair.older).relation, DIFFERENT)] = 1
    return found


if __name__ == "__main__":
    chosen = held_pairs() if "--held" in sys.argv else every_pair()
    report(chosen, by_rules(chosen), by_rules(neighbours(chosen)), (0.5, 0.5, 0.5))
