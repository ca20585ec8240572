"""How well memories are found by their situations: by the prompt hook, and by `recall` and `inject`, through what a user calls.

    python -m benchmarks.situations SET.json… [--json]

A set has a store's memories, and prompts with the memory each is about: {"memories": [{"situation", "statement"}], "prompts": [{"text", "memory": place or
null}]}. Printed for each way: the share of prompts whose memory is among the first three shown (of `inject`, which orders by kind first: anywhere in its text), and the share
of the others that show nothing. A memory that the gates refuse cannot be found, and counts.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.command import parser, print_report
from engram import Engram
from engram.hooks.memory_index import MemoryIndex
from engram.hooks.prompt import ranked_memories
from engram.model.errors import InvalidInput, SecretRefused
from engram.store.home import open_home

FIRST = 3
BAR = 0.95
Finder = Callable[[str], list[str]]


def stored(memories: list[dict[str, str]], folder: Path) -> list[str]:
    """The ids of these memories in a new store; "" for one that was refused."""
    ids = []
    with Engram.open(folder / "home", cache=folder / "cache") as mem:
        for memory in memories:
            try:
                added = mem.add(memory["statement"], situation=memory.get("situation", ""), scope="global")
            except SecretRefused:
                ids.append("")
            else:
                ids.append(added.id)
    return ids


def shares(prompts: list[dict[str, Any]], ids: list[str], find: Finder) -> tuple[float, float]:
    """The share of prompts whose memory is found, and of the other prompts that find nothing."""
    found = [(prompt["memory"], find(prompt["text"])) for prompt in prompts]
    related = [bool(ids[place]) and ids[place] in got for place, got in found if place is not None]
    silent = [not got for place, got in found if place is None]
    return sum(related) / max(len(related), 1), sum(silent) / max(len(silent), 1)


def measure(path: Path) -> dict[str, tuple[float, float]]:
    """Both shares of one set, for each way of searching."""
    try:
        content = json.loads(path.read_text("utf-8"))
        memories, prompts = content["memories"], content["prompts"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} is not a set of memories and prompts: {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        ids = stored(memories, Path(folder))
        with Engram.open(Path(folder, "home"), cache=Path(folder, "cache")) as mem:
            index = MemoryIndex(open_home(Path(folder, "home"), Path(folder, "cache")).index)
            index.tasks(all_of_them=True)

            def by_inject(task: str) -> list[str]:
                given = mem.inject(task, scope="global")
                return [item.memory.id for item in (*given.directives, *given.consider)]

            ways: dict[str, Finder] = {
                "hook": lambda prompt: [memory.id for _, memory in ranked_memories(index, prompt, ("global",))[:FIRST]],
                "recall": lambda prompt: [hit.id for hit in mem.recall(prompt, scope="global").hits[:FIRST]],
                "inject": by_inject,
            }
            try:
                return {name: shares(prompts, ids, find) for name, find in ways.items()}
            finally:
                index.close()


def text(report: Mapping[str, Any]) -> str:
    """A line for each set and way."""
    return "\n".join(
        f"{name}: {way:<7} right one {'in the text' if way == 'inject' else f'in the first {FIRST}'} {first:.2f}, silent where none is about it {silent:.2f} (bars {BAR}, {BAR})"
        for name, ways in report.items()
        for way, (first, silent) in ways.items()
    )


def main() -> None:
    """Measure with the options of the command line."""
    options = parser("situations", __doc__.splitlines()[0])
    options.add_argument("sets", type=Path, nargs="+", metavar="SET.json")
    given = options.parse_args()
    print_report(lambda: {path.stem: measure(path) for path in given.sets}, as_json=given.json, text=text)


if __name__ == "__main__":
    main()
