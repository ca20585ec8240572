"""The name that a memory gets where nobody gives it one."""

from engram.model.memory import Memory
from engram.text.display import slug

__all__ = ["name_for"]

MAX_FORM_NAME = 60
"""Characters of the name of feedback or a fact, which is its situation."""


def name_for(memory: Memory) -> str:
    """The name a memory has, or the one it should get; of feedback and facts, from their situation."""
    if memory.name or not memory.form:
        return memory.name or slug(memory.situation or memory.statement)
    return slug(memory.situation, words=12, length=MAX_FORM_NAME) or slug(memory.statement) or "memory"
