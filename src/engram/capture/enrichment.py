"""`mem.enrichment`: the calling agent or a model writes cues, in batches, for memories that have none.

The gates judge every cue as written by an agent. Memories that were declined, or whose cues were refused, are not
offered again.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.model.arguments import checked_length, checked_limit
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.lazy import dataclass
from engram.model.memory import LIVE_STATUSES, Memory
from engram.model.records import Job
from engram.review.bulk import BulkDecision, new_bulk, split_ids
from engram.rules.labels import MAX_CUE_CHARS, MAX_CUES
from engram.rules.limits import limit_arguments
from engram.rules.scopes import changeable_scopes
from engram.rules.sources import is_evidence, origin_of
from engram.store.protocol import Filters, Progress, Store
from engram.store.references import Scopes, find_memory, has_foreign
from engram.text.display import cut, quote_text, safe_word
from engram.text.tokens import tokens

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

__all__ = ["ENRICH", "ENRICH_WITH_MODEL", "PER_JOB", "Enrichment", "count_without_cues", "render_batch", "usable_cues"]

ENRICH: Final = "enrich"
"""The operation in the journal."""
ENRICH_WITH_MODEL = "enrich_with_model"
"""The kind of job that asks the model."""
STATE = "enrichment"
AGENT = "agent"
"""The actor in the journal, even if a person passes the cues on, because a model wrote them."""
DECLINED = "declined"
MAX_BATCH = 200
MAX_STATEMENT_CHARS = 400
"""Characters that a batch quotes of a statement."""
MAX_PER_CALL, PER_JOB = 10, 50
"""Memories per call of the model and per job."""
MAX_DECLINED, MAX_BATCHES = 10_000, 20
"""Declined ids and undoable batches to keep; the oldest are dropped."""
Suggest = Callable[[Sequence[Memory]], Mapping[str, Sequence[str]]]
"""Suggests cues by memory id."""


@limit_arguments
@dataclass(slots=True)
class Enrichment:
    """`mem.enrichment`: list the memories that lack cues, and store cues for them."""

    store: Store
    clock: Callable[[], datetime]
    model: "LanguageModel | None" = None

    def count(self, *, scopes: Scopes = None) -> int:
        """The number of current memories that lack cues and were not declined."""
        return count_without_cues(self.store, self.clock(), scopes)

    def next_batch(self, limit: int = 50, *, scopes: Scopes = None) -> list[Memory]:
        """Memories that lack cues, most used first, then newest; `render_batch` formats them for a model."""
        return self.store.listing(
            _filters(self.store, self.clock(), scopes), checked_limit(limit, most=MAX_BATCH), most_used=True
        )

    def apply(self, cues: Mapping[str, Sequence[str]], *, scopes: Scopes = None) -> BulkDecision:
        """Store cues by memory id; an empty list declines the memory.

        `left` has a reason for each memory that got none.

        Existing cues are not changed.
        """
        if not isinstance(cues, Mapping):
            raise InvalidInput(f"cues must be a mapping from ids to lists of phrases, not {type(cues).__name__}")
        return self._apply(new_bulk(self.store), cues, scopes)

    def _apply(self, decision: str, cues: Mapping[str, Sequence[str]], scopes: Scopes) -> BulkDecision:
        done, left, wanted = list[Memory](), dict[str, str](), dict[str, tuple[str, ...]]()
        for ref, given in cues.items():
            try:
                memory = find_memory(self.store, ref, scopes, to_change=True)
                _refuse_enriched(memory)
                if not self.store.own_ids([memory.id]):
                    raise Refused(f"{memory.id} belongs to a team; `engram update` changes it for everyone")
                wanted[memory.id] = _check_cues(given)
            except (InvalidInput, NotFound, Refused) as error:
                left[ref] = str(error)
        declined = [i for i, given in wanted.items() if not given]
        for ids in split_ids([i for i, given in wanted.items() if given]):
            done += self._write({i: wanted[i] for i in ids}, decision, left, scopes)
            declined += [i for i in ids if i in left]
        left |= {i: DECLINED for i in declined if i not in left}
        if done or declined:
            self._record_batch(decision, declined)
        return BulkDecision(decision, ENRICH, tuple(done), left)

    def undo(self, *, actor: str = "manual", scopes: Scopes = None) -> BulkDecision:
        """Remove the cues of the caller's last batch; raises `NotFound` if there is none."""
        from engram.review.undo import undo_bulk

        for batch in reversed(self.store.state(STATE).get("batches", [])):
            parts = self.store.decisions(session=batch)
            ids = [memory_id for part in parts for memory_id in part.ids]
            # A batch of declined memories alone records no owner.
            if scopes is None or (ids and not has_foreign(self.store, ids, scopes)):
                undone = undo_bulk(self.store, batch, self.clock(), actor=actor, scopes=scopes) if ids else None
                self._forget_batch(batch)
                return undone or BulkDecision(batch, "undo")
        raise NotFound("no enrichment to undo")

    def _forget_batch(self, batch: str) -> None:
        def without(state: Mapping[str, Any]) -> dict[str, Any]:
            declined = {i: decision for i, decision in state.get(DECLINED, {}).items() if decision != batch}
            return {DECLINED: declined, "batches": [one for one in state.get("batches", []) if one != batch]}

        self.store.change_state(STATE, without)

    def run(
        self,
        limit: int | None = None,
        *,
        suggest: Suggest | None = None,
        progress: Progress = lambda *_: None,
        scopes: Scopes = None,
    ) -> BulkDecision:
        """Get cues for up to `limit` memories (default: all without cues) from the configured model or `suggest`.

        Memories it skips are declined. Raises `ModelError` if the model does not answer; cues stored until then stay.
        """
        suggest = suggest or self._ask_model
        count, most = self.count(scopes=scopes), checked_length(limit)
        total = count if most is None else min(count, most)
        decision, done, left = new_bulk(self.store), list[Memory](), dict[str, str]()
        progress("Asking for cues", 0, total)
        while (read := len(done) + len(left)) < total:
            batch = self.next_batch(min(MAX_PER_CALL, total - read), scopes=scopes)
            if not batch:
                break
            found = suggest(batch)
            applied = self._apply(decision, usable_cues(batch, found), scopes)
            done += applied.done
            left |= applied.left
            progress("Asking for cues", len(done) + len(left), total)
        return BulkDecision(decision, ENRICH, tuple(done), left)

    def schedule(self) -> Job:
        """Queue a job that asks the model for cues of `PER_JOB` memories and queues the next job until none lacks cues."""
        self._require_model()
        waiting = [job for job in self.store.list_records(Job, statuses=["waiting"]) if job.kind == ENRICH_WITH_MODEL]
        if waiting:
            return waiting[0]
        now = self.clock()
        job = Job(f"{ENRICH_WITH_MODEL}:{self.store.new_token(4)}", ENRICH_WITH_MODEL, now, now)
        self.store.enqueue([job])
        return job

    def _write(
        self, cues: Mapping[str, tuple[str, ...]], decision: str, left: dict[str, str], scopes: Scopes
    ) -> list[Memory]:
        """Store the cues as one journal entry; if one is refused, store the others one by one."""
        try:
            change = Change(
                op=ENRICH,
                actor=AGENT,
                plan=partial(_add_cues, cues),
                session=decision,
                targets=list(cues),
                caller=scopes,
            )
            return execute_change(self.store, self.clock, change)
        except (InvalidInput, NotFound, Refused) as error:
            if len(cues) == 1:
                left |= dict.fromkeys(cues, str(error))
                return []
            return [one for i, given in cues.items() for one in self._write({i: given}, decision, left, scopes)]

    def _record_batch(self, decision: str, declined: Sequence[str]) -> None:
        def add(state: Mapping[str, Any]) -> dict[str, Any]:
            known = {**state.get(DECLINED, {}), **dict.fromkeys(declined, decision)}
            batches = dict.fromkeys([*state.get("batches", []), decision])
            return {DECLINED: dict(list(known.items())[-MAX_DECLINED:]), "batches": list(batches)[-MAX_BATCHES:]}

        self.store.change_state(STATE, add)

    def _require_model(self) -> "LanguageModel":
        if self.model is None:
            raise InvalidInput(
                "no model is configured: `engram config model openai:MODEL`; or let your agent write the cues"
            )
        return self.model

    def _ask_model(self, batch: Sequence[Memory]) -> dict[str, list[str]]:
        from engram.llm.schemas import SuggestedCues

        answer = self._require_model().ask("cues", SuggestedCues, {"statements": render_batch(batch)})
        return {one.id: one.cues for one in answer.memories}


