"""Train the model that judges whether a span of a text is a credential: src/engram/models/credentials.bin.

    pip install scikit-learn
    python training/train_secrets.py            # writes it
    python training/train_secrets.py --check    # how well a model made without one of the writers reads that one

The model learns from the spans that `engram.gates.secrets.scan.find_candidates` finds in the texts of training/secrets/ (its README
describes them), in texts made of frames (`secret_frames`), and in harmless text: labelled talk, statements, this project's documents
and code, and every other file of training/situations/ (the rest stays out, so that false alarms can be counted there).
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from fitting import written
from hearing_data import talk, writers
from secret_frames import framed_texts
from train_tiers import alternatives

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from engram.gates.secrets.prose import MAX_JUDGED_SPAN_CHARS
from engram.gates.secrets.scan import exact_secrets, find_candidates
from engram.models.credentials import MARGIN, MODEL, RULE_MARGIN, TextTokens, shape_of
from engram.models.weights import SCALE
from tests.gates.samples import samples

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
STRENGTH = 0.3
"""The inverse of the regularisation (scikit-learn's C)."""
LEAST_SHARED = {"spelled": 0.3, "phrase": 0.5}
"""Minimum overlap of a span and a credential for the span to be one; 0.7 for other kinds."""
NEAR_SECRET = 0.3
"""The weight of a harmless span in a text that has a credential: a user name next to a password."""
HARMLESS = 0.5
SITUATIONS = 1.0
"""The weight of a harmless span in a note of training/situations or in its prompts."""
CREDENTIAL = 2.0
"""The extra weight of credentials, so that the many harmless spans do not dominate."""
MOST_ALTERNATIVES = 40
FRAMED_TIMES = 12
FRAMED = 0.5
"""How often each frame is filled, and the weight of such a text."""
VOICES = (("e", "i"), ("f", "j"), ("g", "k"), ("h",))
"""The writers of the last new tests.

`--check` leaves each of them out once, two at a time, because training takes a minute.
"""
TARGETS = (0.003, 0.005, 0.01, 0.02)
"""Shares of refused notes for which `--check` reports the share of caught secrets."""
_MARK = re.compile(r"\[\[(.+?)\]\]")


@dataclass(frozen=True)
class Labelled:
    """A text, the spans of its credentials, and its writer."""

    writer: str
    text: str
    secrets: tuple[tuple[int, int], ...] = ()
    weight: float = 1.0


@dataclass(frozen=True)
class Candidate:
    """A span of a text, whether it is a credential (None if it is a part of one), and whether a rule proposes it."""

    source: int
    start: int
    end: int
    is_secret: bool | None
    is_proposed: bool
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
    for text, spans in framed_texts(FRAMED_TIMES):
        yield Labelled("frames", text, spans, FRAMED)
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
    """The notes and prompts of every other file of training/situations, or of the files left out, which are never trained on.

    The files `years_*` are by one writer and are left out. A text with a value to decode is not informative.
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
    """The texts of the templates with every choice made, or a sample if there are many."""
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
    """The spans of the credentials, including repetitions."""
    for secret in secrets:
        for match in re.finditer(re.escape(secret), text):
            yield match.span()


@dataclass
class Collected:
    """The spans of all texts, their features as buckets, and the texts with a secret that needs no judgment."""

    rows: Sequence[Labelled]
    found: list[Candidate] = field(default_factory=list)
    buckets: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    sure: set[int] = field(default_factory=set)

    def matrix(self) -> Any:
        """A matrix with a row for each span and a column for each bucket."""
        from scipy.sparse import csr_matrix

        ones = np.ones(len(self.buckets), dtype=np.float32)
        shape = (len(self.found), MODEL.buckets)
        return csr_matrix((ones, np.array(self.buckets, dtype=np.int32), np.array(self.ends)), shape=shape)


def collect(rows: Sequence[Labelled]) -> Collected:
    """The spans of all texts that the model judges."""
    result = Collected(rows)
    for source, row in enumerate(rows):
        lowered = row.text.lower()
        if len(lowered) != len(row.text):
            continue
        sure, spans = find_candidates(row.text)
        if sure:
            result.sure.add(source)
        if sure and row.weight == HARMLESS:
            continue
        tokens = TextTokens(row.text, lowered)
        for (start, end), tags in spans.items():
            is_proposed = any(tag.startswith("rule") for tag in tags)
            if end - start > MAX_JUDGED_SPAN_CHARS:
                result.sure.add(source)
                continue
            most = max((share(start, end, *secret) for secret in row.secrets), default=0.0)
            is_secret = most >= LEAST_SHARED.get(shape_of(row.text[start:end])[0], 0.7)
            weight = row.weight * (CREDENTIAL if is_secret else NEAR_SECRET if row.secrets else 1.0)
            found = Candidate(source, start, end, is_secret or (None if most else False), is_proposed, weight)
            result.found.append(found)
            result.buckets += map(MODEL.bucket_of, tokens.features(start, end, tags))
            result.ends.append(len(result.buckets))
    return result


def share(start: int, end: int, begin: int, stop: int) -> float:
    """The overlap of two spans."""
    return max(0, min(end, stop) - max(start, begin)) / (max(end, stop) - min(start, begin))


def fit(seen: Any, found: Sequence[Candidate], without: Sequence[int] = ()) -> Any:
    """The weights of a model trained on all spans that either are or are not a credential, without those of some texts."""
    from sklearn.linear_model import LogisticRegression

    left_out = set(without)
    where = [at for at, each in enumerate(found) if each.is_secret is not None and each.source not in left_out]
    made = LogisticRegression(C=STRENGTH, max_iter=500, fit_intercept=False, solver="liblinear")
    chosen = [found[at] for at in where]
    return made.fit(
        seen[where], [each.is_secret for each in chosen], sample_weight=[each.weight for each in chosen]
    ).coef_


def score_texts(collected: Collected, seen: Any, weights: Any, texts: Sequence[int]) -> dict[int, float]:
    """The highest score in each text with the stored weights; infinite if the text is refused at any margin."""
    stored = np.round(weights * SCALE).clip(-127, 127)
    judged = {source: float("inf") if source in collected.sure else float("-inf") for source in texts}
    where = [at for at, each in enumerate(collected.found) if each.source in judged]
    for at, score in zip(where, np.asarray(seen[where] @ stored.T).ravel(), strict=True):
        each = collected.found[at]
        score = float("inf") if each.is_proposed and score > RULE_MARGIN else score
        judged[each.source] = max(judged[each.source], score)
    return judged


def check(collected: Collected, seen: Any, margin: int, shown: bool) -> None:
    """Leave each of the last writers out once; then count false alarms in the situations that are never trained on."""
    rows, every = collected.rows, {}
    for voices in VOICES:
        without = [at for at, row in enumerate(rows) if row.writer in voices]
        weights = fit(seen, collected.found, without)
        for voice in voices:
            judged = score_texts(collected, seen, weights, [at for at in without if rows[at].writer == voice])
            report(voice, rows, judged, margin)
            every |= judged
    report("all", rows, every, margin)
    for at, score in every.items() if shown else ():
        if bool(score > margin) is not bool(rows[at].secrets):
            print(
                "    missed" if rows[at].secrets else "    alarm",
                f"{score:.0f}",
                "|",
                rows[at].text[:200].replace("\n", " "),
            )
    left_out = collect([*notes(shown=False)])
    judged = score_texts(left_out, left_out.matrix(), fit(seen, collected.found), range(len(left_out.rows)))
    alarms = sum(score > margin for score in judged.values())
    print(f"left out   {len(judged):6} harmless texts, {1000 * alarms / len(judged):.2f} false alarms in 1,000")


def report(name: str, rows: Sequence[Labelled], judged: dict[int, float], margin: int) -> None:
    """The shares of caught secrets and refused notes at a margin, and at the margins that refuse a target share of the notes."""
    secret = np.array([score for at, score in judged.items() if rows[at].secrets])
    plain = np.sort([score for at, score in judged.items() if not rows[at].secrets])[::-1]
    at_targets = ", ".join(
        f"{np.mean(secret > plain[int(share * len(plain))]):.1%} at {share:.1%}" for share in TARGETS
    )
    caught, refused = np.mean(secret > margin), np.mean(plain > margin)
    print(
        f"{name:4} {len(secret)} secrets, {caught:.1%} caught; {len(plain)} notes, {refused:.2%} refused; {at_targets}"
    )


def main() -> None:
    """Train, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--texts", action="store_true", help="with --check: print the texts that are judged wrongly")
    parser.add_argument("--margin", type=int, default=MARGIN)
    given = parser.parse_args()
    collected = collect([row for row in texts() if row.text.strip()])
    seen, found = collected.matrix(), collected.found
    secrets = sum(each.is_secret is True for each in found)
    print(f"{len(collected.rows)} texts, {len(found)} spans, {secrets} credentials", file=sys.stderr)
    if given.check:
        check(collected, seen, given.margin, given.texts)
        return
    target = written(MODEL, fit(seen, found))
    print(f"{target.name}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
