"""The processor time of every verb on texts made to be slow: `python -m benchmarks.hostile [--verb NAME]… [--kind repeated]…`.

Each text parameter of each public call and MCP tool is filled with 200,000 characters of one piece repeated (`repeated`), of two in
turn (`mixed`) or of one repeated in lines (`lines`); files that are read are filled in the same way. A parameter that takes less refuses the
text and is measured on the longest that it takes, too. The bar is 1 s of processor time. `--every 4 --from 1` takes one text in
four, from the second on.
"""

import argparse
import inspect
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from engram import Engram
from engram.cli.verbs.hook import recall as hook
from engram.mcp.calls import Call, LazyMemory, run_tool
from engram.mcp.protocol import describe_tool
from engram.mcp.tools import TOOLS
from engram.model.errors import EngramError, InvalidInput
from engram.rules.limits import MAX_CHARS, MAX_NAME_CHARS
from tests.hostile import PIECES
from tests.surface import annotations, public_calls

Verb = Callable[[str], Any]
SIZE = 200_000
SIZES = sorted({MAX_NAME_CHARS, *MAX_CHARS.values()} - {max(MAX_CHARS.values())}, reverse=True)
KEPT = "The deploy of the billing service runs on Thursdays"
LINE = 80
KINDS = ("repeated", "mixed", "lines")
EXAMPLES: dict[str, Any] = {
    "question": "When does the deploy run?", "query": "the deploy", "role": "user", "content": "Hello.", "user_message": "Hello.",
    "goal": "measure", "text": "A text.", "signal": "positive", "keep": "new", "state": "paused", "summary": "Half", "items": [],
    "turns": [], "decision": "D-1", "job_id": "J-1", "scopes": ("global",),
}  # fmt: skip
"""Values of required parameters while another parameter is measured."""
UNMEASURED = frozenset(("scopes", "stop", "reached", "memories", "plan", "shown"))
"""Parameters that take no text from others."""


class Workbench:
    """Every way for a long text to enter one store."""

    def __init__(self, mem: Engram, folder: Path) -> None:
        self.mem, self.folder, self.number = mem, folder, count()
        kept, other = mem.add(KEPT).id, mem.add("The billing service is written in Go").id
        self.session = mem.session(task="measured")
        task = mem.start_task("measured").id
        self.examples = EXAMPLES | {
            "ref": kept, "refs": [kept, other], "ids": [kept], "source": kept, "target": other, "start": kept, "seeds": [kept],
            "task": task, "task_id": task, "session_id": self.session.id, "path": self._write("kept.md", f"{KEPT}\n"),
        }  # fmt: skip

    def verbs(self) -> dict[str, Verb]:
        """Each verb by a name that includes the measured parameter."""
        found: dict[str, Verb] = {}
        for name, call in public_calls().items():
            for parameter, annotation in annotations(call).items():
                if parameter not in UNMEASURED and is_text(str(annotation)):
                    found[f"{name}({parameter})"] = partial(self._call, name, parameter, str(annotation))
        found["learn(statement, autonomous)"] = lambda text: self.mem.learn(text, autonomous=True)
        found["recall(question, composed)"] = lambda text: self.mem.recall(text, compose_answer=True)
        for tool in TOOLS.values():
            for field, schema in describe_tool(tool).input_schema["properties"].items():
                kind = {"string": "str", "array": "list[str]"}.get(schema["type"], "")
                if kind and "enum" not in schema:
                    found[f"MCP {tool.name}({field})"] = partial(self._use_tool, tool.name, field, kind)
        return found | {
            "hook recall": lambda text: hook(text, str(self.folder), str(self.folder / "home")),
            **{f"ingest .{suffix}": partial(self._ingest, suffix) for suffix in ("md", "txt", "py", "diff")},
            "CLAUDE.md": partial(self._read_source, "CLAUDE.md", "{}"),
            "rule": partial(self._read_source, ".claude/rules/a.md", "---\npaths: {}\n---\nUse tabs"),
            "skill": partial(
                self._read_source, ".claude/skills/a/SKILL.md", "---\nname: a\ndescription: {}\n---\nUse tabs"
            ),
            "gen-context": lambda text: self.mem.gen_context(self._write("AGENTS.md", text)),
            **{f"import .{suffix}": partial(self._import, suffix) for suffix in FORMS},
            "harvest": self._harvest,
        }

    def _call(self, name: str, parameter: str, annotation: str, text: str) -> None:
        facet, _, verb = name.rpartition(".")
        called = self.session if facet == "SessionHandle" else getattr(self.mem, facet) if facet else self.mem
        call = getattr(called, verb)
        required = {
            other: self.examples[other]
            for other, about in inspect.signature(call).parameters.items()
            if about.default is about.empty and about.kind is not about.VAR_KEYWORD and other in self.examples
        }
        if name in ("learn", "remember", "add", "start_task", "review.merge"):
            required |= (
                {"statement": f"Build {next(self.number)} of the shop is broken"} if name != "start_task" else {}
            )
        call(**{**required, parameter: fill(parameter, annotation, text)})

    def _use_tool(self, name: str, field: str, annotation: str, text: str) -> None:
        tool = TOOLS[name]
        required = {
            other: self.examples["ref"] if other == "id" else self.examples.get(other, f"{KEPT} {next(self.number)}")
            for other, is_required in tool.arguments.items()
            if is_required or other in ("id", "statement")
        }
        given = {**required, field: fill(field, annotation, text)}
        run_tool(Call(LazyMemory(lambda: self.mem)), tool, given)

    def _write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8", "replace")
        return path

    def _ingest(self, suffix: str, text: str) -> None:
        path = self._write(f"{next(self.number)}.{suffix}", text)
        self.mem.ingest(path)
        path.unlink()

    def _read_source(self, name: str, form: str, text: str) -> None:
        path = self._write(name, form.replace("{}", text))
        self.mem.prepare("deploy the billing service")
        path.unlink()

    def _import(self, suffix: str, text: str) -> None:
        self.mem.import_memories(self._write(f"{next(self.number)}.{suffix}", FORMS[suffix](text)))

    def _harvest(self, text: str) -> None:
        name = f"harvested/{next(self.number)}.jsonl"
        turn = {"type": "user", "message": {"role": "user", "content": text}, "uuid": name, "sessionId": name,
                "timestamp": "2026-03-02T09:00:00Z", "cwd": str(self.folder)}  # fmt: skip
        self.mem.harvest(self._write(name, json.dumps(turn) + "\n"), harness="claude-code")


