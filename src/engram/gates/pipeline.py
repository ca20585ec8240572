"""The gates in their order (DESIGN §2): each passes the proposal on or answers for it, always with a reason.

    shape → secrets → instructions → triviality → behavioral → documentation → specificity → scope → redundancy
          → exact → near → policy → contradiction → paraphrase → trust

Triviality and the five quality gates judge autonomous capture only. A memory held back by `instructions` still goes
through the rest, so that a duplicate is answered as one; what is left waits for a person. A policy has described the
memory before it comes here; its gate asks who holds the memory's conflict key.
"""

from collections.abc import Sequence

from engram.gates.contradiction import Conflict, contradiction
from engram.gates.duplicates import covering, exact_duplicate, near_duplicate, paraphrased
from engram.gates.instructions import injection_problem
from engram.gates.proposal import GateSettings, Known, Neighbour, Proposal, Verdict
from engram.gates.quality import QUALITY_GATES, pattern
from engram.gates.secrets.scan import secrets_problem
from engram.gates.shape import added_problem, statement_problem
from engram.gates.triviality import triviality_problem
from engram.gates.trust import Trust, is_human, is_untrusted, trust
from engram.model.decision import Outcome
from engram.model.memory import Memory, Status
from engram.rules.sources import may_replace, who
from engram.text.quote import notice, quoted, word

__all__ = ["GATES", "judge", "judge_trusted", "outranked"]

GATES = (
    "shape",
    "secrets",
    "instructions",
    "triviality",
    "behavioral",
    "documentation",
    "specificity",
    "scope",
    "redundancy",
    "exact",
    "near",
    "policy",
    "contradiction",
    "paraphrase",
    "trust",
)


def judge(proposal: Proposal, known: Known, settings: GateSettings) -> Verdict:
    """Send a proposal through the gates; the verdict names the gate that decided and those passed before it."""
    return _Passage(proposal, settings).verdict(known)


def judge_trusted(proposal: Proposal, known: Known, settings: GateSettings) -> Verdict:
    """For a trusted program's `add`: shape and size, secrets and the exact duplicate only."""
    passage = _Passage(proposal, settings)
    return (
        passage.refuse("shape", added_problem(proposal.memory, settings))
        or passage.secrets()
        or passage.exact(known)
        or passage.answer(Outcome.CREATED, "trust", "added by a trusted program")
    )


_STATUS: dict[Outcome, Status] = {
    Outcome.CREATED: "active",
    Outcome.SUPERSEDED: "active",
    Outcome.REJECTED: "rejected",
}


