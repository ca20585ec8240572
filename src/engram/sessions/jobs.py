"""Background jobs on the ledgers: leased, run at least once, retried with growing delays, and finally marked as dead."""

import random
import threading
import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from engram.model.arguments import checked_length, checked_limit
from engram.model.errors import InvalidInput, StoreBusy, StoreUnreachable
from engram.model.lazy import dataclass, field, replace
from engram.model.records import JOB_STATES, Job
from engram.rules.limits import limit_arguments
from engram.store.protocol import Store
from engram.store.references import find_dead_job

LEASE = timedelta(minutes=5)
"""After this time a worker is considered gone, and another may take its job."""
MAX_JOB_ATTEMPTS = 6
FIRST_WAIT, MAX_RETRY_WAIT = timedelta(seconds=10), timedelta(hours=1)
_ERROR_CHARS = 300
MAX_JOBS_AT_ONCE = 1_000_000
TRANSIENT_ERRORS = (StoreBusy, StoreUnreachable)
"""Errors that may go away without intervention."""
MAX_TRANSIENT_FAILURES = 20
"""How many consecutive failures a worker waits out, about 15 minutes in all."""
JITTER = 0.5
"""The random share by which a pause is lengthened or shortened."""
T = TypeVar("T")
Handler = Callable[[Job], None]
"""Runs one job. It must be idempotent; if it raises, the job is retried later."""


@dataclass(slots=True)
class WorkResult:
    """The result of a worker's run: jobs done, retried and dead, with the errors of the last two."""

    done: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)
    dead: list[str] = field(default_factory=list)
    errors: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.done or self.retried or self.dead)

    def add(self, more: "WorkResult") -> None:
        """Add the results of another run."""
        self.done += more.done
        self.retried += more.retried
        self.dead += more.dead
        self.errors |= more.errors


@limit_arguments
@dataclass(slots=True)
class Jobs:
    """`mem.jobs`: list the waiting jobs, and run them."""

    store: Store
    clock: Callable[[], datetime]
    handlers: Mapping[str, Handler]
    owner: str

    def list(
        self, status: str | None = None, limit: int | None = 100, *, scopes: Collection[str] | None = None
    ) -> "list[Job]":
        """Jobs that are not done (waiting, leased or dead), oldest first: all, or those about ledgers of these scopes."""
        if status is not None and status not in JOB_STATES:
            raise InvalidInput(f"Unknown job status {status!r}; choose {', '.join(JOB_STATES)}")
        return self.store.list_records(
            Job, statuses=[status] if status else None, limit=checked_length(limit), scopes=scopes
        )

    def retry(self, job_id: str, *, scopes: Collection[str] | None = None) -> Job:
        """Make a dead job wait again, with its attempts reset."""
        job = find_dead_job(self.store, job_id, scopes)
        again = replace(job, status="waiting", attempts=0, run_after=self.clock(), error="", owner="")
        self.store.settle_job(job, again)
        return again

    def work(self, limit: int = 100) -> WorkResult:
        """Run the jobs that are due now, up to `limit`, one after the other."""
        worked = WorkResult()
        for _ in range(checked_limit(limit, most=MAX_JOBS_AT_ONCE)):
            now = self.clock()
            taken = self.store.lease_jobs(self.owner, now, now + LEASE, kinds=tuple(self.handlers))
            if not taken:
                break
            self._do(taken[0], worked)
        return worked

    def run(
        self, stop: threading.Event, idle_seconds: float = 1.0, report: Callable[[WorkResult], None] | None = None
    ) -> None:
        """Work until `stop` is set, and pass each result to `report`.

        If the store is busy or unreachable, the worker retries for about 15 minutes.
        """
        while not stop.is_set():
            worked = retry_transient(lambda: self.work(1), stop)
            if worked and report is not None:
                report(worked)
            if not worked:
                stop.wait(add_jitter(idle_seconds))

    def _do(self, job: Job, worked: WorkResult) -> None:
        if job.attempts > MAX_JOB_ATTEMPTS:
            # Its workers died each time without an error: the job itself may be the cause.
            self._give_up(job, job.error or f"its worker died {job.attempts - 1} times", worked)
            return
        try:
            self.handlers[job.kind](job)
        except Exception as error:
            self._put_off(job, error, worked)
            return
        self.store.settle_job(job, None)
        worked.done.append(job.id)

    def _put_off(self, job: Job, error: Exception, worked: WorkResult) -> None:
        message = _message(error)
        if job.attempts >= MAX_JOB_ATTEMPTS:
            self._give_up(job, message, worked)
            return
        later = self.clock() + wait_after(job.attempts)
        self.store.settle_job(job, replace(job, status="waiting", run_after=later, leased_until=None, error=message))
        worked.retried.append(job.id)
        worked.errors[job.id] = message

    def _give_up(self, job: Job, message: str, worked: WorkResult) -> None:
        self.store.settle_job(job, replace(job, status="dead", leased_until=None, error=message))
        worked.dead.append(job.id)
        worked.errors[job.id] = message


