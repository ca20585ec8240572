"""Train the second model of how two statements relate: src/engram/models/pair_attention.npz.

    pip install torch
    python training/train_pair_attention.py             # writes it; two minutes on a GPU, hours without
    python training/train_pair_attention.py --check     # figures of the model alone on writers it never saw, pooled

It learns from the labelled pairs of training/hearing, from pairs drawn out of its slots (training/hearing_slots.py), which count little each because they are
many, from neighbours of both, and from news about one thing that changes nothing else of it, which are `different`. `engram.models.pairs` reads the result without torch.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).resolve().parent))

from hearing_slots import every_rival, every_slot, slot_pairs
from pair_scores import LABELS, Pair, aligned, every_pair, gold, neighbours, report

from engram.models.pair_words import FUNCTION, NAME, NUMBER, read_statement, word_vectors
from engram.models.pairs import (
    ATTENTION_FILE,
    BIAS_SCALE,
    HEADS,
    KINDS,
    MAX_INPUT_DEVIATIONS,
    MAX_STATEMENT_WORDS,
    MEASURES,
    SCALE,
    VECTOR_SCALE,
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SIZE, LAYERS, POOLED, STEMS = 64, 2, 96, 2500
"""The width of a word, the layers, the width of the last hidden layer, and the number of common words with their own
weights."""
TURNS, ROWS_AT_ONCE, RATE, DECAY, DROPPED, WARM = 8, 512, 2e-3, 0.05, 0.2, 200
NEIGHBOUR, SLOT, SLOT_NEIGHBOUR, RIVAL = 0.5, 0.2, 0.1, 0.5
"""The weight of such a pair relative to a labelled one."""
FOLDS = 5
LARGE = 4096
"""Minimum size of an array that is written as bytes."""


class Words:
    """Texts as the model reads them, on the device, and the two texts of each pair."""

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        texts = {text: place for place, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        statements = [read_statement(text).tokens[:MAX_STATEMENT_WORDS] for text in texts]
        keys = {key: place for place, key in enumerate(dict.fromkeys(t.key for each in statements for t in each))}
        counts = Counter(token.stem for each in statements for token in each)
        stems = {stem: place for place, (stem, _) in enumerate(counts.most_common())}
        table = np.zeros((len(texts), MAX_STATEMENT_WORDS, 3), dtype=np.int64)
        for row, tokens in enumerate(statements):
            table[row, : len(tokens)] = [(keys[t.key], stems[t.stem], KINDS.index(t.kind)) for t in tokens]
        vectors, _ = word_vectors(list(keys))
        self.stems = list(stems)[:STEMS]
        self.table, self.vectors = on_device(table), on_device(vectors)
        self.lengths = on_device(np.array([len(each) for each in statements]))
        self.older, self.newer = (on_device(np.array([texts[pair[side]] for pair in pairs])) for side in (0, 1))
        self.measures: Any = None


class Pairs(Words):
    """Labelled pairs with their measures."""

    def __init__(self, pairs: Sequence[Pair], weights: Any) -> None:
        super().__init__([(pair.older, pair.newer) for pair in pairs])
        self.measures = on_device(np.concatenate([each.measures() for each in aligned(pairs)]))
        self.labels = on_device(gold(pairs))
        self.weights = on_device(np.asarray(weights, dtype=np.float32))


def on_device(array: Any) -> Any:
    return torch.from_numpy(array).to(DEVICE)


class Layer(nn.Module):
    """Attention and a hidden layer; `b` weights the similarity of words, their identity, and being in different statements."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.p = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.f1, self.f2 = nn.Linear(size, 2 * size), nn.Linear(2 * size, size)
        self.b = nn.Parameter(torch.zeros(3, HEADS))

    def forward(self, rows: Any, likenesses: Sequence[Any], blocked: Any) -> Any:
        total, width, size = rows.shape
        split = self.qkv(self.n1(rows)).view(total, width, 3, HEADS, size // HEADS)
        asked, offered, said = split.permute(2, 0, 3, 1, 4)
        scores = asked @ offered.transpose(-1, -2) / (size // HEADS) ** 0.5 + blocked
        for weight, likeness in zip(self.b, likenesses, strict=True):
            scores = scores + BIAS_SCALE * weight.view(1, HEADS, 1, 1) * likeness[:, None]
        heard = (scores.softmax(-1) @ said).transpose(1, 2).reshape(total, width, size)
        rows = rows + functional.dropout(self.p(heard), DROPPED, self.training)
        hidden = self.f2(functional.gelu(self.f1(self.n2(rows)), approximate="tanh"))
        return rows + functional.dropout(hidden, DROPPED, self.training)


class Attention(nn.Module):
    """The model of `engram.models.pairs`; its parts are named like that file's arrays.

    Without measures it reads only the words.
    """

    def __init__(self, size: int, labels: int, measures: Any = None) -> None:
        super().__init__()
        self.v = nn.Linear(256, size, bias=False)
        self.st, self.k = nn.Embedding(STEMS + 1, size), nn.Embedding(len(KINDS), size)
        self.seg, self.pos = nn.Embedding(2, size), nn.Embedding(MAX_STATEMENT_WORDS, size)
        nn.init.normal_(self.st.weight, 0, 0.02)
        self.m = nn.Linear(4, size)
        self.bl = nn.ModuleList(Layer(size) for _ in range(LAYERS))
        self.n = nn.LayerNorm(size)
        seen = 0 if measures is None else MEASURES
        self.h, self.o = nn.Linear(4 * size + seen, POOLED), nn.Linear(POOLED, labels)
        if measures is not None:
            self.register_buffer("mean", measures.mean(0))
            self.register_buffer("sd", measures.std(0) + 1e-6)

    def forward(self, shown: Words, chosen: Any) -> Any:
        older, newer = shown.older[chosen], shown.newer[chosen]
        wide = [int(shown.lengths[side].max()) for side in (older, newer)]
        words = torch.cat([shown.table[older][:, : wide[0]], shown.table[newer][:, : wide[1]]], 1)
        places = torch.cat([torch.arange(each, device=DEVICE) for each in wide])
        side = (torch.arange(sum(wide), device=DEVICE) >= wide[0]).long()
        lengths = torch.stack([shown.lengths[older], shown.lengths[newer]], 1)
        seen = places[None] < lengths[:, side]
        kinds, stems = words[..., 2], words[..., 1]
        vectors = shown.vectors[words[..., 0]] * (kinds != KINDS.index(NUMBER))[..., None] * seen[..., None]
        same = ((stems[:, :, None] == stems[:, None]) & seen[:, :, None] & seen[:, None]).float()
        likeness = torch.maximum(vectors @ vectors.transpose(1, 2), same)
        other = (side[:, None] != side).float()[None].expand_as(same)
        content = ((kinds != KINDS.index(FUNCTION)) & seen).float()
        best = (likeness * other * content[:, None]).max(2).values
        marks = torch.stack([(same * other).max(2).values, best, best * best, content], -1)
        own = torch.where(stems < STEMS, stems + 1, 0) * ((kinds != KINDS.index(NUMBER)) & (kinds != KINDS.index(NAME)))
        if self.training:
            own = own * (torch.rand(own.shape, device=DEVICE) > 0.15)
        rows = self.v(VECTOR_SCALE * vectors) + self.st(own) + self.k(kinds) + self.seg(side) + self.pos(places)
        rows = functional.dropout(rows + self.m(marks), DROPPED / 2, self.training)
        blocked = torch.where(seen, 0.0, -1e4)[:, None, None]
        for layer in self.bl:
            rows = layer(rows, (likeness, same, other), blocked)
        parts = self._pooled(self.n(rows), seen, side)
        if shown.measures is not None:
            scaled = ((shown.measures[chosen] - self.mean) / self.sd).clamp(-MAX_INPUT_DEVIATIONS, MAX_INPUT_DEVIATIONS)
            parts.append(functional.dropout(scaled, 0.15, self.training))
        hidden = functional.gelu(self.h(torch.cat(parts, 1)), approximate="tanh")
        return self.o(functional.dropout(hidden, DROPPED, self.training))

    @staticmethod
    def _pooled(rows: Any, seen: Any, side: Any) -> list[Any]:
        sides = [(seen & (side == each))[..., None].float() for each in (0, 1)]
        means = [(rows * each).sum(1) / each.sum(1).clamp_min(1) for each in sides]
        return [*means, *((rows - 1e4 * (1 - each)).max(1).values.clamp_min(-50) for each in sides)]


def trained(shown: Pairs, chosen: Any) -> Attention:
    """A model trained on the chosen pairs."""
    torch.manual_seed(0)
    model = Attention(SIZE, len(LABELS), shown.measures[chosen]).to(DEVICE)

    def loss(own: Any) -> Any:
        found = model(shown, own)
        losses = functional.cross_entropy(found, shown.labels[own], reduction="none", label_smoothing=0.02)
        return (losses * shown.weights[own]).mean()

    descend(model, chosen, loss, TURNS, ROWS_AT_ONCE, RATE, decay=DECAY)
    return model.eval()


def descend(model: nn.Module, chosen: Any, loss: Any, turns: int, rows: int, rate: float, *, decay: float) -> None:
    """Minimise the loss of the chosen rows in batches, at a rate that rises and then falls."""
    adam = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    steps, step = turns * -(-len(chosen) // rows), 0
    for turn in range(turns):
        for own in chosen[torch.randperm(len(chosen), device=DEVICE)].split(rows):
            step += 1
            for group in adam.param_groups:
                group["lr"] = rate * min(1.0, step / WARM) * (1 - step / (steps + 1))
            adam.zero_grad()
            loss(own).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
        print(f"turn {turn + 1} of {turns}", file=sys.stderr, flush=True)


@torch.no_grad()
def predicted(model: Attention, shown: Pairs, chosen: Any) -> Any:
    """The probabilities of the chosen pairs."""
    return torch.cat([model(shown, own).softmax(-1) for own in chosen.split(2000)]).cpu().numpy()


def written(model: Attention, stems: Sequence[str], file: Path = ATTENTION_FILE) -> None:
    """Write the model: large weights as signed bytes with a scale for each row, the rest as half floats."""
    arrays = {}
    for name, array in ((name.replace(".", "_"), array.cpu().numpy()) for name, array in model.state_dict().items()):
        if array.ndim > 1 and array.size >= LARGE:
            scale = np.maximum(np.abs(array).max(axis=1, keepdims=True), 1e-8) / 127
            arrays |= {name: np.round(array / scale).astype(np.int8), f"{name}{SCALE}": scale.astype(np.float32)}
        else:
            arrays[name] = array.astype(np.float32 if name in ("mean", "sd") else np.float16)
    np.savez_compressed(file, **arrays, stems=np.frombuffer("\n".join(stems).encode("utf-8"), dtype=np.uint8))


def everything() -> tuple[list[Pair], list[Pair], Any]:
    """The labelled pairs; all pairs, those first; and the weight of each."""
    labelled = every_pair()
    slots = every_slot()
    drawn = [Pair(f"slots {slot.writer}", *row) for slot in slots for row in slot_pairs(slot)]
    some = [Pair(f"slots {slot.writer}", *row) for slot in slots for row in slot_pairs(slot, seed=1, share=0.3)]
    rivals = [Pair(f"slots {writer}", *row) for seed in (0, 1) for writer, *row in every_rival(slots, 24, seed)]
    parts = (labelled, neighbours(labelled, share=0.15), drawn, neighbours(some, share=0.2), rivals)
    weights = np.repeat((1.0, NEIGHBOUR, SLOT, SLOT_NEIGHBOUR, RIVAL), [len(part) for part in parts])
    return labelled, [pair for part in parts for pair in part], weights


def main() -> None:
    """Train or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    labelled, pairs, weights = everything()
    shown = Pairs(pairs, weights)
    if not options.check:
        written(trained(shown, torch.arange(len(pairs), device=DEVICE)), shown.stems)
        print(f"{ATTENTION_FILE.name}: {len(pairs)} pairs, {ATTENTION_FILE.stat().st_size} bytes")
        return
    names = (sorted({p.writer for p in labelled}), sorted({p.writer for p in pairs} - {p.writer for p in labelled}))
    fold = {name: place % FOLDS for group in names for place, name in enumerate(group)}
    folds = torch.tensor([fold[pair.writer] for pair in pairs], device=DEVICE)
    found = np.zeros((len(labelled), len(LABELS)))
    for left in range(FOLDS):
        own = (folds[: len(labelled)] == left).nonzero()[:, 0]
        found[own.cpu().numpy()] = predicted(trained(shown, (folds != left).nonzero()[:, 0]), shown, own)
    report(labelled, found)


if __name__ == "__main__":
    main()