def count_without_cues(store: Store, now: datetime, scopes: Scopes = None) -> int:
    """The number of current memories that lack cues, were not declined, and may be changed by the caller."""
    return store.count(_filters(store, now, scopes))


def _filters(store: Store, now: datetime, scopes: Scopes) -> Filters:
    own = changeable_scopes(scopes)
    return Filters(
        scopes=tuple(own) if own is not None else None,
        statuses=LIVE_STATUSES,
        valid_at=now,
        without_cues=True,
        except_ids=tuple(store.state(STATE).get(DECLINED, ())),
    )


def render_batch(memories: Sequence[Memory]) -> str:
    """One line per memory for a model: id, quoted statement, and the origin of unconfirmed evidence."""
    return "\n".join(_render(memory) for memory in memories)


def _render(memory: Memory) -> str:
    when = f" When: {quote_text(cut(memory.situation, MAX_STATEMENT_CHARS))}." if memory.situation.strip() else ""
    source = f" (from {origin_of(memory)}, unconfirmed)" if is_evidence(memory) else ""
    return f"[{safe_word(memory.id)}] {quote_text(cut(memory.statement, MAX_STATEMENT_CHARS))}{when}{source}"


def _add_cues(cues: Mapping[str, tuple[str, ...]], memories: LockedMemories) -> list[Memory]:
    """The plan that adds cues to memories without any."""
    written = []
    for memory in memories.targets:
        _refuse_enriched(memory)
        written.append(memory.replace(cues=cues[memory.id], updated=memories.now))
        memories.put(written[-1])
    return written


def _refuse_enriched(memory: Memory) -> None:
    """Raise `Refused` if a memory has cues or is not current."""
    if memory.cues:
        raise Refused(f"{memory.id} already has cues; change them with `update`")
    if memory.status not in LIVE_STATUSES:
        raise Refused(f"{memory.id} is {memory.status}; only current memories get cues")


def _check_cues(given: Any) -> tuple[str, ...]:
    """The cleaned cues; raises `InvalidInput` if there are too many, one is too long, or none has a searchable word."""
    from engram.capture.draft import checked_fields

    cues: tuple[str, ...] = checked_fields({"cues": given or ()})["cues"]
    if cues and not any(tokens(cue) for cue in cues):
        raise InvalidInput("the cues have no searchable word")
    return cues


def usable_cues(batch: Sequence[Memory], suggested: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The suggested cues within the limits, for each memory of a batch; empty if the model left the memory out."""
    return {memory.id: _within_limits(suggested.get(memory.id, ())) for memory in batch}


def _within_limits(given: Sequence[str]) -> list[str]:
    """The cues of a model that are within the limits."""
    found = (" ".join(cue.split()) for cue in given)
    return [cue for cue in dict.fromkeys(found) if cue and len(cue) <= MAX_CUE_CHARS and any(tokens(cue))][:MAX_CUES]
