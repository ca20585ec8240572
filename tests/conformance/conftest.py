"""A store on each backend, and a short way to put memories into it."""

import pytest

from engram.store.protocol import Store
from tests.backends import Backend
from tests.clock import Clock
from tests.conformance.keeping import Keep


@pytest.fixture
def store(backend: Backend) -> Store:
    """An empty store; each test that asks for it runs on every backend."""
    return backend.store()


@pytest.fixture
def keep(store: Store, clock: Clock) -> Keep:
    """Puts memories into the store."""
    return Keep(store, clock)
