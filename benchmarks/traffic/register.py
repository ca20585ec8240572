"""What happened: how long every operation took, what failed, and each write with all that it may have become."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from engram.bench.figures import percentile

GAVE_UP = "it took longer than"
"""How a hook reports that its time was over."""


@dataclass
class Write:
    """A memory whose storing was acknowledged. Where a change was asked for and never answered, either state is right."""

    id: str
    statements: set[str]
    statuses: set[str]
    positive: int = 0
    unanswered_ratings: int = 0

    def now(self, statement: str, status: str) -> None:
        """A change was acknowledged."""
        self.statements, self.statuses = {statement}, {status}


@dataclass
class Register:
    """Shared by everybody who works; each method may be called from any thread."""

    waits: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)
    writes: dict[str, Write] = field(default_factory=dict)
    unanswered: set[str] = field(default_factory=set)
    """Statements whose storing was asked for and never answered."""
    purged: dict[str, str] = field(default_factory=dict)
    """What was destroyed: id and a word that only it had."""
    sessions: dict[str, bool] = field(default_factory=dict)
    """Sessions that were started, and whether their end was acknowledged."""
    typed: list[str] = field(default_factory=list)
    """What users typed to the agents whose transcripts are harvested."""
    late: list[str] = field(default_factory=list)
    """Hooks that gave up after their time, or took longer than Claude Code waits: a busy machine's, and not the store's."""
    notices: list[str] = field(default_factory=list)
    """What servers said unasked: warnings for their users."""
    hook_failures: set[tuple[str, float]] = field(default_factory=set)
    """Those that were noted, by event and time."""
    kills: int = 0
    disconnections: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def timed(self, operation: str) -> Iterator[None]:
        """Note how long an operation took, unless it raises."""
        begun = time.perf_counter()
        yield
        with self._lock:
            self.waits[operation].append((time.perf_counter() - begun) * 1000)

    def fail(self, operation: str, text: str) -> None:
        """Note an error."""
        with self._lock:
            self.errors.append(f"{operation}: {text}")

    def hook_failed(self, event: str, at: float, message: str) -> None:
        """Note what a hook reported to the doctor, once."""
        with self._lock:
            if (event, at) not in self.hook_failures:
                self.hook_failures.add((event, at))
                (self.late if GAVE_UP in message else self.errors).append(f"hook {event}: {message}")

    def wrote(self, memory_id: str, statement: str, status: str) -> Write:
        """Note a memory that was stored."""
        with self._lock:
            if memory_id in self.writes:
                self.errors.append(f"{memory_id} was given to two memories")
            self.writes[memory_id] = Write(memory_id, {statement}, {status})
            return self.writes[memory_id]

    def interrupted(self, *, killed: bool) -> None:
        """Count a call that was cut off."""
        with self._lock:
            self.kills += killed
            self.disconnections += not killed

    def operations(self) -> dict[str, dict[str, float]]:
        """How often each operation was done, and its waits."""
        return {
            name: {
                "count": len(waits),
                "p50_ms": round(percentile(waits, 0.5), 1),
                "p95_ms": round(percentile(waits, 0.95), 1),
            }
            for name, waits in sorted(self.waits.items())
        }
