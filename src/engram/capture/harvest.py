"""Harvest: turns facts that a person told their agents into candidates, with the original turn as evidence.

transcript → windows of turns → sentences judged → remarks → ledger (only the turns they came from) → gates → candidate, or why not
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, tzinfo
from pathlib import Path

from engram.agents.agent import agent_names
from engram.agents.transcripts.session import Transcript, TranscriptTurn
from engram.capture.conversation import Observe
from engram.capture.exchange import FactDecision
from engram.capture.extraction import REDACTED, ExtractedFact, JudgedSentence, consider
from engram.capture.extraction.clauses import in_third_person, is_remember_request, sentence
from engram.capture.learn import RATE_GATE as RATE
from engram.capture.learn import Learner
from engram.capture.settlement import Revise
from engram.capture.stage import DryRun, FactOrigin, FactStage
from engram.capture.transcripts.windows import RedactedTurn, TurnWindow, windows
from engram.gates.instructions import find_injections
from engram.gates.secrets.scan import redact
from engram.model.decision import Outcome
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import Memory
from engram.models.remarks import PROPOSE_PROBABILITY, RemarkCues, probability
from engram.rules.scopes import GLOBAL
from engram.store.ledger import ledger_scope
from engram.store.protocol import Store
from engram.store.scopes import scope_links, session_scope
from engram.text.display import cut
from engram.text.time.zone import SYSTEM, local

MIN_SLOTTED_WORTH = 0.5
"""The probability of being worth keeping from which a fact with its own slot is proposed; such a fact is phrased by a rule."""
MIN_NEIGHBOUR_WORTH = 0.15
"""The probability from which a sentence next to a fact belongs to its remark."""
MAX_REMARK_WORDS = 60
"""The most words in a remark (spec 1: a statement has 25 to 60)."""


@dataclass(frozen=True, slots=True)
class TranscriptFact:
    """A fact of a transcript, and whether to propose it."""

    fact: ExtractedFact
    is_likely: bool
    """Whether it is probably worth keeping, forgetting it could do harm, or the person asked to remember it."""
    probability: float
    """The probability that it is worth keeping."""


def remarks(
    considered: Sequence[JudgedSentence], turns: Sequence[str], project: str, has_slot: Callable[[ExtractedFact], bool]
) -> Iterator[TranscriptFact]:
    """The facts of turns; those of adjacent sentences are joined, unless they have a slot of their own.

    "We don't do down files. Migrations are forward only." is one thing to remember, and one decision for the reviewer.
    A fact with a slot of its own (a name, a home town), which a later fact replaces, stays separate.
    """
    for run in _runs(considered):
        asked = any(is_remember_request(one.text) for one in run)
        turn = turns[run[0].turn]
        alone = [fact for one in run for fact in one.facts if fact.operation or has_slot(fact)]
        for fact in alone:
            worth = fact.worth or 0
            is_likely = worth >= MIN_SLOTTED_WORTH and not (fact.operation and fact.tentative)
            yield TranscriptFact(fact, asked or is_likely, worth)
        rest = (replace(one, facts=tuple(fact for fact in one.facts if fact not in alone)) for one in run)
        for part in _parts([one for one, before in zip(rest, run, strict=True) if one.facts or not before.facts]):
            if (joined := _join_sentences(part)) is not None:
                is_critical = joined.critical and not joined.tentative
                likelihood = probability(cues_of(joined, turn, project))
                yield TranscriptFact(joined, asked or is_critical or likelihood >= PROPOSE_PROBABILITY, likelihood)


def plain_facts(considered: Sequence[JudgedSentence]) -> Iterator[TranscriptFact]:
    """The facts of turns, each in its original words; tentative ones only if the person asked to remember them."""
    for one in considered:
        asked = is_remember_request(one.text)
        yield from (TranscriptFact(fact, asked or not fact.tentative, fact.worth or 0) for fact in one.facts)


def cues_of(fact: ExtractedFact, turn: str, project: str) -> RemarkCues:
    """The features of a fact that the model of remarks reads."""
    said = turn[slice(*fact.span)]
    return RemarkCues(
        fact.worth or 0, fact.statement, said, turn, project, fact.type, fact.owner, fact.is_ruled, fact.tentative
    )


def _runs(considered: Sequence[JudgedSentence]) -> Iterator[list[JudgedSentence]]:
    """Runs of consecutive sentences of one turn, each of which states a fact or may belong to one."""
    run: list[JudgedSentence] = []
    for one in considered:
        belongs = bool(one.facts) or _is_neighbour(one)
        if run and (one.turn != run[-1].turn or not belongs):
            yield run
            run = []
        if belongs:
            run.append(one)
    if run:
        yield run


def _is_neighbour(one: JudgedSentence) -> bool:
    """Whether a sentence that states no fact may belong to an adjacent one: it is not a question, an order or a secret."""
    if (one.worth or 0) < MIN_NEIGHBOUR_WORTH or one.text.rstrip().endswith("?"):
        return False
    return REDACTED not in one.text and not find_injections(one.text)


def _parts(run: Sequence[JudgedSentence]) -> Iterator[list[JudgedSentence]]:
    """The run, split so that no remark is too long."""
    part: list[JudgedSentence] = []
    words = 0
    for one in run:
        length = len(one.text.split())
        if part and words + length > MAX_REMARK_WORDS:
            yield part
            part, words = [], 0
        part.append(one)
        words += length
    if part:
        yield part


def _join_sentences(part: Sequence[JudgedSentence]) -> ExtractedFact | None:
    """One fact joined from all sentences; None if none states a fact. The likeliest fact determines its kind."""
    facts = [fact for one in part for fact in one.facts]
    if not facts:
        return None
    best = max(facts, key=lambda fact: fact.worth or 0)
    if len(part) == 1 and len(facts) == 1:
        return best
    statement = " ".join(_restate(one) for one in part)
    span = (min(one.span[0] for one in part), max(one.span[1] for one in part))
    return replace(
        best,
        statement=statement,
        span=span,
        tentative=all(fact.tentative for fact in facts),
        critical=any(fact.critical for fact in facts),
        context="",
        is_ruled=any(fact.is_ruled for fact in facts),
    )


def _restate(one: JudgedSentence) -> str:
    if one.facts:
        return " ".join(fact.statement for fact in one.facts)
    return sentence(in_third_person(one.text))


MAX_PROPOSED_PER_SOURCE = 100
"""Candidates per source and run; keeps one transcript from flooding the queue."""
PROPOSED, STORED, DUPLICATE = "proposed", "stored", "duplicate"
UNLIKELY, TRIVIAL, REFUSED = "unlikely", "trivial", "refused"
OUTCOMES = (PROPOSED, STORED, DUPLICATE, UNLIKELY, TRIVIAL, REFUSED)
KEPT_OUTCOMES = (PROPOSED, STORED)
"""Outcomes of facts that became a memory."""
MAX_REPORTED_CHARS = 300
"""How much of a refused sentence a report shows."""
_WRITTEN = frozenset((Outcome.CREATED, Outcome.PENDING, Outcome.CONTRADICTION, Outcome.SUPERSEDED, Outcome.UPDATED))


@dataclass(frozen=True, slots=True)
class HarvestedFact:
    """The outcome for one fact of a transcript."""

    outcome: str
    """One of `OUTCOMES`: proposed (a candidate), stored (active at once), duplicate, unlikely (probably not worth keeping), trivial or refused."""
    statement: str
    """The statement, readable by itself; for a refused sentence, its words with secrets redacted."""
    reason: str
    source: str
    session: str
    key: str
    """The turn that the fact comes from."""
    at: datetime
    memory_id: str = ""
    stored: str = ""
    """The statement of that memory; a duplicate keeps the older words."""


@dataclass(slots=True)
class HarvestReport:
    """What a harvest found, and what it could not read."""

    facts: list[HarvestedFact] = field(default_factory=list)
    sessions: int = 0
    """Sessions that were read."""
    unchanged: int = 0
    """Sessions with nothing new since the last harvest."""
    turns: int = 0
    """The number of user turns that were judged."""
    size: int = 0
    """Bytes that were read."""
    postponed: dict[str, int] = field(default_factory=dict)
    """Sources that reached the limit of a run, each with the number of sessions left for the next run."""
    problems: list[str] = field(default_factory=list)
    """Sources that could not be read, each with the file and the reason."""
    warnings: list[str] = field(default_factory=list)

    def count(self, outcome: str) -> int:
        """The number of facts with this outcome, one of `OUTCOMES`."""
        return sum(fact.outcome == outcome for fact in self.facts)

    def add(self, other: "HarvestReport") -> None:
        """Add the report of another transcript."""
        self.facts += other.facts
        self.sessions += other.sessions
        self.unchanged += other.unchanged
        self.turns += other.turns
        self.size += other.size
        self.problems += other.problems
        self.warnings += (warning for warning in other.warnings if warning not in self.warnings)
        self.postponed = dict(Counter(self.postponed) + Counter(other.postponed))


@dataclass(slots=True)
class StagedTranscript(HarvestReport):
    """The report of one transcript."""

    position: int = 0
    """The position up to which the transcript is staged."""


@dataclass(slots=True)
class Harvester:
    """Stages the facts of transcripts as candidates.

    A harvester serves one run, and its limit per source applies to that run.
    """

    store: Store
    learner: Learner
    clock: Callable[[], datetime]
    observe: Observe
    revise: Revise | None = None
    zone: tzinfo = SYSTEM
    most_proposed: int = MAX_PROPOSED_PER_SOURCE
    dry_run: bool = False
    """Whether to write nothing: neither memories nor the turns they come from."""
    proposed: Counter[str] = field(default_factory=Counter)
    """The number of candidates of this run, by source."""
    rehearsal: DryRun | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.rehearsal = DryRun() if self.dry_run else None

    def stage(
        self, transcript: Transcript, *, source: str = "", staged: Callable[[int], None] | None = None
    ) -> StagedTranscript:
        """Propose the facts of a transcript and report each. Staging the same turns again proposes nothing twice.

        `source` is recorded with the memories; the default is the transcript's own. `staged` is called repeatedly with
        the position up to which everything is staged. Raises `StoreError` if the store cannot be written.
        """
        origin = self._origin(transcript, source or transcript.source)
        report = StagedTranscript(sessions=1, position=transcript.start)
        for window in windows(transcript.turns, transcript.start, self._day_of):
            if not self._stage(window, origin, report):
                report.postponed[origin.source] = 1
                break
            report.turns += window.user_turn_count
            report.position = max(report.position, window.position)
            if staged is not None:
                staged(report.position)
        return report

    def is_full(self, source: str) -> bool:
        """Whether a source has reached the limit of this run."""
        return self.proposed[source] >= self.most_proposed

    def reason_to_distrust(self, source: str, session: str) -> str:
        """Why a session is not read (a person distrusts its source, or the session); "" if it may be read."""
        from engram.review.distrust import distrust_reason

        why = distrust_reason(self.store, source, session)
        return f"{source}: distrusted, not read; {why}" if why else ""

    def _origin(self, transcript: Transcript, source: str) -> FactOrigin:
        directory = transcript.directory
        trusted = self.store.trusted_here(Path(directory)) if directory else frozenset[str]()
        scope = session_scope(directory, transcript.remote, trusted, scope_links(self.store)) or GLOBAL
        return FactOrigin(source, transcript, scope, ledger_scope(self.store, transcript.session) or scope)

    def _stage(self, window: TurnWindow, origin: FactOrigin, report: HarvestReport) -> bool:
        """Propose the facts of a window; False if the source reaches its limit first."""
        considered = consider(
            [_to_message(heard) for heard in window.turns],
            at=local(self._time_of(window.turns[0].turn), self.zone),
            before=[_to_message(heard) for heard in window.before],
        )
        for one in self._facts(considered, window, origin.transcript):
            if one.is_likely and self.is_full(origin.source):
                return False
            turn, fact = window.turns[one.fact.turn].turn, replace(one.fact, turn=0)
            if not one.is_likely:
                reason = f"not sure enough to be worth keeping (probability {one.probability:.2f})"
                report.facts.append(self._unstaged_fact(UNLIKELY, fact.statement, reason, turn, origin))
                continue
            found = self._stage_fact(turn, fact, origin)
            if found is None:
                return False
            self.proposed[origin.source] += found.outcome in KEPT_OUTCOMES
            report.facts.append(found)
        report.facts += self._report_refused(considered, window, origin)
        return True

    def _report_refused(
        self, considered: Sequence[JudgedSentence], window: TurnWindow, origin: FactOrigin
    ) -> Iterator[HarvestedFact]:
        """Report sentences that are never read for facts: those with a secret, and instructions to the reading agent."""
        for one in considered:
            reason = "" if one.facts else _refusal(one.text)
            if reason:
                shown = cut(redact(one.text)[0], MAX_REPORTED_CHARS)
                yield self._unstaged_fact(REFUSED, shown, reason, window.turns[one.turn].turn, origin)

    def _unstaged_fact(
        self, outcome: str, statement: str, reason: str, turn: TranscriptTurn, origin: FactOrigin
    ) -> HarvestedFact:
        session = origin.transcript.session
        return HarvestedFact(outcome, statement, reason, origin.source, session, turn.key, self._time_of(turn))

    def _facts(
        self, considered: Sequence[JudgedSentence], window: TurnWindow, transcript: Transcript
    ) -> Iterator[TranscriptFact]:
        """The facts of a window: remarks for a coding agent, or single facts for a chat."""
        if transcript.harness not in agent_names():
            return plain_facts(considered)
        turns = [heard.turn.content for heard in window.turns]
        return remarks(considered, turns, transcript.project, self._has_slot)

    def _has_slot(self, fact: ExtractedFact) -> bool:
        """Whether a later fact about the same thing replaces this one."""
        described = self.learner.policy.apply_leniently(Memory(id="", statement=fact.statement), typed=False)
        return bool(described.conflict_key or described.critical_slot)

    def _stage_fact(self, turn: TranscriptTurn, fact: ExtractedFact, origin: FactOrigin) -> HarvestedFact | None:
        """The outcome for a fact; None if the source may propose nothing more today."""
        stage = FactStage(self.store, self.learner, self.clock, self.observe, self.revise, self.rehearsal)
        try:
            decision = stage.stage(replace(turn, at=self._time_of(turn)), fact, origin)
        except InvalidInput as error:  # such as a key that contains a secret: this turn cannot be stored
            decision = FactDecision(
                fact=fact.statement, operation="NOOP", applied=False, reason=str(error), outcome=Outcome.REJECTED
            )
        if decision.gate == RATE:
            self.proposed[origin.source] = max(self.proposed[origin.source], self.most_proposed)
            return None
        memory = self.store.get(decision.memory_id) if decision.memory_id else None
        return HarvestedFact(
            _outcome(decision), fact.statement, decision.reason, origin.source, origin.transcript.session, turn.key,
            self._time_of(turn), decision.memory_id, memory.statement if memory is not None else "",
        )  # fmt: skip

    def _time_of(self, turn: TranscriptTurn) -> datetime:
        return turn.at or self.clock()

    def _day_of(self, turn: TranscriptTurn) -> date:
        return local(self._time_of(turn), self.zone).date()


def _to_message(heard: RedactedTurn) -> dict[str, str]:
    return {"role": heard.turn.role, "content": heard.words}


def _refusal(sentence: str) -> str:
    """Why a sentence is never read for facts; "" if it may be."""
    if REDACTED in sentence:
        return "secrets: it contains a secret"
    return "instructions: it is an order to the reader, not a fact" if find_injections(sentence) else ""


def _outcome(decision: FactDecision) -> str:
    if decision.outcome in _WRITTEN:
        return STORED if decision.applied else PROPOSED
    if decision.outcome == Outcome.DUPLICATE:
        return DUPLICATE
    return TRIVIAL if decision.gate == "triviality" else REFUSED
