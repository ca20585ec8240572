"""Runs as a user who may not write, or with a limit on the size of files, and says what still works."""

import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from engram import Engram
from engram.model.errors import EngramError
from tests.faults.workers.operations import sentence

NOBODY = 65534


def _attempt(work: Any) -> str:
    try:
        work()
    except EngramError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def _look_around(home: Path, cache: Path) -> dict[str, Any]:
    with Engram.open(home, cache=cache, directory=home) as mem:
        hits = mem.search(sentence(3))
        return {
            "found": [hit.text for hit in hits][:1],
            "recalled": [hit.text for hit in mem.recall(sentence(4)).hits][:1],
            "injected": bool(mem.inject(sentence(5)).items),
            "learn": _attempt(lambda: mem.learn(sentence(99))),
            "feedback": _attempt(lambda: mem.feedback(hits[0].id, "positive")),
            "observe": _attempt(lambda: mem.observe("talk", "user", "hello")),
            "session": _attempt(lambda: mem.session("anything").end()),
            "purge": _attempt(lambda: mem.upkeep.purge([hits[0].id])),
            "doctor": [finding.code for finding in mem.doctor().problems],
            "warned": mem.store.warnings,
        }


def read_only(home: Path, cache: Path) -> dict[str, Any]:
    """Root ignores modes, so the work is done as somebody else; what is imported late is imported before."""
    rehearsal, scrap = home.with_name("rehearsal"), cache.with_name("rehearsal-cache")
    with Engram.open(rehearsal, cache=scrap, directory=rehearsal) as mem:
        mem.add_batch([{"statement": sentence(n)} for n in range(8)])
    _look_around(rehearsal, scrap)
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    return _look_around(home, cache)


def bounded(home: Path, cache: Path) -> dict[str, Any]:
    """Files may not grow beyond a limit: appends and databases fail as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))
    return fill(home, cache, words=2500, embedder="none")


def fill(home: Path, cache: Path, words: int = 500, embedder: str = "static") -> dict[str, Any]:
    """Add until nothing more fits; say what was acknowledged, and what was told."""
    kept: dict[str, str] = {}
    told: set[str] = set()
    failures = 0
    with Engram.open(home, cache=cache, directory=home, embedder=embedder) as mem:
        for n in range(2000):
            text = f"{sentence(n)} {'filling ' * words}{n}"
            outcome = _attempt(lambda text=text: kept.update({mem.add(text).id: text}))
            outcome = outcome if outcome != "done" else _attempt(lambda: mem.observe("talk", "user", "x" * 3000))
            if outcome != "done":
                told.add(outcome)
                failures += 1
                if failures == 6:
                    break
    return {"kept": {memory_id: text[:40] for memory_id, text in kept.items()}, "told": sorted(told)}


if __name__ == "__main__":
    case = {work.__name__: work for work in (read_only, bounded, fill)}[sys.argv[1]]
    sys.stdout.write(json.dumps(case(Path(sys.argv[2]), Path(sys.argv[3]))) + "\n")
