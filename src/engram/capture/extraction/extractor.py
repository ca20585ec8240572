"""Extracts facts from turns: every sentence is judged in context, and those worth keeping are rewritten to be readable alone.

sentences → worth (`engram.models.worth`) → rule or rewriting → facts; every sentence records why it was kept or skipped
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from engram.capture.extraction.clauses import (
    MAX_TURN_CHARS,
    MOMENTARY,
    QUOTATION_FILLER,
    UNCLEAR_REFERENCE,
    Clause,
    clauses_of,
    doubts_about,
    has_unclear_reference,
    is_forget_request,
    is_remember_request,
    is_reported,
    own_sentences,
)
from engram.capture.extraction.references import References, can_explain, has_leading_reference, join_pair
from engram.capture.extraction.rules import (
    AS_I,
    MIN_CLAUSE_WORDS,
    SECOND_HAND_FACTOR,
    YOU,
    assistants_fact,
    since_when,
    users_fact,
)
from engram.capture.extraction.statement import bare_sentence, needs_context, standalone, unclear_day_reason
from engram.gates.instructions import find_injections
from engram.gates.secrets.scan import find_secrets
from engram.model.lazy import dataclass, replace
from engram.models.worth import KEEP_ALONE, MAYBE_ALONE, PROPOSE_PROBABILITY, REVIEW_PROBABILITY, Judgement, judge
from engram.text.confusables import FoldedText, fold_disguised

MAX_CLAUSE_CHARS = 320
"""The maximum length of a clause; longer ones state several things."""
MAX_UNASKED_CONFIDENCE = 0.9
"""The maximum confidence of facts that nobody asked to remember; requested ones rank higher."""
MIN_CRITICAL_PROBABILITY = 0.5
"""The probability from which a fact counts as one whose loss could do harm."""
MIN_CRITICAL_WORTH = 0.2
"""The probability of being worth keeping from which such a fact is at least a candidate."""
MIN_FORGET_PROBABILITY = 0.6
"""The probability from which a sentence is treated as a request to forget; "delete my old branch" asks for work."""
FORGET, END = "forget", "end"
"""The categories that ask for an operation on what is stored."""
REDACTED = "[redacted:"
"""The start of a redacted secret."""
# Role play or a text to edit; such a turn rarely states facts about the user.
_MATERIAL = re.compile(
    r"\b(?:act as|pretend|role-?play|in character|write (?:me )?an? (?:\w+ ){0,3}(?:story|poem|letter|song|script|dialogue|email|essay|speech|post)|"
    r"translate|proofread|paraphrase|rephrase|rewrite th|summari[sz]e th|fix the (?:grammar|typos?|spelling)|what does .{1,60} mean)\b",
    re.IGNORECASE,
)
_OVER = re.compile(r"\b(?:no longer|any ?more|any longer)\b", re.IGNORECASE)
_UNNAMED = re.compile(r"(?:he|she|they|it|his|her|their|its)(?:['’]\w+)?\b", re.IGNORECASE)
"""Matches the start of a statement that cannot be read alone, because it does not name its subject."""
_READ_CHARS = MAX_TURN_CHARS + 1_000
"""Characters of a turn that are folded: those that are read, and the beginning of the rest, which is reported."""
_LONGEST_EARLIER = 20_000
"""The number of characters at the end of an earlier turn that are used as context."""
_USER_ROLES = ("user", "human")
_MOODS = {
    "question": "a question",
    "request": "a request",
    "hypothetical": "hypothetical",
    "quoted": "somebody else's words",
    "sarcastic": "not meant seriously",
}
_MEANT = ("asserted", "request")
_HARMLESS = frozenset((MOMENTARY, UNCLEAR_REFERENCE))
"""Doubts that the model already accounts for: in held-out tests on seven writers, 57 of 62 sentences that it rated likely despite one of these
were worth keeping.
"""
_OWNERS = {
    "user": " of the user",
    "person": " about somebody",
    "project": " of the project",
    "assistant": " of the assistant",
}
_TYPES = {"procedure": "procedural", "moment": "moment", END: "fact", FORGET: "fact", "principle": "principle"}


@dataclass(frozen=True, slots=True)
class ExtractedFact:
    """A fact worth remembering: a statement that can be read alone, and the exact span it comes from."""

    statement: str
    type: str
    confidence: float
    role: str
    turn: int
    """The index of the turn, from 0."""
    span: tuple[int, int]
    """The span in that turn's content, in characters."""
    reason: str
    since: datetime | None = None
    """Since when it is true, if the turn says so: "last month", "in 2015"."""
    worth: float | None = None
    """The probability that the fact is worth keeping; None if it was not judged."""
    operation: str = ""
    """`forget` or `end` if the fact asks to remove, or ends, something stored."""
    tentative: bool = False
    """Whether it is only perhaps worth keeping, and waits for review."""
    critical: bool = False
    """Whether forgetting it could do harm."""
    duration: str = "lasting"
    """One of: lasting, temporary, event."""
    owner: str = ""
    """Whose fact it is: user, person, project, assistant or world; "" if it was not judged."""
    context: str = ""
    """The preceding context, if the statement needs it."""
    is_ruled: bool = False
    """Whether a rule phrased it."""


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence of a turn, and the decision about it."""

    text: str
    role: str
    turn: int
    span: tuple[int, int]
    reason: str
    """Why it was kept or skipped."""
    worth: float | None = None
    facts: tuple[ExtractedFact, ...] = ()


def extract(
    turns: Sequence[Mapping[str, Any]],
    *,
    at: datetime,
    extract_assistant_response: bool = False,
    before: Sequence[Mapping[str, Any]] = (),
) -> list[ExtractedFact]:
    """The facts in the turns (`role`, `content`) that are worth remembering, in order, without repetitions.

    `at` is when the turns were said; it gives "tomorrow" a date. Turns of the assistant are skipped unless
    `extract_assistant_response` is set. `before` are earlier turns, which explain what these refer to.
    """
    considered = consider(turns, at=at, extract_assistant_response=extract_assistant_response, before=before)
    return [fact for one in considered for fact in one.facts]


def consider(
    turns: Sequence[Mapping[str, Any]],
    *,
    at: datetime,
    extract_assistant_response: bool = False,
    before: Sequence[Mapping[str, Any]] = (),
) -> list[JudgedSentence]:
    """Every sentence of the turns with the facts it states and the reason it was kept or skipped; see `extract`."""
    earlier = [(role, content[-_LONGEST_EARLIER:]) for role, content in map(_normalise_turn, before)]
    spoken = [*earlier, *((role, content[:_READ_CHARS]) for role, content in map(_normalise_turn, turns))]
    views = [(role, fold_disguised(content)) for role, content in spoken]
    heard = [_SplitTurn(role, view.text) for role, view in views]
    judged = judge([(turn.role, [one.sentence for one in turn.sentences]) for turn in heard])
    is_alone = sum(len(turn.sentences) for turn in heard if turn.role == "user") == 1 and heard[0].role == "user"
    listening = (*_USER_ROLES, *(("assistant",) if extract_assistant_response else ()))
    references, asked, seen = References(), "", set[str]()
    found: list[JudgedSentence] = []
    for number, (turn, judgements) in enumerate(zip(heard, judged, strict=True), -len(before)):
        previous: _Previous | None = None
        for place, (said, judgement) in enumerate(zip(turn.sentences, judgements, strict=True)):
            if number >= 0 and turn.role in listening:
                scene = _SentenceContext(
                    turn, number, place, judgement, references, asked if place == 0 else "", at, is_alone, previous
                )
                one = _without_repetitions(_consider_sentence(said, scene), seen)
                if previous is not None and _tells_both(one, previous):
                    del found[-1]
                found.append(one)
                previous = _Previous.of(one, said, scene)
            references.add_sentence(
                said.sentence, about_a_person=judgement.owner == "person" and judgement.worth >= REVIEW_PROBABILITY
            )
        if number >= 0 and turn.role in listening:
            found += (_not_read(said, turn.role, number) for said in turn.unread)
        last = turn.sentences[-1].sentence if turn.sentences else ""
        asked = last if turn.role == "assistant" and last.endswith("?") else ""
    placed = (_place_in_turn(one, views[len(before) + one.turn][1]) for one in found)
    return sorted(placed, key=lambda one: (one.turn, one.span))


def _place_in_turn(one: JudgedSentence, view: FoldedText) -> JudgedSentence:
    """A sentence and its facts with their spans in the original turn."""
    if not view.starts:
        return one
    facts = tuple(replace(fact, span=view.span(*fact.span)) for fact in one.facts)
    return replace(one, span=view.span(*one.span), facts=facts)


class _SplitTurn:
    """A turn split into sentences: those to read, and those left out because the text is too long."""

    __slots__ = ("is_material", "role", "sentences", "unread")

    def __init__(self, role: str, content: str) -> None:
        self.role, self.is_material = role, bool(_MATERIAL.search(content))
        said = list(own_sentences(content)) if role in (*_USER_ROLES, "assistant") else []
        self.sentences = [one for one in said if not one.unread]
        self.unread = [one for one in said if one.unread]


class _Previous(NamedTuple):
    """The previous sentence of the same turn, for the sentence that follows it."""

    considered: JudgedSentence
    statement: str
    """Its statement, readable alone; "" if it cannot be read alone or is not asserted."""

    @classmethod
    def of(cls, one: JudgedSentence, said: Clause, scene: "_SentenceContext") -> "_Previous":
        """The record of a sentence that was just considered."""
        return cls(one, _assertion_of(one, said, scene))

    def stands_alone(self, fact: ExtractedFact) -> bool:
        """Whether it stays a separate memory, because a rule phrased it, or because it is certain and the new fact is not."""
        kept = self.considered.facts
        return any(one.is_ruled or (fact.tentative and not one.tentative) for one in kept)


class _SentenceContext(NamedTuple):
    """The context of a sentence."""

    turn: _SplitTurn
    number: int
    place: int
    judgement: Judgement
    references: References
    asked: str
    at: datetime
    is_alone: bool
    """Whether the sentence is the user's whole turn and follows no assistant turn."""
    previous: _Previous | None = None


