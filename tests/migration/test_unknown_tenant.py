"""A tenant that came a moment ago is unknown to the planner: looking things up by key must stay that."""

from typing import Any

import psycopg
import pytest

from engram.store.postgres.sql import statement

ASKED: dict[str, dict[str, Any]] = {
    "decisions_behind": {"after": 0, "upto": 9, "limit": 10},
    "images_of": {"seqs": [1, 2]},
    "vectors_of": {"ids": ["ENG-1"], "generation": 1},
    "events_between": {"sessions": ["talk"], "after": [0], "upto": [9]},
}


@pytest.mark.parametrize("name", ASKED)
def test_no_slice_reads_a_whole_table_for_each_row(name: str, shared_database: str, tenant: str) -> None:
    with psycopg.connect(shared_database) as connection:
        connection.execute("SELECT set_config('engram.tenant', %s, true)", (tenant,))
        connection.execute("SET LOCAL enable_seqscan = off")
        rows = connection.execute(
            f"EXPLAIN {statement(name)}".encode(), {"tenant": tenant, **ASKED[name]}, prepare=False
        ).fetchall()
    plan = "\n".join(line for (line,) in rows)
    assert "Index" in plan
    for sign in ("Join Filter", "Hash Join", "Merge Join"):
        assert sign not in plan, plan
