"""Runs as a user who may not write, or with a limit on the size of files, and says what still works."""

import ctypes
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any

from engram import Engram
from engram.model.errors import EngramError
from tests.faults.workers.operations import sentence

CAPABILITY_VERSION_3 = 0x20080522
CAP_DAC_OVERRIDE = 1


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
            "recalled": [hit.text for hit in mem.recall(sentence(4)).hits],
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
    """Use a home without write permission. Root ignores file modes, so it gives up that privilege first."""
    if os.geteuid() == 0:
        _drop_write_privilege()
    return _look_around(home, cache)


def _drop_write_privilege() -> None:
    """Drop CAP_DAC_OVERRIDE, and with it the right to write against a file's mode.

    The user stays the same, and with CAP_DAC_READ_SEARCH can still import a package below a directory that others cannot read.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    capabilities = (ctypes.c_uint32 * 6)()
    if libc.capget(header, capabilities):
        raise OSError(ctypes.get_errno(), "capget")
    for effective_or_permitted in (0, 1):
        capabilities[effective_or_permitted] &= ~(1 << CAP_DAC_OVERRIDE)
    if libc.capset(header, capabilities):
        raise OSError(ctypes.get_errno(), "capset")


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
