"""Memories as lines for a session: quoted, with their ids, and only those that may reach a prompt unasked."""

from collections.abc import Iterable
from datetime import UTC, datetime

from engram.hooks.memory_index import IndexedMemory
from engram.text import display

MAX_LINE_STATEMENT_CHARS = 600
"""Characters of a statement; all of it is one `engram show` away."""
MAX_LINE_SITUATION_CHARS = 200


def is_injectable(memory: IndexedMemory) -> bool:
    """Whether a memory may be injected now, by the rule that `inject` follows."""
    from engram.rules.eligibility import eligibility
    from engram.store.records import from_image

    return eligibility(from_image(memory.record), datetime.now(UTC)).consider


def select_injectable(memories: Iterable[IndexedMemory], limit: int) -> list[IndexedMemory]:
    """The first few that may be given."""
    found: list[IndexedMemory] = []
    for memory in memories:
        if len(found) == limit:
            break
        if is_injectable(memory):
            found.append(memory)
    return found


def render_memory(memory: IndexedMemory) -> str:
    """One memory, quoted."""
    record = memory.record
    said = display.quote_text(display.cut(str(record.get("statement", "")), MAX_LINE_STATEMENT_CHARS))
    situation = str(record.get("situation", "") or "")
    when = f" When: {display.quote_text(display.cut(situation, MAX_LINE_SITUATION_CHARS))}." if situation else ""
    return f"- [{display.safe_word(memory.id)}] {said}{when}"
