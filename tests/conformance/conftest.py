"""A store on each backend, and a short way to put memories into it."""

import inspect
from pathlib import Path

import pytest

from engram.store.protocol import Store
from tests.backends import Backend
from tests.citus import cluster
from tests.clock import Clock
from tests.conformance.keeping import Keep

HERE = Path(__file__).parent
ABOVE_THE_PROTOCOL = (
    "test_capture_buffer",
    "test_conflicts",
    "test_distrust",
    "test_harvest",
    "test_retellings",
    "test_review_decisions",
    "test_situations",
)
"""Rules of the client, asked through one client: like those in `tests/client`, on PostgreSQL in `make test-all`.

What they ask of a backend is tested on both by the other modules; so is what several clients do, or what a store holds.
"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark repetitions on PostgreSQL; on a cluster there is nothing else."""
    for item in items if not cluster.GIVEN else ():
        if item.path.parent == HERE and item.path.stem in ABOVE_THE_PROTOCOL and _repeats(item):
            item.add_marker(pytest.mark.heavy)


def _repeats(item: pytest.Item) -> bool:
    """Whether a test runs on PostgreSQL and does not itself open the backend."""
    assert isinstance(item, pytest.Function)
    params = item.callspec.params if hasattr(item, "callspec") else {}
    return params.get("backend") == "postgres" and "backend" not in inspect.signature(item.function).parameters


@pytest.fixture
def store(backend: Backend) -> Store:
    """An empty store; each test that asks for it runs on every backend."""
    return backend.store()


@pytest.fixture
def keep(store: Store, clock: Clock) -> Keep:
    """Puts memories into the store."""
    return Keep(store, clock)
