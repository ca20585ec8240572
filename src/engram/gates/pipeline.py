"""Runs the gates in order on a proposal and its other fields.

Each gate passes it on or decides its outcome, with a reason.

    shape → secrets → instructions → triviality → behavioral → documentation → specificity → scope → rejected
          → redundancy → exact → relation → near → policy → contradiction → paraphrase → trust

Triviality applies to captured texts, and the five quality gates to texts that no model has judged worth keeping. A
memory that `instructions` finds suspicious still goes through the other gates, so that a duplicate is reported as one;
otherwise it waits for review. `relation` applies the caller's statement about stored memories. The policy has already
set the conflict key; its gate looks up the current memories with the same key.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from engram.gates.certainty import adds_nothing
from engram.gates.comparison import exact_duplicate, find_covering_memory, relation, statements_of
from engram.gates.instructions import find_injections, injection_problem
from engram.gates.neighbourhood import (
    MAX_JUDGED_CHARS,
    Neighbourhood,
    Recurrence,
    find_recurrence,
    find_repeated_passage,
    state_passage,
)
from engram.gates.proposal import (
    Conflict,
    FoldedLookup,
    GateSettings,
    Lookup,
    Neighbour,
    Proposal,
    Verdict,
    added_problem,
    fold_proposal,
    statement_problem,
)
from engram.gates.quality import QUALITY_GATES, form_problems, pattern, triviality_problem
from engram.gates.secrets.exemptions import AllowedValues
from engram.gates.secrets.scan import secrets_problem, suspects
from engram.gates.trust import Trust, is_human, is_told, is_untrusted, loss_reason, tier_3_reason, tier_of, trust
from engram.model.decision import Outcome
from engram.model.errors import Refused, SecretRefused
from engram.model.lazy import lazy_pattern, replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, Memory, Status
from engram.model.types import type_or_default
from engram.models.readings import other_readings
from engram.rules.labels import name_for
from engram.rules.lifecycle import is_over, outlasts
from engram.rules.sources import CAPTURED, may_replace, origin_of
from engram.text.display import notice, quote_text, safe_word

__all__ = [
    "GATES",
    "LABEL_FIELDS",
    "PARTICULAR_FIELDS",
    "admit",
    "admit_all",
    "exception_reason",
    "find_rejected_particular",
    "join_texts",
    "judge",
    "mention",
    "outranked_reason",
    "particular_problem",
    "particular_texts",
    "situation_conflict",
]

LABEL_FIELDS = ("tags", "cues", "domain", "name", "aliases", "trigger_context")
"""Fields that a caller sets, even in a capture."""
PARTICULAR_FIELDS = ("situation", "rationale", "context", "entities", *LABEL_FIELDS)
_FRAGMENTS = ("situation", *LABEL_FIELDS)
"""Fields that are not statements and are not judged as such."""
MIN_LABEL_WORDS = 3
"""A text with fewer words is a name or a keyword, not a statement."""
_WORD = lazy_pattern(r"[^\W_]+")
_BETWEEN_WORDS = lazy_pattern(r"[\s/_-]+")
MAX_CLAIM_CHARS = 2_000
"""Maximum characters searched for sensitive subjects, and of a situation compared with current memories."""
MAX_LABELS = 50
"""Labels of a field that are judged one by one; further ones are judged in groups."""


def particular_problem(memory: Memory, names: Sequence[str] = PARTICULAR_FIELDS) -> str:
    """Why a text next to the statement waits for review: it instructs its reader, is tier 3, or is too long to judge; "" if none apply."""
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
    """The name of a text next to the statement that repeats a rejected memory, and that memory."""
    if _size_problem(proposal.memory, names) or not (texts := _texts(proposal.memory, names)):
        return None
    near = known.rejected_neighbours(state_passage(proposal, join_texts(texts)))
    return find_repeated_passage(proposal, texts, near) if near else None


def particular_texts(memory: Memory) -> dict[str, list[str]]:
    """The texts next to the statement that have content, by field; none if there is too much to judge.

    They pass the same gates as the statement, so that a rejected statement cannot reach a reader in another field.
    """
    return {} if _size_problem(memory, PARTICULAR_FIELDS) else _texts(memory, PARTICULAR_FIELDS)


def join_texts(texts: Mapping[str, Sequence[str]]) -> str:
    """All of these texts joined into one, to look up memories that share words with them."""
    return "\n".join(text for given in texts.values() for text in given)


def situation_conflict(proposal: Proposal, known: Lookup) -> Memory | None:
    """The current memory that contradicts a situation which reads as a statement."""
    for text in _texts(proposal.memory, ("situation",)).get("situation", ()):
        said = state_passage(proposal, text[:MAX_CLAIM_CHARS])
        for near in known.near(said):
            is_current = near.memory.status in LIVE_STATUSES and not proposal.leaves_out(near.memory.id)
            if is_current and relation(text, near.memory.statement).relation == "opposite":
                return near.memory
    return None


def _size_problem(memory: Memory, names: Sequence[str]) -> str:
    """Which text next to a statement is too long to be judged and must be read by a person; "" for none."""
    for name in names:
        value = getattr(memory, name)
        if isinstance(value, str) and len(value) > MAX_JUDGED_CHARS:
            return f"its {name} has {len(value):,} characters, and the gates judge at most {MAX_JUDGED_CHARS:,}; it waits for review"
    return ""


def _texts(memory: Memory, names: Sequence[str]) -> dict[str, list[str]]:
    """The texts with content by field; if a field has several, also all of them joined."""
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
    """A few labels one by one; many labels partly in groups; and all of them together."""
    size = -(-len(labels) // MAX_LABELS)
    groups = list(labels) if size < 2 else ["\n".join(labels[at : at + size]) for at in range(0, len(labels), size)]
    return [*groups, " ".join(labels)] if len(labels) > 1 else groups


def _space(found: re.Match[str]) -> str:
    return "\n" if "\n" in found[0] else " "


def _label_words(text: str) -> str:
    """A label as words between spaces; "" if it has too few to be a statement.

    Labels with digits are codes, such as ids and versions.
    """
    label = _BETWEEN_WORDS.sub(_space, text)
    said = (
        words for words in (label, *other_readings(label)) if sum(map(str.isalpha, words.split())) >= MIN_LABEL_WORDS
    )
    return next(said, "")


def _repeats_statement(text: str, memory: Memory) -> bool:
    """Whether a text has only words of the statement and numbers, as names often do."""
    words = {word for word in _WORD.findall(text.casefold()) if not word.isdigit()}
    return words.issubset(_WORD.findall(memory.statement[:MAX_CLAIM_CHARS].casefold()))


GATES = (
    "shape", "secrets", "instructions", "triviality", "behavioral", "documentation", "specificity", "scope",
    "rejected", "redundancy", "exact", "relation", "near", "policy", "contradiction", "paraphrase", "trust",
)  # fmt: skip


def judge(proposal: Proposal, known: Lookup, settings: GateSettings) -> Verdict:
    """Run a proposal through the gates. The verdict names the gate that decided and the gates passed before it.

    The gates read the folded texts of the proposal and of the memories it is compared with. The verdict holds the
    originals.
    """
    lookup = FoldedLookup(known, proposal.named)
    verdict = _GateRun(proposal, settings, lookup).verdict(lookup)
    return lookup.restore(verdict)


_STATUS: dict[Outcome, Status] = {
    Outcome.CREATED: "active",
    Outcome.SUPERSEDED: "active",
    Outcome.REJECTED: "rejected",
}
_REPEATABLE = ("active", "dormant", "candidate")
"""The statuses of memories that a proposal can repeat.

