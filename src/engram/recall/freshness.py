"""Finds which of several hits about one slot are current, from recorded replacements and a model of succession."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.embedding.vectors import dot
from engram.model.hit import Hit, Hits, HitTrace
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, Memory
from engram.recall.cutoff import ABOUT_FLOOR, MIN_SHARE_OF_BEST, best_relevance
from engram.recall.query import is_selected
from engram.rules.lifecycle import is_effective
from engram.rules.sources import is_evidence, may_replace, trust_rank
from engram.store.protocol import Filters, Store
from engram.store.records import start_of
from engram.text.display import cut, quote_text, safe_word
from engram.text.statements import asks_about_now, is_only_planned, is_plan

if TYPE_CHECKING:
    from engram.models.pair_words import Statement

__all__ = [
    "MAX_COMPARED_HITS",
    "MIN_MENTION",
    "MIN_REPLACED",
    "SUCCESSION_FEATURES",
    "SUCCESSION_FILE",
    "WAITS_NOTE",
    "Claim",
    "Replacements",
    "contradicted_by",
    "find_other_tense",
    "find_replacements",
    "note_replacements",
    "put_change_first",
    "put_current_first",
    "replacements_among",
    "succession_features",
    "succession_probabilities",
]

MAX_COMPARED_HITS = 10
"""The maximum number of hits that are compared with one another."""
MAX_CLAIM_CHARACTERS = 2_000
"""Longer texts count as documents, not claims."""
MAX_NOTE_CHARACTERS = 80
"""The maximum number of characters of the newer statement that a note quotes."""
WAITS_NOTE = "waits for review"
_LINKS = frozenset((CONTRADICTS, MAY_SUPERSEDE))
_ELSEWHERE = "valid_elsewhere"
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Replacements:
    """Which memories replaced which, or may have."""

    newer: Mapping[str, tuple[Memory, ...]] = field(default_factory=dict)
    """For each outdated memory, by id, the memories that replaced it, oldest first."""
    unsure: frozenset[tuple[str, str]] = frozenset()
    """Pairs (older, newer) in which the newer memory is less trusted or waits for review. It is mentioned but does not
    come first.
    """
    unmentioned: frozenset[tuple[str, str]] = frozenset()
    """Pairs in which the newer memory comes first but is too unlikely a replacement to mention."""

    def __bool__(self) -> bool:
        return bool(self.newer)

    def newest(self, memory_id: str) -> Memory | None:
        """The memory at the end of the chain of replacements that starts here; None if nothing replaced this one."""
        found: Memory | None = None
        while steps := [newer for newer in self.newer.get(memory_id, ()) if (memory_id, newer.id) not in self.unsure]:
            found = steps[-1]
            memory_id = found.id
        return found

    def with_doubts(self, ids: Collection[str]) -> "Replacements":
        """The same replacements, with these newer memories only mentioned."""
        pairs = {(older, newer.id) for older, found in self.newer.items() for newer in found if newer.id in ids}
        return replace(self, unsure=self.unsure | pairs)

    def is_change(self, memory_id: str) -> bool:
        """Whether a memory replaced another one."""
        return any(newer.id == memory_id for found in self.newer.values() for newer in found)

    def end(self, memory_id: str) -> datetime | None:
        """When the first replacement of a memory began."""
        sure = [newer for newer in self.newer.get(memory_id, ()) if (memory_id, newer.id) not in self.unsure]
        return start_of(sure[0]) if sure else None

    def relate(self, some: Collection[str], others: Collection[str]) -> bool:
        """Whether a memory of either group replaced one of the other group."""
        steps = {(older, newer.id) for older, found in self.newer.items() for newer in found} - self.unsure
        return any((a in some and b in others) or (a in others and b in some) for a, b in steps)

    def note(self, memory: Memory, *, quotes_waiting: bool = True) -> str:
        """A note for the reader of an outdated memory; "" if it is current.

        With `quotes_waiting=False`, for prompts nobody asked for, it quotes nothing that waits for review.
        """
        mentioned = replace(self, newer=self._newer_to_mention()) if self.unmentioned else self
        newer = mentioned.newest(memory.id) or next(reversed(mentioned.newer.get(memory.id, ())), None)
        if newer is None:
            return ""
        how = "superseded by" if memory.status == "superseded" else "may be replaced by"
        wait = f", which {WAITS_NOTE}" if newer.status == "candidate" else ""
        is_quoted = newer.status in LIVE_STATUSES or (quotes_waiting and _is_only_contradicted(newer))
        says = f": {quote_text(cut(newer.statement, MAX_NOTE_CHARACTERS))}" if is_quoted else ""
        return f"{how} {safe_word(newer.id)}{says}{wait}"

    def _newer_to_mention(self) -> dict[str, tuple[Memory, ...]]:
        return {
            older: tuple(newer for newer in found if (older, newer.id) not in self.unmentioned)
            for older, found in self.newer.items()
        }


def replacements_among(
    memories: Sequence[Memory],
    question: str,
    hits: Sequence[Hit] = (),
    meant: Collection[str] | None = None,
    *,
    heed_trust: bool = False,
) -> Replacements:
    """The replacements among some memories, as they matter for a question.

    Unrecorded replacements are searched only for the memories in `meant`, which are compared with later ones; None
    means all. The hits say how much each memory is about the question. With `heed_trust`, unconfirmed evidence about
    more trusted memories is left out; otherwise it is mentioned.

    A replacement is recorded if a version supersedes another, a link says so, or two memories share a conflict key.
    Otherwise a model judges it by the question (`succession_probabilities`): the first hits are compared with one
    another, so an outdated hit is recognised even if nothing was superseded when the newer one was written. A less
    trusted source does not replace anything here either; its statement is only mentioned.
    """
    ordered = _in_order(memories)
    places = {memory.id: place for place, memory in enumerate(ordered)}
    steps = [
        (early, late)
        for at, late in enumerate(ordered)
        for early in ordered[:at]
        if _is_comparable(early, late) and (not heed_trust or _can_cast_doubt(early, late))
    ]
    recorded = [step for step in steps if _is_recorded(*step)]
    rivals = [
        (early, late)
        for early, late in steps
        if (meant is None or early.id in meant) and (early, late) not in recorded and _is_rival(early, late)
    ]
    linked = [step for step in recorded if _is_only_linked(*step)]
    planned = {_ids(*step) for step in [*linked, *rivals] if is_only_planned(step[1].statement, step[0].statement)}
    # An unlikely rival counts as no replacement; an unlikely link is still mentioned.
    doubtful, unlikely = _find_doubtful([*linked, *rivals], question, hits)
    newer: dict[str, list[Memory]] = {}
    unsure = set()
    for early, late in sorted(
        recorded + [step for step in rivals if _ids(*step) not in doubtful], key=lambda step: places[step[1].id]
    ):
        newer.setdefault(early.id, []).append(late)
        is_likely = _ids(early, late) not in doubtful | planned
        if early.superseded_by != late.id and not (_may_come_first(early, late) and is_likely):
            unsure.add(_ids(early, late))
    unmentioned = unlikely & {_ids(*step) for step in rivals}
    return Replacements(
        {older: tuple(found) for older, found in newer.items()}, frozenset(unsure), frozenset(unmentioned)
    )


def _ids(early: Memory, late: Memory) -> tuple[str, str]:
    return early.id, late.id


def _find_doubtful(
    steps: Sequence[tuple[Memory, Memory]], question: str, hits: Sequence[Hit]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """The steps in which the newer memory probably does not replace the older one, and those too unlikely to
    mention.
    """
    if not steps:
        return set(), set()

    relevance = {hit.id: hit.relevance for hit in hits}

    def claim(memory: Memory) -> Claim:
        return Claim(memory.statement, relevance.get(memory.id, 0.0))

    found = succession_probabilities(
        question, [(claim(early), claim(late)) for early, late in steps], best_relevance(hits)
    )
    likely = {_ids(*step): each for step, each in zip(steps, found, strict=True)}
    return (
        {ids for ids, each in likely.items() if each < MIN_REPLACED},
        {ids for ids, each in likely.items() if each < MIN_MENTION},
    )


def _can_cast_doubt(early: Memory, late: Memory) -> bool:
    """Whether a later memory may cast doubt on an earlier one. Unconfirmed evidence may not, if the earlier one is more
    trusted.
    """
    return early.superseded_by == late.id or not is_evidence(late) or trust_rank(late) >= trust_rank(early)


def _may_come_first(early: Memory, late: Memory) -> bool:
    return may_replace(late.source, early) and (late.status != "candidate" or _is_only_contradicted(late))


def _in_order(memories: Sequence[Memory]) -> list[Memory]:
    """Sort memories by when they became true, each before those that superseded it, even if the clock disagrees."""
    keys = {memory.id: _start_key(memory) for memory in memories}
    for memory in sorted(memories, key=lambda one: one.revision, reverse=True):
        for older in {one.id for one in memories if one.superseded_by == memory.id}:
            keys[older] = min(keys[older], (*keys[memory.id][:2], ""))
    return sorted(memories, key=lambda memory: (keys[memory.id], memory.revision))


def _start_key(memory: Memory) -> tuple[datetime, datetime, str]:
    """When a memory became true. A statement about a future day counts from when it was made."""
    told = memory.created or _BEFORE_ALL
    began = start_of(memory)
    return (min(began, told) if memory.created else began, told, memory.id)


def _is_comparable(early: Memory, late: Memory) -> bool:
    apart = _is_linked(early, late, (_ELSEWHERE,)) or _is_linked(late, early, (_ELSEWHERE,))
    return early.scope == late.scope and not apart and _has_same_situation(early, late)


def _has_same_situation(early: Memory, late: Memory) -> bool:
    if not early.situation or not late.situation:
        return True
    from engram.gates.comparison import same_situation  # slow to import, and most answers do not need them

    return same_situation(early, late)


def _is_linked(memory: Memory, other: Memory, types: Collection[str]) -> bool:
    return any(link.target == other.id and link.type in types for link in memory.associations)


def _is_recorded(early: Memory, late: Memory) -> bool:
    if early.superseded_by == late.id or early.id in late.supersedes:
        return True
    if early.conflict_key and early.conflict_key == late.conflict_key:
        return True
    return _is_linked(late, early, _LINKS)


def _is_only_linked(early: Memory, late: Memory) -> bool:
    """Whether only a model's link records that one memory replaced another. The question may show otherwise."""
    superseded = early.superseded_by == late.id or early.id in late.supersedes
    keyed = early.conflict_key and early.conflict_key == late.conflict_key
    return not superseded and not keyed and not _is_linked(late, early, (CONTRADICTS,))


