"""The teacher of train_task_vectors.py: a sentence encoder that learns which note a prompt is about, then rates their similarity."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from task_data import MeasuredSet, Note, Writer
from torch.nn import functional

os.environ["HF_HUB_OFFLINE"] = "1"
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
EPOCHS, RATE, WARM_UP = 4, 5e-5, 40
GROUP, GROUPS = 64, 3
"""A batch has this many prompts from each of this many writers, so that most wrong notes are of the same trade."""
UNRELATED = 8
"""Prompts of each writer in a batch that no note is about."""
TOKENS, SHARPNESS, AT_ONCE = 96, 25.0, 1024
Tensor = torch.Tensor


class TaskTeacher:
    """all-MiniLM-L6-v2 or another encoder that averages its last layer."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).to(DEVICE)
        self.none = torch.nn.Parameter(torch.tensor(0.4, device=DEVICE))
        """Similarity of a prompt and a note at which it is as likely that the prompt is about no note."""
        self._read: dict[str, list[int]] = {}

    def embed(self, texts: Sequence[str]) -> Tensor:
        """Unit vectors."""
        found = []
        for start in range(0, len(texts), AT_ONCE):
            part = [self._tokens(text) for text in texts[start : start + AT_ONCE]]
            longest = max(map(len, part))
            ids = torch.tensor([tokens + [0] * (longest - len(tokens)) for tokens in part], device=DEVICE)
            mask = (
                torch.arange(longest, device=DEVICE)[None] < torch.tensor([[len(t)] for t in part], device=DEVICE)
            ).long()
            with torch.autocast(DEVICE, torch.bfloat16):
                states = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask[..., None]
            mean = (states.float() * weights).sum(1) / weights.sum(1)
            found.append(functional.normalize(mean, dim=-1))
        return torch.cat(found)

    def _tokens(self, text: str) -> list[int]:
        known = self._read.get(text)
        if known is None:
            known = self._read[text] = self.tokenizer(text, truncation=True, max_length=TOKENS)["input_ids"]
        return known

    def train(self, writers: Sequence[Writer], seed: int = 1) -> None:
        """Train on most prompts a few times."""
        random.seed(seed)
        torch.manual_seed(seed)
        groups = [{"params": self.model.parameters(), "speed": 1}, {"params": [self.none], "speed": 100}]
        optimizer = torch.optim.AdamW(groups, lr=RATE, weight_decay=0.01)
        total = EPOCHS * sum(len(note.prompts) for writer in writers for note in writer.notes) // (GROUP * GROUPS)
        step = 0
        self.model.train()
        for _ in range(EPOCHS):
            for batch, unrelated in _batches(writers):
                for group in optimizer.param_groups:
                    slower = min(1.0, (step + 1) / WARM_UP) * max(0.02, 1 - step / (1.15 * total))
                    group["lr"] = RATE * group["speed"] * slower
                loss = self._loss(batch, unrelated)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
        self.model.eval()

    def _loss(self, batch: list[Typed], unrelated: list[tuple[str, int]]) -> Tensor:
        size = len(batch)
        texts = [one.prompt for one in batch] + [_whole(one.note) for one in batch]
        situations_ = [one.note.situation or one.note.statement for one in batch]
        vectors = self.embed([*texts, *situations_, *(text for text, _ in unrelated)])
        prompts, notes, situations = vectors[:size], vectors[size : 2 * size], vectors[2 * size : 3 * size]
        own = torch.arange(len(batch), device=DEVICE)
        scores = prompts @ notes.T
        loss = functional.cross_entropy(scores * SHARPNESS, own) + 0.3 * functional.cross_entropy(
            scores.T * SHARPNESS, own
        )
        loss = loss + 0.3 * functional.cross_entropy(prompts @ situations.T * SHARPNESS, own)
        owners = torch.tensor([one.writer for one in batch], device=DEVICE)
        askers = torch.tensor([*owners.tolist(), *(writer for _, writer in unrelated)], device=DEVICE)
        all_scores = torch.cat([scores, vectors[3 * size :] @ notes.T]).masked_fill(
            askers[:, None] != owners[None], -torch.inf
        )
        levels = torch.cat([all_scores, self.none.expand(len(askers), 1)], dim=1) * SHARPNESS
        meant = torch.cat([own, torch.full((len(unrelated),), size, device=DEVICE)])
        return loss + 0.5 * functional.cross_entropy(levels, meant)

    def near(self, writers: Sequence[Writer]) -> Tensor:
        """The similarity of every prompt to every note."""
        notes = [note for writer in writers for note in writer.notes]
        with torch.no_grad():
            known = self.embed([_whole(note) for note in notes])
            return (self.embed([prompt for note in notes for prompt in note.prompts]) @ known.T).half()

    def measured(self, one: MeasuredSet) -> str:
        """How often the right note is among the first three, and also above 95 % of the best scores of unrelated prompts."""
        with torch.no_grad():
            scores = (
                (self.embed([text for text, _ in one.prompts]) @ self.embed(list(map(_whole, one.notes))).T)
                .cpu()
                .numpy()
            )
        return first_and_shown(one, scores)


def first_and_shown(one: MeasuredSet, scores: np.ndarray) -> str:
    """The two figures of a set."""
    memories = [memory for _, memory in one.prompts]
    floor = np.quantile([row.max() for row, memory in zip(scores, memories, strict=True) if memory is None], 0.95)
    related = [(row, memory) for row, memory in zip(scores, memories, strict=True) if memory is not None]
    first = [(row > row[memory]).sum() < 3 for row, memory in related]
    shown = [found and row[memory] > floor for found, (row, memory) in zip(first, related, strict=True)]
    return f"{one.name}: in first 3 {np.mean(first):.2f}, and shown where .95 are silent {np.mean(shown):.2f}"


def _whole(note: Note) -> str:
    return f"{note.situation}. {note.statement}" if note.situation else note.statement


@dataclass(frozen=True)
class Typed:
    """A prompt, the note it is about, and the number of their writer."""

    note: Note
    prompt: str
    writer: int


def _batches(writers: Sequence[Writer]) -> list[tuple[list[Typed], list[tuple[str, int]]]]:
    """Prompts with their notes, in groups of one writer, and prompts of these writers without a note.

    A note occurs once in a batch.
    """
    groups = []
    for number, writer in enumerate(writers):
        pairs = [Typed(note, prompt, number) for note in writer.notes for prompt in note.prompts]
        random.shuffle(pairs)
        groups += [(writer, pairs[start : start + GROUP]) for start in range(0, len(pairs), GROUP)]
    random.shuffle(groups)
    found = []
    for start in range(0, len(groups) - GROUPS + 1, GROUPS):
        part = groups[start : start + GROUPS]
        batch = {id(one.note): one for _, pairs in part for one in pairs}
        unrelated = [
            (text, pairs[0].writer)
            for writer, pairs in part
            for text in random.sample(writer.unrelated, min(UNRELATED, len(writer.unrelated)))
        ]
        found.append((list(batch.values()), unrelated))
    return found