def _normalise_turn(turn: Mapping[str, Any]) -> tuple[str, str]:
    role, content = str(turn.get("role", "")).strip().lower(), turn.get("content")
    return ("user" if role == "human" else role), content if isinstance(content, str) else ""


def _without_repetitions(one: JudgedSentence, seen: set[str]) -> JudgedSentence:
    facts = [fact for fact in one.facts if fact.statement.casefold() not in seen]
    seen.update(fact.statement.casefold() for fact in facts)
    if len(facts) == len(one.facts):
        return one
    reason = one.reason if facts else "skipped: said before in the same turns"
    return JudgedSentence(one.text, one.role, one.turn, one.span, reason, one.worth, tuple(facts))


def _assertion_of(one: JudgedSentence, said: Clause, scene: _SentenceContext) -> str:
    """A sentence's statement, if it is asserted and can be read alone."""
    if scene.judgement.mood != "asserted" or scene.turn.is_material or QUOTATION_FILLER in said.text or _problem(said):
        return ""
    if len(one.facts) == 1:
        fact = one.facts[0]
        return "" if fact.operation or _UNNAMED.match(fact.statement) else fact.statement
    if len(said.text.split()) < MIN_CLAUSE_WORDS or needs_context(said.sentence, scene.references, asked=scene.asked):
        return ""
    return standalone(said.sentence, scene.references, scene.at, owner=scene.judgement.owner, asked=scene.asked)


