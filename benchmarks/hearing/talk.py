"""Reads the labelled talk of `training/hearing` (its README describes the format)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

HEARING = Path(__file__).parents[2] / "training" / "hearing"
HELD = HEARING / "held"
"""Writers to measure on; nobody reads what they wrote."""


@dataclass(frozen=True)
class Sentence:
    """A sentence with its labels, and the memory its writer wants."""

    text: str
    worth: str
    category: str
    owner: str
    duration: str
    mood: str
    memory: str

    @property
    def critical(self) -> bool:
        """Whether forgetting it could do harm."""
        return self.category.endswith("!")


@dataclass(frozen=True)
class LabelledTurn:
    """One turn of a conversation."""

    role: str
    sentences: list[Sentence] = field(default_factory=list)

    @property
    def content(self) -> str:
        """The turn as it is typed: a sentence without a full stop ends its line."""
        parts = [one.text + (" " if one.text.endswith((".", "!", "?", "…")) else "\n") for one in self.sentences]
        return "".join(parts).strip()


Labelled = list[LabelledTurn]
"""One conversation."""


def writers(folder: Path = HEARING) -> list[Path]:
    """The folders of the writers."""
    return sorted(path.parent for path in folder.glob("*/talk.txt") if path.parent.name != "held")


def conversations(writer: Path) -> Iterator[Labelled]:
    """The conversations of one writer."""
    turns: Labelled = []
    for line in (writer / "talk.txt").read_text("utf-8").splitlines():
        if line.startswith("== "):
            if turns:
                yield turns
            turns = []
        elif line.strip() in ("[user]", "[assistant]"):
            turns.append(LabelledTurn(line.strip()[1:-1]))
        elif line.strip():
            worth, category, owner, duration, mood, rest = (part.strip() for part in line.split(" | ", 5))
            said, _, memory = rest.partition(" => ")
            turns[-1].sentences.append(Sentence(said.strip(), worth, category, owner, duration, mood, memory.strip()))
    if turns:
        yield turns
