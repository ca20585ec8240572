"""`benchmarks.documents`, small: every figure is there, what was planted is found, and nothing is left on a server."""

from typing import Any

import pytest

from benchmarks.documents import measure
from benchmarks.tenants import is_empty
from engram.client import Engram
from engram.model.errors import InvalidInput
from engram.store.postgres import tenants

pytestmark = pytest.mark.heavy


def figures(report: dict[str, Any]) -> dict[str, float]:
    return {figure["name"]: figure["value"] for figure in report["figures"]}


def test_a_document_is_read_into_files_and_what_was_planted_is_found() -> None:
    found = figures(measure(0.2, questions=20))
    assert found["right chunk in the first 6"] >= 0.95
    assert found["peak RSS"] > 0


def test_a_document_is_read_on_a_server_and_nothing_is_left(shared_database: str, tenant: str) -> None:
    for _ in range(2):
        found = figures(measure(0.04, questions=20, url=shared_database, tenant=tenant))
        assert found["right chunk in the first 6"] >= 0.95
        assert is_empty(shared_database, f"{tenant}-documents")


def test_a_tenant_that_holds_something_is_not_touched(shared_database: str, tenant: str) -> None:
    own = f"{tenant}-documents"
    with Engram.open(url=shared_database, tenant=own) as mem:
        mem.add("The staging database listens on port 5433")
    with pytest.raises(InvalidInput, match="is not empty"):
        measure(0.1, url=shared_database, tenant=tenant)
    assert not is_empty(shared_database, own)
    tenants.remove(shared_database, own)
