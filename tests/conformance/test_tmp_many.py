"""Whatever a memory holds, every backend gives it back unchanged, from now and from its history."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.model.memory import Memory
from engram.store.protocol import Store
from tests.clock import Clock
from tests.conformance.keeping import asked
from tests.dialects.memories import memories


def without_nul(value: Any) -> bool:
    """Whether a memory can be kept anywhere: no server's text holds a NUL."""
    return "\\x00" not in repr(value) and "\x00" not in str(value)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(memory=memories.filter(without_nul), scope=st.sampled_from(["global", "project:a/b", "user", "session:S-1"]))
def test_a_memory_comes_back_unchanged(store: Store, clock: Clock, memory: Memory, scope: str) -> None:
    with store.deciding("add", actor="test", scopes=[scope]) as deciding:
        kept = memory.but(id=deciding.new_id(clock()), scope=scope)
        deciding.put(kept)
    assert store.get(kept.id) == kept
    assert [image.memory for image in store.history(kept.id)] == [kept]
    asked(store, kept.statement)
