"""Memories as lines for a session: quoted, with their ids, and only those that may reach a prompt unasked."""

from collections.abc import Iterable
from datetime import UTC, datetime

from engram.hooks.memory_index import IndexedMemory
from engram.text import display

LONGEST = 600
"""Characters of a statement; all of it is one `engram show` away."""
LONGEST_SITUATION = 200


def may_be_given(memory: IndexedMemory) -> bool:
    """Whether a memory may be injected now, by the rule that `inject` follows."""
    from engram.rules.eligibility import eligibility
    from engram.store.records import from_image

    return eligibility(from_image(memory.record), datetime.now(UTC)).consider


def given(memories: Iterable[IndexedMemory], limit: int) -> list[IndexedMemory]:
    """The first few that may be given."""
    found: list[IndexedMemory] = []
    for memory in memories:
        if len(found) == limit:
            break
        if may_be_given(memory):
            found.append(memory)
    return found


def line(memory: IndexedMemory) -> str:
    """One memory, quoted."""
    record = memory.record
    said = display.quoted(display.cut(str(record.get("statement", "")), LONGEST))
    situation = str(record.get("situation", "") or "")
    when = f" When: {display.quoted(display.cut(situation, LONGEST_SITUATION))}." if situation else ""
    return f"- [{display.word(memory.id)}] {said}{when}"
