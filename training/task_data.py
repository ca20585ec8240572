"""The data of training/situations: notes of agents, the prompts they matter for, and words that belong to the same kind of task.

Each file is by one writer, in JSON lines: {"situation", "statement", "prompts"} is a note and what users typed when it
mattered, {"unrelated"} a prompt that none of the writer's notes is about, {"task", "words"} names of a kind of task and
what people type during it. A set to measure on is one JSON object: {"memories": [{"situation", "statement"}],
"prompts": [{"text", "memory": index or null}]}.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).with_name("situations")


@dataclass(frozen=True)
class Note:
    """A note of an agent, and prompts it matters for."""

    situation: str
    statement: str
    prompts: tuple[str, ...] = ()


@dataclass
class Writer:
    """The notes of one writer, and prompts that none of them is about."""

    name: str
    notes: list[Note] = field(default_factory=list)
    unrelated: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class TaskWords:
    """Names of a kind of task, and what people type during it."""

    names: tuple[str, ...]
    words: tuple[str, ...]


@dataclass(frozen=True)
class MeasuredSet:
    """A store's memories, and prompts with the memory each is about."""

    name: str
    notes: list[Note]
    prompts: list[tuple[str, int | None]]


def read_data(folder: Path = DATA) -> tuple[list[Writer], list[TaskWords]]:
    """Every writer, and the words of all tasks."""
    writers, words = [], []
    for file in sorted(folder.glob("*.jsonl")):
        writer = Writer(file.stem)
        for line in _objects(file):
            if "words" in line:
                words.append(TaskWords(tuple(line["task"]), tuple(line["words"])))
            elif "unrelated" in line:
                writer.unrelated.append(line["unrelated"])
            else:
                writer.notes.append(Note(line["situation"], line["statement"], tuple(line["prompts"])))
        if writer.notes:
            writers.append(writer)
    return writers, words


def _objects(file: Path) -> Iterator[dict[str, list[str] | str]]:
    for line in file.read_text("utf-8").splitlines():
        if line.strip():
            yield json.loads(line)


def read_measured(file: Path) -> MeasuredSet:
    """A set to measure on."""
    content = json.loads(file.read_text("utf-8"))
    notes = [Note(memory.get("situation") or "", memory["statement"]) for memory in content["memories"]]
    return MeasuredSet(file.stem, notes, [(prompt["text"], prompt["memory"]) for prompt in content["prompts"]])
