"""Records the results: the time of every operation, the failures, and each write with its possible states."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engram.bench.figures import percentile

GAVE_UP = "it took longer than"
"""A hook's report that its time ran out."""


@dataclass
class Write:
    """An acknowledged memory. If a requested change was never answered, both states are valid."""

    id: str
    statements: set[str]
    statuses: set[str]
    positive: int = 0
    unanswered_ratings: int = 0

    def now(self, statement: str, status: str) -> None:
        """Record an acknowledged change."""
        self.statements, self.statuses = {statement}, {status}


@dataclass
class Register:
    """Shared by all participants; each method may be called from any thread."""

    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    writes: dict[str, Write] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    """Statements whose storing was requested and never answered."""
    purged: dict[str, str] = field(default_factory=dict)
    """Purged records: the id and a unique word."""
    sessions: dict[str, bool] = field(default_factory=dict)
    """Started sessions, and whether their end was acknowledged."""
    typed: list[str] = field(default_factory=list)
    """Users' inputs to the agents whose transcripts are harvested."""
    late: list[str] = field(default_factory=list)
    """Hooks that ran out of time, or took longer than Claude Code waits. A busy machine causes this, not the store."""
    notices: list[str] = field(default_factory=list)
    """Unrequested server messages: warnings for their users."""
    hook_failures: set[tuple[str, float]] = field(default_factory=set)
    """The recorded ones, by event and time."""
    kills: int = 0
    disconnections: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        """Record how long an operation took, unless it raises."""
        begun = time.perf_counter()
        yield
        with self._lock:
            self.waits[operation].append((time.perf_counter() - begun) * 1000)

    def fail(self, operation: str, text: str) -> None:
        """Record an error."""
        with self._lock:
            self.errors.append(f"{operation}: {text}")

    def hook_failed(self, event: str, at: float, message: str) -> None:
        """Record a hook's report to the doctor, once."""
        with self._lock:
            if (event, at) not in self.hook_failures:
                self.hook_failures.add((event, at))
                (self.late if GAVE_UP in message else self.errors).append(f"hook {event}: {message}")

    def wrote(self, memory_id: str, statement: str, status: str) -> Write:
        """Record a stored memory."""
        with self._lock:
            if memory_id in self.writes:
                self.errors.append(f"{memory_id} was given to two memories")
            self.writes[memory_id] = Write(memory_id, {statement}, {status})
            return self.writes[memory_id]

    def interrupted(self, *, killed: bool) -> None:
        """Count an interrupted call."""
        with self._lock:
            self.kills += killed
            self.disconnections += not killed

    def operations(self) -> dict[str, dict[str, float]]:
        """The number of runs of each operation, and its waits."""
        return {
            name: {
                "count": len(waits),
                "p50_ms": round(percentile(waits, 0.5), 1),
                "p95_ms": round(percentile(waits, 0.95), 1),
            }
            for name, waits in sorted(self.waits.items())
        }