def _is_rival(early: Memory, late: Memory) -> bool:
    """Whether one memory may have replaced another although no record says so.

    False if each has its own conflict key, if both come from one text or message, or if it is known what the later one
    replaced.
    """
    if (early.conflict_key and late.conflict_key) or late.supersedes:
        return False
    if any(link.type in _LINKS for link in late.associations):
        return False
    events = {evidence.event for evidence in early.evidence}
    together = any(evidence.event in events for evidence in late.evidence)
    one_text = early.source == late.source and early.source.startswith("document")
    return early.status in LIVE_STATUSES and not together and not one_text and _is_claim(early) and _is_claim(late)


def _is_claim(memory: Memory) -> bool:
    return len(memory.statement) <= MAX_CLAIM_CHARACTERS and not memory.statement.rstrip().endswith("?")


def find_replacements(
    question: str, hits: Hits, store: Store, filters: Filters, *, log: bool = False, heed_trust: bool = False
) -> Replacements:
    """The replacements of the first hits: among one another, by their next versions, and by linked memories.

    What was said in a session is compared only in an answer from the `log`. Empty if the caller asks what was known at
    another time.
    """
    near = [said for hit in hits[:MAX_COMPARED_HITS] if (said := _memory_of_hit(hit, log)) is not None]
    if not near or filters.known_at is not None:
        return Replacements()
    known = {memory.id: memory for memory in (*near, *_successors(near, store), *_linked_memories(near, store))}
    least = max(ABOUT_FLOOR, MIN_SHARE_OF_BEST * best_relevance(hits))
    meant = [hit.id for hit in hits if hit.relevance >= least]
    anytime = replace(filters, since=None, until=None)  # a note may name a later replacement
    found = {memory.id for memory in near}
    seen = [memory for memory in known.values() if memory.id in found or is_selected(anytime, memory)]
    return replacements_among(seen, question, hits, meant, heed_trust=heed_trust)


