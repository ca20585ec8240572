"""Corroboration: what a repetition does for a memory that nobody vouches for (DESIGN §12).

A guess that is captured again is no guess any more. Evidence that an independent source repeats is corroborated: another channel
(a transcript, a document, an import, a page) and another session. The same channel twice, such as two imported packs, proves nothing.
"""

from engram.model.memory import Memory
from engram.rules.eligibility import is_speculative
from engram.rules.numbers import INFERRED_FROM
from engram.rules.sources import CONFIRMED, Rank, is_evidence, rank_of

__all__ = ["confirmed_guess", "corroborates", "root_of"]

_CHANNELS = dict.fromkeys(("harness", "harvest", "assistant"), "transcript")


def root_of(source: str) -> str:
    """The channel that a source belongs to: `harness:codex:acme` and `assistant` are both transcripts."""
    first = source.partition(":")[0]
    return _CHANNELS.get(first, first)


def corroborates(repeated: Memory, known: Memory, session: str) -> bool:
    """Whether a repetition in this session is independent evidence for a memory that has none but its own.

    Whoever is trusted more than content vouches for it instead.
    """
    if not is_evidence(known) or known.verification == CONFIRMED:
        return False
    is_content = rank_of(repeated.source) < Rank.AGENT
    is_other = is_content and root_of(repeated.source) != root_of(known.source)
    return is_other and (not session or session != known.session)


def confirmed_guess(known: Memory, repeated: Memory) -> Memory:
    """A speculative memory that was captured again: certain enough to stay. Any other as it is."""
    if not is_speculative(known):
        return known
    return known.but(confidence=max(INFERRED_FROM, repeated.confidence))