class _Passage:
    """One proposal on its way: what it has passed, and what holds it back."""

    def __init__(self, proposal: Proposal, settings: GateSettings) -> None:
        self.proposal = proposal
        self.memory = proposal.memory
        self.settings = settings
        self.passed: list[str] = []
        self.held = ""

    def verdict(self, known: Known) -> Verdict:
        return (
            self.refuse("shape", statement_problem(self.memory, self.settings))
            or self.secrets()
            or self._instructions()
            or (self._quality() if self.proposal.autonomous else None)
            or self._compared(known)
        )

    def refuse(self, gate: str, problem: str) -> Verdict | None:
        if problem:
            return self.answer(Outcome.REJECTED, gate, problem)
        self.passed.append(gate)
        return None

    def answer(self, outcome: Outcome, gate: str, reason: str, other: Memory | None = None) -> Verdict:
        # Reasons name stored and proposed text, and are read by people and agents.
        return Verdict(outcome, gate, notice(reason), other, _STATUS.get(outcome, "candidate"), tuple(self.passed))

    def secrets(self) -> Verdict | None:
        return self.refuse("secrets", "" if self.settings.allow_secrets else secrets_problem(self.memory))

    def exact(self, known: Known) -> Verdict | None:
        twin = exact_duplicate(self.proposal, known)
        if twin is not None:
            return self.answer(Outcome.DUPLICATE, "exact", f"{_named(twin)} says exactly this", twin)
        self.passed.append("exact")
        return None

    def _instructions(self) -> Verdict | None:
        problem = "" if is_human(self.memory.source) else injection_problem(self.memory)
        if problem and (self.proposal.autonomous or is_untrusted(self.memory.source)):
            return self.refuse("instructions", problem)
        self.held = problem
        if not problem:
            self.passed.append("instructions")
        return None

    def _quality(self) -> Verdict | None:
        if refused := self.refuse("triviality", triviality_problem(self.memory)):
            return refused
        found = pattern(self.memory.statement)
        for gate, rule in QUALITY_GATES:
            if refused := self.refuse(gate, rule(found) if found.english else ""):
                return refused
        return None

    def _compared(self, known: Known) -> Verdict:
        """Against what the store knows; the dear question, what is near, is asked once and only when needed."""
        neighbours = known.near(self.proposal) if self.proposal.autonomous else None
        redundant = self._redundancy(neighbours) if neighbours is not None else None
        if answered := redundant or self.exact(known):
            return answered
        return self._against(known, known.near(self.proposal) if neighbours is None else neighbours)

    def _redundancy(self, neighbours: Sequence[Neighbour]) -> Verdict | None:
        twin = covering(self.proposal, neighbours)
        if twin is not None:
            return self.answer(Outcome.DUPLICATE, "redundancy", f"{_named(twin)} covers this already", twin)
        self.passed.append("redundancy")
        return None

    def _against(self, known: Known, neighbours: Sequence[Neighbour]) -> Verdict:
        twin = near_duplicate(self.proposal, neighbours)
        if twin is not None:
            return self.answer(Outcome.DUPLICATE, "near", f"{_named(twin)} says this in nearly the same words", twin)
        self.passed.append("near")
        if changed := self._policy(known):
            return changed
        conflict = contradiction(self.proposal, neighbours)
        if conflict is not None:
            return self._contradicts(conflict)
        self.passed.append("contradiction")
        return self._trusted(paraphrased(self.proposal, neighbours))

    def _policy(self, known: Known) -> Verdict | None:
        """Whoever holds the same conflict key is superseded, by what may be in force in their place; the rest waits."""
        key = self.memory.conflict_key
        heads = known.heads(key, self.memory.scope) if key else ()
        if not heads:
            self.passed.append("policy")
            return None
        head, found = heads[-1], self._trusted_over(heads)
        if found.status == "active":
            return self.answer(
                Outcome.SUPERSEDED, "policy", f"{_named(head)} was {word(key)} so far; the newer takes its place", head
            )
        reason = f"{_named(head)} is {word(key)} so far; the newer waits: {found.reason}"
        return self.answer(Outcome.CONTRADICTION, "policy", reason, head)

    def _contradicts(self, conflict: Conflict) -> Verdict:
        other, why = conflict.other, f"{_named(conflict.other)} is contradicted: {conflict.why}"
        key = self.memory.conflict_key
        if key and key == other.conflict_key and self._trusted_over([other]).status == "active":
            return self.answer(Outcome.SUPERSEDED, "contradiction", f"{why}; the newer takes its place", other)
        return self.answer(Outcome.CONTRADICTION, "contradiction", f"{why}; both are kept for review", other)

    def _trust(self) -> Trust:
        if self.held:
            return Trust("candidate", f"{self.held}; a person should look at it")
        return trust(self.memory, self.proposal.autonomous, self.settings)

    def _trusted_over(self, heads: Sequence[Memory]) -> Trust:
        """The trust it takes to stand in others' place: a source never supersedes what a more trusted one said."""
        found, source = self._trust(), self.memory.source
        above = [head for head in heads if not may_replace(source, head)]
        if found.status != "active" or not above:
            return found
        return Trust("candidate", outranked(source, above[-1]))

    def _trusted(self, similar: Memory | None) -> Verdict:
        if similar is None:
            self.passed.append("paraphrase")
        found = self._trust()
        merging = f"{_named(similar)} says much the same; the two could be merged" if similar else ""
        if found.status == "active":
            reason = merging or found.reason
            return self.answer(Outcome.CREATED, "paraphrase" if similar else "trust", reason, similar)
        reason = f"{found.reason}; {merging}" if merging else found.reason
        return self.answer(Outcome.PENDING, "instructions" if self.held else "trust", reason, similar)


def outranked(source: str, memory: Memory) -> str:
    """Why what a source says waits beside a memory, in words."""
    return f"{word(memory.id)} is the word of {who(memory)}, and a change of it from {word(source or 'unknown')} waits for a person"


def _named(memory: Memory) -> str:
    cut = memory.statement if len(memory.statement) <= 60 else memory.statement[:57].rstrip() + "…"
    return f"{word(memory.id) if memory.id else 'a memory'} ({quoted(cut)})"
