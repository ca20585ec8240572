"""Engram: a memory for AI agents. Plain text its owner can read; no model, no server, no network needed.

from engram import Engram

with Engram.open() as mem:
    mem.learn("Use tabs, not spaces", type="preference", scope="project:acme")
    print(mem.inject("format the code", scope="project:acme").text)
"""

from typing import TYPE_CHECKING, Any

from engram.model.errors import EngramError

if TYPE_CHECKING:
    from engram.aio import AsyncEngram
    from engram.client import Engram
    from engram.client.all_tenants import AllTenantsWorker
    from engram.gates.policies import MemoryPolicy, SlotRule, TypeRule
    from engram.model.decision import Decision, Outcome
    from engram.model.event import Event, Session
    from engram.model.hit import Hit, Hits, Injection
    from engram.model.memory import Memory
    from engram.model.task import TaskRun
    from engram.recall.recaller import Recall

__version__ = "0.1.0"
__all__ = [
    "AllTenantsWorker",
    "AsyncEngram",
    "Decision",
    "Engram",
    "EngramError",
    "Event",
    "Hit",
    "Hits",
    "Injection",
    "Memory",
    "MemoryPolicy",
    "Outcome",
    "Recall",
    "Session",
    "SlotRule",
    "TaskRun",
    "TypeRule",
    "__version__",
]

# Loaded when first asked for: a hook that needs one small part pays for that part alone.
_HOMES = {
    "AllTenantsWorker": "engram.client.all_tenants",
    "AsyncEngram": "engram.aio",
    "Decision": "engram.model.decision",
    "Engram": "engram.client",
    "Event": "engram.model.event",
    "Hit": "engram.model.hit",
    "Hits": "engram.model.hit",
    "Injection": "engram.model.hit",
    "Memory": "engram.model.memory",
    "MemoryPolicy": "engram.gates.policies",
    "Outcome": "engram.model.decision",
    "Recall": "engram.recall.recaller",
    "Session": "engram.model.event",
    "SlotRule": "engram.gates.policies",
    "TaskRun": "engram.model.task",
    "TypeRule": "engram.gates.policies",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'engram' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
