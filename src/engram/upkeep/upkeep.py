"""`mem.upkeep`: maintenance of a store, the doctor's report, and the status of a store."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.model.records import Job, Session
from engram.model.report import Finding, Report
from engram.rules import numbers as n
from engram.rules.limits import limit_arguments
from engram.rules.sources import Rank, rank_of
from engram.sessions.sessions import fold_recorded_uses
from engram.settings import Settings, read_settings
from engram.store import hook_files
from engram.store.home import CONFIG, Home, default_cache, default_root, expanded
from engram.store.ledger import sees_ledger
from engram.store.protocol import Filters, Progress, Store
from engram.store.references import Scopes, find_document
from engram.store.reports import Pruned, Purged, SyncReport
from engram.store.states import is_paused, set_pause
from engram.text.display import format_count, notice

NEWEST_SAMPLE = 2000
"""How many of the newest statements are measured, and how many of the last decisions are read."""
MIN_SAMPLE = 20
"""Proposals needed to judge the pass rate, and memories without cues needed to recommend `engram enrich`."""
GATE_DAYS = 30
MAX_SESSIONS_READ = 200
"""How many summaries of recent sessions the doctor reads."""
MAX_JOBS_READ = 10_000
"""Maximum open jobs that the doctor reads."""
_MAX_NAMED = 5
FAR_FACTOR = 2.0
"""A statement is reported if its length is less than half of 25 words, or more than twice 60."""


DIAGNOSE_SECONDS = 10.0
"""How long the doctor checks the memories; reading 100,000 took 8 s on two busy cores."""


def diagnose(store: Store, now: datetime, seconds: float = DIAGNOSE_SECONDS) -> Report:
    """The backend's own findings, then those about ledgers, gates and memories.

    Checking memories takes about `seconds` seconds.
    """
    # Every command of the CLI loads this module, and only the doctor needs these.
    from engram.upkeep.context_files import context_finding
    from engram.upkeep.memory_health import memory_findings

    if not 0 <= seconds < float("inf"):
        raise InvalidInput(f"seconds {seconds!r} must be a number, at least 0")
    own = [Finding.of(check.name, check.ok, check.detail, check.advice) for check in store.examine()]
    more = (
        _ledgers_finding(store),
        _gates(store, now),
        _statements(store),
        _cues(store, now),
        _captures(store, now),
        _jobs(store, now),
        _summaries(store),
    )
    memories = memory_findings(store, now, seconds)
    return Report(
        (
            *own,
            *_unfinished_purges(store),
            *more,
            *_other_tools(store),
            *memories,
            context_finding(store, now),
            _notices(store),
        ),
        dict(store.facts()),
    )


def _unfinished_purges(store: Store) -> list[Finding]:
    from engram.upkeep.purge import unfinished_purges

    return [
        Finding.of(
            "purge", False, f"the purge of {begun.at:%Y-%m-%d %H:%M} has not finished; it may have been interrupted",
            f"{begun.repeat_command}, or `engram doctor --repair`, finishes it",
        )
        for begun in unfinished_purges(store)
    ]  # fmt: skip


def _ledgers_finding(store: Store) -> Finding:
    problems = store.verify_ledgers()
    if problems:
        return Finding.of("ledgers", False, "; ".join(problems[:5]), "restore the ledger from a backup")
    return Finding.of("ledgers", True, "every chain verifies")


def _gates(store: Store, now: datetime) -> Finding:
    """How many unrequested proposals pass the gates.

    Requested memories mostly pass by design, so they are only counted.
    """
    since = now - timedelta(days=GATE_DAYS)
    verdicts = store.verdicts(since)
    passed = sum(1 for _, outcome in verdicts if outcome in ("CREATED", "PENDING", "CONTRADICTION", "SUPERSEDED"))
    asked = format_count(max(0, _count_learned(store, since) - passed), "explicit one was", "explicit ones were")
    if len(verdicts) < MIN_SAMPLE:
        captured = format_count(len(verdicts), "captured proposal")
        message = f"{captured} in {GATE_DAYS} days: too few to judge the pass rate; {asked} stored"
        return Finding.of("gates", True, message)
    rate = passed / len(verdicts)
    low, high = n.PASS_RATE
    detail = f"{rate:.0%} of {len(verdicts)} captured proposals passed (expected: {low:.0%}–{high:.0%}); {asked} stored"
    if rate > high:
        return Finding.of("gates", False, detail, "the gates are too loose for what is captured: see `engram review`")
    if rate < low:
        return Finding.of(
            "gates", False, detail, "the gates are too strict for what is captured, or the capture too eager"
        )
    return Finding.of("gates", True, detail)


def _count_learned(store: Store, since: datetime) -> int:
    """How many of the last decisions stored a proposal of a person, a program or an agent."""
    last = store.decisions(NEWEST_SAMPLE)
    return sum(1 for one in last if one.op == "learn" and one.at >= since and rank_of(one.actor) >= Rank.AGENT)


def _statements(store: Store) -> Finding:
    memories = store.listing(Filters(statuses=("active",)), NEWEST_SAMPLE)
    far = [memory for memory in memories if _is_far(memory)]
    low, high = n.STATEMENT_WORDS
    message = f"{len(far)} of {len(memories)} statements are far outside {low}–{high} words"
    most = len(far) * 2 > len(memories)
    advice = "say what, why and when: 25 to 60 words work best" if most else ""
    return Finding.of("statements", True, message, advice)


def _is_far(memory: Memory) -> bool:
    low, high = n.STATEMENT_WORDS
    words = len(memory.statement.split())
    return words < low / FAR_FACTOR or words > high * FAR_FACTOR


def _cues(store: Store, now: datetime) -> Finding:
    from engram.capture.enrichment import count_without_cues

    count = count_without_cues(store, now)
    fix = "`engram enrich`, or the skill /enrich, lets your agent write them" if count >= MIN_SAMPLE else ""
    return Finding.of("cues", True, format_count(count, "memory lacks cues", "memories lack cues"), fix)


def _captures(store: Store, now: datetime) -> Finding:
    from engram.capture.buffer_state import MAX_IDLE_TIME, oldest_turn, waiting_turns

    oldest = oldest_turn(store)
    message = format_count(
        waiting_turns(store), "captured turn waits for extraction", "captured turns wait for extraction"
    )
    if oldest is None or now - oldest < MAX_IDLE_TIME:
        return Finding.of("captures", True, message)
    fix = "run `engram worker`, or `engram capture --due` from a timer; `engram capture --flush` extracts them now"
    return Finding.of("captures", True, f"{message}, the oldest since {oldest:%Y-%m-%d %H:%M} UTC", fix)


def _jobs(store: Store, now: datetime) -> Finding:
    """Jobs that no worker has taken, and dead jobs."""
    from engram.sessions.jobs import LEASE

    jobs = store.list_records(Job, limit=MAX_JOBS_READ + 1)
    due = [job for job in jobs if _is_due(job, now)]
    failed = sum(1 for job in jobs if job.status == "dead")
    number = (
        f"more than {MAX_JOBS_READ:,} jobs wait"
        if len(jobs) > MAX_JOBS_READ
        else format_count(len(due), "job waits", "jobs wait")
    )
    message = f"{number} for a worker"
    if due:
        kinds = ", ".join(f"{kind} {count:,}" for kind, count in Counter(job.kind for job in due).most_common())
        message += f", the oldest since {min(job.created for job in due):%Y-%m-%d %H:%M} UTC ({kinds})"
    fixes = []
    if any(now - job.run_after > LEASE for job in due):
        fixes.append("`engram worker --once` runs them, `engram worker` keeps running")
    if failed:
        message += f"; {format_count(failed, 'job was', 'jobs were')} given up"
        fixes.append("`engram worker --list` says why, `engram worker --retry JOB` tries again")
    return Finding.of("jobs", True, message, "; ".join(fixes))


def _is_due(job: Job, now: datetime) -> bool:
    """Whether a worker should have taken a job: it is due, and no live worker has leased it."""
    is_free = job.status == "waiting" or (job.leased_until is not None and job.leased_until <= now)
    return job.status != "dead" and is_free and job.run_after <= now


def _summaries(store: Store) -> Finding:
    from engram.sessions.context import reason_to_withhold

    found = {
        session.id: why
        for session in store.list_records(Session, limit=MAX_SESSIONS_READ)
        if (why := reason_to_withhold(store, session))
    }
    if not found:
        return Finding.of("summaries", True, "none of the last sessions' is held back")
    reasons = "; ".join(f"{name} {why}" for name, why in list(found.items())[:_MAX_NAMED])
    more = "; …" if len(found) > _MAX_NAMED else ""
    told = f"{format_count(len(found), 'summary is', 'summaries are')} not injected: {notice(reasons)}{more}"
    return Finding.of("summaries", True, told, f"read it: `engram session show {next(iter(found))}`")


def _other_tools(store: Store) -> list[Finding]:
    """Advice about memories that another tool left in the store's own directory; they are never touched."""
    from engram.dialects.feedback_toml import is_feedback_toml

    home = Path(str(store.facts().get("store", "")))
    if not home.is_dir() or not is_feedback_toml(home):
        return []
    told = "memories of another tool, in TOML, are next to this store; they are left alone"
    return [
        Finding.of(
            "other tools", True, told, f"`engram import --format toml {home}` imports them; then rename their folder"
        )
    ]


