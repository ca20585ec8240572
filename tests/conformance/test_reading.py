"""A memory comes back as it was put: by id, name, alias, content or number."""

from datetime import UTC, datetime

import pytest

from engram.model.errors import InvalidInput
from engram.model.memory import Activation, Anchor, Association, Evidence, Feedback, Memory, Retelling
from engram.store.protocol import Filters, Store
from engram.text.content_hash import content_hash
from tests.backends import Backend
from tests.conformance.keeping import Keep, asked, day, said

WHOLE = Memory(
    id="ENG-2026-0105-901",
    statement="Deploy with `make ship`: it’s the one that waits for the 数据库 migration 🚀",
    scope="project:acme/api",
    type="procedural",
    status="dormant",
    name="deploy-with-make-ship",
    aliases=("mem-0001", "plur:77"),
    pinned=True,
    situation="When a release is due\nand nobody is on call",
    form={"behavior": "Deploy with make ship", "impact": "It waits", "action": "Use it"},
    context="Said in the stand-up;\n\n  twice",
    rationale="Because the shell script skips migrations",
    tags=("Release", "ops"),
    domain="software/ops/deploy",
    entities=("make ship", "Klaus"),
    anchors=(Anchor("Makefile", "ship: migrate\n\tpush", {"line": 7}),),
    created=datetime(2026, 1, 5, 12, 30, 15, 250000, tzinfo=UTC),
    updated=day(6),
    occurred_at=day(4),
    valid_from=day(1),
    valid_until=day(30),
    confidence=0.9,
    importance=0.25,
    emotional_weight=7,
    derivation_count=3,
    feedback=Feedback(4, 1, 2),
    trigger_context="release day",
    activation=Activation(0.55, 0.65, 9, day(5), 42),
    consolidated=True,
    associations=(Association("ENG-2026-0101-001", "causal", 0.4, 2.0, 0.8, day(3), {"why": ["so", 1]}),),
    lineage="ENG-2025-1201-004",
    revision=2,
    supersedes=("ENG-2025-1201-004",),
    superseded_by="ENG-2026-0201-001",
    conflict_key="deploy/how",
    critical_slot="release",
    source="human",
    learned_by="remember",
    last_verified=day(5),
    decay_days=180.0,
    verification="user_confirmed",
    policy_class="ops",
    evidence=(
        Evidence(
            "EVT-20260105-aabbcc",
            (3, 17),
            "f00d",
            {"page": 2},
            Retelling("EVT-20260106-ddeeff", "global", "fact", "harness:x", 0.7),
        ),
    ),
    box="releases",
    trace="T-1",
    session="S-1",
    task="K-1",
    memory_kind="note",
    metadata={"ticket": 42, "labels": ["x", "y"], "deep": {"a": None, "b": [True, 1.5]}, "": "empty"},
    extra={"from_elsewhere": {"kept": "as it is"}},
)


def test_every_field_comes_back_as_it_was_put(store: Store, backend: Backend) -> None:
    with store.deciding("add", actor="test", scopes=[WHOLE.scope]) as deciding:
        deciding.put(WHOLE)
    assert store.get(WHOLE.id) == WHOLE
    assert backend.store().get(WHOLE.id) == WHOLE


@pytest.mark.parametrize(
    "statement",
    [
        "'; DROP TABLE agent_memory; --",
        'Robert"); DELETE FROM docs; --',
        "100 % of %s and %(name)s and {braces} and $1 and ?",
        "back\\slash \\n \\u0041 and a \ttab",
        "line one\nline two\r\nline three",
        "null",
        "‮right to left‬ and zero\u200bwidth and e\u0301",
        "\U0010ffff is the last character of all",
        "x" * 100_000,
    ],
    ids=lambda text: repr(text[:12]),
)
def test_a_text_of_any_kind_comes_back_as_it_was_put(store: Store, keep: Keep, statement: str) -> None:
    kept = keep(statement, metadata={statement[:40]: statement}, tags=(statement[:40],), rationale=statement)
    found = store.get(kept.id)
    assert found is not None
    assert (found.statement, found.metadata, found.tags) == (statement, {statement[:40]: statement}, (statement[:40],))


