"""Questions with the evidence that the ranking had for them, used to train `train_ranking.py` and `train_relevance.py`.

Data sets are named on the command line as `kind=FILE` or `kind=FILE+DISTRACTORS` (locomo, beam, longmemeval). The
questions of our own writers in training/relevance/ are added. Everything goes through a real store, so that training
uses exactly what a search sees. The slots of training/hearing/slots/ are used for measuring only (`of_slots`).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from hearing_slots import Slot, filled, read_slots

from engram import Engram
from engram.bench import beam, locomo, longmemeval
from engram.bench.dataset import DatasetConversation, DatasetTurn, Question, SessionOfTurns, add_sessions
from engram.bench.retrieval import fill
from engram.model.errors import Refused, SecretRefused
from engram.recall.fusion import matrix, score, weigh_evidence
from engram.recall.query import SearchQuery
from engram.recall.ranking import judge
from engram.recall.relevance import FEATURES, RelevanceQuery, evidence_of_each
from engram.recall.search import Searcher
from engram.store.protocol import Filters

WRITERS = Path(__file__).resolve().parent / "relevance"
LOADERS: dict[str, Callable[[Path], list[DatasetConversation]]] = {
    "locomo": locomo.load,
    "beam": beam.load,
    "longmemeval": longmemeval.load,
}
DEPTH, SHOWN = 50, 10
KNOWN = 0.7
"""The share of a file's slots whose value a store has; it has a look-alike of every slot."""
Floats = npt.NDArray[np.float32]


@dataclass
class Judged:
    """One question: the evidence for every document considered, which of them answer it, and the first of them."""

    kind: str
    corpus: str
    text: str
    label: str
    by_turn: bool
    wanted: int
    """Number of documents (or sessions) that answer it, found or not."""
    evidence: Floats
    answers: npt.NDArray[np.bool_]
    """The turns that answer, for training; for sessions, `answering` names those that count."""
    answering: npt.NDArray[np.bool_]
    sessions: npt.NDArray[np.int64]
    first: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    features: Floats | None = None


def of_data_set(name: str, path: Path, distractors: Path | None = None) -> Iterator[Judged]:
    """The questions of a data set, each asked of its own conversation and the distractor sessions."""
    more = longmemeval.load_distractors(distractors) if distractors else ()
    kind = f"{name}:{path.stem}" + (f"+{distractors.stem}" if distractors else "")
    for conversation in add_sessions(LOADERS[name](path), more):
        with Engram.open(ephemeral=True) as mem:
            fill(mem, conversation)
            yield from _asked(mem, conversation, kind, name != "longmemeval")


def of_talk(path: Path) -> Iterator[Judged]:
    """The questions of one of our writers about conversations."""
    data = json.loads(path.read_text("utf-8"))
    sessions = tuple(
        SessionOfTurns(
            each["id"],
            datetime.fromisoformat(each["date"]).replace(tzinfo=UTC),
            tuple(DatasetTurn(turn["id"], turn["speaker"], turn["text"]) for turn in each["turns"]),
        )
        for each in data["sessions"]
    )
    asked = tuple(Question(q["q"], tuple(q["evidence"]), q["label"]) for q in data["questions"])
    conversation = DatasetConversation(path.stem, sessions, asked)
    with Engram.open(ephemeral=True) as mem:
        fill(mem, conversation)
        yield from _asked(mem, conversation, "talk", by_turn=True)


def of_memories(path: Path, *, others: bool = False) -> Iterator[Judged]:
    """The questions of one of our writers about memories. A memory that contains a secret is refused, as it should be.

    With `others`, the answerable questions are asked about somebody else in the same store, so that nothing answers
    them: a fact about Ben does not answer a question about Ada.
    """
    data = json.loads(path.read_text("utf-8"))
    if others:
        data["questions"] = list(swap_names(data))
    with Engram.open(ephemeral=True) as mem:
        kept = set()
        for each in data["memories"]:
            try:
                mem.add(each["text"], metadata={"key": each["id"]})
            except (Refused, SecretRefused):
                continue
            kept.add(each["id"])
        for asked in data["questions"]:
            if asked["answer"] and kept.isdisjoint(asked["answer"]):
                continue
            question = Question(asked["q"], tuple(asked["answer"]), asked["label"])
            kind = "others" if others else "memories"
            found = _judged(mem, question, kind, path.stem, ("memory",), {}, by_turn=True)
            if found is not None:
                yield found


