"""Judges whether a remark to a coding agent is a lasting rule or fact, or a momentary request.

Most remarks to such an agent ask for work to do now, in the same words as rules. A logistic model combines the output
of the model of worth for the sentences with a few cues; training/train_remarks.py trains it on a writer's month of
sessions.
"""

import json
import re
from functools import lru_cache
from math import exp, log
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass

__all__ = ["FEATURES", "PROPOSE_PROBABILITY", "RemarkCues", "features", "probability"]

PROPOSE_PROBABILITY = 0.7
"""The probability from which a remark is proposed. Of held-out turns: 49 of 59 remarks to keep, and 6 others of 930
turns.
"""
CUES = Path(__file__).with_name("remark_cues.txt")
FILE = Path(__file__).with_name("remarks.json")
SECTIONS = ("general", "obliging", "because", "announcing", "placed", "passing")
FEATURES = (
    "worth", "ruled", "tentative", "words", "of the user", "of the project", "a rule", "a fact", *SECTIONS, "code", "digits", "asks",
)  # fmt: skip
_RULES = frozenset(
    ("convention", "preference", "constraint", "decision", "principle", "correction", "procedural", "behavioral")
)
_FACTS = frozenset(("fact", "entity"))
_CODE = re.compile(r"`[^`\n]+`|\w/\w|\w\.\w")
_DIGIT = re.compile(r"\d")
_MOST = 0.99
_MAX_TURN_CHARACTERS = 2_000
"""The maximum number of characters that are read."""


@dataclass(frozen=True, slots=True)
class RemarkCues:
    """The evidence about a remark: the output of the model of worth, its words, and its context."""

    worth: float
    statement: str
    said: str
    """The words of the turn."""
    turn: str
    project: str
    type: str
    owner: str
    ruled: bool
    """Whether a part of it is phrased as a rule."""
    tentative: bool


def probability(cues: RemarkCues) -> float:
    """The probability that a remark is worth keeping."""
    model = _model()
    scaled = zip(features(cues), model["mean"], model["scale"], model["weights"], strict=True)
    score = model["bias"] + sum((value - mean) / scale * weight for value, mean, scale, weight in scaled)
    return 1 / (1 + exp(-score)) if score > -50 else 0.0


def features(cues: RemarkCues) -> list[float]:
    """The values of `FEATURES`."""
    worth = min(max(cues.worth, 1 - _MOST), _MOST)
    said = cues.said[:_MAX_TURN_CHARACTERS]
    named = bool(cues.project) and cues.project.casefold() in said.casefold()
    found = [bool(pattern.search(said)) for pattern in _patterns()]
    found[SECTIONS.index("placed")] |= named
    return [
        log(worth / (1 - worth)), float(cues.ruled), float(cues.tentative), log(len(cues.statement.split()) + 1),
        float(cues.owner == "user"), float(cues.owner == "project"), float(cues.type in _RULES), float(cues.type in _FACTS),
        *map(float, found), float(bool(_CODE.search(said))), float(bool(_DIGIT.search(said))), float("?" in cues.turn[:_MAX_TURN_CHARACTERS]),
    ]  # fmt: skip


@lru_cache(maxsize=1)
def _patterns() -> list[re.Pattern[str]]:
    patterns = cue_patterns(CUES)
    return [patterns[name] for name in SECTIONS]


def cue_patterns(file: Path) -> dict[str, re.Pattern[str]]:
    """For each section of a file of cues, a pattern that matches any of them."""
    listed: dict[str, list[str]] = {}
    section: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("["):
            section = listed.setdefault(line.strip("[]"), [])
        elif line.strip() and not line.startswith("#"):
            section.extend(re.escape(cue.strip()) for cue in line.split(","))
    return {name: re.compile(rf"\b(?:{'|'.join(cues)})\b", re.IGNORECASE) for name, cues in listed.items()}


@lru_cache(maxsize=1)
def _model() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILE.read_text("utf-8"))
    return found
