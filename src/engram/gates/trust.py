"""Trust: which memories become active at once, which wait for review, and when a repetition counts as evidence (DESIGN §12)."""

from engram.gates.proposal import GateSettings
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory, Status
from engram.model.types import FEEDBACK, form_name, type_or_default
from engram.rules.lifecycle import is_speculative
from engram.rules.numbers import INFERRED_FROM
from engram.rules.sources import CAPTURED, CONFIRMED, Rank, is_evidence, is_own, rank_of

__all__ = [
    "HIGHEST_TIER",
    "Trust",
    "corroborate_guess",
    "corroborates",
    "is_human",
    "is_inferred",
    "is_told",
    "is_untrusted",
    "kind_of",
    "loss_reason",
    "sensitive_subject",
    "tier_3_reason",
    "tier_of",
    "trust",
]

HIGHEST_TIER = 3
"""Identity, money, health, places and people; a person always decides about these."""
_SUBJECTS = {
    "health": "is about somebody's health",
    "identity": "is about somebody's identity",
    "fiscal": "is about somebody's money",
    "location": "says where somebody lives or stays",
    "people": "is about somebody's private life",
}
_TOLD = ("location", "people")
"""Subjects that people mention in order to be remembered: where they live, and who is who."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The initial status of a memory, and why."""

    status: Status
    reason: str


def is_human(source: str) -> bool:
    """Whether the source is a person, as recorded by the surface."""
    return rank_of(source) == Rank.PERSON


def is_inferred(actor: str, before: Memory, after: Memory) -> bool:
    """Whether the type of an agent's own memory was inferred.

    With an explicit type, it would have waited for a person.
    """
    is_unconfirmed = before.status in LIVE_STATUSES and before.verification != CONFIRMED
    return is_unconfirmed and after.type == before.type and is_own(actor, before)


def is_untrusted(source: str) -> bool:
    """Whether the source is content (a document, an import, a transcript) rather than a person, program or agent."""
    return rank_of(source) < Rank.AGENT


def tier_of(memory: Memory) -> int:
    """The risk tier of a memory, 1 to 3: how much harm it can do if it is wrong.

    It depends on the type and the content.
    """
    tier = type_or_default(memory.type).tier
    return HIGHEST_TIER if tier < HIGHEST_TIER and sensitive_subject(memory) else tier


def sensitive_subject(memory: Memory) -> str:
    """The tier 3 subject of a memory's content (one of spec 4's kinds), whatever its type; "" for none."""
    # Imported here so that reading and listing memories never loads the model.
    from engram.models.statement_kinds import FRAGMENT_MARGIN, SUBJECT_MARGIN

    is_feedback = form_name(memory.form) == FEEDBACK
    margins = {memory.situation: FRAGMENT_MARGIN}
    margins |= dict.fromkeys(map(str, memory.form.values()), FRAGMENT_MARGIN)
    margins[memory.statement] = FRAGMENT_MARGIN if is_feedback else SUBJECT_MARGIN
    return next((found for text, margin in margins.items() if text and (found := _subject_of(text, margin))), "")


def _subject_of(text: str, margin: int) -> str:
    """The tier 3 subject of a text under any of its readings."""
    from engram.models.readings import other_readings
    from engram.models.statement_kinds import FRAGMENT_MARGIN, subject_of

    readings = (subject_of(reading, FRAGMENT_MARGIN) for reading in other_readings(text))
    return subject_of(text, margin) or next(filter(None, readings), "")


def kind_of(memory: Memory) -> str:
    """The kind of a memory, one of spec 4's ten: that of its type, or that of its content if more sensitive."""
    own = type_or_default(memory.type)
    subject = sensitive_subject(memory) if own.tier < HIGHEST_TIER else ""
    return subject or own.kind


def tier_3_reason(memory: Memory) -> str:
    """Why a memory is tier 3; "" if its tier is lower."""
    return _type_reason(memory) or _subject_reason(sensitive_subject(memory))


