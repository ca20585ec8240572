"""Questions for the user of a client that supports elicitation, and the decisions that follow from the answers.

An answer there counts as the person's own (DESIGN §12). Tier 3 memories and text that reads like an instruction are
never asked about: only a terminal or the console decides those.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from engram.mcp.results import Card, Changed, Forgotten, Learned, ToolResult
from engram.model.decision import Decision, Outcome
from engram.model.errors import ChangedMeanwhile, InvalidInput, Refused, UnreadableData
from engram.model.lazy import dataclass
from engram.model.memory import Memory, render_form
from engram.readers.data import parse_json_object
from engram.text.display import cut, quote_text, safe_word

if TYPE_CHECKING:
    from engram.client import Engram
    from engram.rules.scopes import OwnerScopes

HUMAN = "human"
"""The actor in the journal for a person's answers."""
AGENT = "agent"
NOT_APPROVED = "{} is a person's, and the user did not agree to this; nothing was changed"
LATER = "decide later"
STORE, REJECT = "store it", "reject it"
NEW, OLD, BOTH = "the new one", "the old one", "both"
FORGET, CHANGE, KEEP = "forget it", "change it", "keep it"
MAX_CONTEXT_CHARACTERS = 400
"""Maximum characters of a memory's context shown in a question."""
_KEPT = {NEW: "new", OLD: "old", BOTH: "both"}
_OUTCOMES = {NEW: Outcome.SUPERSEDED, OLD: Outcome.REJECTED, BOTH: Outcome.CREATED}


@dataclass(frozen=True, slots=True)
class ApprovalQuestion:
    """A question that only a person may answer: its subject, its text, and the possible answers."""

    kind: str
    """approve, resolve, forget or update."""
    ids: tuple[str, ...]
    seen: str
    """A digest of the question's contents; if they have changed, the question must be asked again."""
    message: str
    choices: tuple[str, ...]

    @property
    def form(self) -> dict[str, Any]:
        """The form to show: one choice."""
        decision = {"type": "string", "title": "Decision", "enum": list(self.choices)}
        return {"type": "object", "properties": {"decision": decision}, "required": ["decision"]}

    @property
    def state(self) -> str:
        """What is needed to act on the answer, for a client that repeats the call with it."""
        return json.dumps({"kind": self.kind, "ids": self.ids, "seen": self.seen, "choices": self.choices})

    @classmethod
    def from_state(cls, state: str) -> "ApprovalQuestion":
        """The question of a call that is repeated with its answer. Raises `InvalidInput` for an unknown state."""
        try:
            given = parse_json_object(state)
            return cls(given["kind"], tuple(given["ids"]), given["seen"], "", tuple(given["choices"]))
        except (UnreadableData, KeyError, TypeError):
            raise InvalidInput("unknown request state; call the tool again without one") from None


class PersonNeeded(Exception):
    """A call that an agent may not make by itself, and that the person can be asked about."""

    def __init__(self, question: ApprovalQuestion) -> None:
        super().__init__(question.message)
        self.question = question


def about_decision(decision: Decision, known: Callable[[str], Memory | None]) -> ApprovalQuestion | None:
    """The question about a learned memory that waits; None if nothing waits, or nobody may be asked."""
    memory = decision.memory
    if memory is None or memory.status != "candidate" or not _can_ask_about(memory):
        return None
    if decision.outcome == Outcome.PENDING:
        message = f"An agent wants to remember for {safe_word(memory.scope)}:\n{_quote_memory(memory)}{_replacement_lines(memory, known)}"
        return _question("approve", [memory], message, (STORE, REJECT, LATER))
    other = decision.other
    if (
        decision.outcome != Outcome.CONTRADICTION
        or other is None
        or other.status == "candidate"
        or not _can_ask_about(other)
    ):
        return None
    message = f"An agent says: {_quote_memory(memory)}{_replacement_lines(memory, known)}\nStored is: {_quote_memory(other)}\nWhich holds?"
    return _question("resolve", [memory, other], message, (NEW, OLD, BOTH, LATER))


def _quote_memory(memory: Memory) -> str:
    """The text of a memory that an agent will read once it is active."""
    texts = {"When": memory.situation, "Why": memory.rationale, "Context": cut(memory.context, MAX_CONTEXT_CHARACTERS),
             "Trigger": memory.trigger_context, "About": ", ".join(memory.entities), "Tags": ", ".join(memory.tags),
             "Cues": "; ".join(memory.cues)}  # fmt: skip
    lines = [f"{label}: {quote_text(text)}" for label, text in texts.items() if text]
    return "\n".join([quote_text(memory.statement), *lines, *(["It is pinned."] if memory.pinned else [])])


def _replacement_lines(memory: Memory, known: Callable[[str], Memory | None]) -> str:
    """The memories that this one replaces once it is active, one line each."""
    replaced = [(one, known(one)) for one in memory.supersedes]
    return "".join(
        f"\nIt replaces {safe_word(one)}{f': {quote_text(old.statement)}' if old else ''}" for one, old in replaced
    )


def about_forgetting(memory: Memory, reason: str) -> ApprovalQuestion | None:
    """The question before an agent retires a memory that only a person may retire.

    None if nobody needs to or may be asked.
    """
    from engram.rules.sources import may_decide

    if may_decide(AGENT, memory) or memory.status == "retired" or not _can_ask_about(memory):
        return None
    why = f"\nIts reason: {quote_text(reason)}" if reason else ""
    return _question(
        "forget", [memory], f"An agent wants to forget: {quote_text(memory.statement)}{why}", (FORGET, KEEP)
    )


