"""How a proposal relates to its neighbours, and which of its passages repeat a memory that a person removed.

The trained pair model (`models.pairs`) decides, once for all neighbours. Two exceptions come first: memories in the
same form are compared part by part (`compare_forms`), and an exact rule (`compare`) decides statements that differ only
in a number, a negation, an opposite or a rival word. The rule also covers languages that the model was not trained on.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain
from math import nan
from typing import TYPE_CHECKING

from engram.gates.certainty import (
    adds_nothing,
    has_words_of,
    may_outdate,
    names_another,
    names_another_subject,
    same_symbols,
)
from engram.gates.comparison import (
    FormComparison,
    about_same_subject,
    compare_forms,
    in_same_form,
    relation,
    same_situation,
    token_overlap,
)
from engram.gates.proposal import Conflict, Neighbour, Proposal, fold_memory
from engram.gates.shortlist import shortlist
from engram.model.lazy import cached_property, dataclass, replace
from engram.model.memory import Memory
from engram.model.types import FEEDBACK, form_name, type_or_default
from engram.models.readings import letters_of
from engram.text.confusables import fold_text
from engram.text.content_hash import content_hash
from engram.text.statements import is_only_planned, normalize_statement
from engram.text.tokens import query_terms, split_sentences, tokens

if TYPE_CHECKING:
    from engram.models.pairs import Relation

__all__ = [
    "MAX_JUDGED_CHARS",
    "NearPassages",
    "Neighbourhood",
    "Recurrence",
    "find_near_passages",
    "find_recurrence",
    "find_repeated_passage",
    "in_conflict",
    "split_passages",
    "state_passage",
]

MAX_JUDGED_CHARS = 100_000
"""Characters of a text that are searched; a longer text from an agent waits for review."""
MAX_PASSAGES = 24
"""Maximum pairs of a passage and a memory that are compared in full."""
MAX_WINDOWS = 6
"""Maximum pairs for windows, each of which takes several times as long."""
MAX_SENTENCE_CHARS = 300
WINDOW_CHARS, WINDOW_STEP = 900, 500
MAX_DISGUISED_CHARS = 40_000
"""Characters of a text whose letters are compared regardless of what separates them."""
_PASSAGE_GRAM_CHARS = 5
_MIN_PASSAGE_SHARE = 0.3
"""Minimum share of a memory's words or letter runs that a passage must have to be compared."""
_MIN_CERTAIN_PASSAGE_SHARE = 0.8
"""Share from which every passage must be compared; if there are too many to compare, the text waits for review."""


@dataclass(frozen=True, slots=True)
class NearPassages:
    """Pairs of a passage and the position of a statement that are worth comparing, nearest first."""

    sentences: Sequence[tuple[str, int]]
    windows: Sequence[tuple[str, int]] = ()
    """Longer passages, compared by words and letters only, because the pair model was trained on sentences."""
    left_out: int | None = None
    """A statement that is near more passages than can be compared."""