def loss_reason(memory: Memory) -> str:
    """Why losing a memory could do harm, so that a remark alone never ends it; "" if it could not.

    This covers all of tier 3, except where people live and who they are to each other.
    """
    if reason := _type_reason(memory):
        return reason
    subject = sensitive_subject(memory)
    return "" if subject in _TOLD else _subject_reason(subject)


def is_told(memory: Memory) -> bool:
    """Whether a user stated it in a conversation, and the program or agent that passed it on vouches for that."""
    return memory.learned_by == CAPTURED and rank_of(memory.source) >= Rank.AGENT


def _type_reason(memory: Memory) -> str:
    is_highest = type_or_default(memory.type).tier >= HIGHEST_TIER
    return f"type {memory.type!r} is tier {HIGHEST_TIER}" if is_highest else ""


def _subject_reason(subject: str) -> str:
    return f"it {_SUBJECTS[subject]}, which is tier {HIGHEST_TIER}" if subject else ""


def trust(memory: Memory, autonomous: bool, settings: GateSettings, *, is_typed: bool = True) -> Trust:
    """A person's memory is active.

    Tiers 1 and 2 are active if autopromotion allows it. Everything else waits for review.

    An inferred type (not `is_typed`) makes nothing wait: the content decides.

    A user's statement in a conversation about where they live or who is who becomes active; health, identity and money
    wait.

    Tier 2 relies on the earlier gates: a memory that resembles or contradicts a stored one has been decided before.
    """
    source = memory.source or "unknown"
    if is_human(memory.source):
        return Trust("active", "stored as active: a person said it")
    judged = memory if is_typed else memory.replace(type="fact")
    if sensitive := loss_reason(judged) if is_told(memory) else tier_3_reason(judged):
        return Trust("candidate", f"{sensitive}; only a person can approve it")
    if settings.autopromote_kinds and (kind := kind_of(memory)) not in settings.autopromote_kinds:
        return Trust("candidate", f"autopromote_kinds does not name {kind}; it waits for review")
    if autonomous or is_untrusted(memory.source):
        return _trust_captured(source, settings)
    if settings.autopromote_remember:
        return Trust("active", f"stored as active: a low-risk type, and {source} asked to store it")
    return Trust("candidate", f"from {source} and autopromote_remember is off; it waits for review")


def _trust_captured(source: str, settings: GateSettings) -> Trust:
    if rank_of(source) < Rank.HARVEST:
        return Trust("candidate", f"from {source}, which nobody vouches for; it waits for review")
    if settings.autopromote_harvest:
        return Trust(
            "active", f"stored as active: captured from {source}, a low-risk type, and autopromote_harvest is on"
        )
    return Trust("candidate", f"captured from {source} without an explicit request; it waits for review")


_TRANSCRIPTS = ("harness", "harvest")


def _is_transcript(source: str) -> bool:
    """Whether a source is a user's input to an agent.

    The assistant's output does not count, because it may repeat what it read.
    """
    return source.strip().casefold().partition(":")[0] in _TRANSCRIPTS


def corroborates(repeated: Memory, known: Memory, session: str) -> bool:
    """Whether a repetition in this session is independent evidence for a memory that so far has only its own.

    A source that is more trusted than content vouches for the memory instead.

    A guess that is captured again is no longer a guess. Evidence is corroborated if the user's own words in a
    transcript and something read elsewhere (a document, an import, a page, tool output) agree, in different sessions.
    Two things read elsewhere prove nothing, whatever their names: one author may have written both.
    """
    if not is_evidence(known) or known.verification == CONFIRMED:
        return False
    is_content = rank_of(repeated.source) < Rank.AGENT
    is_other = is_content and _is_transcript(repeated.source) != _is_transcript(known.source)
    return is_other and (not session or session != known.session)


def corroborate_guess(known: Memory, repeated: Memory) -> Memory:
    """Raise a speculative memory that was captured again to a certainty that keeps it. Return any other unchanged."""
    if not is_speculative(known):
        return known
    return known.replace(confidence=max(INFERRED_FROM, repeated.confidence))
