"""Train the model of credentials told in prose: src/engram/models/credentials.bin.

    pip install scikit-learn
    python training/train_secrets.py            # writes it
    python training/train_secrets.py --check    # how well a model made without one of the writers reads that one

Shown are the spans that `engram.gates.secrets.prose` finds in the texts of training/secrets/ (its README describes them), and in
harmless text: labelled talk, statements, this project's documents and code, and every other file of training/situations/ (the rest
stays out, so that false alarms on notes and prompts can be counted there).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fitting import matrix, written
from hearing_data import talk, writers
from train_tiers import alternatives

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from engram.gates.secrets.forms import hints_in
from engram.gates.secrets.prose import spans
from engram.gates.secrets.scan import described_secrets, exact_secrets
from engram.models.credentials import MARGIN, MODEL, features, shape_of
from engram.models.linear import SCALE
from tests.gates.samples import samples

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
STRENGTH = 1.0
"""How little the weights are held back (scikit-learn's C)."""
LEAST_SHARED = {"spelled": 0.3, "phrase": 0.6}
"""The share of a span and a credential that must coincide for the span to be one; 0.7 where nothing else is said."""
NEAR_SECRET = 0.3
"""The weight of a harmless span in a text that has a credential: a user name next to a password."""
HARMLESS = 0.5
SITUATIONS = 1.0
"""The weight of a harmless span in a note of training/situations or in its prompts."""
CREDENTIAL = 2.0
"""How much more a credential counts, so that harmless text does not hide it."""
MOST_ALTERNATIVES = 40
LONGEST = 80
"""Characters of a span that the model judges."""
VOICES = ("a", "b", "c", "d")
PLAIN = ("talk", "types", "tiers", "file", "situations", "tests")
_MARK = re.compile(r"\[\[(.+?)\]\]")


@dataclass(frozen=True)
class Labelled:
    """A text, where its credentials are, and whose it is."""

    writer: str
    text: str
    secrets: tuple[tuple[int, int], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A span of a text: a credential or not; of none in between."""

    source: int
    start: int
    end: int
    is_secret: bool
    weight: float


def texts() -> Iterator[Labelled]:
    """All labelled and all harmless texts."""
    for path in sorted((FOLDER / "secrets").glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            yield Labelled(path.stem, row["text"], tuple(places(row["text"], row["secrets"])))
    for path in sorted((ROOT / "tests" / "gates" / "data").glob("*_?.txt")):
        for sample in samples(path.name):
            yield Labelled(f"tests {path.stem[-1]}", sample.text, tuple(places(sample.text, sample.secrets)))
    yield from templates()
    for writer in writers():
        for sentence in talk(writer):
            yield Labelled(f"talk {writer}", sentence.text, weight=HARMLESS)
    for name in ("types", "tiers"):
        for path in sorted((FOLDER / name).glob("*.txt")):
            for line in path.read_text("utf-8").splitlines():
                first = next(alternatives(line.rpartition("|")[2] if "{" not in line else line), "")
                yield Labelled(f"{name} {path.stem}", first, weight=HARMLESS)
    yield from notes(shown=True)
    for path in sorted([*ROOT.glob("docs/**/*.md"), *ROOT.glob("src/engram/**/*.py"), ROOT / "README.md"]):
        if "secrets" not in str(path.relative_to(ROOT)):
            for paragraph in path.read_text("utf-8").split("\n\n"):
                yield Labelled(f"file {path.stem}", paragraph, weight=HARMLESS)


def notes(*, shown: bool) -> Iterator[Labelled]:
    """The notes and prompts of every other file of training/situations, or of the files left out, which are never shown.

    The files `years_*` are of one writer and are left out. A text that gives a value to decode says nothing.
    """
    paths = sorted((FOLDER / "situations").glob("*.jsonl"))
    several = [path for path in paths if not path.stem.startswith(("terms", "years"))]
    for path in several[::2] if shown else (path for path in paths if path not in several[::2]):
        for line in path.read_text("utf-8").splitlines():
            row = json.loads(line)
            told = (
                [row["situation"], row["statement"], *row["prompts"]] if "statement" in row else [row.get("unrelated")]
            )
            for text in filter(None, told):
                if "base64" not in text and not exact_secrets(text):
                    yield Labelled(f"situations {path.stem}", text, weight=SITUATIONS)


def templates() -> Iterator[Labelled]:
    """The texts of the templates with every choice made, or some of them where there are many."""
    lines = [
        line for path in sorted((FOLDER / "secrets").glob("*.txt")) for line in path.read_text("utf-8").splitlines()
    ]
    for line in lines:
        if not line or line.startswith("#"):
            continue
        spelled = list(alternatives(line.replace(r"\n", "\n")))
        if len(spelled) > MOST_ALTERNATIVES:
            spelled = Random(line).sample(spelled, MOST_ALTERNATIVES)
        for each in spelled:
            marks = list(_MARK.finditer(each))
            text = _MARK.sub(r"\1", each)
            found = tuple((mark.start() - 4 * at, mark.end() - 4 * at - 4) for at, mark in enumerate(marks))
            yield Labelled("templates", text, found, 2 * len(spelled) ** -0.5)


def places(text: str, secrets: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the credentials are, wherever they are repeated."""
    for secret in secrets:
        for match in re.finditer(re.escape(secret), text):
            yield match.span()


def candidates(rows: Sequence[Labelled]) -> list[Candidate]:
    """The spans of all texts; those that share too little with a credential say nothing."""
    found = []
    for source, row in enumerate(rows):
        lowered = row.text.lower()
        if len(lowered) != len(row.text):
            continue
        described = {(secret.start, secret.end) for secret in described_secrets(row.text)}
        for start, end in sorted({*spans(row.text, lowered, hints_in(lowered)), *described}):
            if end - start > LONGEST:
                continue
            shares = [share(start, end, *secret) for secret in row.secrets]
            most = max(shares, default=0.0)
            least = LEAST_SHARED.get(shape_of(row.text[start:end])[0], 0.7)
            if most >= least or not most:
                weight = row.weight * (CREDENTIAL if most else NEAR_SECRET if row.secrets else 1.0)
                found.append(Candidate(source, start, end, most >= least, weight))
    return found


def share(start: int, end: int, begin: int, stop: int) -> float:
    """How much two spans coincide."""
    return max(0, min(end, stop) - max(start, begin)) / (max(end, stop) - min(start, begin))


def fit(seen: Any, found: Sequence[Candidate], where: Any) -> Any:
    """The weights of a model that was shown the spans at these places."""
    from sklearn.linear_model import LogisticRegression

    made = LogisticRegression(C=STRENGTH, max_iter=2000, fit_intercept=False, solver="liblinear")
    chosen = [found[at] for at in where]
    weights = [each.weight for each in chosen]
    return made.fit(seen[where], [each.is_secret for each in chosen], sample_weight=weights).coef_


def scores(weights: Any, seen: Any) -> Any:
    """The scores of spans, as the stored weights give them."""
    stored = np.round(weights * SCALE).clip(-127, 127)
    return np.asarray(seen @ stored.T).ravel()


def check(rows: Sequence[Labelled], found: Sequence[Candidate], seen: Any, margin: int, shown: bool) -> None:
    """Leave each voice out once, with a quarter of the harmless writers."""
    folds = np.array([fold_of(rows[each.source].writer) for each in found])
    judged = np.zeros(len(found))
    for fold in range(len(VOICES)):
        others, left_out = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        judged[left_out] = scores(fit(seen, found, others), seen[left_out])
    for voice in VOICES:
        report(voice, [at for at, row in enumerate(rows) if row.writer == voice], rows, found, judged, margin, shown)
    plain = [at for at, row in enumerate(rows) if row.writer.startswith(PLAIN) and not row.secrets]
    alarmed = {each.source for each, score in zip(found, judged, strict=True) if score > margin}
    for kind in PLAIN:
        of_kind = [at for at in plain if rows[at].writer.startswith(kind)]
        wrong = [at for at in of_kind if at in alarmed]
        print(
            f"{kind:10} {len(of_kind):6} harmless texts, {1000 * len(wrong) / len(of_kind):.2f} false alarms in 1,000"
        )
        for at in wrong if shown else ():
            spotted = [
                rows[at].text[e.start : e.end]
                for e, score in zip(found, judged, strict=True)
                if e.source == at and score > margin
            ]
            print("   ", spotted, "|", rows[at].text[:160].replace("\n", " "))


def check_left_out(weights: Any, margin: int, shown: bool) -> None:
    """How many notes and prompts of the files that are never shown are false alarms."""
    rows = list(notes(shown=False))
    found = candidates(rows)
    judged = scores(weights, matrix(MODEL, [features(rows[each.source].text, each.start, each.end) for each in found]))
    alarmed = {each.source: each for each, score in zip(found, judged, strict=True) if score > margin}
    for at, each in alarmed.items() if shown else ():
        print("    alarm", repr(rows[at].text[each.start : each.end]), "|", rows[at].text[:150])
    print(f"left out   {len(rows):6} harmless texts, {1000 * len(alarmed) / len(rows):.2f} false alarms in 1,000")


def report(
    voice: str,
    where: Sequence[int],
    rows: Sequence[Labelled],
    found: Sequence[Candidate],
    judged: Any,
    margin: int,
    shown: bool,
) -> None:
    """How many credentials of a voice are covered, and in how many of its harmless texts something is."""
    spotted: dict[int, list[Candidate]] = {}
    for each, score in zip(found, judged, strict=True):
        if score > margin:
            spotted.setdefault(each.source, []).append(each)
    total = missed = wrong = harmless = 0
    for at in where:
        hits = spotted.get(at, [])
        harmless += not rows[at].secrets
        wrong += not rows[at].secrets and bool(hits)
        if shown and not rows[at].secrets and hits:
            print("    alarm", [rows[at].text[e.start : e.end] for e in hits], "|", rows[at].text[:150])
        for begin, stop in rows[at].secrets:
            total += 1
            if not any(hit.start < stop and hit.end > begin for hit in hits):
                missed += 1
                if shown:
                    print("    missed", repr(rows[at].text[begin:stop]), "|", rows[at].text[:150])
    print(
        f"{voice:10} {total:6} credentials, {1 - missed / total:.1%} found; {harmless} harmless texts, {wrong} false alarms"
    )


def fold_of(writer: str) -> int:
    """The fold in which a writer is left out; templates and planted credentials never are."""
    if writer in VOICES:
        return VOICES.index(writer)
    return sum(writer.encode()) % len(VOICES) if " " in writer else -1


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--texts", action="store_true", help="with --check: show what was missed and the false alarms")
    parser.add_argument("--margin", type=int, default=MARGIN)
    given = parser.parse_args()
    rows = [row for row in texts() if row.text.strip() and (row.weight != HARMLESS or not exact_secrets(row.text))]
    found = candidates(rows)
    print(
        f"{len(rows)} texts, {len(found)} spans, {sum(each.is_secret for each in found)} credentials", file=sys.stderr
    )
    seen = matrix(MODEL, [features(rows[each.source].text, each.start, each.end) for each in found])
    if given.check:
        check(rows, found, seen, given.margin, given.texts)
        check_left_out(fit(seen, found, np.arange(len(found))), given.margin, given.texts)
        return
    target = written(MODEL, fit(seen, found, np.arange(len(found))))
    print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