FORMS: dict[str, Callable[[str], str]] = {
    "md": str,
    "json": lambda text: json.dumps([{"statement": text}]),
    "yaml": lambda text: f"statement: {json.dumps(text)}\n",
    "toml": lambda text: f"statement = {json.dumps(text)}\n",
}
"""A text as a memory in each format of imports."""


def is_text(annotation: str) -> bool:
    """Whether a parameter with that annotation takes text. A path does not, because it names a file."""
    return ("str" in annotation or "Mapping" in annotation) and not any(
        other in annotation for other in ("Callable", "Path", "Progress", "Literal")
    )


def fill(parameter: str, annotation: str, text: str) -> Any:
    """A value for a parameter with the text in it."""
    if parameter in ("items", "turns"):
        return [{"statement": text, "role": "user", "content": text}]
    if parameter == "form":
        return dict.fromkeys(("situation", "behavior", "impact", "action"), text)
    if annotation.startswith("tuple"):
        return (text, text)
    if "Mapping" in annotation or "dict" in annotation:
        return [{"of": text}] if "Iterable" in annotation else {"of": text}
    if "Sequence" in annotation or "Iterable" in annotation or "list" in annotation:
        return [text[at : at + MAX_NAME_CHARS] for at in range(0, len(text), MAX_NAME_CHARS)]
    return text


def texts_of(kind: str, pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The repeated piece of each text, with its description."""
    for at, piece in enumerate(pieces):
        if kind == "mixed":
            other = pieces[(at * 7 + 5) % len(pieces)]
            yield piece + other, f"{piece!r} and {other!r} in turn"
        elif kind == "lines":
            yield piece * max(1, LINE // len(piece)) + "\n", f"{piece!r} in lines"
        else:
            yield piece, f"{piece!r} repeated"


def measure(verb: Verb, text: str) -> tuple[float, bool]:
    """The processor seconds of one call, and whether it took the text; only an invalid argument counts as not taken."""
    began, taken = time.process_time(), True
    try:
        verb(text)
    except InvalidInput:
        taken = False
    except EngramError:
        pass
    return time.process_time() - began, taken


def find_slowest(name: str, size: int, texts: Sequence[tuple[str, str]], slow: float) -> tuple[float, str]:
    """The longest time of a verb and the text that caused it, on a separate store."""
    worst, progress = (0.0, ""), sys.stderr.isatty()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / ".git").mkdir()
        os.environ["HOME"] = place
        with Engram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
            verb = Workbench(mem, folder).verbs()[name]
            measure(verb, "A first text, which loads what is loaded late")
            for at, (piece, label) in enumerate(texts):
                if progress:
                    print(f"\r{name} {at}/{len(texts)} ", end="", file=sys.stderr, flush=True)
                for chars in (size, *(most for most in SIZES if most < size)):
                    seconds, taken = measure(verb, ("Start here. " + piece * (chars // len(piece) + 1))[:chars])
                    worst = max(worst, (seconds, f"{label}, {chars:,} characters"))
                    if seconds >= slow:
                        print(f"  {name}: {seconds:.2f} s, {label}, {chars:,} characters", flush=True)
                    if taken:
                        break
    return worst


def names() -> list[str]:
    """The names of everything that can be measured."""
    with tempfile.TemporaryDirectory() as place, Engram.open(ephemeral=True) as mem:
        return list(Workbench(mem, Path(place)).verbs())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument(
        "--verb", action="append", help="a verb with its parameter, `learn(statement)`, or all parameters of `learn`"
    )
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--every", type=int, default=1, help="measure one text in this many")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first text")
    parser.add_argument("--slow", type=float, default=1e9, help="print every text that takes this many seconds")
    asked = parser.parse_args()
    texts = [text for kind in asked.kind or KINDS for text in texts_of(kind, PIECES)][asked.first :: asked.every]
    for name in names():
        if not asked.verb or name in asked.verb or name.partition("(")[0] in asked.verb:
            worst, text = find_slowest(name, asked.size, texts, asked.slow)
            print(f"{name:<40} {worst:7.2f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