def _tells_both(one: JudgedSentence, previous: _Previous) -> bool:
    """Whether a sentence was joined with the previous one, which is then not kept separately."""
    return one.turn == previous.considered.turn and one.span[0] == previous.considered.span[0]


def _join_with_previous(fact: ExtractedFact, said: Clause, scene: _SentenceContext) -> ExtractedFact:
    """A fact that needs the previous sentence to be understood, joined with it if possible."""
    previous = scene.previous
    if previous is None or not previous.statement or fact.operation:
        return fact
    if not can_explain(previous.statement, bare_sentence(said.sentence)):
        return fact
    statement = join_pair(previous.statement, fact.statement)
    # A separate memory must not be repeated in a joined one, which would outlive it.
    if not statement or previous.stands_alone(fact):
        return fact
    critical = fact.critical or any(one.critical for one in previous.considered.facts)
    span = (previous.considered.span[0], fact.span[1])
    return replace(fact, statement=statement, span=span, context="", critical=critical)


def _not_read(said: Clause, role: str, turn: int) -> JudgedSentence:
    return JudgedSentence(said.sentence, role, turn, (said.start, said.end), f"skipped: not read: {said.unread}")


def _consider_sentence(said: Clause, scene: _SentenceContext) -> JudgedSentence:
    worth = scene.judgement.worth
    span = (said.start, said.end)
    shown = said.sentence

    def result(reason: str, facts: tuple[ExtractedFact, ...] = ()) -> JudgedSentence:
        if len(facts) == 1 and facts[0].span[0] < said.start and scene.previous is not None:
            before = scene.previous.considered
            text, whole = f"{before.text} {shown}", (before.span[0], said.end)
            return JudgedSentence(text, scene.turn.role, scene.number, whole, reason, worth, facts)
        return JudgedSentence(shown, scene.turn.role, scene.number, span, reason, worth, facts)

    if problem := _problem(said):
        return result(f"skipped: {problem}")
    if _asks_to_forget(said, scene):
        scene = scene._replace(judgement=replace(scene.judgement, category=FORGET))
        return result((fact := _rewrite_sentence(said, scene, is_proposed=True)).reason, (fact,))
    if facts := tuple(_by_rule(said, scene)):
        if len(facts) == 1 and has_leading_reference(facts[0].statement):
            facts = (_join_with_previous(facts[0], said, scene),)
        return result(facts[0].reason, facts)
    doubts = _doubts(said, scene)
    maybe, keep = (MAYBE_ALONE, KEEP_ALONE) if scene.is_alone else (REVIEW_PROBABILITY, PROPOSE_PROBABILITY)
    band = (worth >= maybe) + (worth >= keep) - len(doubts)
    if (
        scene.judgement.critical >= MIN_CRITICAL_PROBABILITY
        and worth >= MIN_CRITICAL_WORTH
        and scene.judgement.mood in _MEANT
    ):
        band = max(band, _CANDIDATE)
    fewest = _PROPOSED if scene.turn.is_material else _CANDIDATE
    if band < fewest or len(said.text.split()) < MIN_CLAUSE_WORDS or len(said.text) > MAX_CLAUSE_CHARS:
        return result(_reason_to_skip(said, scene.judgement, doubts))
    if unclear := unclear_day_reason(said.sentence, scene.at) if scene.judgement.category == "commitment" else "":
        return result(f"skipped: {unclear} ({_show_worth(worth)})")
    fact = _rewrite_sentence(said, scene, is_proposed=band == _PROPOSED)
    if is_unclear := needs_context(said.sentence, scene.references, asked=scene.asked):
        alone, fact = fact.statement, _join_with_previous(fact, said, scene)
        is_unclear = (
            fact.statement == alone and has_leading_reference(bare_sentence(said.sentence)) and not fact.critical
        )
    if is_unclear or _UNNAMED.match(fact.statement):
        fact = _rewrite_sentence(said, scene, is_proposed=False)
    return result(fact.reason, (fact,))


