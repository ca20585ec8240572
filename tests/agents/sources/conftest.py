from pathlib import Path

import pytest

from tests.recall.sources.home import SourceHome


@pytest.fixture
def user(tmp_path: Path) -> SourceHome:
    return SourceHome(tmp_path)
