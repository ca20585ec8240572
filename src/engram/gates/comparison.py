"""Compares two statements, or two memories in the same form part by part: same, opposite, or different."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from engram.embedding.vectors import dot
from engram.gates.proposal import Lookup, Neighbour, Proposal
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.model.types import FEEDBACK, form_name
from engram.text.content_hash import content_hash, same_text
from engram.text.statements import (
    NormalizedStatement,
    Number,
    canonical_stem,
    is_converse,
    is_opposite,
    is_rival,
    normalize_statement,
)
from engram.text.tokens import split_sentences, tokens
from engram.text.words import word_class

if TYPE_CHECKING:
    from engram.models.pairs import Relation

__all__ = [
    "SITUATION_SEPARATOR",
    "Comparison",
    "FormComparison",
    "about_same_subject",
    "compare",
    "compare_forms",
    "exact_duplicate",
    "find_covering_memory",
    "in_same_form",
    "negates_opposite",
    "relation",
    "same_situation",
    "statements_of",
    "term_coverage",
    "token_overlap",
    "weighted_overlap",
]

Kind = Literal["same", "opposite", "distinct"]

# Shared weight divided by total weight, with names counting double. Below it, two statements share a topic at most
# "high weighted overlap"); chosen so that one word more in a statement of three or four still counts.
HIGH_OVERLAP = 0.6

# Longest run of words searched for a swap; the search is cubic.
_LONGEST_SWAP = 40
# Statements with more opposite or rival words than this are about different things.
_MOST_PAIRS = 2
# Lower than HIGH_OVERLAP by the amount that the double weight of names can make up.
_WORTH_PAIRING = 0.4
# Words for which the order of the two parts around them does not matter.
_SYMMETRIC = frozenset(("and", "or", "with", "nor", "&", "/", "plus", "equal", "versus", "vs", "as", "well", "same"))
_ADJUNCTS = frozenset(
    ("in", "on", "at", "for", "when", "if", "with", "by", "during", "while", "per", "within", "inside")
)
# "must not exceed 100" sets a limit, though it negates.
_LIMITS = frozenset(
    map(canonical_stem, ("exceed", "more", "longer", "larger", "greater", "above", "beyond", "higher", "fewer"))
)
# "Do not leave it enabled", "never keep it on": the negated thing is the state.
_LEAVING = frozenset(
    map(canonical_stem, ("leave", "keep", "let", "have", "stay", "remain", "allow", "run", "be", "set"))
)
_QUANTIFIERS = frozenset(map(canonical_stem, ("all", "any", "every", "each")))
# "Node 18 is required" is about the number although it comes before the verb.
_REQUIREMENTS = frozenset(
    map(canonical_stem, ("required", "needed", "mandatory", "minimum", "default", "recommended", "standard"))
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two statements relate, and why."""

    relation: Kind
    why: str = ""


_DISTINCT = Comparison("distinct")


def weighted_overlap(one: NormalizedStatement, other: NormalizedStatement) -> float:
    """Shared content words over all content words; a name weighs as much as two other words."""
    names = one.names | other.names
    union = one.content | other.content
    if not union:
        return 0.0
    shared = one.content & other.content
    return (len(shared) + len(shared & names)) / (len(union) + len(union & names))


@lru_cache(maxsize=1024)
def relation(one: str, other: str) -> Comparison:
    """Compare two statements by their texts. Cached, because several gates compare the same pair."""
    return compare(normalize_statement(one), normalize_statement(other))


def compare(one: NormalizedStatement, other: NormalizedStatement) -> Comparison:
    """Compare two statements of one scope."""
    if one.sequence == other.sequence and one.past == other.past:
        return Comparison("same")
    left, right = one.content - other.content, other.content - one.content
    if not _worth_pairing(len(left), len(right), len(one.content & other.content)):
        return _DISTINCT
    if one.past != other.past or _referents(one) != _referents(other):
        return _DISTINCT
    difference = _difference(one, other, set(left), set(right))
    if difference is None:
        return _DISTINCT
    return _conflict(one, other, difference) or _DISTINCT