def _notices(store: Store) -> Finding:
    if not store.warnings:
        return Finding.of("notices", True, "none")
    return Finding.of("notices", True, "; ".join(dict.fromkeys(store.warnings)))


def status(store: Store, scopes: Scopes = None) -> dict[str, Any]:
    """The store's contents, the last injection, and the numbers of memories to review and of captured turns to read.

    For a caller with scopes, everything is limited to these.
    """
    from engram.capture.buffer_state import waiting_turns

    facts = dict(store.facts())
    seen = None if scopes is None else tuple(scopes)
    if seen is not None:
        counts = {state: store.count(Filters(statuses=(state,), scopes=seen)) for state in facts["statuses"]}
        facts = {name: facts[name] for name in _OF_ANY_SCOPE}
        facts["statuses"] = {state: count for state, count in counts.items() if count}
    waiting = store.count(Filters(statuses=("candidate",), scopes=seen))
    turns = waiting_turns(store, seen)
    return {
        **facts,
        "last_injection": _last_injection(store, seen),
        "waiting_for_review": waiting,
        "waiting_turns": turns,
    }


_OF_ANY_SCOPE = ("store", "embedder")
"""Facts about a store that reveal nothing about its contents."""


def _last_injection(store: Store, scopes: Scopes) -> dict[str, Any] | None:
    """The memories that were injected last; None if the caller sees none of them."""
    use = store.last_use("injected")
    found = [memory for one in (use.ids if use is not None else ()) if (memory := store.get(one, scopes)) is not None]
    if use is None or (scopes is not None and not found):
        return None
    session = use.session if scopes is None or sees_ledger(store, use.session, scopes) else ""
    memories = [{"id": memory.id, "statement": memory.statement} for memory in found]
    return {"at": use.at.isoformat(), "session": session, "memories": memories}


