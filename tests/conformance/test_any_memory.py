"""Whatever a memory holds, every backend gives it back unchanged, from now and from its history."""

import json

from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engram.model.memory import Memory
from engram.store.protocol import Store
from engram.store.records import image
from tests.clock import Clock
from tests.conformance.keeping import asked
from tests.dialects.memories import memories
from tests.properties import examples


def can_be_kept_anywhere(memory: Memory) -> bool:
    """Whether JSON and a server's text can hold it: neither a NUL nor an endless number."""
    try:
        return "\\u0000" not in json.dumps(image(memory), allow_nan=False)
    except ValueError:
        return False


@examples(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    memory=memories.filter(can_be_kept_anywhere),
    scope=st.sampled_from(["global", "project:a/b", "user", "session:S-1"]),
)
def test_a_memory_comes_back_unchanged(store: Store, clock: Clock, memory: Memory, scope: str) -> None:
    with store.deciding("add", actor="test", scopes=[scope]) as deciding:
        kept = memory.replace(id=deciding.new_id(clock()), scope=scope)
        deciding.put(kept)
    assert store.get(kept.id) == kept
    assert [image.memory for image in store.history(kept.id)] == [kept]
    asked(store, kept.statement)
