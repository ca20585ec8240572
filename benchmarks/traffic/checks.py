"""The conditions that must hold when the traffic is over, checked on the store by new processes."""

import json
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.traffic.place import TrafficPlace, said
from benchmarks.traffic.register import GAVE_UP, Register
from engram.store import hook_files

MOST_HARVESTS = 50
"""Maximum runs after which the spool must be empty, each with a limit."""
LEFTOVERS = (".tmp", ".claimed", "-journal")


def check(place: TrafficPlace, register: Register) -> dict[str, list[str]]:
    """All problems, by subject."""
    left = place.processes()
    harvest = _harvest(place)
    memories = _memories(place)
    return {
        "processes left": left,
        "harvest": harvest,
        "lost or changed": list(_changed(register, memories)),
        "came back": list(_revived(place, register, memories)),
        "doubled": list(_doubled(memories)),
        "sessions": list(_sessions(place, register)),
        "turns not harvested": list(_unharvested(place, register, memories)),
        "doctor": doctor(place),
        "files left": list(_files_left(place)),
    }


def _harvest(place: TrafficPlace) -> list[str]:
    """Harvest until nothing waits."""
    problems = [str(problem) for found in _harvests(place) for problem in found["problems"]]
    waiting = hook_files.count_waiting(place.home)
    return problems + ([f"{waiting} sessions still wait"] if waiting else [])


def _harvests(place: TrafficPlace, *words: str) -> Iterator[dict[str, Any]]:
    """Harvests until none leaves something for the next."""
    for _ in range(MOST_HARVESTS):
        found = place.json("harvest", *words)
        yield found
        if not found["postponed"]:
            break


def _memories(place: TrafficPlace) -> dict[str, dict[str, Any]]:
    """Every memory by its id, whatever its status."""
    file = place.folder / "everything.json"
    place.json("export", str(file), "--format", "json", "--force")
    return {memory["id"]: memory for memory in json.loads(file.read_bytes())}


def _changed(register: Register, memories: dict[str, dict[str, Any]]) -> Iterator[str]:
    for write in register.writes.values():
        found = memories.get(write.id)
        if found is None:
            yield f"{write.id} is lost: {min(write.statements)}"
            continue
        if found["statement"] not in write.statements:
            yield f"{write.id} says {found['statement']!r} instead of {min(write.statements)!r}"
        if found["status"] not in write.statuses:
            yield f"{write.id} is {found['status']} instead of {' or '.join(sorted(write.statuses))}"
        positive = found["metadata"].get("feedback_signals", {}).get("positive", 0)
        if not write.positive <= positive <= write.positive + write.unanswered_ratings:
            yield f"{write.id} has {positive} positive ratings instead of {write.positive}"


def _revived(place: TrafficPlace, register: Register, memories: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Purged records that still exist, as a memory or as a word in any file of the store or its cache."""
    yield from (f"{memory_id} was purged" for memory_id in register.purged if memory_id in memories)
    words = {word.lower().encode(): memory_id for memory_id, word in register.purged.items()}
    for path in _files(place):
        data = path.read_bytes().lower()
        yield from (f"{path} has words of {memory_id}" for word, memory_id in words.items() if word in data)


def _doubled(memories: dict[str, dict[str, Any]]) -> Iterator[str]:
    counts = Counter(memory["statement"] for memory in memories.values())
    yield from (f"{count} memories say {statement!r}" for statement, count in counts.items() if count > 1)


def _sessions(place: TrafficPlace, register: Register) -> Iterator[str]:
    found = {one["id"]: one for one in place.json("session", "list", "--limit", "100000")}
    for session, ended in register.sessions.items():
        if session not in found:
            yield f"session {session} is lost"
        elif ended and not found[session]["ended"]:
            yield f"session {session} has no end"


def _unharvested(place: TrafficPlace, register: Register, memories: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Turns without a result, although an undisturbed harvest of the same transcripts proposes something."""
    with tempfile.TemporaryDirectory(prefix="engram-bench-") as name:
        alone = TrafficPlace(Path(name))
        alone.prepare()
        found = list(_harvests(alone, str(place.transcripts), "--harness", "claude-code"))
    proposed = {fact["statement"] for one in found for fact in one["facts"] if fact["outcome"] == "proposed"}
    turns = sum(one["turns"] for one in found)
    if turns < len(register.typed):
        yield f"{len(register.typed)} turns were typed, and {turns} are in the transcripts"
    kept = {memory["statement"] for memory in memories.values()}
    yield from (f"{statement!r} was not proposed" for statement in proposed - kept)


def doctor(place: TrafficPlace) -> list[str]:
    """The problems that `engram doctor` finds, except hooks that ran out of time."""
    done = place.run("engram", "doctor", "--json")
    try:
        checks = json.loads(done.stdout)["checks"]
    except ValueError:
        return [said(done)]
    wrong = [f"{one['name']}: {one['detail']}" for one in checks if one["level"] == "problem"]
    if done.returncode and not wrong:
        return [said(done)]
    return [one for one in wrong if GAVE_UP not in one]


def _files_left(place: TrafficPlace) -> Iterator[str]:
    for path in _files(place):
        if path.name.endswith(LEFTOVERS):
            yield str(path)


def _files(place: TrafficPlace) -> Iterator[Path]:
    for folder in (place.home, place.cache):
        yield from (path for path in folder.rglob("*") if path.is_file())