_CANDIDATE, _PROPOSED = 1, 2


def _doubts(said: Clause, scene: _SentenceContext) -> list[str]:
    """The reasons to doubt a sentence, each of which lowers it by a band: its mood and, if it stands alone, its wording."""
    mood = scene.judgement.mood
    found = [] if mood in _MEANT else [_MOODS[mood]]
    if scene.is_alone:
        found += sorted(doubts_about(said.text, said.sentence) - _HARMLESS)
        found += ["it reports what somebody says"] if is_reported(said.sentence) else []
    return found


def _asks_to_forget(said: Clause, scene: _SentenceContext) -> bool:
    if scene.turn.role == "assistant" or scene.judgement.mood not in _MEANT:
        return False
    if is_remember_request(said.sentence):
        return False
    return scene.judgement.forgets >= MIN_FORGET_PROBABILITY or is_forget_request(said.sentence)


def _is_own(said: Clause, scene: _SentenceContext) -> bool:
    """Whether it is the speaker's own statement, not part of a text to edit, a quotation, or introduced by a colon."""
    introduced = any(one.text.endswith(":") for one in scene.turn.sentences[: scene.place])
    return not (scene.turn.is_material or introduced or QUOTATION_FILLER in said.text)


def _is_doubtful(operation: str, said: Clause, scene: _SentenceContext) -> bool:
    """Whether it is doubtful that an operation on stored memories was requested."""
    if not operation:
        return False
    return not _is_own(said, scene) or (operation == FORGET and not _asks_to_forget(said, scene))