def negates_opposite(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    """Whether one statement denies the opposite of the other: "Do not leave it enabled" and "Disable it"."""
    left, right = set(one.content - other.content), set(other.content - one.content)
    left, right = left - _LEAVING - _QUANTIFIERS, right - _LEAVING - _QUANTIFIERS
    if not _worth_pairing(len(left), len(right), len(one.content & other.content)) or one.past != other.past:
        return False
    difference = _difference(one, other, left, right)
    if difference is None or difference.extra or difference.rivals or len(difference.opposites) != 1:
        return False
    return bool((one.negations - other.negations) % 2)


@dataclass(slots=True)
class _Difference:
    """The words that occur in only one of two statements, after opposites and rivals are paired off."""

    opposites: list[tuple[str, str]] = field(default_factory=list)
    rivals: list[tuple[str, str]] = field(default_factory=list)
    extra: frozenset[str] = frozenset()
    circumstances: bool = False
    """The extra words give a time or place: that statement is narrower, not contradictory."""


def _referents(reading: NormalizedStatement) -> tuple[frozenset[Number], tuple[Number, ...]]:
    """The numbers that identify the thing or the day."""
    dates = tuple(number for number in reading.numbers if number.kind == "date")
    if reading.content & _REQUIREMENTS:
        return frozenset(number for number in reading.identifying if number.kind == "reference"), dates
    return frozenset(reading.identifying), dates


def _difference(
    one: NormalizedStatement, other: NormalizedStatement, left: set[str], right: set[str]
) -> _Difference | None:
    """The difference in content words.

    None if both sides have unpaired words, because they are then about different things.
    """
    difference = _Difference()
    about = one.subject | other.subject
    # `_worth_pairing` bounds the shorter side, so there are few pairs to look up.
    for word, twin in [(word, twin) for word in sorted(left) for twin in sorted(right)] if left and right else []:
        if word in about and twin in about and not is_converse(word, twin):
            continue
        pairs = _pairs_of(word, twin, difference) if word in left and twin in right else None
        if pairs is not None:
            pairs.append((word, twin))
            left.discard(word)
            right.discard(twin)
    if left and right:
        return None
    difference.extra = frozenset(left or right)
    longer = one if left else other
    names = frozenset() if _is_contrast(longer, one.content & other.content) else one.names | other.names
    difference.circumstances = bool(difference.extra & (one.qualified | other.qualified | about | names))
    return difference


def _is_contrast(reading: NormalizedStatement, shared: frozenset[str]) -> bool:
    """Whether a statement affirms one thing and denies another that both statements name: "Ruff, not Black"."""
    denied = reading.negated & shared
    return bool(denied) and denied < shared and reading.negated <= shared


def _worth_pairing(left: int, right: int, shared: int) -> bool:
    """Whether pairing words could still leave enough shared words. Most neighbours fail this test."""
    pairs = min(left, right)
    return pairs <= _MOST_PAIRS and shared + pairs >= _WORTH_PAIRING * (shared + max(left, right))


def _pairs_of(word: str, twin: str, difference: _Difference) -> list[tuple[str, str]] | None:
    if is_opposite(word, twin):
        return difference.opposites
    if is_rival(word, twin):
        return difference.rivals
    return None


def _conflict(one: NormalizedStatement, other: NormalizedStatement, difference: _Difference) -> Comparison | None:
    """The contradiction between two statements about the same thing, if there is one."""
    shared = one.content & other.content
    weight = weighted_overlap(one, other) if difference.extra else 1.0
    if difference.circumstances or weight < HIGH_OVERLAP or not (shared or difference.opposites):
        return None
    turned = _is_negated(one, other, difference)
    if difference.rivals:
        return None if turned or difference.opposites else _rivalry(one, other, difference.rivals)
    swapped = not difference.extra and _is_swapped(one, other, difference.opposites)
    numbers = _differing_numbers(one.numbers, other.numbers)
    flips = turned + len(difference.opposites) + (swapped and any(is_converse(*pair) for pair in difference.opposites))
    if flips:
        return (
            _flip_found(_spell_pairs(one, other, difference.opposites), turned) if flips % 2 and not numbers else None
        )
    knows_which = one.has_verb or len(one.numbers) == 1
    if numbers and knows_which and len(shared) > 1 and (not one.negated or one.content & _LIMITS):
        return Comparison("opposite", f"different numbers: {numbers}")
    return Comparison("opposite", "the same words with two parts swapped") if swapped else None


def _flip_found(opposites: str, turned: bool) -> Comparison:
    if opposites and not turned:
        return Comparison("opposite", f"opposite words: {opposites}")
    return Comparison("opposite", "one negates the other")


def _rivalry(one: NormalizedStatement, other: NormalizedStatement, rivals: list[tuple[str, str]]) -> Comparison | None:
    """The conflict between two choices.

    None unless both statements affirm them, because only then do the choices compete.
    """
    turned = [word for pair in rivals for word in pair if word in one.negated or word in other.negated]
    if turned:
        return None
    return Comparison("opposite", f"competing choices: {_spell_pairs(one, other, rivals)}")


def _spell_pairs(one: NormalizedStatement, other: NormalizedStatement, pairs: list[tuple[str, str]]) -> str:
    """Pairs of stems as spelled in the two statements: "azure / aws"."""
    return ", ".join(f"{_word(one, first)} / {_word(other, second)}" for first, second in pairs)


def _word(reading: NormalizedStatement, stem: str) -> str:
    return next((word for word in reading.raw if canonical_stem(word) == stem), stem)


def _is_negated(one: NormalizedStatement, other: NormalizedStatement, difference: _Difference) -> bool:
    """Whether one statement negates what the other affirms."""
    twins = {twin: word for word, twin in difference.opposites + difference.rivals}
    first, second = one.negated, frozenset(twins.get(word, word) for word in other.negated)
    common = (one.content & other.content) | set(twins.values())
    if (one.negations - other.negations) % 2:
        return bool((first ^ second) & common) or not (one.negated or other.negated)
    first, second = first & common, second & common
    return bool(first and second) and not (first <= second or second <= first)


def _differing_numbers(one: Iterable[Number], other: Iterable[Number]) -> str:
    """ "8080 / 9090" when each side has one number the other lacks.

    An extra number on one side is a detail. If several differ, one of them may identify the thing.
    """
    first, second = Counter(one), Counter(other)
    left, right = list((first - second).elements()), list((second - first).elements())
    return f"{left[0]} / {right[0]}" if len(left) == len(right) == 1 else ""


def _is_swapped(one: NormalizedStatement, other: NormalizedStatement, opposites: list[tuple[str, str]]) -> bool:
    """Whether two parts have swapped places around a word for which order matters: "X p Y" and "Y p X"."""
    replaced = dict(opposites)
    first, second = [replaced.get(word, word) for word in one.sequence], list(other.sequence)
    while first and second and first[0] == second[0]:
        del first[0], second[0]
    while first and second and first[-1] == second[-1]:
        first.pop()
        second.pop()
    if len(first) != len(second) or not 3 <= len(first) <= _LONGEST_SWAP:
        return False
    return any(
        first[:head] == second[-head:] and first[-tail:] == second[:tail] and first[head:-tail] == second[tail:-head]
        for head in range(1, len(first) - 1)
        for tail in range(1, len(first) - head)
        if _order_matters(first[head:-tail], first[:head], first[-tail:])
    )


def _order_matters(pivot: list[str], *parts: list[str]) -> bool:
    """Whether the order of the parts matters: not around "and", nor for an adjunct that moves to the front."""
    moved = any(len(part) > 1 and part[0] in _ADJUNCTS for part in parts)
    return bool(pivot) and not moved and not _SYMMETRIC.issuperset(pivot)


def exact_duplicate(proposal: Proposal, known: Lookup) -> Memory | None:
    """The stored memory with exactly this text, if any.

    The content hash ignores symbols, so its match is compared again ("Use C" is not "Use C++"), and a text of symbols only
    has no hash. In both cases the neighbours may still include the same text.
    """
    memory = proposal.memory
    twin = known.exact(proposal.content_hash, memory.scope) if proposal.content_hash else None
    if twin is not None and _same(memory, twin):
        return twin
    if twin is None and proposal.content_hash:
        return None
    return next((near.memory for near in known.near(proposal) if _same(memory, near.memory)), None)


def _same(one: Memory, other: Memory) -> bool:
    return one.scope == other.scope and same_text(one.statement, other.statement)


# Situations that share less than this are different situations.
_SAME_SITUATION = 0.5


def token_overlap(terms: frozenset[str], other: Memory) -> float:
    """Shared index terms divided by all index terms (Jaccard)."""
    theirs = _terms(other.statement)
    union = len(terms | theirs)
    return len(terms & theirs) / union if union else 0.0


def term_coverage(terms: frozenset[str], other: Memory) -> float:
    """The share of a memory's index terms that is among these."""
    theirs = _terms(other.statement)
    return len(terms & theirs) / len(theirs) if theirs else 0.0


@lru_cache(maxsize=4096)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(tokens(statement))


def same_situation(one: Memory, other: Memory) -> bool:
    """Whether two memories may be about the same situation: one has none, or the two overlap."""
    if not one.situation or not other.situation or one.situation == other.situation:
        return True
    first, second = frozenset(tokens(one.situation)), frozenset(tokens(other.situation))
    return len(first & second) >= _SAME_SITUATION * len(first | second)


_MOST_SENTENCES = 20


def find_covering_memory(proposal: Proposal, neighbours: Sequence[Neighbour]) -> Memory | None:
    """The active memory that already contains this statement, as a whole or in one of its sentences, if any.

    This catches only proposals that add nothing: the same words, numbers and negations. Other wordings are not dropped;
    they pass as paraphrases to be merged.
    """
    memory = proposal.memory
    reading = normalize_statement(memory.statement)
    for neighbour in neighbours:
        other = neighbour.memory
        if other.scope != memory.scope or other.status != "active" or not same_situation(memory, other):
            continue
        # A semicolon separates two statements as well as a full stop does.
        parts = split_sentences(other.statement.replace("; ", ". "), _MOST_SENTENCES)
        if any(_says(normalize_statement(part), reading) for part in parts):
            return other
    return None


def _says(one: NormalizedStatement, other: NormalizedStatement) -> bool:
    return one.sequence == other.sequence and one.past == other.past


MIN_SITUATION_COSINE = 0.45
"""Minimum cosine of two situations that count as similar: "implementing new features" and "adding a new feature"
have .70; two activities that only share a word, such as writing tests and writing migrations, have .26."""
MIN_SAME, SURELY_SAME, MIN_EVIDENCE = 0.6, 0.85, 1.9
"""Thresholds that combine the pair model's probability with the cosine and the shared words of two actions.

Actions are shorter than the statements that the model was trained on, and two lessons about one situation share its
words. Either all three together reach the last number, or the model is sure and the actions share a word that the
situation lacks. Of 600 pairs of different actions 2 pass, of 18 rewordings 10.
"""
MIN_REWORDING_COSINE = 0.8
"""Minimum cosines of two actions and of two behaviors for feedback to count as a rewording without the model's
agreement."""


MIN_STATEMENT_WORDS = 3
"""Minimum words of a part that may be a statement by itself."""
SITUATION_SEPARATOR = "; "
"""Separates the situations of a memory that was learned in several of them."""


@dataclass(frozen=True, slots=True)
class FormComparison:
    """How a memory in a form relates to another one, and why."""

    relation: Literal["same", "opposite", "distinct"]
    why: str = ""


_ASIDE = re.compile(r"(?<!\s)\s*+\([^()]*\)")
_DISTINCT_FORMS = FormComparison("distinct")


def in_same_form(one: Memory, other: Memory) -> bool:
    """Whether both are feedback, or both are facts."""
    name = form_name(one.form)
    return bool(name) and name == form_name(other.form)


def about_same_subject(one: Memory, other: Memory) -> bool:
    """Whether two facts are about the same subject."""
    return _about(one.form, "subject") == _about(other.form, "subject")


def statements_of(proposal: Proposal) -> list[Proposal]:
    """A proposal, plus each part of its form as a separate statement, so that rejected statements cannot return inside a form."""
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
    """Compare two memories in the same form.

    Two facts about the same subject and predicate repeat each other if their objects match, and contradict each other
    if their objects differ, whatever the situation. Two pieces of feedback repeat each other if they ask for the same
    action in a similar situation. They contradict each other there if their actions are opposed, or if one asks for
    what the other warns against. The exact rules (`compare`) and the pair model (`models.pairs`) judge each part as
    they judge any statement.
    """
    is_feedback = form_name(new.form) == FEEDBACK
    return _feedback(new, old) if is_feedback else _facts(new.form, old.form)


# -- facts


def _facts(new: Mapping[str, str], old: Mapping[str, str]) -> FormComparison:
    if not new.get("object") or not old.get("object"):
        return _DISTINCT_FORMS
    if any(_about(new, part) != _about(old, part) for part in ("subject", "predicate")):
        return _DISTINCT_FORMS
    mine, theirs = _sentence(new), _sentence(old)
    exact = relation(mine, theirs)
    if exact.relation == "opposite":
        return FormComparison("opposite", exact.why)
    first, second = frozenset(_about(new, "object")), frozenset(_about(old, "object"))
    if first <= second:
        return FormComparison("same", "the same subject and predicate with the same object")
    if second < first:
        return _DISTINCT_FORMS  # it adds something, so it is stored as well, to be merged
    if _is_rewording(mine, theirs, new["object"], old["object"]):
        return FormComparison("same", "the same subject and predicate with the same object in other words")
    return FormComparison("opposite", "the same subject and predicate with a different object")


def _sentence(form: Mapping[str, str]) -> str:
    return " ".join(form.get(part, "").strip() for part in ("subject", "predicate", "object"))


def _about(form: Mapping[str, str], part: str) -> tuple[str, ...]:
    """A part in the form used for comparison: stems in order, without articles if other words remain.

    Index terms in other scripts.
    """
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
        return _DISTINCT_FORMS
    situation = max(_similarity(new.situation, known) for known in old.situation.split(SITUATION_SEPARATOR))
    if situation < MIN_SITUATION_COSINE:
        return _DISTINCT_FORMS
    exact = relation(action, other)
    if exact.relation == "opposite":
        return FormComparison("opposite", f"opposed actions in a similar situation: {exact.why}")
    if exact.relation == "same" or _is_same_action(action, other, new.situation) or _is_alike(new, old):
        return FormComparison("same", "the same action in a similar situation")
    if _is_changed(action, other):
        return FormComparison("opposite", "opposed actions in a similar situation")
    if _asks_for_what_it_warns_of(new.form, old.form) or _asks_for_what_it_warns_of(old.form, new.form):
        return FormComparison("opposite", "one asks for what the other warns of")
    return _DISTINCT_FORMS


def _action(form: Mapping[str, str]) -> str:
    """The action that feedback asks for, without asides."""
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
    """Whether both the behavior and the action are similar enough to be one lesson, even in wordings that the model does not know."""
    behavior = _similarity(new.form.get("behavior", ""), old.form.get("behavior", ""))
    mine, theirs = _action(new.form), _action(old.form)
    return min(behavior, _similarity(mine, theirs)) >= MIN_REWORDING_COSINE and _same_values(mine, theirs)


def _asks_for_what_it_warns_of(one: Mapping[str, str], other: Mapping[str, str]) -> bool:
    action, behavior = _action(one), other.get("behavior", "")
    if not behavior or _is_same_action(_action(other), behavior):
        return False  # praise asks for the behavior itself
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
    """The cosine of two texts by the bundled embedder; an unknown situation counts as similar to any."""
    from engram.embedding.static import StaticEmbedder

    if not one.strip() or not other.strip() or one == other:
        return 1.0
    first, second = StaticEmbedder().embed([one, other])
    return float(dot(first, second))
