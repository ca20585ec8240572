"""Train the model of sensitive subjects (health, identity, money, places, people): src/engram/models/sensitivity.bin.

    pip install scikit-learn
    python training/train_tiers.py            # writes it
    python training/train_tiers.py --check    # how well a model made without one of the writers reads that one

Shown are the statements of training/tiers/, a file for each writer (`subject | statement`). Braces hold alternatives, `{a|b}`: each
is a statement of its own, and a line with many of them weighs less for each. Also shown, as plain, is what the writers of
training/hearing say about their projects, unless a table gives it a subject (training/tiers/private_projects.txt).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from fitting import fitted, matrix, written
from hearing_data import talk, writers

from engram.models.statement_kinds import PLAIN, SUBJECT_MARGIN, SUBJECTS, subject_features
from engram.models.weights import SCALE

TABLES = Path(__file__).resolve().parent / "tiers"
_BRACES = re.compile(r"\{([^{}]*)\}")
_MOST = 120
"""From a line with more alternatives than this, only every nth is used."""
TALK_FOLDS = 5
"""Number of groups in which `--check` leaves out the writers of training/hearing."""
STRENGTH = 2.0
"""Weak regularisation (scikit-learn's C)."""


@dataclass(frozen=True)
class Said:
    """A training statement: its writer and its subject."""

    writer: str
    subject: str
    text: str
    spelled: int
    """Number of statements made from its line."""

    @property
    def weight(self) -> float:
        """Its weight in training."""
        return float(self.spelled**-0.25)


def said() -> list[Said]:
    """Every statement of every writer."""
    rows = []
    for path in sorted(TABLES.glob("*.txt")):
        for line in path.read_text("utf-8").splitlines():
            subject, _, text = (part.strip() for part in line.partition("|"))
            spelled = list(alternatives(text))
            spelled = spelled[:: -(-len(spelled) // _MOST)]
            rows += [Said(path.stem, subject, each, len(spelled)) for each in spelled]
    return rows


def projects(labelled: Sequence[Said]) -> list[Said]:
    """Statements of the writers of training/hearing about their projects: facts of work, with names of people and places."""
    known = {row.text for row in labelled}
    rows = {}
    for place, writer in enumerate(writers()):
        said_of_it = (each.memory for each in talk(writer) if each.owner == "project" and each.memory)
        rows.update(
            {text: Said(f"talk {place % TALK_FOLDS}", PLAIN, text, 1) for text in said_of_it if text not in known}
        )
    return list(rows.values())


def alternatives(text: str) -> Iterator[str]:
    """The statements that a line with braces represents."""
    fixed = _BRACES.split(text)
    choices = [part.split("|") if at % 2 else [part] for at, part in enumerate(fixed)]
    for chosen in product(*choices):
        yield re.sub(r"\s+(?=[.\s]|$)", "", "".join(chosen))


def shown(rows: Sequence[Said], seen: Any) -> Any:
    """The weights of a model trained on these.

    A feature stands for each class itself, so there is no other intercept.
    """
    options = {"weights": [row.weight for row in rows], "C": STRENGTH, "fit_intercept": False}
    return fitted(SUBJECTS, seen, [row.subject for row in rows], **options)


def check(rows: Sequence[Said]) -> None:
    """Leave each writer out once."""
    seen = matrix(SUBJECTS, [list(subject_features(row.text)) for row in rows])
    authors = np.array([row.writer for row in rows])
    margins, names = np.zeros(len(rows)), np.zeros(len(rows), dtype=int)
    for writer in sorted(set(authors)):
        others, left_out = np.flatnonzero(authors != writer), np.flatnonzero(authors == writer)
        sums = np.asarray((shown([rows[at] for at in others], seen[others]) @ seen[left_out].T).T) * SCALE
        margins[left_out] = sums[:, 1:].max(axis=1) - sums[:, 0]
        names[left_out] = sums[:, 1:].argmax(axis=1) + 1
        told(writer, rows, margins, left_out)
    told("all", rows, margins, np.arange(len(rows)))
    by_subject(rows, margins, names)


def told(title: str, rows: Sequence[Said], margins: Any, where: Any) -> None:
    """How many of the statements at these indexes are found, and how many by mistake."""
    spoken = np.array([margins[at] > SUBJECT_MARGIN for at in where if rows[at].subject != PLAIN])
    plain = np.array([margins[at] > SUBJECT_MARGIN for at in where if rows[at].subject == PLAIN])
    # A writer may not have any statements of one kind.
    found = f", {spoken.mean():.1%} found" if spoken.size else ""
    alarms = f", {plain.mean():.1%} false alarms" if plain.size else ""
    print(f"{title:16} {spoken.size:5} sensitive{found}; {plain.size:5} others{alarms}")


def by_subject(rows: Sequence[Said], margins: Any, names: Any) -> None:
    """How many statements of each subject are found, and how many with the right subject.

    Every line of the tables counts as one.
    """
    for place, subject in enumerate(SUBJECTS.classes):
        at = [i for i, row in enumerate(rows) if row.subject == subject]
        lines = np.array([1 / rows[i].spelled for i in at])
        found = np.array([margins[i] > SUBJECT_MARGIN for i in at])
        if subject == PLAIN:
            print(f"{subject:16} {lines.sum():5.0f} lines, {found @ lines / lines.sum():.1%} false alarms")
            continue
        named = found & np.array([names[i] == place for i in at])
        shares = [each @ lines / lines.sum() for each in (found, named)]
        print(f"{subject:16} {lines.sum():5.0f} lines, {shares[0]:.1%} found, {shares[1]:.1%} by this name")


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    rows = said()
    rows += projects(rows)
    if parser.parse_args().check:
        check(rows)
        return
    seen = matrix(SUBJECTS, [list(subject_features(row.text)) for row in rows])
    target = written(SUBJECTS, shown(rows, seen))
    print(f"{target.name}: {len(rows)} statements, {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
