"""A user's home in which no harness is configured."""

from pathlib import Path

import pytest

from engram.agents.agent import all_agents
from engram.agents.wiring.registration import STORE_VARIABLES


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home with nothing in it."""
    moved = (name for agent in all_agents() for name in agent.variables)
    for name in (*moved, *STORE_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path