def _memory_of_hit(hit: Hit, log: bool) -> Memory | None:
    """A hit's memory. In an answer from the log, a person's statement counts as a memory from the usual source."""
    event = hit.event
    if event is None or not log or event.role != "user":
        return hit.memory
    return Memory(event.id, event.content, scope=event.scope, created=event.at)


def put_current_first(
    hits: Hits, found: Replacements, now: datetime, floor: float = ABOUT_FLOOR, *, adding: Filters | None = None
) -> Hits:
    """Put each current memory before the one it replaced. If no search found it, it is added if it passes the filters
    `adding`.

    Nothing moves if the replaced memory is not about the question.
    """
    ordered = list(hits)
    ids = {hit.id for hit in hits}
    for hit in hits:
        newest = found.newest(hit.id) if hit.relevance >= floor else None
        if (
            newest is not None
            and _is_live(newest, now)
            and (newest.id in ids or (adding is not None and is_selected(adding, newest)))
        ):
            _put_before(ordered, hit, newest)
    hits[:] = ordered
    return hits


def put_change_first(hits: Hits, older: str, newest: Memory) -> Hits:
    """Put the replacement of a hit before that hit; it is added if no search found it."""
    ordered = list(hits)
    _put_before(ordered, next(hit for hit in hits if hit.id == older), newest)
    hits[:] = ordered
    return hits


