"""Engram: a memory for AI agents. Plain text its owner can read; no model, no server, no network needed.

from engram import Engram

with Engram.open() as mem:
    mem.learn("Use tabs, not spaces", type="preference", scope="project:acme")
    print(mem.inject("format the code", scope="project:acme").text)
"""

from engram.model.errors import (
    ChangedMeanwhile,
    EmbedderError,
    EngramError,
    InvalidInput,
    KeyConflict,
    ModelError,
    ModelNonsense,
    ModelUnavailable,
    NotFound,
    NotTrusted,
    Refused,
    SecretRefused,
    SpendLimit,
    StoreBusy,
    StoreClosed,
    StoreCorrupt,
    StoreDenied,
    StoreError,
    StoreReadOnly,
    StoreUnreachable,
    UnknownVersion,
    UnreadableData,
)

TYPE_CHECKING = False
"""As in `typing`, whose import takes as long as a bare Python start."""
if TYPE_CHECKING:
    from typing import Any

    from engram.aio import AsyncEngram as AsyncEngram
    from engram.aio import AsyncSession as AsyncSession
    from engram.capture.buffer import CaptureResult as CaptureResult
    from engram.capture.exchange import Conversation as Conversation
    from engram.capture.harvest import HarvestReport as HarvestReport
    from engram.client import Engram as Engram
    from engram.client.tenant_worker import AllTenantsWorker as AllTenantsWorker
    from engram.gates.policies import MemoryPolicy as MemoryPolicy
    from engram.gates.policies import SlotRule as SlotRule
    from engram.gates.policies import TypeRule as TypeRule
    from engram.model.decision import AddedMemories as AddedMemories
    from engram.model.decision import Decision as Decision
    from engram.model.decision import Outcome as Outcome
    from engram.model.decision import SkippedItem as SkippedItem
    from engram.model.hit import Hit as Hit
    from engram.model.hit import Hits as Hits
    from engram.model.hit import Injection as Injection
    from engram.model.memory import Association as Association
    from engram.model.memory import Memory as Memory
    from engram.model.records import Checkpoint as Checkpoint
    from engram.model.records import Event as Event
    from engram.model.records import Job as Job
    from engram.model.records import Session as Session
    from engram.model.records import TaskRun as Task
    from engram.model.records import TaskRun as TaskRun
    from engram.model.report import Finding as Finding
    from engram.model.report import Report as Report
    from engram.model.types import MemoryType as MemoryType
    from engram.recall.prompt.blocks import RecallTrace
    from engram.recall.recaller import Recall as Recall
    from engram.review.explanation import Explanation
    from engram.sessions.sessions import SessionHandle as SessionHandle
    from engram.store.reports import Purged as Purged
    from engram.text.time.windows import Window as Window
    from engram.upkeep.context_files import ContextUpdate as ContextUpdate

__version__ = "0.1.0"
__all__ = [
    "AddedMemories",
    "AllTenantsWorker",
    "Association",
    "AsyncEngram",
    "AsyncSession",
    "CaptureResult",
    "ChangedMeanwhile",
    "Checkpoint",
    "ContextUpdate",
    "Conversation",
    "Decision",
    "EmbedderError",
    "Engram",
    "EngramError",
    "Event",
    "Explanation",
    "Finding",
    "HarvestReport",
    "Hit",
    "Hits",
    "Injection",
    "InvalidInput",
    "Job",
    "KeyConflict",
    "Memory",
    "MemoryPolicy",
    "MemoryType",
    "ModelError",
    "ModelNonsense",
    "ModelUnavailable",
    "NotFound",
    "NotTrusted",
    "Outcome",
    "Purged",
    "Recall",
    "RecallTrace",
    "Refused",
    "Report",
    "SecretRefused",
    "Session",
    "SessionHandle",
    "SkippedItem",
    "SlotRule",
    "SpendLimit",
    "StoreBusy",
    "StoreClosed",
    "StoreCorrupt",
    "StoreDenied",
    "StoreError",
    "StoreReadOnly",
    "StoreUnreachable",
    "Task",
    "TaskRun",
    "TypeRule",
    "UnknownVersion",
    "UnreadableData",
    "Window",
    "__version__",
]

# Loaded when first used: a hook that needs one small part pays for that part alone.
_HOMES = {
    "AddedMemories": "engram.model.decision",
    "AllTenantsWorker": "engram.client.tenant_worker",
    "Association": "engram.model.memory",
    "AsyncEngram": "engram.aio",
    "AsyncSession": "engram.aio",
    "CaptureResult": "engram.capture.buffer",
    "Checkpoint": "engram.model.records",
    "ContextUpdate": "engram.upkeep.context_files",
    "Conversation": "engram.capture.exchange",
    "Decision": "engram.model.decision",
    "Engram": "engram.client",
    "Event": "engram.model.records",
    "Explanation": "engram.review.explanation",
    "Finding": "engram.model.report",
    "HarvestReport": "engram.capture.harvest",
    "Hit": "engram.model.hit",
    "Hits": "engram.model.hit",
    "Injection": "engram.model.hit",
    "Job": "engram.model.records",
    "Memory": "engram.model.memory",
    "MemoryPolicy": "engram.gates.policies",
    "MemoryType": "engram.model.types",
    "Outcome": "engram.model.decision",
    "Purged": "engram.store.reports",
    "Recall": "engram.recall.recaller",
    "RecallTrace": "engram.recall.prompt.blocks",
    "Report": "engram.model.report",
    "Session": "engram.model.records",
    "SessionHandle": "engram.sessions.sessions",
    "SkippedItem": "engram.model.decision",
    "SlotRule": "engram.gates.policies",
    "Task": "engram.model.records:TaskRun",
    "TaskRun": "engram.model.records",
    "TypeRule": "engram.gates.policies",
    "Window": "engram.text.time.windows",
}


def __getattr__(name: str) -> "Any":
    if name not in _HOMES:
        raise AttributeError(f"module 'engram' has no attribute {name!r}")
    from importlib import import_module

    module, _, other = _HOMES[name].partition(":")
    return getattr(import_module(module), other or name)


def __dir__() -> list[str]:
    return __all__