A repeated forgotten or replaced memory counts as a new statement.
"""


class _GateRun:
    """One proposal, the gates it has passed, and the reasons to suspect it."""

    def __init__(self, proposal: Proposal, settings: GateSettings, lookup: FoldedLookup) -> None:
        self.given = proposal.memory
        """The memory as it would be stored."""
        self.proposal = fold_proposal(proposal)
        self.memory = self.proposal.memory
        self._lookup = lookup
        self.settings = settings
        self.passed: list[str] = []
        self.suspicion = ""
        self.withdrawn = self.withdrawal = ""
        """The rejected, retired or replaced memory that this one repeats, and why it therefore waits."""
        self.particular = ""
        """Why a text next to the statement makes it wait."""
        self.note = ""
        self.conflicts: list[Conflict] = []

    def verdict(self, known: Lookup) -> Verdict:
        return (
            self._refuse("shape", statement_problem(self.given, self.settings))
            or self._check_secrets()
            or self._check_instructions()
            or self._check_quality()
            or self._compare_with_stored(known)
        )

    def _refuse(self, gate: str, problem: str) -> Verdict | None:
        if problem:
            return self._make_verdict(Outcome.REJECTED, gate, problem)
        self.passed.append(gate)
        return None

    def _make_verdict(self, outcome: Outcome, gate: str, reason: str, other: Memory | None = None) -> Verdict:
        # Reasons quote stored and proposed text, which may try to instruct the agent that reads them.
        return Verdict(
            outcome=outcome,
            gate=gate,
            reason=notice(self.note + reason),
            other=other,
            status=_STATUS.get(outcome, "candidate"),
            passed=tuple(self.passed),
            conflicts=tuple(self.conflicts),
            withdrawn=self.withdrawn,
            waits_alone=outcome == Outcome.CONTRADICTION and self._trust().status == "active",
        )

    def _mention(self, memory: Memory) -> str:
        return mention(self._lookup.original(memory))

    def _check_secrets(self) -> Verdict | None:
        _scan_with_names([self.given])
        allowed = AllowedValues(self.settings.allowed_values)
        return self._refuse("secrets", secrets_problem(self.given, allowed=allowed))

    def _check_exact(self, known: Lookup) -> Verdict | None:
        twin = exact_duplicate(self.proposal, known)
        if twin is not None and not self._is_over(twin):
            return self._make_verdict(Outcome.DUPLICATE, "exact", f"exact duplicate of {self._mention(twin)}", twin)
        self.passed.append("exact")
        return None

    def _check_instructions(self) -> Verdict | None:
        problem = "" if is_human(self.memory.source) else injection_problem(self.given)
        if problem and (self.proposal.autonomous or is_untrusted(self.memory.source)):
            return self._refuse("instructions", problem)
        self.suspicion = problem
        if not problem:
            self.passed.append("instructions")
        return None

    def _check_quality(self) -> Verdict | None:
        is_captured = self.proposal.autonomous or self.memory.learned_by == CAPTURED
        if is_captured and (refused := self._refuse("triviality", triviality_problem(self.memory))):
            return refused
        if not self.proposal.autonomous:
            return None
        for gate, problem in form_problems(self.memory) if self.memory.form else _problems(self.memory):
            if refused := self._refuse(gate, problem):
                return refused
        return None

    def _compare_with_stored(self, known: Lookup) -> Verdict:
        """Compare with stored memories. The expensive lookup of neighbours runs once, and only if needed."""
        if refused := self._check_recurrence(known):
            return refused
        neighbours = self._find_neighbours(known) if self.proposal.autonomous else None
        redundant = self._check_redundancy(neighbours) if neighbours is not None else None
        if duplicate := redundant or self._check_exact(known) or self._check_stated_relation():
            return duplicate
        return self._check_conflicts(known, self._find_neighbours(known) if neighbours is None else neighbours)

    def _find_neighbours(self, known: Lookup) -> list[Neighbour]:
        return [near for near in known.near(self.proposal) if not self._is_over(near.memory)]

    def _is_over(self, other: Memory) -> bool:
        """Whether a stored memory is no longer valid; if repeated, it is learned again."""
        now = self.memory.created
        return now is not None and is_over(other, now)

    def _check_recurrence(self, known: Lookup) -> Verdict | None:
        """Refuse a statement that a person has rejected, in the same or in other words.

        Only a person may store it again.
        """
        if is_human(self.memory.source):
            return None
        statements = statements_of(self.proposal)
        rejected = _find_recurrence(statements, known.rejected_neighbours)
        if rejected is not None and rejected.is_sure:
            reason = (
                f"{self._mention(rejected.memory)} was {rejected.removal_note}; a person may say it again, or undo that"
            )
            return self._make_verdict(Outcome.REJECTED, "rejected", reason, rejected.memory)
        if refused := self._check_particulars(known):
            return refused
        self.passed.append("rejected")
        self._wait_for_person(rejected or _find_recurrence(statements, known.withdrawn_neighbours))
        return None

    def _wait_for_person(self, found: Recurrence | None) -> None:
        """Let the proposal wait if it certainly repeats a memory that a person removed, or likely one they rejected or retired."""
        if found is None:
            return
        says = "this says it again" if found.is_sure else "this probably says the same"
        self.withdrawn = found.memory.id
        self.withdrawal = f"{self._mention(found.memory)} was {found.removal_note}; {says} and waits for review"

    def _check_particulars(self, known: Lookup) -> Verdict | None:
        """Refuse rejected content in the texts next to a statement.

        For a capture, only in the labels that the caller gave.
        """
        is_captured = self.proposal.autonomous or self.memory.learned_by == CAPTURED
        names = LABEL_FIELDS if is_captured else PARTICULAR_FIELDS
        found = find_rejected_particular(self.proposal, known, names)
        if found is not None:
            name, twin = found
            if twin.is_sure:
                reason = f"its {name} says what {self._mention(twin.memory)} does, which was {twin.removal_note}"
                return self._make_verdict(Outcome.REJECTED, "rejected", reason, twin.memory)
            self.particular = f"its {name} probably says what {self._mention(twin.memory)} does, which was {twin.removal_note}; it waits for review"
            return None
        self.particular = particular_problem(self.memory, names)
        if not self.particular and not is_captured and (other := situation_conflict(self.proposal, known)) is not None:
            self.particular = f"its situation contradicts {self._mention(other)}; it waits for review"
        return None

    def _check_redundancy(self, neighbours: Sequence[Neighbour]) -> Verdict | None:
        twin = find_covering_memory(self.proposal, neighbours)
        if twin is not None:
            return self._make_verdict(
                Outcome.DUPLICATE, "redundancy", f"already covered by {self._mention(twin)}", twin
            )
        self.passed.append("redundancy")
        return None

    def _check_stated_relation(self) -> Verdict | None:
        twin = next((named for named in self.proposal.named if named.status in _REPEATABLE), None)
        if self.proposal.relation == "same" and twin is not None:
            if not (why := self._difference_reason(twin)):
                return self._make_verdict(
                    Outcome.DUPLICATE, "relation", f"the same as {self._mention(twin)}, as the caller says", twin
                )
            self.note = f"the caller called it the same as {self._mention(twin)}, {why}; "
            self.proposal = replace(self.proposal, named=(), relation="")
        self.passed.append("relation")
        return None

    def _difference_reason(self, twin: Memory) -> str:
        """Why a statement is compared although the caller declares it a repetition; "" if it may be dropped as a duplicate."""
        mine, theirs = self.memory.statement, twin.statement
        if relation(mine, theirs).relation == "opposite":
            return "which says the opposite"
        if is_human(self.memory.source) or not (twin.critical_slot or loss_reason(twin)):
            return ""
        return "" if adds_nothing(mine, theirs) else "whose loss could do harm, in other words"

    def _check_conflicts(self, known: Lookup, neighbours: Sequence[Neighbour]) -> Verdict:
        near = Neighbourhood(self.proposal, neighbours)
        twin = near.duplicate()
        if twin is not None:
            return self._make_verdict(Outcome.DUPLICATE, "near", f"near duplicate of {self._mention(twin)}", twin)
        self.passed.append("near")
        if changed := self._check_policy(known):
            return changed
        self.conflicts = near.conflicts()
        blocking = [conflict for conflict in self.conflicts if conflict.is_likely and self._is_blocking(conflict.other)]
        if blocking:
            return self._judge_conflict(min(blocking, key=lambda conflict: conflict.other.status == "candidate"))
        self.passed.append("contradiction")
        return self._decide_status(near.paraphrase())

    def _is_blocking(self, other: Memory) -> bool:
        """Whether a memory blocks this one.

        A candidate does not, unless its source is more trusted, or it waits because of a current memory that this one
        contradicts as well. Neither does a memory that becomes valid again when this one ends.
        """
        if self._is_exception([other]):
            return False
        if other.status != "candidate" or self._trust().status != "active":
            return True
        waits_for = [link.target for link in other.associations if link.type == CONTRADICTS]
        return not may_replace(self.memory.source, other) or not all(map(self.proposal.leaves_out, waits_for))

    def _is_exception(self, others: Sequence[Memory]) -> bool:
        """Whether a statement with an end date leaves these current, although its source could have replaced them."""
        return all(outlasts(other, self.memory) for other in others) and self._trust_over(others).status == "active"

    def _check_policy(self, known: Lookup) -> Verdict | None:
        """Supersede the current memory with the same conflict key, if trust allows it; otherwise wait for review."""
        key = self.memory.conflict_key
        heads = known.heads(key, self.memory.scope) if key else ()
        if not heads:
            self.passed.append("policy")
            return None
        if self._is_exception(heads):
            return self._make_verdict(Outcome.CREATED, "policy", exception_reason(self.memory, heads[-1]), heads[-1])
        found = self._trust_over(heads)
        head = ([head for head in heads if not outlasts(head, self.memory)] or heads)[-1]
        if found.status == "active":
            return self._make_verdict(
                Outcome.SUPERSEDED,
                "policy",
                f"supersedes {self._mention(head)}, the previous value of {safe_word(key)}",
                head,
            )
        reason = f"would supersede {self._mention(head)}, the current value of {safe_word(key)}; {found.reason}"
        return self._make_verdict(Outcome.CONTRADICTION, "policy", reason, head)

    def _judge_conflict(self, conflict: Conflict) -> Verdict:
        other, key = conflict.other, self.memory.conflict_key
        found = self._trust_over([other])
        verb = "updates" if conflict.relation == "update" else "contradicts"
        why = f"{verb} {self._mention(other)}" + (f": {conflict.why}" if conflict.why else "")
        replaces = (conflict.is_sure and other.status != "candidate") or (key and key == other.conflict_key)
        if replaces and found.status == "active":
            return self._make_verdict(
                Outcome.SUPERSEDED, "contradiction", f"{why}; superseded by the newer statement", other
            )
        waits = found.reason if replaces else "it waits for review"
        return self._make_verdict(Outcome.CONTRADICTION, "contradiction", f"{why}; {waits}", other)

    def _trust(self) -> Trust:
        if self.suspicion:
            return Trust("candidate", f"{self.suspicion}; it waits for review")
        if self.withdrawn:
            return Trust("candidate", self.withdrawal)
        if self.particular:
            return Trust("candidate", self.particular)
        proposal = self.proposal
        return trust(self.memory, proposal.autonomous, self.settings, is_typed=proposal.is_typed)

    def _trust_over(self, heads: Sequence[Memory]) -> Trust:
        """Trust, given the memories it would supersede: no source supersedes a statement from a more trusted one."""
        found, source = self._trust(), self.memory.source
        above = [head for head in heads if not may_replace(source, head)]
        if found.status != "active" or not above:
            return found
        return Trust("candidate", outranked_reason(source, above[-1]))

    def _decide_status(self, similar: Memory | None) -> Verdict:
        if similar is None:
            self.passed.append("paraphrase")
        found = self._trust()
        merging = f"paraphrases {self._mention(similar)}; consider merging the two" if similar else ""
        if similar is not None and found.status == "active" and not is_human(self.memory.source):
            tier = type_or_default(self.memory.type).tier if is_told(self.memory) else tier_of(self.memory)
            if tier > 1:
                found = Trust("candidate", f"tier {tier} and close to a stored memory; it waits for review")
        if found.status == "active":
            reason = merging or found.reason
            return self._make_verdict(Outcome.CREATED, "paraphrase" if similar else "trust", reason, similar)
        reason = f"{found.reason}; {merging}" if merging else found.reason
        return self._make_verdict(Outcome.PENDING, "instructions" if self.suspicion else "trust", reason, similar)


def _find_recurrence(
    statements: Sequence[Proposal], lookup: Callable[[Proposal], Sequence[Neighbour]]
) -> Recurrence | None:
    """The first removed memory that one of these certainly repeats; otherwise the first that one likely repeats."""
    likely: Recurrence | None = None
    for one in statements:
        found = find_recurrence(one, lookup(one))
        if found is not None and found.is_sure:
            return found
        likely = likely or found
    return likely


def _problems(memory: Memory) -> Iterator[tuple[str, str]]:
    """Each quality gate and why a statement fails it; "" if it passes or is not in English."""
    found = pattern(memory.statement)
    return ((gate, rule(found) if found.english else "") for gate, rule in QUALITY_GATES)


def admit(memory: Memory, settings: GateSettings | None = None) -> Memory:
    """The memory, checked as every record is before it is written, whichever verb wrote it: shape, size and secrets.

    Raises `Refused`, or `SecretRefused` for a secret.
    """
    settings = settings or GateSettings()
    check_shape(memory, settings)
    if problem := secrets_problem(memory, allowed=AllowedValues(settings.allowed_values)):
        raise SecretRefused(notice(problem))
    return memory


def check_shape(memory: Memory, settings: GateSettings | None = None) -> Memory:
    """The memory. Raises `Refused` if its shape or size cannot be stored."""
    if problem := added_problem(memory, settings or GateSettings()):
        raise Refused(notice(problem))
    return memory


def admit_all(memories: Sequence[Memory], settings: GateSettings) -> None:
    """Check many memories as `admit` does, scanning them for secrets in one pass."""
    _scan_with_names(memories)
    suspected = {id(memory) for memory in suspects(memories)}
    for memory in memories:
        if id(memory) in suspected or added_problem(memory, settings):
            admit(memory, settings)


def _scan_with_names(memories: Sequence[Memory]) -> None:
    """Scan memories together with the names that they will get, so that nothing is left to scan when they are stored."""
    suspects([memory.replace(name=name_for(memory)) for memory in memories])


def outranked_reason(source: str, memory: Memory) -> str:
    """Why a statement from this source cannot replace a memory automatically."""
    return f"{safe_word(memory.id)} comes from {origin_of(memory)}, which outranks {safe_word(source or 'unknown')}; the change waits for review"


def exception_reason(memory: Memory, lasting: Memory) -> str:
    """Why a statement with an end date is stored next to the lasting one that it would otherwise replace."""
    return notice(
        f"stored as active until {memory.valid_until:%Y-%m-%d %H:%M}; after that, {mention(lasting)} holds again"
    )


def mention(memory: Memory) -> str:
    """A reference to a memory: its id and the beginning of its statement."""
    excerpt = memory.statement if len(memory.statement) <= 60 else memory.statement[:57].rstrip() + "…"
    return f"{safe_word(memory.id) if memory.id else 'a memory'} ({quote_text(excerpt)})"
