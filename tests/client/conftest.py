"""An empty memory with a clock the test moves: on files, and in `make test-all` on each backend."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engram import Engram
from tests.backends import Backend, backend_of
from tests.clock import Clock as Clock


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.heavy)])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    """Files; and PostgreSQL in `make test-all`, since what the client asks of a backend is what conformance tests."""
    with backend_of(request, tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def mem(backend: Backend) -> Engram:
    """A memory; each test that asks for it runs on every backend."""
    return backend.client()


@pytest.fixture
def everything(backend: Backend) -> Callable[[], str]:
    """All that the memory's store holds, as text."""
    return backend.everything


@pytest.fixture
def files(tmp_path: Path, clock: Clock) -> Iterator[Engram]:
    """A memory on files, for what is about files."""
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as opened:
        yield opened
