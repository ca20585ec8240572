"""`benchmarks.server` on a real server, small: every figure is there, the crowd's writes are counted, nothing is left."""

from urllib.parse import urlsplit

import psycopg
import pytest

from benchmarks.server import Plan, measure, text
from benchmarks.tenants import is_empty
from engram.client import Engram
from engram.model.errors import InvalidInput
from engram.store.postgres import tenants
from tests.postgres.server import Server, at_database

pytestmark = pytest.mark.heavy


def _plan(server: Server, url: str) -> Plan:
    admin = at_database(server.admin_url, urlsplit(url).path[1:])
    return Plan(url, admin, count=200, tenants=3, rows=400, clients=2, seconds=1, rounds=3)


def test_every_figure_is_measured_and_nothing_is_left(postgres_server: Server, database: str) -> None:
    with Engram.open(url=database, tenant="someone"):
        pass
    report = measure(_plan(postgres_server, database))
    figures = {figure["name"]: figure for figure in report["figures"]}
    assert figures["search, hybrid ÷ embedded"]["ratio"] > 0
    assert figures["search, hybrid ÷ a tenant of a tenth"]["ratio"] > 0
    assert figures["learn, durable, all gates ÷ search"]["ratio"] > 0
    assert figures["one scope of 1 %, exact: recall@60"]["value"] == 1.0
    assert figures["one scope of 1 %, HNSW, iterative scan: recall@60"]["value"] >= 0.98
    crowd = report["crowd"]
    assert (crowd["errors"], crowd["lost"], crowd["doubled"], crowd["deadlocks"]) == ([], 0, 0, 0)
    with psycopg.connect(at_database(postgres_server.admin_url, urlsplit(database).path[1:])) as admin:
        left = admin.execute("SELECT count(*) FROM engram.documents").fetchone()
        indexes = admin.execute("SELECT count(*) FROM pg_indexes WHERE indexname LIKE 'near_%'").fetchone()
    assert (left, indexes) == ((0,), (0,))


def test_tenants_that_hold_something_are_not_touched(postgres_server: Server, database: str) -> None:
    with Engram.open(url=database, tenant="bench-big") as mem:
        mem.add("The staging database listens on port 5433")
    with pytest.raises(InvalidInput, match="bench-big"):
        measure(_plan(postgres_server, database))
    assert not is_empty(database, "bench-big")


def test_removing_a_tenant_leaves_the_others_alone(shared_database: str, tenant: str) -> None:
    for name in (tenant, f"{tenant}-other"):
        with Engram.open(url=shared_database, tenant=name) as mem, mem.session("work") as session:
            mem.add("The staging database listens on port 5433")
            session.observe("user", "which port?")
    tenants.remove(shared_database, tenant)
    assert is_empty(shared_database, tenant)
    with Engram.open(url=shared_database, tenant=f"{tenant}-other") as mem:
        assert [hit.text for hit in mem.search("staging port", kinds=("memory",))] == [
            "The staging database listens on port 5433"
        ]
        assert mem.store.verify_ledgers() == []


def test_figures_with_and_without_percentiles_are_printed() -> None:
    figures = [
        {
            "name": "search ÷ embedded",
            "value": 80.0,
            "unit": "ms",
            "p95": 90.0,
            "p99": 95.0,
            "floor": 40.0,
            "ratio": 2.0,
        },
        {"name": "one scope", "value": 1.5, "unit": "ms", "p95": 2.0, "p99": None, "floor": None, "ratio": None},
        {"name": "recall@60", "value": 0.987, "unit": "", "p95": None, "p99": None, "floor": None, "ratio": None},
    ]
    printed = text({"memories": 100, "figures": figures})
    assert "2.00 × 40.00" in printed and "p95 2.0\n" in printed and "0.987" in printed