MEMORIES_PER_FOLD = 500
"""Memories whose uses are folded in by one decision, which limits how long other writers wait."""


@limit_arguments
@dataclass(slots=True)
class Upkeep:
    """Index, backup, pruning, pause, and the doctor."""

    store: Store
    clock: Callable[[], datetime]
    settings: Settings

    def sync(self) -> SyncReport:
        """Pick up all changes made to the files by hand."""
        return self.store.sync()

    def rebuild_index(self, progress: Progress | None = None) -> SyncReport:
        """Rebuild the index from the files."""
        return self.store.rebuild(progress or (lambda *_: None))

    def reembed(self, progress: Progress | None = None) -> int:
        """Recompute all vectors with the configured embedder."""
        return self.store.reembed(progress or (lambda *_: None))

    def purge(self, ids: Sequence[str], *, actor: str = "human", scopes: Scopes = None) -> Purged:
        """Destroy memories and events, and prove it. A fact's newest remaining version becomes current again.

        A memory's text is removed wherever it occurs, including the events that contain it, but not from other people's
        records. With an event, the facts derived from it alone are destroyed; independent events and memories with the
        same words stay, and `remaining` names them. Raises `Refused`, and destroys nothing, if an agent would destroy
        something that a person stated or rejected. `scopes`, from `mem.scopes_for`, are those of a named owner, who can
        destroy only their own records.
        """
        from engram.review.lineage import refuse_foreign_versions
        from engram.upkeep.purge import Purger, as_owner_sees

        if scopes is not None:
            ids = [find_document(self.store, record_id, scopes) for record_id in ids]
            versions = [one.id for memory_id in ids for one in self._versions(memory_id)]
            refuse_foreign_versions(self.store, ", ".join(ids), versions, scopes)
        return as_owner_sees(Purger(self.store, self.clock).purge(ids, actor=actor), scopes)

    def _versions(self, memory_id: str) -> Sequence[Memory]:
        memory = self.store.get(memory_id)
        return self.store.lineage(memory.lineage) if memory is not None and memory.lineage else ()

    def backup(self, target: str | Path) -> dict[str, int]:
        """Write the whole store to one archive."""
        return self.store.backup(Path(target).absolute(), self.clock())

    def fold(self) -> list[str]:
        """Fold in all pending uses, such as those of sessions that never ended."""
        used = self.store.used_since(0)
        slices = (used[start : start + MEMORIES_PER_FOLD] for start in range(0, len(used), MEMORIES_PER_FOLD))
        return [memory_id for ids in slices for memory_id in fold_recorded_uses(self.store, ids, self.clock())]

    def prune(self, *, dry_run: bool = True) -> Pruned:
        """Delete history older than the configured retention; a dry run only reports what would be deleted."""
        settings = self.settings
        if not dry_run and settings.keep_usage_days:
            self.fold()
        return self.store.prune(
            self.clock(),
            settings.keep_journal_days,
            settings.keep_usage_days,
            settings.keep_ledger_days,
            dry_run=dry_run,
        )

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""
        return is_paused(self.store)

    def pause(self) -> None:
        """Stop learning and injecting until `resume`; reading and explicit commands of the owner still work."""
        set_pause(self.store, True)

    def resume(self) -> None:
        """End a pause."""
        set_pause(self.store, False)

    def doctor(self, *, seconds: float = DIAGNOSE_SECONDS) -> Report:
        """Report what is healthy, what is not, and what to do about it; checks the memories for about `seconds` seconds."""
        return diagnose(self.store, self.clock(), seconds)

    def status(self, *, scopes: Scopes = None) -> dict[str, Any]:
        """The contents of the store or of these scopes, the last injection, how many memories lack cues, and whether it is paused."""
        from engram.capture.enrichment import count_without_cues

        without_cues = count_without_cues(self.store, self.clock(), scopes)
        return {**status(self.store, scopes), "without_cues": without_cues, "paused": self.paused}