def about_change(memory: Memory, changes: dict[str, Any]) -> ApprovalQuestion | None:
    """The question before an agent makes a change that only a person may make.

    None if nobody needs to or may be asked.
    """
    from engram.rules.sources import may_decide

    if may_decide(AGENT, memory) or not _can_ask_about(memory) or not _can_ask_about(_apply_changes(memory, changes)):
        return None
    fields = "\n".join(f"{safe_word(name)}: {quote_text(str(value))}" for name, value in changes.items())
    message = f"An agent wants to change: {quote_text(memory.statement)}\nto\n{fields}"
    return _question("update", [memory], message, (CHANGE, KEEP))


def _apply_changes(memory: Memory, changes: dict[str, Any]) -> Memory:
    """The memory with the changes; its statement follows the parts of its form."""
    from engram.capture.draft import checked_fields
    from engram.model.types import merge_form, with_form

    rest, parts = with_form({name: value for name, value in changes.items() if name != "reason"})
    fields = checked_fields(rest)
    if parts:
        form = merge_form(memory.form, parts)
        fields |= {"form": form, "statement": render_form(form)}
    return memory.replace(**fields)


def _question(kind: str, memories: Sequence[Memory], message: str, choices: tuple[str, ...]) -> ApprovalQuestion:
    return ApprovalQuestion(kind, tuple(memory.id for memory in memories), _digest(memories), message, choices)


def _can_ask_about(memory: Memory) -> bool:
    """Whether a client may ask about a memory: not about tier 3, nor about text that reads like an instruction."""
    from engram.decisions.approval import waiting_reason

    return not waiting_reason(memory)


def _digest(memories: Sequence[Memory]) -> str:
    from engram.decisions.authority import SHOWN_FIELDS

    shown = [[str(getattr(memory, name)) for name in SHOWN_FIELDS] for memory in memories]
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def decide(
    mem: "Engram", question: ApprovalQuestion, choice: str, given: dict[str, Any], scopes: "OwnerScopes | None"
) -> ToolResult:
    """Carry out a person's choice in their name; "" if they did not answer. `scopes` are those of the call that asked.

    Raises `ChangedMeanwhile` if the shown contents have changed, `Refused` if the memory no longer waits, and
    `InvalidInput` for an answer that was not offered.
    """
    if choice in ("", LATER, KEEP):
        return _leave_open(mem, question, scopes)
    if choice not in question.choices:
        raise InvalidInput(f"the answer must be one of: {', '.join(question.choices)}")
    from engram.store.references import find_memory

    shown = [find_memory(mem.store, one, scopes) for one in question.ids]
    if _digest(shown) != question.seen or not all(map(_can_ask_about, shown)):
        raise ChangedMeanwhile(f"{shown[0].id} was changed meanwhile; nothing was decided: look again")
    return _DECISIONS[question.kind](mem, shown, choice, given, scopes)


def _leave_open(mem: "Engram", question: ApprovalQuestion, scopes: "OwnerScopes | None") -> Learned:
    """Leave a waiting memory waiting; refuse what an agent may not do."""
    outcome = {"approve": Outcome.PENDING, "resolve": Outcome.CONTRADICTION}.get(question.kind)
    if outcome is None:
        raise Refused(NOT_APPROVED.format(question.ids[0]))
    from engram.store.references import find_memory

    memory, *others = (find_memory(mem.store, one, scopes) for one in question.ids)
    return _learn_result(outcome, "the user has not decided", memory, *others)


def _approve(
    mem: "Engram", shown: Sequence[Memory], choice: str, _: dict[str, Any], scopes: "OwnerScopes | None"
) -> Learned:
    if choice == STORE:
        stored = mem.review.approve(shown[0].id, actor=HUMAN, shown=shown, scopes=scopes)
        return _learn_result(Outcome.CREATED, "the user approved it", stored)
    rejected = mem.review.reject(shown[0].id, actor=HUMAN, shown=shown, scopes=scopes)
    return _learn_result(Outcome.REJECTED, "the user rejected it", rejected)


def _resolve(
    mem: "Engram", shown: Sequence[Memory], choice: str, _: dict[str, Any], scopes: "OwnerScopes | None"
) -> Learned:
    mem.review.resolve(shown[0].id, _KEPT[choice], actor=HUMAN, shown=shown, scopes=scopes)
    new, old = (mem.get(one.id) for one in shown)
    return _learn_result(_OUTCOMES[choice], f"the user chose {choice}", new, old)


def _forget(
    mem: "Engram", shown: Sequence[Memory], _: str, given: dict[str, Any], scopes: "OwnerScopes | None"
) -> Forgotten:
    reason = given.get("reason", "")
    retired = mem.lineages.forget(shown[0].id, actor=HUMAN, reason=reason, shown=shown, scopes=scopes)
    return Forgotten(memory=Card.of(retired))


def _change(
    mem: "Engram", shown: Sequence[Memory], _: str, given: dict[str, Any], scopes: "OwnerScopes | None"
) -> Changed:
    return update_memory(mem, shown[0], given, HUMAN, sorted(scopes.own) if scopes is not None else None)


def update_memory(
    mem: "Engram", memory: Memory, changes: dict[str, Any], actor: str, scope: Sequence[str] | None
) -> Changed:
    """Change a memory in the name of an owner; of its form, only the given parts."""
    from engram.gates.situation import changed_situation_warnings

    after = mem.update(memory.id, actor=actor, **{**changes, "scope": scope})
    return Changed(memory=Card.of(after), warnings=list(changed_situation_warnings(memory, after)))


def _learn_result(outcome: Outcome, reason: str, memory: Memory, other: Memory | None = None) -> Learned:
    return Learned.of(Decision(outcome=outcome, memory=memory, other=other, reason=reason, gate="review"))


_DECISIONS = {"approve": _approve, "resolve": _resolve, "forget": _forget, "update": _change}
