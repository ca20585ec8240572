"""Reading Citus' plans: what `make test-citus` takes for a statement on one shard, and that it looks at the statements sent."""

import os
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import pytest

from engram.store.postgres import connections
from tests.postgres.seeded import PROGRAM, steps
from tests.postgres.shard_plans import more_than_one_shard, recording
from tests.tables import table

pytestmark = pytest.mark.heavy

REMOTE = [[{"Plan": {"Node Type": "Index Scan", "Relation Name": "journal_102008"}}]]


def routed(count: int, provider: str = "Citus Adaptive", **more: Any) -> list[dict[str, Any]]:
    """A plan as Citus shows it, with so many tasks."""
    task = {"Node": "host=worker-1 port=5432 dbname=engram", "Remote Plan": REMOTE}
    shown = "All" if count == 1 else f"One of {count}"
    job = {"Task Count": count, "Tasks Shown": shown, "Tasks": [task]}
    plan = {"Node Type": "Custom Scan", "Custom Plan Provider": provider, "Distributed Query": {**more, "Job": job}}
    return [{"Plan": plan}]


def inserted(rows: dict[str, Any], method: str = "pull to coordinator") -> list[dict[str, Any]]:
    """The plan of an INSERT … SELECT whose rows come to the coordinator first."""
    plan = {
        "Node Type": "Custom Scan",
        "Custom Plan Provider": "Citus INSERT ... SELECT",
        "INSERT/SELECT method": method,
    }
    return [{"Plan": {**plan, "Plans": [rows]}}]


GIVEN = {"Node Type": "Function Scan", "Function Name": "unnest"}
SUBPLAN: dict[str, Any] = {"Subplans": [{"Subplan": {"PlannedStmt": routed(1)}}]}
COMBINED = [{"Plan": {"Node Type": "Aggregate", "Plans": [routed(32)[0]["Plan"]]}}]
LOCAL = [{"Plan": {"Node Type": "Result"}}]
READ: list[tuple[list[dict[str, Any]], str]] = [
    (routed(1), ""),
    (routed(32), "tasks: 32"),
    (routed(0), "tasks: 0"),
    (COMBINED, "tasks: 32"),
    (routed(1, **SUBPLAN), "parts of it are carried out before it"),
    (inserted(GIVEN), ""),
    (inserted(routed(1)[0]["Plan"]), ""),
    (inserted(routed(32)[0]["Plan"]), "tasks: 32"),
    (inserted(GIVEN, "repartition"), "carried out by Citus INSERT ... SELECT"),
    (LOCAL, "carried out by the coordinator itself"),
]


@table(("plan", "words"), READ)
def test_only_a_whole_statement_on_one_shard_passes(plan: list[dict[str, Any]], words: str) -> None:
    assert more_than_one_shard(plan) == words


def test_every_statement_that_is_sent_can_be_explained_with_its_values(shared_database: str, tenant: str) -> None:
    with recording() as recorder:
        steps(shared_database, tenant, rounds=len(PROGRAM))
    sent = [*recorder.sent.values(), *recorder.unsent(tenant)]
    named = set().union(*(statement.tables for statement in sent))
    assert len(recorder.sent) > 100 and set(tables_of(shared_database)) <= named
    with psycopg.connect(shared_database) as connection:
        connections.register_vectors(connection)
        connections.register_texts(connection)
        for statement in sent:
            assert more_than_one_shard(statement.explained(connection)) == "carried out by the coordinator itself"


def tables_of(url: str) -> list[str]:
    """Every table that holds rows of tenants."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'"
            " WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind = 'r'"
        ).fetchall()
    return [name for (name,) in rows]


def test_without_a_cluster_it_says_what_it_needs() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "URL"}
    ended = subprocess.run(
        ["make", "test-citus"], cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode != 0
    for needed in ("URL=postgresql://", "superuser", "Citus 11.1", "pgvector", "citus_add_node", "pg_dist_authinfo"):
        assert needed in ended.stderr
