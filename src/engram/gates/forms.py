"""How two memories in the same form relate (reference/3 §1.6), part by part.

Two facts about the same subject and predicate repeat each other if their objects do, and contradict each other if these differ, in
whatever situation. Two pieces of feedback repeat each other if they ask for the same action in a similar situation, and contradict each other
if their actions are opposed there, or one asks for what the other warns of. What is the same and what is opposed, the exact rules
(`gates.comparison`) and the pair model (`models.pairs`) say, of a part as of any other statement.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from engram.embedding.products import dot
from engram.gates.comparison import relation, weighted_overlap
from engram.gates.proposal import Proposal
from engram.model.forms import FEEDBACK, form_name
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.polarity import canonical_stem, normalize_statement
from engram.text.tokens import tokens
from engram.text.word_tables import word_class

if TYPE_CHECKING:
    from engram.models.pairs import Relation

__all__ = [
    "SITUATION_SEPARATOR",
    "FormComparison",
    "about_same_subject",
    "compare_forms",
    "in_same_form",
    "statements_of",
]

MIN_SITUATION_COSINE = 0.45
"""The cosine of two situations from which they are similar: "implementing new features", "adding a new feature" have .70; two activities that only
share a word, such as writing tests and writing migrations, .26."""
MIN_SAME, SURELY_SAME, MIN_EVIDENCE = 0.6, 0.85, 1.9
"""Actions are shorter than the statements that the model was trained on, and two lessons of a situation share its words. So its probability is weighed
with the cosine and the shared words: together they must reach the last number, or the model must be sure and a word be shared that the situation lacks.
Of 600 pairs of different actions 2 pass, of 18 rewordings 10."""
MIN_REWORDING_COSINE = 0.8
"""The cosine of two actions, and of two behaviors, from which feedback is a rewording, though the model does not know the words."""


MIN_STATEMENT_WORDS = 3
"""The words of a part that may be a statement by itself."""
SITUATION_SEPARATOR = "; "
"""Separates the situations of a memory that was learned in several."""


@dataclass(frozen=True, slots=True)
class FormComparison:
    """How a memory in a form relates to another one, and why."""

    relation: Literal["same", "opposite", "distinct"]
    why: str = ""


_ASIDE = re.compile(r"(?<!\s)\s*+\([^()]*\)")
_DISTINCT = FormComparison("distinct")


def in_same_form(one: Memory, other: Memory) -> bool:
    """Whether both are feedback, or both are facts."""
    name = form_name(one.form)
    return bool(name) and name == form_name(other.form)


def about_same_subject(one: Memory, other: Memory) -> bool:
    """Whether two facts are about the same subject."""
    return _about(one.form, "subject") == _about(other.form, "subject")


def statements_of(proposal: Proposal) -> list[Proposal]:
    """A proposal, and each part of its form as a statement of its own: what a person rejected does not come back inside a form."""
    memory = proposal.memory
    parts = [part for part in memory.form.values() if len(part.split()) >= MIN_STATEMENT_WORDS or not part.isascii()]
    return [proposal] + [
        replace(
            proposal,
            memory=memory.replace(statement=part, form={}, situation=""),
            content_hash=content_hash(part),
            tokens=tuple(tokens(part[:20_000])),
        )
        for part in parts
    ]


def compare_forms(new: Memory, old: Memory) -> FormComparison:
    """Compare two memories in the same form."""
    is_feedback = form_name(new.form) == FEEDBACK
    return _feedback(new, old) if is_feedback else _facts(new.form, old.form)


# -- facts


def _facts(new: Mapping[str, str], old: Mapping[str, str]) -> FormComparison:
    if not new.get("object") or not old.get("object"):
        return _DISTINCT
    if any(_about(new, part) != _about(old, part) for part in ("subject", "predicate")):
        return _DISTINCT
    mine, theirs = _sentence(new), _sentence(old)
    exact = relation(mine, theirs)
    if exact.relation == "opposite":
        return FormComparison("opposite", exact.why)
    first, second = frozenset(_about(new, "object")), frozenset(_about(old, "object"))
    if first <= second:
        return FormComparison("same", "the same subject and predicate with the same object")
    if second < first:
        return _DISTINCT  # it adds something, and is stored beside the other to be merged
    if _is_rewording(mine, theirs, new["object"], old["object"]):
        return FormComparison("same", "the same subject and predicate with the same object in other words")
    return FormComparison("opposite", "the same subject and predicate with a different object")


def _sentence(form: Mapping[str, str]) -> str:
    return " ".join(form.get(part, "").strip() for part in ("subject", "predicate", "object"))


def _about(form: Mapping[str, str], part: str) -> tuple[str, ...]:
    """A part as it is compared: stems in order, without articles and the like where anything else is left; in other scripts, index terms."""
    text = form.get(part, "")
    if not text.isascii():
        return tuple(tokens(text)) or (text.casefold().strip(),)
    words = [word for word in normalize_statement(text).raw if word != ","]
    left = [word for word in words if word not in word_class("wordclasses", "drop")] or words
    return tuple(canonical_stem(word) for word in left) or (text.strip(),)


def _is_rewording(mine: str, theirs: str, new_object: str, old_object: str) -> bool:
    from engram.models.pairs import MIN_SAME

    one, other = normalize_statement(new_object), normalize_statement(old_object)
    if one.numbers != other.numbers or one.names != other.names or one.negations != other.negations:
        return False
    found = _relation_between(theirs, mine)
    return found.same >= MIN_SAME and found.same > found.change


# -- feedback


def _feedback(new: Memory, old: Memory) -> FormComparison:
    action, other = _action(new.form), _action(old.form)
    if not action or not other:
        return _DISTINCT
    situation = max(_similarity(new.situation, known) for known in old.situation.split(SITUATION_SEPARATOR))
    if situation < MIN_SITUATION_COSINE:
        return _DISTINCT
    exact = relation(action, other)
    if exact.relation == "opposite":
        return FormComparison("opposite", f"opposed actions in a similar situation: {exact.why}")
    if exact.relation == "same" or _is_same_action(action, other, new.situation) or _is_alike(new, old):
        return FormComparison("same", "the same action in a similar situation")
    if _is_changed(action, other):
        return FormComparison("opposite", "opposed actions in a similar situation")
    if _asks_for_what_it_warns_of(new.form, old.form) or _asks_for_what_it_warns_of(old.form, new.form):
        return FormComparison("opposite", "one asks for what the other warns of")
    return _DISTINCT


def _action(form: Mapping[str, str]) -> str:
    """What feedback asks for, without asides."""
    action = form.get("action", "")
    return _ASIDE.sub("", action).strip() or action


def _is_same_action(action: str, known: str, situation: str = "") -> bool:
    found = _relation_between(known, action).same
    if found < MIN_SAME or not _same_values(action, known):
        return False
    one, other = normalize_statement(action), normalize_statement(known)
    if found + _similarity(action, known) + weighted_overlap(one, other) >= MIN_EVIDENCE:
        return True
    return found >= SURELY_SAME and bool((one.content & other.content) - normalize_statement(situation).content)


def _is_changed(action: str, known: str) -> bool:
    from engram.models.pairs import LIKELY_CHANGE

    found = _relation_between(known, action)
    return found.change >= LIKELY_CHANGE and found.change > found.same


def _is_alike(new: Memory, old: Memory) -> bool:
    """Whether what was done and what to do are alike, so that wordings which the model does not know are one lesson."""
    behavior = _similarity(new.form.get("behavior", ""), old.form.get("behavior", ""))
    mine, theirs = _action(new.form), _action(old.form)
    return min(behavior, _similarity(mine, theirs)) >= MIN_REWORDING_COSINE and _same_values(mine, theirs)


def _asks_for_what_it_warns_of(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    action, behavior = _action(one), other.get("behavior", "")
    if not behavior or _is_same_action(_action(other), behavior):
        return False  # praise: it asks for what was done
    return relation(action, behavior).relation == "same" or _is_same_action(action, behavior)


def _same_values(one: str, other: str) -> bool:
    """Whether two texts have the same numbers, names and negations."""
    first, second = normalize_statement(one), normalize_statement(other)
    return (sorted(map(str, first.numbers)), first.names, first.negations % 2) == (
        sorted(map(str, second.numbers)), second.names, second.negations % 2,
    )  # fmt: skip


@lru_cache(maxsize=1024)
def _relation_between(older: str, newer: str) -> "Relation":
    from engram.models.pairs import relate

    return relate(older, newer)


@lru_cache(maxsize=1024)
def _similarity(one: str, other: str) -> float:
    """The cosine of two texts by the bundled embedder; an unknown situation is like any other."""
    from engram.embedding.static import StaticEmbedder

    if not one.strip() or not other.strip() or one == other:
        return 1.0
    first, second = StaticEmbedder().embed([one, other])
    return float(dot(first, second))