def retry_transient(work: Callable[[], T], stop: threading.Event) -> T | None:
    """The result of `work`, retried with growing pauses while the store is busy or unreachable.

    None once `stop` is set.
    """
    for troubles in range(1, MAX_TRANSIENT_FAILURES + 1):
        try:
            return work()
        except TRANSIENT_ERRORS:
            if stop.wait(add_jitter(pause_after(troubles))):
                return None
    return work()


def pause_after(troubles: int) -> float:
    """Seconds to wait after this many consecutive failures: doubling, up to a minute."""
    return min(60.0, 2.0 ** (troubles - 1))


def add_jitter(seconds: float) -> float:
    """Vary a pause at random, so that workers that began to wait together do not return together."""
    return seconds * random.uniform(1 - JITTER, 1 + JITTER)


def wait_after(attempts: int) -> timedelta:
    """How long a job waits after this many attempts: doubling, up to an hour."""
    doublings = min(max(0, attempts - 1), 20)
    return min(FIRST_WAIT * (1 << doublings), MAX_RETRY_WAIT)


LOOK_SECONDS = 1.0
"""How long a list of tenants with work is used before it is fetched again, at the earliest after each tenant had its turn."""
DRY_SECONDS = 1.0
"""How long to skip a tenant that was listed as having work but had none because another worker was faster."""
PAUSED_SECONDS = 5.0
"""How long to skip a paused tenant."""
BUSY_SECONDS = 1.0
FAILED_SECONDS, MAX_SKIP_SECONDS = 10.0, 600.0
"""How long to skip a tenant whose store failed: doubling, up to ten minutes."""
_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class WorkerTurn:
    """The result of a tenant's turn: the work done, nothing if another worker was faster, or the store's error."""

    tenant: str
    worked: WorkResult = field(default_factory=WorkResult)
    failed: str = ""


@dataclass(slots=True)
class _Rest:
    """How long a tenant is skipped, and how often in a row it failed."""

    until: float
    failures: int = 0


class RoundRobin:
    """Gives turns to tenants.

    `due` lists the tenants that have work; `work` runs one job of a tenant, and returns None if the tenant is paused.
    Each round has a random order, so that workers started together do not visit the tenants in step.
    """

    def __init__(
        self,
        due: Callable[[], Collection[str]],
        work: Callable[[str], WorkResult | None],
        *,
        now: Callable[[], float] = time.monotonic,
        order: random.Random | None = None,
    ) -> None:
        self._due, self._work, self._now = due, work, now
        self._order = order or random.Random()
        self._busy: set[str] = set()  # Tenants that had work at the last check and are not skipped.
        self._round: list[str] = []
        self._look_at = float("-inf")
        self._resting: dict[str, _Rest] = {}

    def next(self) -> WorkerTurn | None:
        """The next tenant's turn; None if there is nothing to do for now.

        Raises `StoreUnreachable` if the server cannot be reached. Any other error concerns one tenant: the turn reports
        it, and the tenant is skipped for a while.
        """
        if not self._round:
            self._begin_round()
        return self._turn(self._round.pop()) if self._round else None

    def _begin_round(self) -> None:
        now = self._now()
        if not self._busy or now >= self._look_at:
            self._busy.update(tenant for tenant in self._due() if not self._is_resting(tenant, now))
            self._look_at = self._now() + LOOK_SECONDS
            self._forget(now)
        self._round = sorted(self._busy)
        self._order.shuffle(self._round)

    def _turn(self, tenant: str) -> WorkerTurn:
        try:
            worked = self._work(tenant)
        except StoreUnreachable:
            self._round.clear()  # Probably the whole server has a problem; the next round will show.
            self._rest(tenant, BUSY_SECONDS, failed=True)
            raise
        except StoreBusy as error:
            self._rest(tenant, BUSY_SECONDS, failed=True)
            return WorkerTurn(tenant, failed=_message(error))
        except Exception as error:  # One tenant's broken store must not stop the work for all others.
            self._rest(tenant, FAILED_SECONDS, failed=True)
            return WorkerTurn(tenant, failed=_message(error))
        if worked:
            self._resting.pop(tenant, None)
        else:
            self._rest(tenant, PAUSED_SECONDS if worked is None else DRY_SECONDS)
        return WorkerTurn(tenant, worked or WorkResult())

    def _rest(self, tenant: str, seconds: float, *, failed: bool = False) -> None:
        known = self._resting.get(tenant)
        failures = (known.failures if known else 0) + 1 if failed else 0
        longer = min(seconds * 2.0 ** min(max(0, failures - 1), _DOUBLINGS), MAX_SKIP_SECONDS)
        self._resting[tenant] = _Rest(self._now() + add_jitter(longer), failures)
        self._busy.discard(tenant)

    def _is_resting(self, tenant: str, now: float) -> bool:
        known = self._resting.get(tenant)
        return known is not None and now < known.until

    def _forget(self, now: float) -> None:
        """Forget tenants that have had no work for a long time."""
        old = [tenant for tenant, rest in self._resting.items() if now > rest.until + MAX_SKIP_SECONDS]
        for tenant in old:
            del self._resting[tenant]


def _message(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARS]
