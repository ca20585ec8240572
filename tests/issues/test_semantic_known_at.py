"""A semantic search of the past: it failed because its terms were compared with no words."""

from datetime import UTC, datetime, timedelta

import pytest

from engram import Engram
from engram.recall.query import MODES


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_searches_what_was_known_at_a_time(mode: str) -> None:
    moments = iter(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(1000))
    with Engram.open(ephemeral=True, clock=lambda: next(moments)) as mem:
        memory = mem.add("The staging database listens on port 5433")
        known_at = next(moments)
        mem.update(memory.id, statement="The staging database listens on port 5434")
        (hit,) = mem.search("staging database port", mode=mode, known_at=known_at)
        assert hit.text == "The staging database listens on port 5433"
