"""The particulars of a memory: its situation, rationale, context, entities and labels, which an agent reads next to the statement.

They pass the gates as the statement does, so that nothing reaches a reader in a field that was kept out of a statement.
"""

from collections.abc import Iterator, Sequence

from engram.gates.comparison import relation
from engram.gates.instructions import find_injections
from engram.gates.neighbourhood import Recurrence, find_recurrence
from engram.gates.proposal import Known, Proposal
from engram.gates.trust import tier_3_reason
from engram.model.lazy import lazy_pattern, replace
from engram.model.memory import Memory
from engram.models.readings import other_readings
from engram.store.records import CURRENT
from engram.text.content_hash import content_hash
from engram.text.sentences import split_sentences
from engram.text.tokens import tokens

__all__ = [
    "LABELS",
    "PARTICULARS",
    "particular_problem",
    "rejected_particular",
    "sentences_beside",
    "situation_conflict",
]

LABELS = ("tags", "cues", "domain", "name", "aliases", "trigger_context")
"""Fields that a caller gives, in a capture as well."""
PARTICULARS = ("situation", "rationale", "context", "entities", *LABELS)
_FRAGMENTS = ("situation", *LABELS)
"""Fields that are no statements, and are judged as none."""
LEAST_WORDS = 3
"""A text of fewer words is a name or a keyword, and says nothing by itself."""
_WORD = lazy_pattern(r"[^\W_]+")
_BETWEEN_WORDS = lazy_pattern(r"[\s/_-]+")
LONGEST = 2_000
"""Characters of a text that are compared."""


def particular_problem(memory: Memory, names: Sequence[str] = PARTICULARS) -> str:
    """Why what is said next to a statement waits for review: it instructs its reader, or is tier 3; "" where it need not."""
    for name, text in _texts(memory, names):
        if found := find_injections(text):
            return f"{name} looks like an instruction to the agent that reads it ({found[0].kind}: {found[0].quote})"
        is_fragment = name in _FRAGMENTS
        said = Memory("", "", type="fact", situation=text) if is_fragment else Memory("", text, type="fact")
        if reason := tier_3_reason(said):
            return f"its {name}: {reason}; only a person can approve it"
    return ""


def rejected_particular(
    proposal: Proposal, known: Known, names: Sequence[str] = PARTICULARS
) -> tuple[str, Recurrence] | None:
    """The name of a text next to the statement that says what a person has rejected as a statement, and the memory they rejected."""
    likely: tuple[str, Recurrence] | None = None
    for name, text in _texts(proposal.memory, names):
        # The cosines are those of the statement.
        near = [replace(one, cosine=-1.0) for one in known.rejected(_said(proposal, text))]
        for sentence in split_sentences(text) if near else ():
            if (found := find_recurrence(_said(proposal, sentence), near)) is not None:
                if found.is_sure:
                    return name, found
                likely = likely or (name, found)
    return likely


def sentences_beside(proposal: Proposal) -> list[Proposal]:
    """Each sentence next to the statement as a statement of its own."""
    said = [sentence for _, text in _texts(proposal.memory, PARTICULARS) for sentence in split_sentences(text)]
    return [_said(proposal, sentence) for sentence in said if len(sentence.split()) >= LEAST_WORDS]


def situation_conflict(proposal: Proposal, known: Known) -> Memory | None:
    """The current memory that says the opposite of a situation that reads as a statement."""
    for _, text in _texts(proposal.memory, ("situation",)):
        said = _said(proposal, text)
        for near in known.near(said):
            is_current = near.memory.status in CURRENT and not proposal.leaves_out(near.memory.id)
            if is_current and relation(text, near.memory.statement).relation == "opposite":
                return near.memory
    return None


def _texts(memory: Memory, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The texts that say something, each with the name of its field; of several words in a field, all of them together as well."""
    for name in names:
        value = getattr(memory, name)
        texts = [value] if isinstance(value, str) else [*value, " ".join(value)] if len(value) > 1 else value
        for text in texts:
            if name not in LABELS and len(text.split(maxsplit=LEAST_WORDS)) >= LEAST_WORDS:
                yield name, text[:LONGEST]
            elif name in LABELS and (words := _label_words(text)) and not _repeats_statement(words, memory):
                yield name, words


def _label_words(text: str) -> str:
    """A label as words between spaces; "" if it has too few to say something. Those with digits are codes, as ids and versions are."""
    label = _BETWEEN_WORDS.sub(" ", text[:LONGEST])
    said = (words for words in (label, *other_readings(label)) if sum(map(str.isalpha, words.split())) >= LEAST_WORDS)
    return next(said, "")


def _repeats_statement(text: str, memory: Memory) -> bool:
    """Whether a text has only words of the statement and numbers, as names often do."""
    words = {word for word in _WORD.findall(text.casefold()) if not word.isdigit()}
    return words.issubset(_WORD.findall(memory.statement[:LONGEST].casefold()))


def _said(proposal: Proposal, text: str) -> Proposal:
    """The text as a statement of its own."""
    memory = proposal.memory.but(statement=text, situation="", form={}, supersedes=(), conflict_key="")
    return replace(proposal, memory=memory, content_hash=content_hash(text), tokens=tuple(tokens(text)))