def test_a_memory_is_found_by_id_name_and_alias(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs", name="use-tabs", aliases=("mem-0001", "plur:9"))
    for ref in (kept.id, "use-tabs", "mem-0001", "plur:9"):
        assert store.get(ref) == kept
    for ref in ("use", "mem-000", "ENG-2020-0101-001", "", "%", "use_tabs"):
        assert store.get(ref) is None


def test_a_name_follows_its_changes(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs", name="old", aliases=("alias",))
    keep.again(kept, name="new", aliases=())
    assert store.get("old") is None
    assert store.get("alias") is None
    found = store.get("new")
    assert found is not None
    assert found.id == kept.id


def test_a_name_of_two_scopes_is_no_answer_unless_only_one_is_live(store: Store, keep: Keep) -> None:
    one = keep("Use tabs", name="indent", scope="project:a")
    other = keep("Use spaces", name="indent", scope="project:b")
    with pytest.raises(InvalidInput, match=one.id):
        store.get("indent")
    keep.again(one, "forget", status="retired")
    found = store.get("indent")
    assert found is not None
    assert found.id == other.id


def test_named_knows_who_has_a_name_in_a_scope(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs", name="indent", aliases=("tabs",), scope="project:a")
    assert store.id_by_name("indent", "project:a") == kept.id
    assert store.id_by_name("tabs", "project:a") == kept.id
    assert store.id_by_name("indent", "global") == ""
    assert store.id_by_name("nobody", "project:a") == ""


def test_exact_finds_the_live_memory_with_the_same_content_in_its_scope(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs, not spaces!", scope="project:a")
    same = content_hash("use TABS not  spaces")
    assert store.exact(same, "project:a") == kept
    assert store.exact(same, "global") is None
    assert store.exact(content_hash("Use tabs"), "project:a") is None
    assert store.exact("", "project:a") is None


@pytest.mark.parametrize(
    ("status", "found"),
    [("active", True), ("dormant", True), ("candidate", True), ("retired", False), ("superseded", False),
     ("archived", False), ("rejected", False)],
)  # fmt: skip
def test_exact_passes_over_what_is_no_longer_held(store: Store, keep: Keep, status: str, found: bool) -> None:
    keep("Use tabs", status=status)
    assert (store.exact(content_hash("Use tabs"), "global") is not None) is found


def test_exact_prefers_the_active_one(store: Store, keep: Keep) -> None:
    keep("Use tabs", status="candidate")
    active = keep("Use tabs!")
    assert store.exact(content_hash("Use tabs"), "global") == active


def test_records_come_by_number_in_the_order_asked_for(store: Store, keep: Keep) -> None:
    kept = keep.many([{"statement": f"Fact {n}"} for n in range(5)])
    event = store.append_events("talk", [said("Ann", "hello")])[0]
    numbers = store.numbers([memory.id for memory in kept])
    assert set(numbers) == {memory.id for memory in kept}
    wanted = [numbers[kept[i].id] for i in (3, 0, 4)]
    found = store.get_many([*wanted, 10**9])
    assert [(f.n, f.kind, f.record) for f in found] == [
        (n, "memory", kept[i]) for n, i in zip(wanted, (3, 0, 4), strict=True)
    ]
    assert store.numbers(["ENG-2020-0101-001"]) == {}
    assert store.get_many([]) == []
    number = asked(store, "hello", Filters(kinds=("event",))).lexical[0][0]
    assert [(f.n, f.kind, f.record) for f in store.get_many([number])] == [(number, "event", event)]


def test_links_are_told_to_whoever_they_point_at(store: Store, keep: Keep) -> None:
    target, other = keep("The cellar is locked"), keep("The roof is not")
    source = keep(
        "Klaus has the key",
        associations=(Association(target.id, "semantic", 0.8), Association(other.id, "causal", 0.3)),
    )
    [(*link, strength)] = store.links_to([target.id])
    assert link == [source.id, target.id, "semantic"]
    assert strength == pytest.approx(0.8)
    assert len(store.links_to([target.id, other.id])) == 2
    assert store.links_to([source.id]) == []
    assert store.links_to([]) == []
    keep.again(source, associations=())
    assert store.links_to([target.id, other.id]) == []


def test_ones_own_memories_are_owned(store: Store, keep: Keep) -> None:
    kept = keep("Use tabs")
    assert store.own_ids([kept.id]) == [kept.id]


def test_what_was_closed_is_there_when_it_is_opened_again(backend: Backend, store: Store, keep: Keep) -> None:
    kept = keep("Use tabs", name="indent")
    again = backend.store()
    assert again.get("indent") == kept
    again.close()
    assert store.get(kept.id) == kept


def test_the_place_of_a_store_can_be_shown(store: Store) -> None:
    assert store.place
    assert store.facts()["store"] == store.place
    secret = "@" in store.place and ":" in store.place.partition("://")[2].partition("@")[0]
    assert not secret, "a URL is shown without its password"
