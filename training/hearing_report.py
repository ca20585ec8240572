"""Reports how well scores of sentences predict what is worth keeping: facts kept, precision, junk, per writer and together.

    from hearing_report import report
    report(rows, scores, threshold)        # rows of hearing_data.talk, and a score for each; no text is ever printed

A sentence is kept if its score reaches the threshold. `maybe` is neutral; the strict precision counts it as wrong. An
exchange is a user's turn with the assistant's turn after it. Junk is what is kept of exchanges in which every sentence
is `skip`, per hundred.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np
from hearing_data import FOLDER, Sentence, talk, writers

__all__ = ["calibration", "conversations", "curve", "everything", "exchanges", "report"]


def everything(folder: Any = FOLDER) -> list[Sentence]:
    """The sentences of every writer of a folder."""
    return [row for writer in writers(folder) for row in talk(writer, folder)]


def conversations(rows: Sequence[Sentence]) -> list[list[list[int]]]:
    """The turns of each conversation, each as the indexes of its sentences in `rows`."""
    found = []
    for _, talked in groupby(range(len(rows)), lambda at: (rows[at].writer, rows[at].conversation)):
        found.append([list(turn) for _, turn in groupby(talked, lambda at: rows[at].turn)])
    return found


def exchanges(rows: Sequence[Sentence]) -> list[list[list[int]]]:
    """Every user's turn with the assistant's turn after it."""
    found = []
    for turns in conversations(rows):
        for turn, after in zip(turns, [*turns[1:], []], strict=True):
            if rows[turn[0]].role == "user":
                replied = after and rows[after[0]].role == "assistant"
                found.append([turn, after] if replied else [turn])
    return found


def report(rows: Sequence[Sentence], scores: Any, threshold: float) -> None:
    """Print the figures of each writer and of all together, at one threshold."""
    scores = np.asarray(scores)
    for writer in [*dict.fromkeys(row.writer for row in rows), ""]:
        chosen = [at for at, row in enumerate(rows) if writer in ("", row.writer)]
        _figures(writer or "all", [rows[at] for at in chosen], scores[chosen] >= threshold)


def curve(rows: Sequence[Sentence], scores: Any, title: str) -> None:
    """Print precision and junk at several recalls."""
    scores, told = np.asarray(scores), []
    kept = np.sort(scores[[row.worth == "keep" for row in rows]])[::-1]
    for recall in (0.6, 0.7, 0.75, 0.8):
        figures = _counted(rows, scores >= kept[int(np.ceil(recall * len(kept))) - 1])
        told.append(f"{recall:.2f}: {figures['precision']:.3f}, junk {figures['junk']:.1f}")
    print(f"{title:28} precision at recall {' | '.join(told)}")


def calibration(rows: Sequence[Sentence], probabilities: Any) -> None:
    """Print how often a sentence in each range of probabilities is worth keeping; `maybe` counts half."""
    wanted = np.array([{"keep": 1.0, "maybe": 0.5, "skip": 0.0}[row.worth] for row in rows])
    place = np.minimum((np.asarray(probabilities) * 10).astype(int), 9)
    print("probability   sentences   worth keeping")
    for each in range(10):
        chosen = place == each
        if chosen.any():
            print(f"  .{each}–{'1.0' if each == 9 else f'.{each + 1}'} {chosen.sum():12} {wanted[chosen].mean():12.3f}")


def _counted(rows: Sequence[Sentence], kept: Any) -> dict[str, float]:
    worth = np.array([row.worth for row in rows])
    right, wrong, between = (int((kept & (worth == name)).sum()) for name in ("keep", "skip", "maybe"))
    empty = [[at for turn in turns for at in turn] for turns in exchanges(rows)]
    empty = [each for each in empty if all(worth[at] == "skip" for at in each)]
    return {
        "recall": right / max(1, int((worth == "keep").sum())),
        "precision": right / max(1, right + wrong),
        "strict": right / max(1, right + wrong + between),
        "junk": 100 * sum(int(kept[each].sum()) for each in empty) / max(1, len(empty)),
        "empty": len(empty),
    }


def _figures(title: str, rows: Sequence[Sentence], kept: Any) -> None:
    counted = _counted(rows, kept)
    told = "  ".join(f"{name} {counted[name]:.3f}" for name in ("recall", "precision", "strict"))
    print(f"{title:12} {told}  junk {counted['junk']:.1f} per 100 of {counted['empty']:.0f} exchanges")
