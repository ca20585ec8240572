"""The worst time of each verb over texts that repeat one piece: `python -m benchmarks.hostile [--size 200000] [--verb NAME]`.

Processor time, so that a busy machine does not count much; the bar is 1 s at 200 kB. A verb whose field takes less refuses the text, so it
is measured on the longest text that it takes, too. `--every 4 --from 1` takes one piece in four, from the second on.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from engram import Engram
from engram.cli.verbs.hook import recall as hook
from engram.mcp.calls import Call, LazyMemory, answered
from engram.mcp.tools import TOOLS
from engram.model.errors import EngramError
from engram.rules.argument_limits import MAX_CHARS, MAX_NAME_CHARS
from tests.hostile import PIECES

Verb = Callable[[str], Any]
SIZE = 200_000
KEPT = "The deploy of the billing service runs on Thursdays"
TOOL_TEXTS = {
    "learn": "statement",
    "remember": "fact",
    "update": "statement",
    "recall": "question",
    "inject": "task",
    "prepare": "task",
    "timeline": "about",
    "session_start": "task",
    "forget": "reason",
    "show": "id",
}
"""The argument of each MCP tool that is filled; the others are given what they need."""


class Bench:
    """Every way in which a long text comes in, on one store."""

    def __init__(self, mem: Engram, folder: Path) -> None:
        self.mem, self.folder, self.number = mem, folder, count()
        self.session = mem.session(task="measured")
        self.task = mem.start_task("measured")
        self.kept = mem.add(KEPT).id
        self.other = mem.add("The billing service is written in Go").id

    def verbs(self) -> dict[str, Verb]:
        """Each verb by a name that says which field is filled."""
        mem, kept, session = self.mem, self.kept, self.session
        return {
            "learn": mem.learn,
            "learn, autonomous": lambda text: mem.learn(text, autonomous=True),
            "learn, situation": lambda text: mem.learn("Run the linter first", situation=text),
            "learn, rationale": lambda text: mem.learn("Run the linter before a commit", rationale=text),
            "learn, form": lambda text: mem.learn(situation=text, behavior=text, impact=text, action=text),
            "learn, tags": lambda text: mem.learn("Run the linter before a push", tags=_pieces(text)),
            "remember": mem.remember,
            "add": mem.add,
            "add, context": lambda text: mem.add(f"Fact {next(self.number)} has a source", context=text),
            "add, metadata": lambda text: mem.add(f"Fact {next(self.number)} has data", metadata={"of": text}),
            "add_batch": lambda text: mem.add_batch([{"statement": half} for half in _halves(text)]),
            "update": lambda text: mem.update(kept, statement=text),
            "update, reason": lambda text: mem.update(kept, importance=0.5, reason=text),
            "revise": lambda text: mem.revise(kept, statement=text),
            "relate, reason": lambda text: mem.relate(kept, self.other, "supports", reason=text),
            "reject, reason": lambda text: mem.review.reject(self._candidate(), reason=text),
            "forget, reason": lambda text: mem.forget(self._candidate(), reason=text),
            "feedback": lambda text: mem.feedback(text, "positive"),
            "get": mem.get,
            "add_conversation": lambda text: mem.add_conversation(text, text, extract_assistant_response=True),
            "extract": lambda text: mem.extract([{"role": "user", "content": text}]),
            "observe": lambda text: session.observe("user", text),
            "capture": lambda text: mem.capture(session.id, "user", text),
            "record_event": lambda text: mem.record_event(self.task.id, "user", text),
            "record_turn": lambda text: mem.record_turn(self.task.id, user=text, assistant=text),
            "create_checkpoint": lambda text: mem.create_checkpoint(self.task.id, summary=text),
            "start_task": mem.start_task,
            "complete_task": lambda text: mem.complete_task(mem.start_task("other").id, text),
            "session": lambda text: mem.session(task=text),
            "session end": lambda text: mem.session(task="other").end(text),
            "record_long_input": lambda text: mem.record_long_input(self.task.id, text, title="measured"),
            "cite": mem.cite,
            "search": mem.search,
            "deep_search": mem.deep_search,
            "recall": mem.recall,
            "recall, composed": lambda text: mem.recall(text, compose_answer=True),
            "recall, filters": lambda text: mem.recall("the deploy", tags=_pieces(text), domain=text[:MAX_NAME_CHARS]),
            "recall_context": mem.recall_context,
            "inject": mem.inject,
            "prepare": mem.prepare,
            "timeline": mem.timeline,
            "get_context_block": mem.get_context_block,
            "build_context": lambda text: mem.build_context(self.task.id, text),
            "search_events": lambda text: mem.search_events(text),
            "hook recall": lambda text: hook(text, str(self.folder), str(self.folder / "home")),
            **{f"ingest .{suffix}": self._ingest(suffix) for suffix in ("md", "txt", "py", "diff")},
            "CLAUDE.md": self._source("CLAUDE.md", "{}"),
            "rule": self._source(".claude/rules/a.md", "---\npaths: {}\n---\nUse tabs"),
            "skill": self._source(".claude/skills/a/SKILL.md", "---\nname: a\ndescription: {}\n---\nUse tabs"),
            "gen-context": self._generated,
            **{f"import .{suffix}": self._import(suffix) for suffix in ("md", "json", "yaml", "toml")},
            "harvest": self._harvest,
            **{f"MCP {tool}": self._tool(tool, field) for tool, field in TOOL_TEXTS.items()},
        }

    def _candidate(self) -> str:
        number = next(self.number)
        return self.mem.add(f"Build number {number} of the shop is broken", status="candidate").id

    def _file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace")
        return path

    def _ingest(self, suffix: str) -> Verb:
        def read(text: str) -> None:
            path = self._file(f"{next(self.number)}.{suffix}", text)
            self.mem.ingest(path)
            path.unlink()

        return read

    def _source(self, name: str, form: str) -> Verb:
        def asked(text: str) -> None:
            path = self._file(name, form.replace("{}", text))
            self.mem.prepare("deploy the billing service")
            path.unlink()

        return asked

    def _generated(self, text: str) -> None:
        self.mem.gen_context(self._file("AGENTS.md", text))

    def _import(self, suffix: str) -> Verb:
        forms: dict[str, Callable[[str], str]] = {
            "md": text_of,
            "json": lambda text: json.dumps([{"statement": text}]),
            "yaml": lambda text: f"statement: {json.dumps(text)}\n",
            "toml": lambda text: f"statement = {json.dumps(text)}\n",
        }

        def read(text: str) -> None:
            self.mem.import_memories(self._file(f"{next(self.number)}.{suffix}", forms[suffix](text)))

        return read

    def _harvest(self, text: str) -> None:
        name = f"harvested/{next(self.number)}.jsonl"
        said = {"type": "user", "message": {"role": "user", "content": text}, "uuid": name, "sessionId": name,
                "timestamp": "2026-03-02T09:00:00Z", "cwd": str(self.folder)}  # fmt: skip
        self.mem.harvest(self._file(name, json.dumps(said) + "\n"), harness="claude-code")

    def _tool(self, name: str, field: str) -> Verb:
        tool = TOOLS[name]
        memory = LazyMemory(lambda: self.mem)
        needed: Mapping[str, Any] = {"id": self.kept} if "id" in tool.takes.model_fields else {}
        return lambda text: answered(Call(memory), tool, {**needed, field: text})


def text_of(text: str) -> str:
    """The text itself: Markdown has no quotes around it."""
    return text


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _pieces(text: str) -> list[str]:
    """The text as a list of words, as long as they may be."""
    return [text[at : at + MAX_NAME_CHARS] for at in range(0, len(text), MAX_NAME_CHARS)]


def measured(verb: Verb, text: str) -> float:
    """The processor seconds of one call; a refusal counts, too."""
    began = time.process_time()
    with suppress(EngramError):
        verb(text)
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--verb", action="append")
    parser.add_argument("--every", type=int, default=1, help="only one piece in so many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first piece")
    parser.add_argument("--slow", type=float, default=1e9, help="print every text that takes so many seconds")
    asked = parser.parse_args()
    for name in names():
        if not asked.verb or name in asked.verb:
            worst, piece = slowest(name, asked.size, PIECES[asked.first :: asked.every], asked.slow)
            print(f"{name:<20} {worst:7.2f} s  {piece}", flush=True)


def slowest(name: str, size: int, pieces: Sequence[str], slow: float = 1e9) -> tuple[float, str]:
    """The longest time of a verb and the text that took it, on a store of its own."""
    sizes = sorted({size, *(most for most in (MAX_NAME_CHARS, *MAX_CHARS.values()) if most < size)}, reverse=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / ".git").mkdir()
        os.environ["HOME"] = place
        with Engram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
            verb = Bench(mem, folder).verbs()[name]
            measured(verb, "a first text, so that what is loaded late is loaded")
            worst = (0.0, "")
            for piece in pieces:
                for characters in sizes:
                    text = ("Start here. " + piece * characters)[:characters]
                    taken = measured(verb, text), f"{piece!r} repeated, {characters:,} characters"
                    worst = max(worst, taken)
                    if taken[0] >= slow:
                        print(f"  {name}: {taken[0]:.2f} s, {taken[1]}", flush=True)
            return worst


def names() -> list[str]:
    """What can be measured."""
    with tempfile.TemporaryDirectory() as place, Engram.open(ephemeral=True) as mem:
        return list(Bench(mem, Path(place)).verbs())


if __name__ == "__main__":
    main()
