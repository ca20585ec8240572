"""Where asynchronous memories live in these tests: files, and Postgres."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.aio.bounded import engram_threads


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Any]:
    """How a memory on files of the test's own is opened."""
    return {"home": tmp_path / "home", "cache": tmp_path / "cache", "directory": tmp_path}


@pytest.fixture(params=["files", pytest.param("postgres", marks=pytest.mark.heavy)])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    """How an empty memory is opened, on each backend."""
    if request.param == "files":
        given: dict[str, Any] = request.getfixturevalue("files")
        return given
    return {"url": request.getfixturevalue("shared_database"), "tenant": request.getfixturevalue("tenant")}


@pytest.fixture(autouse=True)
def _no_thread_stays() -> Iterator[None]:
    yield
    assert engram_threads() == set()
