"""The worst time of each verb over texts that repeat one piece: `python -m benchmarks.hostile [--size 100000] [--verb NAME]`.

Processor time, so that a busy machine does not count; the bars are 1 s at 100 kB and 5 s at 1 MB.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from engram import Engram
from engram.cli.verbs.hook import recall as hook
from engram.model.errors import EngramError
from tests.hostile import PIECES

Verb = Callable[[str], Any]


def verbs(mem: Engram, folder: Path) -> dict[str, Verb]:
    """Every road by which a long text comes in."""
    number = count()
    session = mem.session(task="measured")
    kept = mem.add("The deploy of the billing service runs on Thursdays").id

    def ingested(suffix: str) -> Verb:
        def read(text: str) -> None:
            path = folder / f"{next(number)}.{suffix}"
            path.write_text(text, "utf-8", "replace")
            mem.ingest(path)
            path.unlink()

        return read

    return {
        "learn": mem.learn,
        "learn, autonomous": lambda text: mem.learn(text, autonomous=True),
        "add": mem.add,
        "add, context": lambda text: mem.add(f"Fact {next(number)} has a source", context=text),
        "update": lambda text: mem.update(kept, statement=text),
        "add_conversation": lambda text: mem.add_conversation(text, text, extract_assistant_response=True),
        "extract": lambda text: mem.extract([{"role": "user", "content": text}]),
        "observe": lambda text: session.observe("user", text),
        "search": mem.search,
        "recall": mem.recall,
        "inject": mem.inject,
        "hook recall": lambda text: hook(text, str(folder), str(folder / "home")),
        **{f"ingest .{suffix}": ingested(suffix) for suffix in ("md", "txt", "py", "diff")},
        "session end": lambda text: mem.session(task="other").end(text),
    }


def measured(verb: Verb, text: str) -> float:
    began = time.process_time()
    with suppress(EngramError):
        verb(text)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--verb", action="append")
    parser.add_argument("--every", type=int, default=1, help="only one piece in so many")
    asked = parser.parse_args()
    for name in names():
        if not asked.verb or name in asked.verb:
            worst, piece = slowest(name, asked.size, PIECES[:: asked.every])
            print(f"{name:<20} {worst:7.2f} s  {piece!r} repeated", flush=True)


def slowest(name: str, size: int, pieces: Sequence[str]) -> tuple[float, str]:
    """The longest time of a verb and the piece that took it, on a store of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with Engram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
            verb = verbs(mem, folder)[name]
            measured(verb, "a first text, so that what is loaded late is loaded")
            return max((measured(verb, ("Start here. " + piece * size)[:size]), piece) for piece in pieces)


def names() -> list[str]:
    """What can be measured."""
    with tempfile.TemporaryDirectory() as place, Engram.open(ephemeral=True) as mem:
        return list(verbs(mem, Path(place)))


if __name__ == "__main__":
    main()
