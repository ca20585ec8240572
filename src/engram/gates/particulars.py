"""The particulars of a memory: its situation, rationale, context, entities and labels, which an agent reads next to the statement.

They pass the gates as the statement does, so that nothing reaches a reader in a field that was kept out of a statement.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from engram.gates.comparison import relation
from engram.gates.instructions import find_injections
from engram.gates.neighbourhood import Recurrence, find_repeated_passage, state_passage
from engram.gates.passages import MAX_JUDGED_CHARS
from engram.gates.proposal import Lookup, Proposal
from engram.gates.trust import tier_3_reason
from engram.model.lazy import lazy_pattern
from engram.model.memory import Memory
from engram.models.readings import other_readings
from engram.store.records import CURRENT_STATUSES

__all__ = [
    "LABEL_FIELDS",
    "PARTICULAR_FIELDS",
    "find_rejected_particular",
    "join_texts",
    "particular_problem",
    "particular_texts",
    "situation_conflict",
]

LABEL_FIELDS = ("tags", "cues", "domain", "name", "aliases", "trigger_context")
"""Fields that a caller gives, in a capture as well."""
PARTICULAR_FIELDS = ("situation", "rationale", "context", "entities", *LABEL_FIELDS)
_FRAGMENTS = ("situation", *LABEL_FIELDS)
"""Fields that are no statements, and are judged as none."""
MIN_LABEL_WORDS = 3
"""A text of fewer words is a name or a keyword, and says nothing by itself."""
_WORD = lazy_pattern(r"[^\W_]+")
_BETWEEN_WORDS = lazy_pattern(r"[\s/_-]+")
MAX_CLAIM_CHARS = 2_000
"""Characters of a text that are searched for what is sensitive, and of a situation that is compared with current memories."""
MAX_LABELS = 50
"""Labels in a field that are judged one by one; of more, several are judged together."""


def particular_problem(memory: Memory, names: Sequence[str] = PARTICULAR_FIELDS) -> str:
    """Why what is said next to a statement waits for review: it instructs its reader, is tier 3, or is too long to judge; "" where it need not."""
    if problem := _size_problem(memory, names):
        return problem
    for name, texts in _texts(memory, names).items():
        for text in texts:
            if found := find_injections(text):
                return (
                    f"{name} looks like an instruction to the agent that reads it ({found[0].kind}: {found[0].quote})"
                )
            is_fragment, begin = name in _FRAGMENTS, text[:MAX_CLAIM_CHARS]
            said = Memory("", "", type="fact", situation=begin) if is_fragment else Memory("", begin, type="fact")
            if reason := tier_3_reason(said):
                return f"its {name}: {reason}; only a person can approve it"
    return ""


def find_rejected_particular(
    proposal: Proposal, known: Lookup, names: Sequence[str] = PARTICULAR_FIELDS
) -> tuple[str, Recurrence] | None:
    """The name of a text next to the statement that says what a person has rejected as a statement, and the memory they rejected."""
    if _size_problem(proposal.memory, names) or not (texts := _texts(proposal.memory, names)):
        return None
    near = known.rejected_neighbours(state_passage(proposal, join_texts(texts)))
    return find_repeated_passage(proposal, texts, near) if near else None


def particular_texts(memory: Memory) -> dict[str, list[str]]:
    """The texts next to the statement that say something, by their fields; none if there is too much to judge."""
    return {} if _size_problem(memory, PARTICULAR_FIELDS) else _texts(memory, PARTICULAR_FIELDS)


def join_texts(texts: Mapping[str, Sequence[str]]) -> str:
    """All of these texts as one, by which memories that share words with them are looked up."""
    return "\n".join(text for given in texts.values() for text in given)


def situation_conflict(proposal: Proposal, known: Lookup) -> Memory | None:
    """The current memory that says the opposite of a situation that reads as a statement."""
    for text in _texts(proposal.memory, ("situation",)).get("situation", ()):
        said = state_passage(proposal, text[:MAX_CLAIM_CHARS])
        for near in known.near(said):
            is_current = near.memory.status in CURRENT_STATUSES and not proposal.leaves_out(near.memory.id)
            if is_current and relation(text, near.memory.statement).relation == "opposite":
                return near.memory
    return None


def _size_problem(memory: Memory, names: Sequence[str]) -> str:
    """Which text next to a statement is too long to be judged, so that a person reads it; "" for none."""
    for name in names:
        value = getattr(memory, name)
        if isinstance(value, str) and len(value) > MAX_JUDGED_CHARS:
            return f"its {name} has {len(value):,} characters, and the gates judge at most {MAX_JUDGED_CHARS:,}; it waits for review"
    return ""


def _texts(memory: Memory, names: Sequence[str]) -> dict[str, list[str]]:
    """The texts that say something by their fields; of several words in a field, all of them together as well."""
    found = {name: list(_texts_of(memory, name)) for name in names}
    return {name: texts for name, texts in found.items() if texts}


def _texts_of(memory: Memory, name: str) -> Iterator[str]:
    value = getattr(memory, name)
    texts = [value] if isinstance(value, str) else _join_some(value)
    for text in texts:
        if name not in LABEL_FIELDS and len(text.split(maxsplit=MIN_LABEL_WORDS)) >= MIN_LABEL_WORDS:
            yield text
        elif name in LABEL_FIELDS and (words := _label_words(text)) and not _repeats_statement(words, memory):
            yield words


def _join_some(labels: Sequence[str]) -> list[str]:
    """Each of a few labels, of many some of them together, and all of them together."""
    size = -(-len(labels) // MAX_LABELS)
    groups = list(labels) if size < 2 else ["\n".join(labels[at : at + size]) for at in range(0, len(labels), size)]
    return [*groups, " ".join(labels)] if len(labels) > 1 else groups


def _space(found: re.Match[str]) -> str:
    return "\n" if "\n" in found[0] else " "


def _label_words(text: str) -> str:
    """A label as words between spaces; "" if it has too few to say something. Those with digits are codes, as ids and versions are."""
    label = _BETWEEN_WORDS.sub(_space, text)
    said = (
        words for words in (label, *other_readings(label)) if sum(map(str.isalpha, words.split())) >= MIN_LABEL_WORDS
    )
    return next(said, "")


def _repeats_statement(text: str, memory: Memory) -> bool:
    """Whether a text has only words of the statement and numbers, as names often do."""
    words = {word for word in _WORD.findall(text.casefold()) if not word.isdigit()}
    return words.issubset(_WORD.findall(memory.statement[:MAX_CLAIM_CHARS].casefold()))
