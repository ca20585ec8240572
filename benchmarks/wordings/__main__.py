"""What `search` and `recall` find for a question alone, with other wordings, and with stored cues.

    python -m benchmarks.wordings FILE.json… [--cues] [--others 3000] [--hook]

Printed for each verb: the share of answerable questions with the right memory first, among the first three and five (`recall`: known,
then possibly related), and among what is known; the share of unanswerable questions for which nothing is known; and the share of
questions in other languages, asked alone, with the right memory among the first three. `--others` adds notes of training/situations.
`--hook` also measures the prompt hook, which adds at most three memories to a prompt.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram import Engram
from engram.hooks.memory_index import MemoryIndex
from engram.hooks.prompt import MAX_PROMPT_MEMORIES, ranked_memories
from engram.model.errors import Refused, SecretRefused
from engram.model.hit import Hit
from engram.recall.cutoff import MIN_KNOWN

NOTES = Path(__file__).resolve().parents[2] / "training" / "situations"
LIMIT = 10
Answer = tuple[Sequence[str], Sequence[str]]
"""The ids of known hits and of possibly related ones."""
Ask = Callable[[Engram, Mapping[str, Any]], Answer]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the ids of what was found, best first, and of what is known among them."""

    kind: str
    right: frozenset[str]
    found: tuple[str, ...]
    known: frozenset[str]


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE.json")
    parser.add_argument("--cues", action="store_true", help="store each memory with its cues")
    parser.add_argument("--others", type=int, default=0, metavar="N", help="other statements in each store")
    parser.add_argument("--hook", action="store_true", help="also measure the prompt hook")
    given = parser.parse_args()
    verbs = VERBS | ({"prompt hook": _ask_hook} if given.hook else {})
    for path in given.files:
        print(
            f"{path.name}{', with cues' if given.cues else ''}{f', among {given.others} others' if given.others else ''}"
        )
        rows: dict[str, list[Asked]] = {name: [] for name in verbs}
        for world in json.loads(path.read_text("utf-8"))["worlds"]:
            for name, asked in ask_all(world, verbs, cues=given.cues, others=given.others):
                rows[name].append(asked)
        for name, asked_of_verb in rows.items():
            print(describe(name, asked_of_verb))


def ask_all(
    world: Mapping[str, Any], verbs: Mapping[str, Ask], *, cues: bool, others: int
) -> Iterator[tuple[str, Asked]]:
    """Store a world and ask its questions by every verb."""
    with tempfile.TemporaryDirectory() as home, Engram.open(Path(home), directory=home) as mem:
        ids = {}
        for memory in world["memories"]:
            # A statement that looks like a secret is refused, and its questions are missed, as they would be for a user.
            with suppress(Refused, SecretRefused):
                stored = mem.add(memory["text"], scope="global", cues=memory["cues"] if cues else ())
                ids[stored.id] = memory["id"]
        if others:
            notes = [{"statement": text, "scope": "global"} for text in other_statements(others)]
            mem.add_batch(notes, on_error="skip")
        for question in world["questions"]:
            for name, ask in verbs.items():
                known, possible = ask(mem, question)
                found = tuple(ids.get(one, one) for one in (*known, *possible))
                yield (
                    name,
                    Asked(question["kind"], frozenset(question["answer"]), found, frozenset(found[: len(known)])),
                )


def other_statements(count: int) -> list[str]:
    """Statements of other people, in a fixed order."""
    lines = [line for path in sorted(NOTES.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    found = [str(json.loads(line).get("statement", "")) for line in lines if line.strip()]
    random.Random(7).shuffle(found)
    return list(dict.fromkeys(filter(None, found)))[:count]


def _search(mem: Engram, question: str, wordings: Sequence[str] = ()) -> Answer:
    hits = mem.search(question, wordings=wordings, limit=LIMIT)
    known = [hit for hit in hits if hit.relevance >= MIN_KNOWN]
    return _ids(known), _ids([hit for hit in hits if hit.relevance < MIN_KNOWN])


def _recall(mem: Engram, question: str, wordings: Sequence[str] = ()) -> Answer:
    found = mem.recall(question, wordings=wordings, limit=LIMIT)
    return _ids(found.hits), _ids(found.possible)


def _ask_hook(mem: Engram, asked: Mapping[str, Any]) -> Answer:
    """The memories that the prompt hook adds, after the update of the index that a session start does."""
    assert mem.home is not None
    index = MemoryIndex(mem.home.index)
    try:
        index.tasks(all_of_them=True)
        return [memory.id for _, memory in ranked_memories(index, asked["q"], ["global"])][:MAX_PROMPT_MEMORIES], []
    finally:
        index.close()


def _ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


VERBS: dict[str, Ask] = {
    "search": lambda mem, asked: _search(mem, asked["q"]),
    "search, wordings": lambda mem, asked: _search(mem, asked["q"], asked["wordings"]),
    "recall": lambda mem, asked: _recall(mem, asked["q"]),
    "recall, wordings": lambda mem, asked: _recall(mem, asked["q"], asked["wordings"]),
}


def describe(name: str, asked: Sequence[Asked]) -> str:
    """One line of the table."""
    answerable = [one for one in asked if one.kind == "known"]
    unknown = [one for one in asked if one.kind == "unknown"]
    foreign = [one for one in asked if one.kind == "language"]
    firsts = " ".join(f"{_share_among(answerable, first):.2f}" for first in (1, 3, 5))
    return (
        f"  {name:18} first 1/3/5 {firsts}  known {_share(answerable, lambda one: bool(one.right & one.known)):.2f}"
        f"  silent {_share(unknown, lambda one: not one.known):.2f}"
        f"  other languages {_share_among(foreign, 3):.2f}"
    )


def _share_among(asked: Sequence[Asked], first: int) -> float:
    """The share of questions with a right memory among the first."""
    return _share(asked, lambda one: not one.right.isdisjoint(one.found[:first]))


def _share(asked: Sequence[Asked], holds: Callable[[Asked], bool]) -> float:
    return sum(map(holds, asked)) / max(1, len(asked))


if __name__ == "__main__":
    main()