def of_slots(path: Path) -> Iterator[Judged]:
    """Questions about the slots of a file, asked of a store with the values of most of them and a look-alike of each.

    A statement of the slot answers its questions; nothing answers those of a slot without a value. A look-alike may
    happen to answer a `nearby` question, so look-alikes are left out there.
    """
    chance = random.Random(path.stem)
    slots = read_slots(path)
    known = [chance.random() < KNOWN for _ in slots]
    with Engram.open(ephemeral=True) as mem:
        for number, slot in enumerate(slots):
            told = [("told", chance.choice(slot.lines["holds"] + slot.lines["changes"]))] if known[number] else []
            for kind, text in (*told, ("alike", chance.choice(slot.lines["lookalikes"]))):
                with suppress(Refused, SecretRefused):
                    mem.add(_filled(text, slot, chance), metadata={"key": f"{number} {kind}"})
        for number, slot in enumerate(slots):
            answers = (f"{number} told",) if known[number] else ()
            direct = [
                Question(text, answers, "answerable" if answers else "unknown") for text in slot.lines["questions"]
            ]
            nearby = [Question(text, (), "unknown") for text in slot.lines["nearby"]]
            for question in (*direct, *nearby):
                but = "" if question in direct else f"{number} alike"
                found = _judged(mem, question, "slots", path.stem, ("memory",), {}, by_turn=True, but=but)
                if found is not None:
                    yield found


def _filled(text: str, slot: Slot, chance: random.Random) -> str:
    value, old, other = chance.sample(slot.values, 3)
    return filled(text, value, old, other)


def swap_names(data: Any) -> Iterator[dict[str, Any]]:
    texts = {each["id"]: each["text"] for each in data["memories"]}
    everywhere = [*texts.values(), *(asked["q"] for asked in data["questions"])]
    names = sorted({name for text in everywhere for name in _NAME.findall(text)})
    for number, asked in enumerate(data["questions"]):
        told = " ".join(texts[key] for key in asked["answer"])
        shared = [name for name in names if _says(told, name) and _says(asked["q"], name)]
        others = [name for name in names if not _says(told, name)]
        for step, name in enumerate(shared):
            changed = re.sub(rf"\b{name}\b", others[(7 * number + step) % len(others)], asked["q"])
            yield {"q": changed, "answer": [], "label": "unknown"}


def _says(text: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", text) is not None


_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}\b")
"""A capitalised word inside a sentence."""


def _asked(mem: Engram, conversation: DatasetConversation, kind: str, by_turn: bool) -> Iterator[Judged]:
    for question in conversation.questions:
        found = _judged(mem, question, kind, conversation.key, ("event",), conversation.session_of, by_turn=by_turn)
        if found is not None:
            yield found


def _judged(
    mem: Engram,
    question: Question,
    kind: str,
    corpus: str,
    kinds: Sequence[str],
    session_of: object,
    *,
    by_turn: bool,
    but: str = "",
) -> Judged | None:
    """The question as the ranking saw it, without the documents of one key; None if it saw nothing."""
    searcher = Searcher(mem.store, lambda: datetime.now(UTC))
    candidates, query = searcher.retrieve(SearchQuery(question.text, DEPTH, filters=Filters(kinds=tuple(kinds))))
    placed, (judged, *_) = judge(mem.store, [(candidates, query)]) if candidates.positions else ([], (None,))
    if judged is None:
        return None
    keys_of = {found.n: found.record.metadata["key"] for found in mem.store.get_many([place.n for place in placed])}
    keys = [keys_of[place.n] for place in placed]
    homes = [session_of.get(key, key) if isinstance(session_of, dict) else key for key in keys]
    numbers = {home: number for number, home in enumerate(dict.fromkeys(homes))}
    wanted, turns = set(question.evidence), set(question.turns or question.evidence)
    answering = np.array([(key if by_turn else home) in wanted for key, home in zip(keys, homes, strict=True)])
    answers = np.array([key in turns for key in keys]) if question.turns or by_turn else answering
    ranks = np.argsort(-score(weigh_evidence(judged.evidence)), kind="stable")
    ranks = ranks[np.array([keys[rank] != but for rank in ranks], dtype=bool)]
    first = ranks[:SHOWN].astype(np.int64)
    asked = RelevanceQuery(query, candidates, judged.alike, judged.cosines[first], first)
    read = evidence_of_each([asked], judged.passages)[0][:, : len(FEATURES)] if query.terms else None
    places = np.array([numbers[home] for home in homes], dtype=np.int64)
    label = question.category if question.category in ("unknown", "unrelated") else "answerable"
    return Judged(
        kind, corpus, question.text, label, by_turn, len(wanted), matrix(judged.evidence), answers, answering, places, first, read
    )  # fmt: skip


def everything(data_sets: Sequence[str]) -> Iterator[Judged]:
    """Every question of the named data sets and of our writers."""
    for each in data_sets:
        name, _, paths = each.partition("=")
        file, _, distractors = paths.partition("+")
        yield from of_data_set(name, Path(file), Path(distractors) if distractors else None)
    for path in sorted((WRITERS / "memories").glob("*.json")):
        yield from of_memories(path)
        yield from of_memories(path, others=True)
    for path in sorted((WRITERS / "talk").glob("*.json")):
        yield from of_talk(path)
