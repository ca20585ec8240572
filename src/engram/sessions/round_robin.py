"""Whose turn it is: one job for each tenant that has work, round after round, so that no queue is in the way of another."""

import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from engram.model.errors import StoreBusy, StoreUnreachable
from engram.sessions.jobs import Worked, jittered

LOOK_SECONDS = 1.0
"""How long a list of tenants with work is used before it is asked for again; all of them have their turn before that."""
DRY_SECONDS = 1.0
"""How long a tenant is passed over that was said to have work and had none: another worker was faster."""
PAUSED_SECONDS = 5.0
"""How long a paused tenant is passed over before it is looked at again."""
BUSY_SECONDS = 1.0
FAILED_SECONDS, LONGEST_SECONDS = 10.0, 600.0
"""How long a tenant is passed over that could not be worked for: twice as long each time, up to ten minutes."""
_DOUBLINGS = 10
_ERROR_CHARS = 300


@dataclass(frozen=True, slots=True)
class Turn:
    """A tenant's turn: what was done, nothing where another worker was faster, or why its store could not be worked on."""

    tenant: str
    worked: Worked = field(default_factory=Worked)
    failed: str = ""


@dataclass(slots=True)
class _Rest:
    """A tenant that is passed over, until when, and how often in a row it failed."""

    until: float
    failures: int = 0


class RoundRobin:
    """Gives turns to tenants.

    `due` names those that have work, `work` does one job of one of them; None means that it is paused. A round takes all that
    are known in an order of its own, so that workers started together do not go from tenant to tenant together.
    """

    def __init__(
        self,
        due: Callable[[], Collection[str]],
        work: Callable[[str], Worked | None],
        *,
        now: Callable[[], float] = time.monotonic,
        order: random.Random | None = None,
    ) -> None:
        self._due, self._work, self._now = due, work, now
        self._order = order or random.Random()
        self._busy: set[str] = set()  # those that had work when they were asked last, and are not passed over
        self._round: list[str] = []
        self._look_at = float("-inf")
        self._resting: dict[str, _Rest] = {}

    def next(self) -> Turn | None:
        """The next tenant's turn; None where nothing is to be done for now.

        Raises `StoreUnreachable` when the server is away. Whatever else goes wrong concerns one tenant: the turn says what,
        and the tenant is passed over for a while.
        """
        if not self._round:
            self._begin_round()
        return self._turn(self._round.pop()) if self._round else None

    def _begin_round(self) -> None:
        now = self._now()
        if not self._busy or now >= self._look_at:
            self._busy.update(tenant for tenant in self._due() if not self._rests(tenant, now))
            self._look_at = self._now() + LOOK_SECONDS
            self._forget(now)
        self._round = sorted(self._busy)
        self._order.shuffle(self._round)

    def _turn(self, tenant: str) -> Turn:
        try:
            worked = self._work(tenant)
        except StoreUnreachable:
            self._round.clear()  # it is everyone's trouble as far as anybody knows: the next look tells
            self._rest(tenant, BUSY_SECONDS, failed=True)
            raise
        except StoreBusy as error:
            self._rest(tenant, BUSY_SECONDS, failed=True)
            return Turn(tenant, failed=_said(error))
        except Exception as error:  # a tenant's broken store must not end the work for all others
            self._rest(tenant, FAILED_SECONDS, failed=True)
            return Turn(tenant, failed=_said(error))
        if worked:
            self._resting.pop(tenant, None)
        else:
            self._rest(tenant, PAUSED_SECONDS if worked is None else DRY_SECONDS)
        return Turn(tenant, worked or Worked())

    def _rest(self, tenant: str, seconds: float, *, failed: bool = False) -> None:
        known = self._resting.get(tenant)
        failures = (known.failures if known else 0) + 1 if failed else 0
        longer = min(seconds * 2.0 ** min(max(0, failures - 1), _DOUBLINGS), LONGEST_SECONDS)
        self._resting[tenant] = _Rest(self._now() + jittered(longer), failures)
        self._busy.discard(tenant)

    def _rests(self, tenant: str, now: float) -> bool:
        known = self._resting.get(tenant)
        return known is not None and now < known.until

    def _forget(self, now: float) -> None:
        """Let go of tenants nobody has heard of for long."""
        old = [tenant for tenant, rest in self._resting.items() if now > rest.until + LONGEST_SECONDS]
        for tenant in old:
            del self._resting[tenant]


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_ERROR_CHARS]
