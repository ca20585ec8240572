"""What a file that nobody vouches for may say of its memories, and what of it counts here."""

from engram.gates.shape import texts
from engram.model.memory import Memory, Status

ANSWERING: tuple[Status, ...] = ("active", "dormant", "archived")
"""The statuses of memories that answer questions: superseded ones only tell the past, and the others answer nothing."""
_JUDGED = frozenset((
    "statement", "situation", "form", "type", "context", "rationale", "domain", "trigger_context", "tags", "entities", "anchors",
))  # fmt: skip
"""The fields that decide whether somebody has to approve a memory."""


def has_same_words(one: Memory, other: Memory) -> bool:
    """Whether nothing differs that decides whether somebody has to approve a memory."""
    return _words(one) == _words(other)


def _words(memory: Memory) -> dict[str, str]:
    return {name: text for name, text in texts(memory) if name in _JUDGED}
