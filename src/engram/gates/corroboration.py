"""Corroboration: what a repetition does for a memory that nobody vouches for (DESIGN §12).

A guess that is captured again is no guess any more. Evidence is corroborated where the user's own words in a transcript and something read
elsewhere (a document, an import, a page, tool output) say the same, in different sessions. Two things read elsewhere prove nothing, whatever
their names: one author may have written both.
"""

from engram.model.memory import Memory
from engram.rules.eligibility import is_speculative
from engram.rules.numbers import INFERRED_FROM
from engram.rules.sources import CONFIRMED, Rank, is_evidence, rank_of

__all__ = ["corroborate_guess", "corroborates"]

_TRANSCRIPTS = ("harness", "harvest")


def _is_transcript(source: str) -> bool:
    """Whether a source is what a user typed to an agent. What the assistant said may repeat what it read."""
    return source.strip().casefold().partition(":")[0] in _TRANSCRIPTS


def corroborates(repeated: Memory, known: Memory, session: str) -> bool:
    """Whether a repetition in this session is independent evidence for a memory that has none but its own.

    Whoever is trusted more than content vouches for it instead.
    """
    if not is_evidence(known) or known.verification == CONFIRMED:
        return False
    is_content = rank_of(repeated.source) < Rank.AGENT
    is_other = is_content and _is_transcript(repeated.source) != _is_transcript(known.source)
    return is_other and (not session or session != known.session)


def corroborate_guess(known: Memory, repeated: Memory) -> Memory:
    """A speculative memory that was captured again: certain enough to stay. Any other as it is."""
    if not is_speculative(known):
        return known
    return known.replace(confidence=max(INFERRED_FROM, repeated.confidence))