def split_passages(text: str) -> list[str]:
    """The sentences of a text, with long ones split into windows of a few clauses."""
    found: list[str] = []
    for sentence in split_sentences(text):
        found += _windows(sentence, MAX_SENTENCE_CHARS, MAX_SENTENCE_CHARS // 2)
    return found


def find_near_passages(texts: Iterable[str], statements: Sequence[str]) -> NearPassages:
    """The passages of some texts that share most with one of the statements; all of them, if there are few.

    A text is split into sentences and, to catch words that are spread out or disguised, into overlapping windows. A
    linear search for shared words and letter runs selects the few passages near one of the memories, and only these are
    compared in full.
    """
    sentences: dict[str, None] = {}
    windows: dict[str, int] = {}
    for text in texts:
        folded = fold_text(text[:MAX_JUDGED_CHARS])
        sentences |= dict.fromkeys(split_passages(folded))
        if len(folded) > MAX_SENTENCE_CHARS:
            windows |= {window: at for at, window in enumerate(_windows(folded, WINDOW_CHARS, WINDOW_STEP))}
    if len(sentences) * len(statements) <= MAX_PASSAGES:
        near = NearPassages([(sentence, at) for at in range(len(statements)) for sentence in sentences])
    else:
        near = _rank([(one, _shared_words(one, statements)) for one in sentences], MAX_PASSAGES)
    last = MAX_DISGUISED_CHARS // WINDOW_STEP
    found = _rank(
        [(one, _shares_of_statements(one, statements, letters=at < last)) for one, at in windows.items()], MAX_WINDOWS
    )
    left_out = near.left_out if near.left_out is not None else found.left_out
    return NearPassages(near.sentences, found.sentences, left_out)


def _rank(shares: Sequence[tuple[str, Sequence[float]]], most: int) -> NearPassages:
    near = [
        (share, passage, at) for passage, row in shares for at, share in enumerate(row) if share >= _MIN_PASSAGE_SHARE
    ]
    near.sort(key=lambda one: one[0], reverse=True)
    left_out = near[most][2] if len(near) > most and near[most][0] >= _MIN_CERTAIN_PASSAGE_SHARE else None
    return NearPassages([(passage, at) for _, passage, at in near[:most]], left_out=left_out)


def _windows(text: str, size: int, step: int) -> list[str]:
    """A text as overlapping windows that begin and end between words, if it has spaces."""
    if len(text) <= size:
        return [text]
    found = []
    for start in range(0, len(text) - size + step, step):
        window = text[start : start + size]
        first, last = window.find(" ") + 1, window.rfind(" ")
        found.append(window[first if start and first < step // 4 else 0 : last if last > size - step // 4 else size])
    return found


def _shares_of_statements(passage: str, statements: Sequence[str], *, letters: bool) -> list[float]:
    words = _shared_words(passage, statements)
    if not letters:
        return words
    spelled = letters_of(passage)
    grams = [_grams(statement) for statement in statements]
    return [
        max(share, sum(gram in spelled for gram in each) / len(each) if each else 0.0)
        for share, each in zip(words, grams, strict=True)
    ]


def _shared_words(passage: str, statements: Sequence[str]) -> list[float]:
    """The share of each statement's words that a passage has."""
    terms = set(tokens(passage))
    wanted = [_terms(statement) for statement in statements]
    return [len(each & terms) / len(each) if each else 0.0 for each in wanted]


@lru_cache(maxsize=1024)
def _terms(statement: str) -> frozenset[str]:
    return frozenset(query_terms(statement[:WINDOW_CHARS]))


@lru_cache(maxsize=1024)
def _grams(statement: str) -> frozenset[str]:
    letters = letters_of(statement[:WINDOW_CHARS])
    return frozenset(letters[at : at + _PASSAGE_GRAM_CHARS] for at in range(len(letters) - _PASSAGE_GRAM_CHARS + 1))


# DESIGN §10 says .97, measured with another model; with the bundled one, four statements reworded by hand score .94 to .97.
MIN_COSINE = 0.94
MIN_TOKEN_OVERLAP = 0.85
MIN_DUPLICATE_PROBABILITY = 0.9
"""Minimum probability for a rewording not to be stored again. A wrong duplicate loses a statement, so this is far above
`pairs.MIN_SAME`, the threshold for storing a statement and marking it as a paraphrase."""
MIN_MENTIONED_CHANGE = 0.5
"""Minimum probability of a change for reporting a memory to the caller, who knows the conversation and can rule it out."""
WITHDRAWN_STATUSES = ("rejected", "retired")
"""The statuses of memories whose likely rewordings wait for review.

Replaced ones are not among them, because they often resemble their replacement.
"""
MIN_DIFFERENT = 0.9
"""Minimum probability of "different" for a statement not to be checked as a rewording of a rejected or retired one."""
_PLANNED = frozenset(("commitment", "task"))
"""Types about the future: a later statement may change these, but not the record of past events."""
# Documents are not claims.
_LONGEST_CLAIM = 2_000


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A memory that a person rejected, retired or replaced, and that a proposal repeats."""

    neighbour: Neighbour
    is_sure: bool
    """If false, the repetition is only likely, and a person decides."""

    @property
    def memory(self) -> Memory:
        """The memory that a person rejected, retired or replaced."""
        return self.neighbour.memory

    @property
    def removal_note(self) -> str:
        """Who rejected, retired or replaced it, how and when."""
        return self.neighbour.decided


class Neighbourhood:
    """A proposal among the stored memories of its scope and situation; the model compares them at most once."""

    def __init__(
        self,
        proposal: Proposal,
        neighbours: Sequence[Neighbour],
        known: "Mapping[tuple[str, str], Relation] | None" = None,
    ) -> None:
        self._proposal, self._memory = proposal, proposal.memory
        self._known = known
        """Precomputed relations for many proposals, keyed by older and newer text; None to compute them here."""
        self._near = [near for near in neighbours if self._is_comparable(near.memory)]

    def _is_comparable(self, other: Memory) -> bool:
        return (
            other.scope == self._memory.scope
            and other.id != self._memory.id
            and not self._proposal.leaves_out(other.id)
            and (same_situation(self._memory, other) or in_same_form(self._memory, other))
        )

    @cached_property
    def _relations(self) -> "list[tuple[Neighbour, Relation]]":
        # Imported here so that a write without neighbours never loads the model.
        from engram.models import pairs

        others = shortlist(self._proposal, [near for near in self._near if self._is_for_model(near.memory)])
        texts = [_sentence(near.memory.statement) for near in others]
        # Without an embedder the cosine is nan or negative.
        cosines = [near.cosine if near.cosine >= 0 else nan for near in others]
        mine = _sentence(self._memory.statement)
        if self._known is not None:
            computed = [(near, self._known.get((text, mine))) for near, text in zip(others, texts, strict=True)]
            return [(near, relation) for near, relation in computed if relation is not None]
        found = pairs.relate_all(texts, mine, cosines) if texts else []
        return list(zip(others, found, strict=True))

    def _is_for_model(self, other: Memory) -> bool:
        """Whether the model compares a memory as a whole.

        Of two memories in a form, it compares only facts about the same subject.
        """
        if in_same_form(self._memory, other):
            is_fact = form_name(self._memory.form) != FEEDBACK
            return is_fact and about_same_subject(self._memory, other) and same_situation(self._memory, other)
        return same_situation(self._memory, other)

    @cached_property
    def _forms(self) -> "list[tuple[Memory, FormComparison]]":
        """The neighbours in the same form, each compared part by part."""
        alike = [near.memory for near in self._near if in_same_form(self._memory, near.memory)]
        return [(other, compare_forms(self._memory, other)) for other in alike]

    def duplicate(self) -> Memory | None:
        """The memory with the same content: the same words apart from inflection, or a match by the model that adds nothing."""
        repeated = next((near.memory for near in self._near if self._repeats(near)), None)
        if repeated is not None:
            return repeated
        if (same := next((other for other, found in self._forms if found.relation == "same"), None)) is not None:
            return same
        mine = self._memory.statement
        for near, found in self._relations:
            theirs = near.memory.statement
            if found.same < MIN_DUPLICATE_PROBABILITY or not adds_nothing(mine, theirs):
                continue
            if relation(mine, theirs).relation != "opposite":
                return near.memory
        return None

    def _repeats(self, near: Neighbour) -> bool:
        if 0 <= near.cosine < MIN_COSINE:
            return False
        if token_overlap(frozenset(self._proposal.tokens), near.memory) < MIN_TOKEN_OVERLAP:
            return False
        mine, theirs = self._memory.statement, near.memory.statement
        return relation(mine, theirs).relation == "same" and same_symbols(mine, theirs)

    def paraphrase(self) -> Memory | None:
        """The memory with nearly the same content, so that the two could be merged."""
        from engram.models import pairs

        for near, found in self._relations:
            exact = relation(self._memory.statement, near.memory.statement).relation
            if exact == "same" or (found.same >= pairs.MIN_SAME and exact != "opposite"):
                return near.memory
        return None

    def recurrence(self) -> tuple[Memory, bool] | None:
        """The memory that the proposal most likely repeats in other words, and whether this is certain."""
        from engram.models.pairs import MIN_SAME
        from engram.models.paraphrases import REFUSE_LOG_ODDS, REVIEW_LOG_ODDS, recurrence

        mine = _sentence(self._memory.statement)
        compared = [(near.memory, found) for near, found in self._relations if found.different < MIN_DIFFERENT]
        compared = [(other, found) for other, found in compared if self._exact(other) != "opposite"]
        pairs = [(_sentence(other.statement), mine) for other, _ in compared]
        scores = recurrence(pairs, [found for _, found in compared]) if pairs else []
        likely = [
            (score, other, score >= REFUSE_LOG_ODDS and found.same >= MIN_SAME)
            for score, (other, found) in zip(scores, compared, strict=True)
            if score >= REVIEW_LOG_ODDS
        ]
        found = [one for one in likely if one[2] or one[1].status in WITHDRAWN_STATUSES]
        return max(found, key=lambda one: one[0])[1:] if found else None

    def _exact(self, other: Memory) -> str:
        return relation(self._memory.statement, other.statement).relation

    def disguised_copy(self) -> Memory | None:
        """The rejected or retired memory that the proposal repeats in disguise."""
        mine = self._memory.statement[:_LONGEST_CLAIM]
        out = (near.memory for near in self._near if near.memory.status in WITHDRAWN_STATUSES)
        return next((one for one in out if _is_disguised_copy(mine, one)), None)

    def exact_match(self) -> Memory | None:
        """The memory with exactly the same content, in the same words or by the rules that compare two statements."""
        return next((near.memory for near in self._near if self._exact(near.memory) == "same"), None)

    def contained_match(self) -> Memory | None:
        """The rejected memory whose words all occur close together in the proposal, whatever surrounds them."""
        mine = self._memory.statement[:_LONGEST_CLAIM]
        rejected = (near.memory for near in self._near if near.memory.status == "rejected")
        return next((other for other in rejected if has_words_of(mine, other.statement)), None)

    def conflicts(self) -> list[Conflict]:
        """The memories that the proposal may outdate or contradict, most likely first."""
        named = self._proposal.named if self._proposal.relation == "contradiction" else ()
        told = [Conflict(other, "contradiction", 1.0, "by the caller's word") for other in named]
        if not _is_claim(self._memory):
            return told
        told += [
            Conflict(other, "contradiction", 1.0, found.why)
            for other, found in self._forms
            if found.relation == "opposite" and other not in named and _may_conflict(self._memory, other)
        ]
        known = {conflict.other.id for conflict in told}
        compared = [
            _conflict(self._memory, near.memory, found)
            for near, found in self._relations
            if near.memory.id not in known
        ]
        found = _weaken_ambiguous_updates([conflict for conflict in compared if conflict is not None])
        return told + sorted(found, key=lambda conflict: (conflict.is_likely, conflict.probability), reverse=True)


def find_recurrence(proposal: Proposal, decided: Sequence[Neighbour]) -> Recurrence | None:
    """The memory among these that a proposal or one of its passages repeats, in the same or in other words.

    The relation that the caller declares and the position in the text make no difference.
    """
    if not decided:
        return None
    found = _compare(proposal, _move_to_scope(decided, proposal.memory.scope))
    if found is not None and found.is_sure:
        return _restore(found, decided)
    out = [one for one in decided if one.memory.status in WITHDRAWN_STATUSES]
    text = proposal.memory.statement
    inside = (
        find_repeated_passage(proposal, {"statement": [text]}, out) if out and len(split_passages(text)) > 1 else None
    )
    if inside is not None and (inside[1].is_sure or found is None):
        return inside[1]
    return None if found is None else _restore(found, decided)


def find_repeated_passage(
    proposal: Proposal, texts: Mapping[str, Sequence[str]], decided: Sequence[Neighbour]
) -> tuple[str, Recurrence] | None:
    """The name of a text with a passage that repeats one of these, and which one.

    Certain matches come before likely ones.

    The number of passages compared is bounded, however many texts there are, and the pair model is called once.
    """
    from engram.models.pairs import relate_pairs

    here = [replace(one, cosine=-1.0) for one in _move_to_scope(decided, proposal.memory.scope)]
    near = find_near_passages(chain.from_iterable(texts.values()), [one.memory.statement for one in here])
    chosen: dict[str, list[Neighbour]] = {}
    for passage, at in (*near.sentences, *near.windows):
        chosen.setdefault(passage, []).append(here[at])
    pairs = list(dict.fromkeys((_sentence(here[at].memory.statement), _sentence(said)) for said, at in near.sentences))
    known = dict(zip(pairs, relate_pairs(pairs, reasons=False), strict=True))
    likely: Recurrence | None = None
    for passage, others in chosen.items():
        found = _compare(state_passage(proposal, passage), others, known)
        if found is not None and found.is_sure:
            return _name_of(passage, texts), _restore(found, decided)
        likely = likely or found
    if likely is not None:
        passage = next(passage for passage, others in chosen.items() if likely.neighbour in others)
        return _name_of(passage, texts), _restore(likely, decided)
    if near.left_out is not None:
        return next(iter(texts)), _restore(Recurrence(here[near.left_out], is_sure=False), decided)
    return None


def state_passage(proposal: Proposal, text: str) -> Proposal:
    """A text of a proposal as a separate statement."""
    memory = proposal.memory.replace(statement=text, situation="", form={}, supersedes=(), conflict_key="")
    return replace(proposal, memory=memory, content_hash=content_hash(text), tokens=tuple(tokens(text)))


def _name_of(passage: str, texts: Mapping[str, Sequence[str]]) -> str:
    """The name of the text that contains the passage; for a folded text, its first name."""
    return next((name for name, given in texts.items() if any(passage in text for text in given)), next(iter(texts)))


def _move_to_scope(decided: Sequence[Neighbour], scope: str) -> list[Neighbour]:
    return [replace(one, memory=fold_memory(one.memory).replace(scope=scope, situation="")) for one in decided]


def _restore(found: Recurrence, decided: Sequence[Neighbour]) -> Recurrence:
    return next(Recurrence(one, found.is_sure) for one in decided if one.memory.id == found.memory.id)


def _compare(
    proposal: Proposal, here: Sequence[Neighbour], known: "Mapping[tuple[str, str], Relation] | None" = None
) -> Recurrence | None:
    memory = fold_memory(proposal.memory).replace(supersedes=())
    near = Neighbourhood(replace(proposal, memory=memory, named=(), relation=""), here, known)
    if (twin := near.duplicate() or near.exact_match() or near.contained_match()) is not None:
        found = (twin, True)
    elif (likely := near.recurrence()) is not None:
        found = likely
    elif (disguised := near.disguised_copy()) is not None:
        found = (disguised, False)
    else:
        return None
    return next(Recurrence(one, found[1]) for one in here if one.memory.id == found[0].id)


def _is_disguised_copy(new: str, old: Memory) -> bool:
    # A changed number is often news about something retired, and seldom about something rejected.
    from engram.gates.disguise import is_disguised_repeat

    return is_disguised_repeat(new, old.statement[:_LONGEST_CLAIM], may_change_numbers=old.status == "rejected")


def in_conflict(older: Memory, newer: Memory) -> bool:
    """Whether one memory may outdate or contradict another."""
    proposal = Proposal(fold_memory(newer).replace(supersedes=()), False, "", ())
    return bool(Neighbourhood(proposal, [Neighbour(fold_memory(older), nan)]).conflicts())


def _conflict(memory: Memory, other: Memory, found: "Relation") -> Conflict | None:
    from engram.models import pairs

    exact = relation(memory.statement, other.statement)
    if exact.relation == "same" or not _may_conflict(memory, other):
        return None
    if found.update >= pairs.SURE_UPDATE and may_outdate(memory, other):
        return Conflict(other, "update", found.update, found.reason, is_sure=True)
    if exact.relation == "opposite":
        return Conflict(other, "contradiction", 1.0, exact.why)
    if names_another(normalize_statement(memory.statement), normalize_statement(other.statement)):
        return None
    change = found.change
    if change < MIN_MENTIONED_CHANGE:
        return None
    kind = "update" if found.update >= found.contradiction else "contradiction"
    is_likely = (
        change >= pairs.LIKELY_CHANGE
        and not names_another_subject(memory.statement, other.statement)
        and not is_only_planned(memory.statement, other.statement)
    )
    return Conflict(other, kind, change, found.reason, is_likely=is_likely)


def _may_conflict(memory: Memory, other: Memory) -> bool:
    """Whether two memories can contradict each other: both are claims valid at the same time, and they are not both past events."""
    if not _is_claim(other) or not _overlap_in_time(memory, other):
        return False
    return not (_is_episode(memory) and _is_episode(other)) or other.type in _PLANNED


def _weaken_ambiguous_updates(conflicts: list[Conflict]) -> list[Conflict]:
    """The conflicts, with certain updates made uncertain if more than one memory could be meant.

    If the model is sure that the proposal updates one memory, and thinks it likely of another about something else,
    neither update is certain: news about somebody does not change everything known about them.
    """
    from engram.models.pairs import LIKELY_CHANGE, MIN_SAME, relate

    surest = max((each for each in conflicts if each.is_sure), key=lambda each: each.probability, default=None)
    if surest is None:
        return conflicts
    for each in conflicts:
        if each is not surest and (each.is_sure or each.is_likely):
            between = relate(surest.other.statement, each.other.statement)
            if between.change < LIKELY_CHANGE and between.same < MIN_SAME:
                return [replace(one, is_sure=False) for one in conflicts]
    return conflicts


def _sentence(statement: str) -> str:
    """A statement in the form the model was trained on: not too long, and with a full stop."""
    text = statement[:_LONGEST_CLAIM].rstrip()
    return f"{text}." if text[-1:].isalnum() else text


def _is_claim(memory: Memory) -> bool:
    """Whether a memory asserts something: questions and documents do not."""
    return len(memory.statement) <= _LONGEST_CLAIM and not memory.statement.rstrip().endswith(("?", "？", "؟"))


def _is_episode(memory: Memory) -> bool:
    """Whether a memory reports an event.

    An event may outdate a fact ("moved to Lisbon"), but never an earlier event.
    """
    return type_or_default(memory.type).nature == "episode"


def _overlap_in_time(newer: Memory, older: Memory) -> bool:
    """Whether the validity of two memories overlaps: "until May" contradicts neither "since June" nor a statement first made later."""
    begins = newer.valid_from or newer.when
    return not (_has_ended_by(newer.valid_until, older.valid_from) or _has_ended_by(older.valid_until, begins))


def _has_ended_by(until: datetime | None, since: datetime | None) -> bool:
    return until is not None and since is not None and until <= since
