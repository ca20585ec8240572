"""Modes, filters before the cut, time travel, and traces that add up."""

from datetime import UTC, datetime

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from tests.client.conftest import Clock


def test_each_mode_finds_in_its_own_way(mem: Engram) -> None:
    deploy = mem.add("Push the release to the live server on Tuesdays")
    mem.add("The coffee machine needs descaling every month")
    assert mem.search("release", mode="keyword")[0].id == deploy.id
    assert mem.search("zzz", mode="keyword") == []
    assert mem.search("deploy to production", mode="semantic")[0].id == deploy.id
    for fusion in (None, "rrf"):
        assert mem.search("deploy the release to production", fusion=fusion)[0].id == deploy.id


@pytest.mark.parametrize("arguments", [{"mode": "psychic"}, {"fusion": "cold"}, {"limit": 0}, {"limit": 10_000}])
def test_what_cannot_be_asked_is_refused(mem: Engram, arguments: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        mem.search("anything", **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize("fusion", [None, "rrf"])
def test_the_trace_replays_to_the_score(mem: Engram, mode: str, fusion: str | None) -> None:
    for number in range(12):
        mem.add(f"Fact {number} about deploying service {number % 3}", confidence=number / 12, importance=number / 12)
    hits = mem.search("deploying service 2", mode=mode, fusion=fusion, explain=True)
    assert hits
    for hit in hits:
        assert hit.trace is not None
        assert hit.trace.replay() == pytest.approx(hit.score)
        assert hit.trace.found_by


def test_filters_apply_before_the_cut(mem: Engram) -> None:
    noise = [
        {"statement": f"The zebra report number {n} is filed under animals", "tags": ["noise"]} for n in range(150)
    ]
    mem.add_batch(noise)
    wanted = mem.add(
        "A zebra once crossed the office, long ago and for no reason anyone remembers",
        scope="project:acme/api",
        type="moment",
        tags=["Signal"],
        domain="life/animals/wild",
        occurred_at="2020-05-05",
        metadata={"ticket": 42, "labels": ["x", "y"]},
    )
    for filters in (
        {"scope": "project:acme/api"},
        {"types": "moment"},
        {"tags": ["signal"]},
        {"domain": "life/animals"},
        {"since": "2020-05-01", "until": "2020-06-01"},
        {"metadata": {"ticket": 42}},
        {"metadata": {"labels": "y"}},
    ):
        hits = mem.search("zebra report", limit=5, **filters)
        assert [hit.id for hit in hits] == [wanted.id], filters
    assert mem.search("zebra", domain="life/anim") == []


def test_metadata_comes_back_and_is_never_searched(mem: Engram) -> None:
    mem.add("A plain statement about nothing", metadata={"secret_word": "xylophone"})
    hit = mem.search("plain statement")[0]
    assert hit.metadata == {"secret_word": "xylophone"}
    assert mem.search("xylophone", mode="keyword") == []


def test_a_scope_sees_its_ancestors_and_global_and_nothing_else(mem: Engram) -> None:
    ids = {
        scope: mem.add(f"The build tool of {scope} is make", scope=scope).id
        for scope in ("global", "project:acme", "project:acme/api", "project:beta", "user")
    }
    seen = {hit.id for hit in mem.recall("build tool", scope="project:acme/api").hits}
    assert seen == {ids[s] for s in ("global", "project:acme", "project:acme/api", "user")}
    assert len(mem.search("build tool")) == 5


def test_as_of_asks_what_was_true_then(mem: Engram) -> None:
    old = mem.add("The office is in Berlin", valid_from="2024-01-01", valid_until="2025-06-01")
    new = mem.add("The office is in Lisbon", valid_from="2025-06-01")
    assert [hit.id for hit in mem.search("where is the office")] == [new.id]
    assert [hit.id for hit in mem.search("where is the office", as_of="2024-07-01")] == [old.id]
    assert [hit.id for hit in mem.search("where is the office", as_of="2025-06-01")] == [new.id]
    assert mem.search("where is the office", as_of="2023-01-01") == []


def test_known_at_asks_what_engram_knew_then(mem: Engram, clock: Clock) -> None:
    kept = mem.add("The office is in Berlin near the zoo")
    before = clock.forward(days=1)
    clock.forward(days=1)
    mem.update(kept.id, statement="Headquarters moved to Lisbon")
    later = mem.add("The office has a new kitchen")
    hits = mem.search("office in Berlin near the zoo", known_at=before)
    assert [(hit.id, hit.text) for hit in hits] == [(kept.id, "The office is in Berlin near the zoo")]
    assert later.id in {hit.id for hit in mem.search("office kitchen")}
    mem.forget(kept.id)
    assert [hit.id for hit in mem.search("Berlin zoo", known_at=before)] == [kept.id]


def test_archived_memories_answer_when_active_ones_do_not(mem: Engram) -> None:
    kept = mem.add("The old wiki lived on a server called atlas", status="archived")
    hits = mem.search("atlas wiki")
    assert [(hit.id, hit.note) for hit in hits] == [(kept.id, "archived")]


def test_naive_times_are_local_and_aware_ones_are_kept(mem: Engram) -> None:
    moment = datetime(2024, 5, 5, 12, tzinfo=UTC)
    kept = mem.add("Something that happened once upon a time", occurred_at=moment)
    assert mem.get(kept.id).occurred_at == moment
    assert mem.search("happened once", since=moment, until=datetime(2024, 5, 5, 12, 0, 1, tzinfo=UTC))
    assert mem.search("happened once", until=moment) == []


@pytest.mark.parametrize(
    ("statement", "other", "question"),
    [
        ("部署之前必须先运行数据库迁移", "午饭时间改到下午一点", "数据库迁移"),
        ("デプロイの前にデータベースの移行を実行する", "昼休みは午後一時に変更された", "データベース移行"),
        ("يجب تشغيل ترحيل قاعدة البيانات قبل النشر", "تم تغيير موعد الغداء", "قاعدة البيانات"),
        ("Перед выкладкой нужно запустить миграции базы данных", "Обед перенесли на час дня", "миграция базы"),
        ("🚀 means the release is out", "🔥 means production burns", "🚀"),
        ("Call `retry_with_backoff(max_attempts=5)` in src/net/client.py", "Call `close_all()` in src/db/pool.py", "retry_with_backoff"),
    ],
)  # fmt: skip
def test_every_script_is_stored_found_and_told_apart(mem: Engram, statement: str, other: str, question: str) -> None:
    first, second = mem.add(statement), mem.add(other)
    assert first.id != second.id
    assert mem.search(question)[0].id == first.id
    assert mem.search(question, mode="keyword")[0].id == first.id
    assert mem.get(first.id).statement == statement