MANY_WAITING_SESSIONS = 50
"""This many waiting sessions mean that nothing harvests them."""

_HARVEST_ADVICE = "run `engram harvest`, or `engram worker`"


def hook_findings(home: Home | None) -> list[Finding]:
    """The finding about hooks; none if no hook has ever run. On a server, the hooks' files are in this user's home."""
    root = home.root if home is not None else expanded(default_root(), "the home").absolute()
    cache = home.cache if home is not None else expanded(default_cache(), "the cache").absolute()
    return _hook_findings(root, cache, is_server=home is None)


def _hook_findings(root: Path, cache: Path, *, is_server: bool) -> list[Finding]:
    failed = hook_files.read_failures(*hook_files.failure_logs(root, cache))
    waiting = hook_files.count_waiting(root)
    if any(not one.recovered for one in failed):
        told = "; ".join(map(_describe_failure, failed))
        return [Finding.of("hooks", False, told, "when the cause is mended, the next run of the hook clears this")]
    if not failed and not waiting and not (root / "state" / "hooks").is_dir():
        return []
    parts = [*map(_describe_failure, failed)] or ["no failures"]
    parts.append(f"{format_count(waiting, 'session waits', 'sessions wait')} to be harvested")
    advice = _HARVEST_ADVICE if waiting >= MANY_WAITING_SESSIONS else ""
    if is_server and read_settings(root / CONFIG)[0].prompt_recall:
        parts.append("no memories are added to prompts, since these are compared with local stores only")
        advice = advice or "`engram config hooks.prompt_recall false` if you do not expect that"
    return [Finding.of("hooks", True, "; ".join(parts), advice)]


def _describe_failure(one: hook_files.HookFailure) -> str:
    at = datetime.fromtimestamp(one.at, UTC)
    since = ", and works again" if one.recovered else ""
    return notice(
        f"{one.event} failed {format_count(one.count, 'time')}, last {at:%Y-%m-%d %H:%M} UTC{since}: {one.message}"
    )