def _put_before(hits: list[Hit], older: Hit, newest: Memory) -> None:
    """Put the newest memory before the one it replaced, with at least the same relevance because both are about one
    subject.
    """
    ids = [hit.id for hit in hits]
    place = ids.index(older.id)
    own = hits.pop(ids.index(newest.id)) if newest.id in ids else _hit(newest)
    hits.insert(min(place, ids.index(newest.id) if newest.id in ids else place), _as_relevant(own, older))


def _as_relevant(newer: Hit, older: Hit) -> Hit:
    if newer.relevance >= older.relevance:
        return newer
    trace = replace(older.trace or HitTrace(), version_of=older.id)
    return replace(newer, score=older.score, relevance=older.relevance, trace=trace)


def _hit(memory: Memory) -> Hit:
    return Hit(memory.id, "memory", 0.0, memory.statement, memory, metadata=memory.metadata)


def _is_live(memory: Memory, now: datetime) -> bool:
    return memory.status in (*LIVE_STATUSES, "candidate") and is_effective(memory, now)


def find_other_tense(question: str, hits: Sequence[Hit], found: Replacements) -> frozenset[str]:
    """The ids of the hits in the wrong tense: plans if the question asks for the present state, or the reverse."""
    if asks_about_now(question):
        return frozenset(hit.id for hit in hits if hit.memory is not None and is_plan(hit.text))
    texts = {hit.id: hit.text for hit in hits}
    planned = [
        (older, newer.id)
        for older, replaced_by in found.newer.items()
        for newer in replaced_by
        if older in texts and newer.id in texts and is_only_planned(texts[newer.id], texts[older])
    ]
    return frozenset(older if is_plan(question) else newer for older, newer in planned)


def note_replacements(hits: Hits, found: Replacements) -> Hits:
    """Note on outdated hits what replaced them, and on candidates that they wait for review."""
    hits[:] = [_note_replacement(hit, found) for hit in hits]
    return hits


def _note_replacement(hit: Hit, found: Replacements) -> Hit:
    said = _memory_of_hit(hit, log=True)
    if said is None:
        return hit
    note = WAITS_NOTE if said.status == "candidate" else found.note(said)
    if not note or note in hit.note:
        return hit
    state = "" if hit.note in ("superseded", "candidate") else hit.note
    return replace(hit, note=f"{state}; {note}" if state else note)


def _successors(memories: Iterable[Memory], store: Store) -> list[Memory]:
    """The versions that superseded some memories."""
    found = [store.get(memory.superseded_by) for memory in memories if memory.superseded_by]
    return [memory for memory in found if memory is not None]


