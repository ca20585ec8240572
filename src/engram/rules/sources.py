"""Whose word a memory is, and who may change it: one order of trust for every place that asks (DESIGN §12).

    person › program › agent › harvest › content (documents, imports, tool output, pages)

A source never takes the place of what a more trusted one said; that waits for a person.
"""

from enum import IntEnum

from engram.model.memory import Memory

__all__ = [
    "CONFIRMED",
    "EVIDENCE",
    "IMPORTED",
    "Rank",
    "is_evidence",
    "may_decide",
    "may_replace",
    "rank_of",
    "said_by",
    "who",
]

CONFIRMED = "user_confirmed"
"""The verification that a person gave: whatever its source, the memory is the person's word from then on."""
IMPORTED = "import"
"""How what a file brought was learned. Who said it is the file's claim, and is believed once a person vouches for it."""

EVIDENCE = "evidence"
"""What a text for a prompt calls a memory that was only read or overheard."""


class Rank(IntEnum):
    """How far a source is trusted, the least first."""

    CONTENT = 1
    """Written by someone unknown: documents, other stores, pages, mail, what a tool printed."""
    HARVEST = 2
    """Overheard: transcripts, and what an assistant said."""
    AGENT = 3
    PROGRAM = 4
    PERSON = 5


_RANKS = {
    **dict.fromkeys(("human", "hand"), Rank.PERSON),
    "manual": Rank.PROGRAM,
    "engram": Rank.PROGRAM,
    "agent": Rank.AGENT,
    "tool:remember": Rank.AGENT,
    **dict.fromkeys(("harness", "harvest", "assistant"), Rank.HARVEST),
    **dict.fromkeys(
        ("import", "document", "tool", "tool_result", "web", "mail", "team", "pack", "untrusted"), Rank.CONTENT
    ),
}
_REACH = {Rank.AGENT: Rank.PROGRAM}
_WORDS = {
    Rank.PERSON: "a person",
    Rank.PROGRAM: "a program",
    Rank.AGENT: "an agent",
    Rank.HARVEST: "a transcript",
    Rank.CONTENT: "a document, an import or a tool",
}


def rank_of(source: str, unknown: Rank = Rank.AGENT) -> Rank:
    """The rank of a source as a surface stamped it. A file nobody stamped was written by hand, and is a person's."""
    if not source:
        return Rank.PERSON
    return _RANKS.get(source) or _RANKS.get(source.partition(":")[0], unknown)


def said_by(memory: Memory) -> Rank:
    """The most trusted source that stands behind a memory."""
    if memory.verification == CONFIRMED:
        return Rank.PERSON
    return Rank.CONTENT if memory.learned_by == IMPORTED else rank_of(memory.source)


def is_evidence(memory: Memory) -> bool:
    """Whether a memory only tells what was read or overheard: it answers when asked, and directs nobody until confirmed."""
    return said_by(memory) < Rank.AGENT


def may_replace(source: str, memory: Memory) -> bool:
    """Whether what this source says may take the place of a memory: never of a more trusted word."""
    return rank_of(source) >= said_by(memory)


def may_decide(actor: str, memory: Memory) -> bool:
    """Whether this actor may change, pin or retire a memory that it names by its id.

    A program that opened the store acts for its owner, under whatever name it gives. Surfaces that speak for somebody else say
    so. An agent, which without a terminal cannot be told from a program, decides about what either of them said, never about a
    person's word; a transcript or a document about nothing that a more trusted source said.
    """
    rank = rank_of(actor, Rank.PROGRAM)
    return rank >= Rank.PROGRAM or _REACH.get(rank, rank) >= said_by(memory)


def who(memory: Memory) -> str:
    """Whose word a memory is, in words."""
    return _WORDS[said_by(memory)]
