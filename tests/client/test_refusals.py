"""What can only be a slip is refused with what to do, never answered with nothing."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from tests.tables import table

EARLY, LATE = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
Call = Callable[[Engram], Any]
NARROWED: dict[str, Callable[..., Any]] = {
    "list": lambda mem, **filters: mem.list(**filters),
    "get_memories": lambda mem, **filters: mem.get_memories(**filters),
    "list_recent": lambda mem, **filters: mem.list_recent(**filters),
    "search": lambda mem, **filters: mem.search("tabs", **filters),
    "deep_search": lambda mem, **filters: mem.deep_search("tabs", **filters),
    "recall": lambda mem, **filters: mem.recall("tabs?", **filters),
    "trace_recall": lambda mem, **filters: mem.trace_recall("tabs", **filters),
    "get_context_block": lambda mem, **filters: mem.get_context_block("tabs", **filters),
}
WRONG_FILTERS: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"types": ["nope"]}, "unknown type 'nope'"),
    "type by spec 2's name": ({"memory_types": "nope"}, "unknown type 'nope'"),
    "no types": ({"types": []}, "types .* names nothing"),
    "type of an event": ({"kinds": ("event",), "types": ["preference"]}, "unknown type 'preference' of an event"),
    "kind": ({"kinds": ["thought"]}, "unknown kind 'thought'; known: memory, event"),
    "status": ({"status": "alive"}, "unknown status 'alive'"),
    "scope": ({"scope": "acme"}, "kind:name"),
    "no scope": ({"scope": []}, "scope .* names nothing"),
    "time": ({"since": LATE, "until": EARLY}, "is after until"),
    "times in words": ({"since": "2026-02-01", "until": "2026-01-01"}, "is after until"),
    "roles of memories": ({"roles": ["user"], "kinds": ("memory",)}, r"add kinds=\(\"event\",\)"),
    "tags": ({"tags": [1]}, "tags .* names nothing"),
    "metadata": ({"metadata": ["ticket"]}, "metadata must be a mapping"),
    "owner and scope": ({"agent_id": "bot", "scope": "project:acme"}, "not both"),
    "owner": ({"agent_id": " bot"}, "agent_id ' bot'"),
    "no owner": ({"agent_id": "", "user_id": ""}, "agent_id '' must be text, not empty"),
    "no user": ({"agent_id": "bot", "user_id": ""}, "user_id '' must be text, not empty"),
    "name": ({"colour": "red"}, "unknown filter 'colour'"),
    "mean the same": ({"types": ["fact"], "memory_types": ["decision"]}, "have different values"),
}
LIMITED: dict[str, Callable[[Engram, Any], Any]] = {
    "list": lambda mem, limit: mem.list(limit=limit),
    "list_recent": lambda mem, limit: mem.list_recent(limit),
    "get_memories": lambda mem, limit: mem.get_memories(limit=limit),
    "get_history": lambda mem, limit: mem.get_history(limit=limit),
    "recall_critical": lambda mem, limit: mem.recall_critical(limit=limit),
    "search": lambda mem, limit: mem.search("tabs", limit=limit),
    "deep_search": lambda mem, limit: mem.deep_search("tabs", limit=limit),
    "recall": lambda mem, limit: mem.recall("tabs?", limit=limit),
    "search_events": lambda mem, limit: mem.search_events("tabs", limit=limit),
    "list_tasks": lambda mem, limit: mem.list_tasks(limit=limit),
    "traverse": lambda mem, limit: mem.traverse("tabs", limit=limit),
    "traverse_many": lambda mem, limit: mem.traverse_many(["tabs"], total_limit=limit),
    "traverse_many, per seed": lambda mem, limit: mem.traverse_many(["tabs"], limit_per_seed=limit),
    "jobs": lambda mem, limit: mem.jobs.list(limit=limit),
    "process_memory_jobs": lambda mem, limit: mem.process_memory_jobs(limit),
    "checkpoints": lambda mem, limit: mem.tasks.checkpoints(mem.start_task("Ship it").id, limit=limit),
}
OTHER: dict[str, tuple[Call, str]] = {
    "critical type": (lambda mem: mem.recall_critical(types=["nope"]), "unknown type 'nope'"),
    "critical scope": (lambda mem: mem.recall_critical(scope="acme"), "kind:name"),
    "history's type": (lambda mem: mem.get_history(types=["zz"]), "unknown type 'zz'"),
    "history's time": (lambda mem: mem.get_history(since=LATE, until=EARLY), "is after until"),
    "events' time": (lambda mem: mem.search_events("x", since=LATE, until=EARLY), "is after until"),
    "events' types": (lambda mem: mem.search_events("x", event_types=["thought"]), "unknown event type 'thought'"),
    "no events' types": (lambda mem: mem.search_events("x", event_types=[]), "event_types .* names nothing"),
    "no roles": (lambda mem: mem.search_events("x", roles=[]), "roles .* names nothing"),
    "states of tasks": (lambda mem: mem.list_tasks("asleep"), "Unknown task state"),
    "no states of tasks": (lambda mem: mem.list_tasks([]), "status .* names nothing"),
    "offset": (lambda mem: mem.list(offset=-1), "offset -1"),
    "score": (lambda mem: mem.search("x", min_score=-1), "min_score -1"),
    "states twice": (lambda mem: mem.search("x", status="active", include_superseded=True), "give one of them"),
    "relation": (lambda mem: mem.traverse("tabs", relation_types=["admires"]), "unknown relation 'admires'"),
    "no relations": (lambda mem: mem.traverse("tabs", relation_types=[]), "types .* names nothing"),
    "relations twice": (lambda mem: mem.traverse("tabs", types="supports", relation_types="supports"), "mean the same"),
    "status of a walk": (lambda mem: mem.traverse("tabs", status="alive"), "unknown status 'alive'"),
    "scope of a walk": (lambda mem: mem.traverse("tabs", scope=[]), "scope .* names nothing"),
    "scope of an injection": (lambda mem: mem.inject("tabs", scope=[]), "scope .* names nothing"),
    "scope of a session": (lambda mem: mem.session("tabs", scope=[]), "scope .* names nothing"),
    "budget of a context": (lambda mem: mem.build_context(mem.start_task("Ship").id, max_tokens=1), "Give at least"),
    "nothing to purge": (lambda mem: mem.purge(), "takes a scope"),
    "boost": (lambda mem: mem.reinforce("tabs", boost=0), "must be above 0"),
    "boost too large": (lambda mem: mem.reinforce("tabs", boost=1.5), "boost 1.5"),
    "batch": (lambda mem: mem.add_batch(["tabs"]), r"items\[0\]"),  # type: ignore[list-item]
    "no events": (lambda mem: mem.list_events(mem.start_task("Ship it").id, last=0), "last 0"),
    "confidence": (lambda mem: mem.add("Tabs", confidence=99), "^confidence: 99 must be between 0 and 1"),
    "importance": (lambda mem: mem.add("Tabs", importance="high"), "^importance: 'high' is not a number"),  # type: ignore[arg-type]
    "pinned": (lambda mem: mem.add("Tabs", pinned=3), "^pinned: 3 must be True or False"),  # type: ignore[arg-type]
    "rationale": (lambda mem: mem.add("Tabs", rationale=3), "^rationale: 3 is not text"),  # type: ignore[arg-type]
    "a summary of nothing": (
        lambda mem: mem.session("x").summarise(max_tokens=0),
        "max_tokens 0 must be a whole number",
    ),
}


@pytest.fixture(scope="module")
def tabs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engram]:
    """One memory for all of them: nothing that is refused changes it."""
    with Engram.open(ephemeral=True, directory=tmp_path_factory.mktemp("here")) as mem:
        mem.add("Use tabs, not spaces", type="preference", name="tabs")
        yield mem


@table("verb", NARROWED)
@table("what", WRONG_FILTERS)
def test_a_filter_that_finds_nothing_ever_is_refused(tabs: Engram, verb: str, what: str) -> None:
    filters, said = WRONG_FILTERS[what]
    with pytest.raises(InvalidInput, match=said):
        NARROWED[verb](tabs, **filters)


@table("verb", LIMITED)
@table("limit", [0, -1, True, "3"])
def test_a_limit_begins_at_one(tabs: Engram, verb: str, limit: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        LIMITED[verb](tabs, limit)
    LIMITED[verb](tabs, 1)


@table("what", OTHER)
def test_what_cannot_be_asked_for_is_told(tabs: Engram, what: str) -> None:
    call, said = OTHER[what]
    with pytest.raises(InvalidInput, match=said):
        call(tabs)


def test_a_type_that_only_files_from_elsewhere_have_is_found(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    from engram.model import types

    types.register_type(types.MemoryType("recipe", "note", "tooling", 1, "Recipe", 1))
    kept = mem.add("Rest the dough for an hour", type="recipe")
    monkeypatch.delitem(types._REGISTRY, "recipe")
    assert [memory.id for memory in mem.list(types="recipe")] == [kept.id]
    with pytest.raises(InvalidInput, match="unknown type 'recipes'"):
        mem.list(types="recipes")


@pytest.mark.parametrize(
    "call",
    [
        lambda mem: mem.build_context("TASK-1", tokens=3),
        lambda mem: mem.traverse("tabs", depth=2),
        lambda mem: mem.traverse_many(["tabs"], depth=2),
        lambda mem: mem.record_event("TASK-1", "user", "hi", colour="red"),
        lambda mem: mem.record_turn("TASK-1", "hi", colour="red"),
        lambda mem: mem.create_checkpoint("TASK-1", "ok", finished_steps=[]),
        lambda mem: mem.search_events("x", session="S-1"),
        lambda mem: mem.build_long_input_context("TASK-1", "x", tokens=3),
        lambda mem: mem.relate("tabs", "tabs", colour="red"),
    ],
)
def test_an_unknown_argument_is_told_of_the_class_that_callers_know(tabs: Engram, call: Call) -> None:
    with pytest.raises(TypeError, match=r"^Engram\.\w+\(\) got an unexpected keyword argument"):
        call(tabs)