def _linked_memories(memories: Sequence[Memory], store: Store) -> list[Memory]:
    """Memories, current or waiting for review, with a link saying that they contradict or may replace one of these."""
    sources = {source for source, _, kind, _ in store.links_to([memory.id for memory in memories]) if kind in _LINKS}
    found = [store.get(source) for source in sorted(sources)]
    return [memory for memory in found if memory is not None and memory.status in (*LIVE_STATUSES, "candidate")]


def contradicted_by(memory: Memory, store: Store) -> list[Memory]:
    """The current memories that a candidate contradicts, if only that keeps it from being active."""
    targets = [link.target for link in memory.associations if link.type == CONTRADICTS]
    found = [store.get(target) for target in targets] if targets and _is_only_contradicted(memory) else []
    return [
        other for other in found if other is not None and other.status in LIVE_STATUSES and other.scope == memory.scope
    ]


def _is_only_contradicted(memory: Memory) -> bool:
    """Whether only the conflict keeps a candidate from being active."""
    from engram.decisions.versions import waits_alone  # most answers have no candidate

    return waits_alone(memory)


MIN_REPLACED = 0.45
"""The probability from which the newer statement comes first.

On held-out writers, for slots that changed, the current value came first for .42 instead of .33 and an outdated one for
.23 instead of .33; for slots that did not change, the right value for .451 instead of .456. The pair model, whose
probabilities this reads, had seen these slots, so the gain is smaller elsewhere.
"""
MIN_MENTION = 0.6
"""The probability from which a note says that the newer statement may replace the older one. Rules that complement each
other often score between the two limits.
"""
SUCCESSION_FILE = Path(__file__).with_name("succession.npz")
SUCCESSION_FEATURES = (
    "same", "update", "contradiction", "refinement", "different",
    "relevance_old", "relevance_new", "relevance_ratio", "relevance_best",
    "cosine", "cosine_old", "cosine_new", "covered_old", "covered_new", "said_old", "said_new",
    "lost", "lost_most", "gained", "unsaid", "unsaid_most", "names_asked", "names_unsaid", "shared", "shared_besides",
    "value_likeness", "words_new",
    "names_old", "names_new", "numbers_old", "numbers_new", "times_old", "times_new", "words_besides_old", "words_besides_new",
)  # fmt: skip
_LEAST_RELEVANT = 0.002
"""The relevance of a memory that no search found."""
_SAID = 0.995
_NO_LENGTH = 1e-9**0.5
"""Vectors whose lengths have a smaller product count as empty."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement, and how likely it is about the question."""

    text: str
    relevance: float = 0.0


def succession_probabilities(question: str, pairs: Sequence[tuple[Claim, Claim]], best: float) -> list[float]:
    """How likely the newer claim of each pair (older, newer) replaced the older one as the answer.

    `best` is the highest relevance of a hit. Two statements alone often leave open whether they are about one slot; the
    question shows which slot is meant. The result of the pair model (`engram.models.pairs`) is weighed with how much
    each statement is about the question: its relevance, the words of the question in it, and its other words, which are
    its value. Small trees turn this into a probability; training/train_succession.py trains them on the slots of many
    writers.
    """
    found: list[float] = _succession_trees()(succession_features(question, pairs, best)).tolist()
    return found


def succession_features(question: str, pairs: Sequence[tuple[Claim, Claim]], best: float) -> Any:
    """(pairs x FEATURES) the input of the trees."""
    import numpy as np

    from engram.models.pair_words import read_statement
    from engram.models.pairs import relate_pairs

    asked = read_statement(question)
    texts = list(dict.fromkeys(claim.text for pair in pairs for claim in pair))
    answers = _Answers(asked, [read_statement(text) for text in texts])
    places = {text: place for place, text in enumerate(texts)}
    steps = [(places[older.text], places[newer.text]) for older, newer in pairs]
    relations = relate_pairs([(older.text, newer.text) for older, newer in pairs], reasons=False)
    rows = [
        (
            *(relation.same, relation.update, relation.contradiction, relation.refinement, relation.different),
            *_relevances(older, newer, best),
            *worded,
            *_besides(asked, answers.told[old], answers.told[new]),
        )
        for (older, newer), relation, worded, (old, new) in zip(
            pairs, relations, answers.word_features(steps), steps, strict=True
        )
    ]
    return np.array(rows, dtype=np.float32).reshape(len(rows), len(SUCCESSION_FEATURES))


