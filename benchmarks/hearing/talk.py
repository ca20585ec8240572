"""The labelled talk of `training/hearing`, turn by turn."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from training.hearing_data import FOLDER, HELD, Sentence, talk, writers

__all__ = ["FOLDER", "HELD", "Labelled", "LabelledTurn", "Sentence", "conversations", "writers"]


@dataclass(frozen=True)
class LabelledTurn:
    """One turn of a conversation."""

    role: str
    sentences: list[Sentence]

    @property
    def content(self) -> str:
        """The turn as typed: a sentence without a full stop ends its line."""
        parts = [one.text + (" " if one.text.endswith((".", "!", "?", "…")) else "\n") for one in self.sentences]
        return "".join(parts).strip()


Labelled = list[LabelledTurn]
"""One conversation."""


def conversations(writer: str, folder: Path = FOLDER) -> Iterator[Labelled]:
    """The conversations of one writer."""
    for _, said in groupby(talk(writer, folder), key=lambda one: one.conversation):
        turns = (list(turn) for _, turn in groupby(said, key=lambda one: one.turn))
        yield [LabelledTurn(turn[0].role, turn) for turn in turns]
