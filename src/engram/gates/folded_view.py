"""The folded view of a proposal and of the memories it is compared with (`engram.text.confusables`).

What is stored keeps its characters; every gate, model and comparison reads this view, so that no look-alike letter and no invisible
character changes a decision.
"""

from collections.abc import Callable, Sequence

from engram.gates.proposal import Lookup, Neighbour, Proposal, Verdict
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.text.confusables import fold_text
from engram.text.invisible import remove_invisible

__all__ = ["TEXT_FIELDS", "WORD_FIELDS", "FoldedLookup", "fold_memory", "fold_proposal", "without_invisible"]

TEXT_FIELDS = ("statement", "situation", "context", "rationale", "trigger_context", "domain", "name")
WORD_FIELDS = ("tags", "cues", "entities", "aliases")
"""The fields with text that an agent may read or that a memory is judged by; a form is one, too."""
MAX_FOLDED_CHARS = 20_000
"""Characters of a text that are folded for the gates; what is longer is a document, and compared by its hash alone."""


def fold_memory(memory: Memory) -> Memory:
    """The memory with folded texts; itself, if they are folded already. Of a long text, the beginning is folded, which the gates read."""
    return _with_texts(memory, _fold_beginning)


def without_invisible(memory: Memory) -> Memory:
    """The memory without invisible characters, as it is stored."""
    return _with_texts(memory, remove_invisible)


def fold_proposal(proposal: Proposal) -> Proposal:
    """The proposal with folded texts, its own and those of the memories that it names. Its hash and tokens are of folded text anyway."""
    memory, named = fold_memory(proposal.memory), tuple(map(fold_memory, proposal.named))
    if memory is proposal.memory and all(one is other for one, other in zip(named, proposal.named, strict=True)):
        return proposal
    return replace(proposal, memory=memory, named=named)


def _fold_beginning(text: str) -> str:
    return (
        fold_text(text)
        if len(text) <= MAX_FOLDED_CHARS
        else fold_text(text[:MAX_FOLDED_CHARS]) + text[MAX_FOLDED_CHARS:]
    )


def _with_texts(memory: Memory, change: Callable[[str], str]) -> Memory:
    changes: dict[str, object] = {}
    for name in TEXT_FIELDS:
        text = getattr(memory, name)
        if text and (changed := change(text)) != text:
            changes[name] = changed
    for name in WORD_FIELDS:
        words = getattr(memory, name)
        if words and (changed_words := tuple(filter(None, map(change, words)))) != words:
            changes[name] = changed_words
    if memory.form and (form := {part: change(text) for part, text in memory.form.items()}) != memory.form:
        changes["form"] = form
    return memory.replace(**changes) if changes else memory


class FoldedLookup:
    """The gates' lookups with folded texts. It remembers the memories as they are stored, for the verdict."""

    def __init__(self, known: Lookup, named: Sequence[Memory]) -> None:
        self._known = known
        self._originals: dict[str, Memory] = {memory.id: memory for memory in named}

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """A live memory of that scope with that content hash."""
        found = self._known.exact(content_hash, scope)
        return None if found is None else self._fold_stored(found)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        """The current memories with a conflict key in a scope."""
        return list(map(self._fold_stored, self._known.heads(conflict_key, scope)))

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest live memories in the proposal's scope."""
        return self._fold_neighbours(self._known.near(proposal))

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person rejected."""
        return self._fold_neighbours(self._known.rejected_neighbours(proposal))

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        """The nearest memories that a person retired or replaced."""
        return self._fold_neighbours(self._known.withdrawn_neighbours(proposal))

    def original(self, memory: Memory) -> Memory:
        """A memory that was looked up, as it is stored."""
        return self._originals.get(memory.id, memory)

    def restore(self, verdict: Verdict) -> Verdict:
        """The verdict with the memories that it names as they are stored."""
        other = None if verdict.other is None else self.original(verdict.other)
        if other is verdict.other and not verdict.conflicts:
            return verdict
        conflicts = tuple(replace(one, other=self.original(one.other)) for one in verdict.conflicts)
        return replace(verdict, other=other, conflicts=conflicts)

    def _fold_stored(self, memory: Memory) -> Memory:
        folded = fold_memory(memory)
        if folded is not memory:
            self._originals[memory.id] = memory
        return folded

    def _fold_neighbours(self, near: Sequence[Neighbour]) -> Sequence[Neighbour]:
        return [
            one if (folded := self._fold_stored(one.memory)) is one.memory else replace(one, memory=folded)
            for one in near
        ]