def _problem(said: Clause) -> str:
    """Why a sentence is never read; "" if it may be."""
    if REDACTED in said.text or find_secrets(said.sentence):
        return "it contains a secret"
    return "it is an order to the reader, not a fact" if find_injections(said.sentence) else ""


def _reason_to_skip(said: Clause, judgement: Judgement, doubts: Sequence[str]) -> str:
    if len(said.text) > MAX_CLAUSE_CHARS and judgement.worth >= REVIEW_PROBABILITY:
        return f"skipped: too long to be one fact ({_show_worth(judgement.worth)})"
    what = _MOODS.get(judgement.mood) or (
        doubts[0] if doubts and judgement.worth >= REVIEW_PROBABILITY else "nothing lasting"
    )
    return f"skipped: {what} ({_show_worth(judgement.worth)})"


def _show_worth(worth: float) -> str:
    return "worth 1.0" if worth >= 0.995 else f"worth {worth:.2f}".replace("0.", ".")


def _reason_to_keep(judgement: Judgement, what: str = "", *, is_proposed: bool = True) -> str:
    waits = "" if is_proposed else " as a candidate"
    return (
        f"kept{waits}: {what or judgement.category + _OWNERS.get(judgement.owner, '')} ({_show_worth(judgement.worth)})"
    )


def _rewrite_sentence(said: Clause, scene: _SentenceContext, *, is_proposed: bool) -> ExtractedFact:
    """A sentence that is worth keeping, rewritten to be read alone."""
    judgement, is_assistant = scene.judgement, scene.turn.role == "assistant"
    text = YOU.sub(lambda you: AS_I[you[0].lower()], said.sentence) if is_assistant else said.sentence
    statement = standalone(text, scene.references, scene.at, owner=judgement.owner, asked=scene.asked)
    confidence = min(MAX_UNASKED_CONFIDENCE, judgement.worth) * (SECOND_HAND_FACTOR if is_assistant else 1)
    operation = judgement.category if judgement.category in (FORGET, END) and not is_assistant else ""
    return ExtractedFact(
        statement,
        _TYPES.get(judgement.category, judgement.category),
        round(confidence, 2),
        scene.turn.role,
        scene.number,
        (said.start, said.end),
        _reason_to_keep(judgement, is_proposed=is_proposed) + (", by the assistant" if is_assistant else ""),
        since_when(text, scene.at),
        judgement.worth,
        operation,
        not is_proposed or _is_doubtful(operation, said, scene),
        judgement.critical >= MIN_CRITICAL_PROBABILITY,
        judgement.duration,
        judgement.owner,
        scene.references.latest
        if has_unclear_reference(statement) or has_leading_reference(bare_sentence(text))
        else "",
    )


# -- rules


def _by_rule(said: Clause, scene: _SentenceContext) -> Iterator[ExtractedFact]:
    """The facts that rules find in a sentence, clause by clause; a request to remember always yields one."""
    judgement = scene.judgement
    explicit = is_remember_request(said.sentence)
    if scene.turn.is_material:
        return
    if not explicit and (
        is_reported(said.sentence) or (judgement.category == FORGET and judgement.worth >= REVIEW_PROBABILITY)
    ):
        return
    for clause in clauses_of(said):
        if len(clause.text) > MAX_CLAUSE_CHARS or len(clause.text.split()) < MIN_CLAUSE_WORDS:
            continue
        fact = assistants_fact(clause, scene.at) if scene.turn.role == "assistant" else users_fact(clause, scene.at)
        if fact is not None:
            operation = END if _is_over(judgement, fact.statement) else ""
            yield ExtractedFact(
                fact.statement, fact.type, fact.confidence, scene.turn.role, scene.number, (clause.start, clause.end),
                _reason_to_keep(judgement, fact.reason), fact.since, judgement.worth,
                operation=operation, tentative=_is_doubtful(operation, said, scene), critical=judgement.critical >= MIN_CRITICAL_PROBABILITY, duration=judgement.duration, owner=judgement.owner,
                is_ruled=True,
            )  # fmt: skip


def _is_over(judgement: Judgement, statement: str) -> bool:
    return (judgement.category == END and judgement.worth >= PROPOSE_PROBABILITY) or bool(_OVER.search(statement))
