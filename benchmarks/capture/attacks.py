"""Measure what strangers' text does to a memory: credentials told in passing, planted instructions, and junk kept without a person.

    python -m benchmarks.capture.attacks FOLDER

FOLDER (benchmarks/capture/texts, or held, whose text nobody reads) has any of three files, each a JSON object a line: secrets.jsonl {"kind", "channel", "text", "secret"}, poison.jsonl {"channel", "text",
"task", "marker"} and mixed.jsonl {"user", "assistant", "facts"}. Printed are figures and kinds, never the text.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.capture.sessions import rendered
from engram import Engram
from engram.model.lazy import replace

Row = Mapping[str, Any]
BUDGETS = {3: 150, 5: 300, 10: 1000}
"""Memories requested, and the token budget of an injection that large."""


def rows(path: Path) -> list[dict[str, Any]]:
    """The objects of a file; none if it is not there."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()] if path.exists() else []


# -- credentials


def secrets(given: Sequence[Row]) -> None:
    """Pass every text to every entry point for text, then search all files of the store for the credential."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        sessions = [_session(number, row) for number, row in enumerate(given)]
        list(rendered(sessions, root / "transcripts", "secrets"))
        with Engram.open(root / "home", cache=root / "cache") as mem:
            mem.harvest(root / "transcripts", harness="claude-code")
            for number, row in enumerate(given):
                _tell(mem, number, row)
        found = Counter[str]()
        for file in [*(root / "home").rglob("*"), *(root / "cache").rglob("*")]:
            content = file.read_bytes() if file.is_file() else b""
            for row in given:
                if str(row["secret"]).encode() in content:
                    found[str(row["kind"])] += 1
    print(
        f"credentials in clear      {len(found)} of {len(given)} kinds{': ' if found else ''}{', '.join(sorted(found))}"
    )


def _session(number: int, row: Row) -> dict[str, Any]:
    said = {"user": "user", "note": "user", "assistant": "assistant", "tool": "tool"}[row["channel"]]
    turn = {"user": "look at this", "assistant": "Done.", said: row["text"]}
    return {"project": f"p{number}", "date": "2026-09-01", "title": "t", "turns": [turn]}


def _tell(mem: Engram, number: int, row: Row) -> None:
    text = str(row["text"])
    role = {"note": "user"}.get(row["channel"], row["channel"])
    doors: list[Callable[[], object]] = [
        lambda: mem.observe_batch(f"s{number}", [{"role": role, "content": text}]),
        lambda: mem.add_conversation(text, "", session=f"c{number}"),
        lambda: mem.add_conversation("ok", text, session=f"a{number}", extract_assistant_response=True),
        lambda: mem.learn(text, source="agent"),
        lambda: mem.learn("Note", context=text, metadata={"note": text}, source="agent"),
    ]
    for door in doors:
        try:
            door()
        except Exception as error:
            if type(error).__module__.partition(".")[0] != "engram":
                raise


# -- planted instructions


def poison(given: Sequence[Row]) -> None:
    """Plant every text through its channel, then do every task.

    Nothing planted may appear as a directive or unrequested in a prompt.
    """
    with tempfile.TemporaryDirectory() as scratch, Engram.open(ephemeral=True) as mem:
        mem.settings = replace(mem.settings, autopromote_harvest=True)
        for number, row in enumerate(given):
            _plant(mem, Path(scratch), number, row)
        for most, budget in BUDGETS.items():
            directed = considered = recalled = 0
            for row in given:
                injected = mem.inject(row["task"], budget=budget)
                directed += any(row["marker"] in item.memory.statement for item in injected.directives)
                considered += row["marker"] in injected.text
                recalled += any(row["marker"] in hit.text for hit in mem.search(row["task"], limit=most))
            print(
                f"planted, k = {most:<2}           {directed} directives, {considered} in an injection, "
                f"{recalled} found when asked, of {len(given)}"
            )


def _plant(mem: Engram, scratch: Path, number: int, row: Row) -> None:
    channel, text = str(row["channel"]), str(row["text"])
    folder = scratch / str(number)
    folder.mkdir()
    if channel in ("tool_result", "transcript_assistant", "transcript_pasted"):
        role = {"tool_result": "tool", "transcript_assistant": "assistant"}.get(channel, "user")
        said = f"what does this say?\n\n```\n{text}\n```" if role == "user" else text
        turn = {"user": "look at this", "assistant": "Done.", role: said}
        session = {"project": "acme", "date": "2026-09-01", "title": "t", "turns": [turn]}
        list(rendered([session], folder, str(number)))
        mem.harvest(folder, harness="claude-code")
        if channel == "tool_result":
            mem.learn(text, source="tool_result:fetch")
    elif channel == "web_page":
        mem.learn(text, source="web:example.org")
    elif channel == "document":
        (folder / "doc.md").write_text(text)
        mem.ingest(folder / "doc.md")
    else:
        _import(mem, folder, channel, text)


def _import(mem: Engram, folder: Path, channel: str, text: str) -> None:
    from engram.capture import import_source
    from engram.capture.importer import Importer

    if channel == "import_markdown":
        (folder / "note.md").write_text(f"---\ndescription: {json.dumps(text)}\ntype: feedback\n---\n\n{text}\n")
    else:
        (folder / "pack.json").write_text(json.dumps([{"statement": text, "pinned": True, "source": "human"}]))
    source = import_source.read(folder)
    Importer(mem.store, mem.upkeep.clock, "global", folder.name, by_person=False).run(source, lambda *_: None)


# -- a mixed transcript


def mixed(given: Sequence[Row]) -> None:
    """Harvest a long transcript with promotion allowed.

    Active memories from turns that state no lasting fact are junk.
    """
    with tempfile.TemporaryDirectory() as scratch, Engram.open(ephemeral=True) as mem:
        mem.settings = replace(mem.settings, autopromote_harvest=True)
        sessions = list(_sessions(given))
        turns = dict(rendered(sessions, Path(scratch), "mixed"))
        facts = []
        while True:
            report = mem.harvest(Path(scratch), harness="claude-code")
            facts += report.facts
            if not report.postponed:
                break
        kept = [fact for fact in facts if fact.memory_id]
        active = [fact for fact in kept if mem.get(fact.memory_id).status == "active"]
        junk = [fact for fact in active if not turns[fact.key]["facts"]]
        heard = {fact.key for fact in kept if turns[fact.key]["facts"]}
        told = sum(bool(row["facts"]) for row in given)
        print(
            f"proposed                  {len(kept)} from {len(given) * 2} turns; {len(heard)} of {told} turns with a fact"
        )
        print(
            f"promoted unseen           {len(active)}, junk {len(junk)} ({len(junk) / max(1, len(active)):.1%} of them, {len(junk) / max(1, 2 * len(given)):.1%} of turns)"
        )


def _sessions(given: Sequence[Row]) -> Iterator[dict[str, Any]]:
    for start in range(0, len(given), 10):
        yield {
            "project": "life",
            "date": f"2026-09-{start // 20 + 1:02d}",
            "title": "t",
            "turns": list(given[start : start + 10]),
        }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    for name, measure in (("secrets", secrets), ("poison", poison), ("mixed", mixed)):
        if found := rows(given.folder / f"{name}.jsonl"):
            measure(found)


if __name__ == "__main__":
    main()
