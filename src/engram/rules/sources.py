"""Where a memory comes from and who may change it: the single order of trust (DESIGN §12).

    person › program › agent › harvest › content (documents, imports, tool output, pages)

A source never replaces a memory from a more trusted one; such a change waits for review.
"""

import re
from enum import IntEnum

from engram.model.memory import Memory

__all__ = [
    "CAPTURED",
    "CONFIRMED",
    "CORROBORATED",
    "DISPUTED",
    "EVIDENCE",
    "IMPORTED",
    "Rank",
    "is_below_program",
    "is_evidence",
    "is_from",
    "is_own",
    "may_decide",
    "may_replace",
    "origin_of",
    "rank_of",
    "trust_rank",
]

CONFIRMED = "user_confirmed"
"""Verified by a person: the memory has a person's rank, whatever its source."""
IMPORTED = "import"
"""`learned_by` of imported memories. The source the file claims counts only once a person has confirmed it."""

CORROBORATED = "system_inferred"
"""Verified by independent sources: not confirmed by a person, but no longer dependent on one source."""
DISPUTED = "disputed"
"""Contradicted by a memory that waits for review."""
CAPTURED = "harvest"
"""`learned_by` of memories captured from conversations and transcripts."""

EVIDENCE = "evidence"
"""The label, in prompts, of a memory that comes only from content or a transcript."""


class Rank(IntEnum):
    """How far a source is trusted, least trusted first."""

    CONTENT = 1
    """Unknown authors: documents, other stores, web pages, mail, tool output."""
    HARVEST = 2
    """Transcripts, and the words of an assistant."""
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
        (
            *(
                "import",
                "document",
                "tool",
                "tool_result",
                "tool_call",
                "function",
                "mcp",
                "plugin",
                "subagent",
                "team",
                "pack",
            ),
            *(
                "web",
                "webpage",
                "page",
                "site",
                "url",
                "http",
                "https",
                "browser",
                "search",
                "scraper",
                "crawler",
                "rss",
                "feed",
                "api",
            ),
            *(
                "mail",
                "email",
                "message",
                "sms",
                "chat",
                "slack",
                "teams",
                "discord",
                "telegram",
                "whatsapp",
                "forum",
                "social",
            ),
            *(
                "file",
                "pdf",
                "ocr",
                "image",
                "audio",
                "video",
                "issue",
                "ticket",
                "github",
                "gitlab",
                "jira",
                "confluence",
                "notion",
            ),
            *("untrusted", "unknown", "anonymous", "external", "stranger"),
        ),
        Rank.CONTENT,
    ),
}
"""Ranks by the first part of a source. Any other name belongs to a program or an agent."""
_REACH = {Rank.AGENT: Rank.PROGRAM}
_WORDS = {
    Rank.PERSON: "a person",
    Rank.PROGRAM: "a program",
    Rank.AGENT: "an agent",
    Rank.HARVEST: "a transcript",
    Rank.CONTENT: "a document, an import or a tool",
}


def rank_of(source: str, unknown: Rank = Rank.AGENT) -> Rank:
    """The rank of a source as recorded by the surface. An empty source means a file written by hand, so a person."""
    if not source:
        return Rank.PERSON
    name = source.strip().casefold()
    return _RANKS.get(name) or _RANKS.get(name.partition(":")[0].rstrip(), unknown)


def is_from(source: str, pattern: str) -> bool:
    """Whether a source is the named one or below it: `harness:codex` includes `harness:codex:acme`, not `harness:codex2`.

    Case and surrounding spaces are ignored.
    """
    source, pattern = source.strip().casefold(), pattern.strip().casefold()
    return source == pattern or source.startswith((f"{pattern.rstrip(':')}:", f"{pattern.rstrip('/')}/"))


def rate_limit_key(source: str) -> str:
    """The source under which proposals are counted; case, spaces and different pages of one site do not count as different sources."""
    name = source.strip().casefold()
    if not name.startswith("web:"):
        return name
    host = name.removeprefix("web:").strip().removeprefix("https:").removeprefix("http:").lstrip("/")
    return f"web:{re.split('[/?#:]', host, maxsplit=1)[0]}"


def trust_rank(memory: Memory) -> Rank:
    """The rank of the most trusted source that vouches for a memory."""
    if memory.verification == CONFIRMED:
        return Rank.PERSON
    return Rank.CONTENT if memory.learned_by == IMPORTED else rank_of(memory.source)


def is_evidence(memory: Memory) -> bool:
    """Whether a memory comes only from content or a transcript: it can be recalled, but directs no agent until confirmed."""
    return trust_rank(memory) < Rank.AGENT


def may_replace(source: str, memory: Memory) -> bool:
    """Whether a statement from this source may replace a memory: never one from a more trusted source."""
    return rank_of(source) >= trust_rank(memory)


def may_decide(actor: str, memory: Memory) -> bool:
    """Whether this actor may change, pin or retire a memory that it names by id.

    A program that opened the store acts for its owner, under any name; surfaces that act for somebody else record that.
    An agent, which cannot be told apart from a program without a terminal, may change memories of agents and programs,
    but never a person's. A transcript or a document may not change anything from a more trusted source.
    """
    rank = rank_of(actor, Rank.PROGRAM)
    return rank >= Rank.PROGRAM or _REACH.get(rank, rank) >= trust_rank(memory)


def is_own(actor: str, memory: Memory) -> bool:
    """Whether this actor proposed a memory: its source is the actor or below it or, for an agent, any agent stated it explicitly."""
    if memory.learned_by == IMPORTED:
        return False
    is_agents = rank_of(actor) == rank_of(memory.source) == Rank.AGENT
    return is_agents or is_from(memory.source, actor)


def is_below_program(actor: str) -> bool:
    """Whether an actor is an agent, a transcript or content. A program that opened the store acts for its owner."""
    return rank_of(actor, Rank.PROGRAM) < Rank.PROGRAM


def origin_of(memory: Memory) -> str:
    """A phrase that names the memory's origin."""
    return _WORDS[trust_rank(memory)]