def _relevances(older: Claim, newer: Claim, best: float) -> tuple[float, ...]:
    old, new, most = (log(max(each, _LEAST_RELEVANT)) for each in (older.relevance, newer.relevance, best))
    return old, new, new - old, old - most


class _Answers:
    """Statements compared with the question, one row each: how closely each has each word of it, and how much of it in
    all.
    """

    def __init__(self, asked: "Statement", told: "Sequence[Statement]") -> None:
        import numpy as np

        self.asked, self.told = asked, told
        weights = np.array(asked.weights, dtype=np.float32)
        self._weights = weights / max(float(weights.sum()), 1e-6)
        likeness = np.array([self._likeness_of(each) for each in told], dtype=np.float32)
        self._likeness = likeness.reshape(len(told), len(weights))
        self._said = self._likeness > _SAID
        self._covered, self._share = dot(self._likeness, self._weights), dot(self._said, self._weights)
        sums = np.array([asked.sum, *(each.sum for each in told)])
        products = dot(sums, sums.T).astype(np.float64)
        lengths = np.sqrt(np.outer(products.diagonal(), products.diagonal()))
        self._cosines = np.where(lengths > _NO_LENGTH, products / np.maximum(lengths, _NO_LENGTH), 0.0)

    def _likeness_of(self, told: "Statement") -> Any:
        import numpy as np

        if not self.asked.words or not told.words:
            return np.zeros(len(self.asked.words), dtype=np.float32)
        said = [token.stem in told.word_stems for token in self.asked.words]
        return np.maximum(dot(self.asked.rows, told.rows.T).max(axis=1).clip(0.0), said)

    def word_features(self, steps: Sequence[tuple[int, int]]) -> list[list[float]]:
        """For each pair of statements: how both cover the question's words, and which of these only the older one
        has.
        """
        import numpy as np

        from engram.models.pair_words import NAME

        old, new = np.array(steps, dtype=np.int64).reshape(-1, 2).T
        change = self._likeness[new] - self._likeness[old]
        lost, unsaid = (-change).clip(0.0), self._said[old] & ~self._said[new]
        names = np.array([token.kind == NAME for token in self.asked.words], dtype=bool)
        columns = (
            *(self._cosines[old + 1, new + 1], self._cosines[0, old + 1], self._cosines[0, new + 1]),
            *(self._covered[old], self._covered[new], self._share[old], self._share[new]),
            *(dot(lost, self._weights), lost.max(axis=1, initial=0.0), dot(change.clip(0.0), self._weights)),
            *(dot(unsaid, self._weights), (self._weights * unsaid).max(axis=1, initial=0.0)),
            *(np.full(len(steps), names.sum()), unsaid[:, names].sum(axis=1)),
        )
        found: list[list[float]] = np.array(columns).T.tolist()
        return found


def _besides(asked: "Statement", old: "Statement", new: "Statement") -> tuple[float, ...]:
    """What the two statements share, and what each has that neither the question nor the other has, which is its
    value.
    """
    from engram.models.pair_words import NAME, NUMBER, TIME, WORD

    shared = old.word_stems & new.word_stems
    known = asked.word_stems | shared
    places = [[at for at, token in enumerate(each.words) if token.stem not in known] for each in (old, new)]
    kinds = ["".join([each.words[at].kind for at in own]) for each, own in zip((old, new), places, strict=True)]
    likeness = float(dot(old.rows.take(places[0], 0), new.rows.take(places[1], 0).T).max()) if all(places) else -1.0
    counts = [own.count(kind) for kind in (NAME, NUMBER, TIME, WORD) for own in kinds]
    return len(shared), len(shared - asked.word_stems), likeness, len(new.words), *counts


@cache
def _succession_trees() -> Any:
    from engram.models.trees import Trees
    from engram.models.weights import read_arrays

    data = read_arrays(SUCCESSION_FILE)
    return Trees(*(data[name] for name in ("feature", "threshold", "below", "above", "value")))
