"""The write service runs on files, and in `make test-all` on each backend."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Backend, backend_of
from tests.clock import Clock


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.heavy)])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    """An empty store."""
    with backend_of(request, tmp_path, clock) as opened:
        yield opened
