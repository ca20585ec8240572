"""How Citus says it would carry out a statement: on one shard, as a whole, or in more steps and places than that."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib import resources
from typing import Any

import psycopg
import pytest
from psycopg import sql

from engram.store.sql import named_statements

ROUTED = "Citus Adaptive"
SAMPLES: Mapping[str, Any] = {
    "after": "", "common": 1, "cutoff": datetime(2026, 3, 1, tzinfo=UTC), "day": date(2026, 3, 1), "days": 1, "enough": 1,
    "generation": 1, "id": "x", "ids": ["x"], "keys": ["x"], "kinds": ["memory"], "limit": 1, "lineage": "x", "mark": 0,
    "moment": datetime(2026, 3, 1, tzinfo=UTC), "name": "x", "number": 1, "numbers": [1], "reason": "x", "record": "{}",
    "scope": "x", "scopes": ["x"], "seq": 1, "session": "x", "sessions": ["x"],
    "since": [1], "statuses": ["x"], "summary": "x", "task": "x", "terms": ["x"], "tokens": 1,
    "value": "{}", "writer": "x",
}  # fmt: skip
"""A value for each name of one in a statement that no program of the tests sends."""
_TABLE = re.compile(r"\bengram\.(\w+)")
_VALUE = re.compile(r"%\((\w+)\)[bst]")
_PUT_TOGETHER = re.compile(r"\{\w*\}")
_EXPLAINABLE = re.compile(r"\s*(?:--[^\n]*\n\s*)*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sent:
    """A statement as it was sent, with its values."""

    text: str
    values: Mapping[str, Any]

    @property
    def tables(self) -> set[str]:
        """The tables it names; sequences, too."""
        return set(_TABLE.findall(self.text))

    def explained(self, connection: psycopg.Connection) -> list[dict[str, Any]]:
        """The plan of the server, which carries nothing out."""
        text = f"EXPLAIN (FORMAT JSON, COSTS OFF) {self.text}"
        row = connection.execute(text.encode(), self.values, prepare=False).fetchone()
        assert row is not None
        plan: list[dict[str, Any]] = row[0]
        return plan


@dataclass(slots=True)
class Recorder:
    """Every statement that names one of Engram's tables, once."""

    sent: dict[str, Sent] = field(default_factory=dict)

    def note(self, connection: psycopg.Connection, query: Any, values: Any) -> None:
        """Take a statement down."""
        text = query.as_string(connection) if isinstance(query, sql.Composable) else query
        text = text.decode() if isinstance(text, bytes) else str(text)
        if isinstance(values, Mapping) and _TABLE.search(text) and _EXPLAINABLE.match(text):
            self.sent.setdefault(text, Sent(text, values))

    def unsent(self, tenant: str) -> list[Sent]:
        """The statements of the `.sql` files that nobody sent and that name a tenant, with sample values."""
        files = resources.files("engram.store.postgres.sql").iterdir()
        known = [
            text for file in files if file.name.endswith(".sql") for text in named_statements(file.read_text()).values()
        ]
        wanted = [text for text in known if text not in self.sent and _TABLE.search(text) and "%(tenant)s" in text]
        samples = {**SAMPLES, "tenant": tenant}
        return [
            Sent(text, {name: samples[name] for name in _VALUE.findall(text)})
            for text in wanted
            if not _PUT_TOGETHER.search(text)
        ]


@contextmanager
def recording() -> Iterator[Recorder]:
    """Takes down what any connection of this process sends meanwhile."""
    found, execute = Recorder(), psycopg.Connection.execute

    def noted(self: psycopg.Connection, query: Any, params: Any = None, **options: Any) -> Any:
        found.note(self, query, params)
        return execute(self, query, params, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", noted)
        yield found


PULLED = "Citus INSERT ... SELECT"
"""Of rows that a statement was given: Citus unnests them on the coordinator and sends them to the shards they belong to. All of
them have the one tenant that is a parameter, so that is one shard, though the plan does not say so."""


def more_than_one_shard(plan: Sequence[Mapping[str, Any]]) -> str:
    """What a plan does besides sending the statement, whole, to one shard; "" where that is all."""
    nodes = list(_parts(plan))
    providers = {node["Custom Plan Provider"] for node in nodes if "Custom Plan Provider" in node}
    tasks = [node["Task Count"] for node in nodes if "Task Count" in node]
    pulled = {node.get("INSERT/SELECT method") for node in nodes if node.get("Custom Plan Provider") == PULLED}
    if providers - {PULLED if pulled == {"pull to coordinator"} else "", ROUTED} or not providers:
        return f"carried out by {', '.join(sorted(providers)) or 'the coordinator itself'}"
    if any(node.get("Subplans") for node in nodes):
        return "parts of it are carried out before it"
    return "" if tasks == [1] or (pulled and not tasks) else f"tasks: {', '.join(map(str, tasks)) or 'none'}"


def _parts(plan: Any) -> Iterator[Mapping[str, Any]]:
    """Every object in a plan."""
    if isinstance(plan, Mapping):
        yield plan
    for part in plan.values() if isinstance(plan, Mapping) else plan if isinstance(plan, list) else ():
        yield from _parts(part)
