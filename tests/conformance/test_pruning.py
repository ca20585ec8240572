"""Old history goes when it is asked to, and a dry run says what would."""

from dataclasses import replace
from datetime import timedelta

from engram.model.records import Session, Use
from engram.store.protocol import Store
from engram.store.reports import Pruned
from tests.clock import Clock
from tests.conformance.keeping import Keep, said


def test_images_that_later_ones_replaced_go_and_the_last_stays(store: Store, keep: Keep, clock: Clock) -> None:
    kept = keep("zebra one")
    kept = keep.again(kept, statement="zebra two")
    clock.forward(days=100)
    kept = keep.again(kept, statement="zebra three")
    steady = keep("steady")
    clock.forward(days=1)
    planned = store.prune(clock(), 30, 0, 0, dry_run=True)
    assert planned.images == 2
    assert len(store.history(kept.id)) == 3
    assert store.prune(clock(), 30, 0, 0, dry_run=False) == planned
    assert [image.memory for image in store.history(kept.id)] == [kept]
    assert store.get(kept.id) == kept
    assert len(store.history(steady.id)) == 1
    assert store.prune(clock(), 30, 0, 0, dry_run=False).images == 0
    clock.forward(days=100)
    assert store.prune(clock(), 30, 0, 0, dry_run=False).images == 0


def test_uses_of_months_gone_by_go_whole(store: Store, clock: Clock) -> None:
    for months in range(3):
        store.note_use(Use("recalled", (f"M{months}",), clock.now + timedelta(days=31 * months)))
    now = clock.now + timedelta(days=70)
    assert store.prune(now, 0, 0, 0, dry_run=True).usage_months == ()
    planned = store.prune(now, 0, 30, 0, dry_run=True)
    assert planned.usage_months == ("2026-03",)
    assert len(store.uses(["M0"])) == 1
    assert store.prune(now, 0, 30, 0, dry_run=False) == planned
    assert store.uses(["M0"]) == []
    assert [len(store.uses([f"M{n}"])) for n in (1, 2)] == [1, 1]
    position = store.uses(["M2"])[0].position
    store.note_use(Use("recalled", ("new",), now))
    assert store.uses(["new"])[0].position > position


def test_ledgers_of_sessions_that_ended_long_ago_go(store: Store, clock: Clock) -> None:
    start = clock()
    for name, ended in (("old", start), ("late", start + timedelta(days=90)), ("open", None)):
        store.append_events(name, [said("Ann", f"zebra in {name}")])
        store.save_record(Session(name, "", ("global",), start, ended))
    store.append_events("loose", [said("Ann", "zebra in none")])
    now = start + timedelta(days=100)
    planned = store.prune(now, 0, 0, 30, dry_run=True)
    assert len(planned.ledgers) == 1
    assert len(store.events("old")) == 1
    assert store.prune(now, 0, 0, 30, dry_run=False) == planned
    assert store.events("old") == []
    assert [len(store.events(name)) for name in ("late", "open", "loose")] == [1, 1, 1]
    assert store.verify_ledgers() == []


def test_nothing_goes_where_everything_is_kept(store: Store, keep: Keep, clock: Clock) -> None:
    kept = keep("zebra")
    keep.again(kept, statement="quagga")
    store.note_use(Use("recalled", (kept.id,), clock()))
    clock.forward(days=1000)
    assert store.prune(clock(), 0, 0, 0, dry_run=False) == Pruned()
    assert len(store.history(kept.id)) == 2


def test_a_purged_memory_keeps_its_tombstone(store: Store, keep: Keep, clock: Clock) -> None:
    kept = keep("zebra")
    store.purge([kept.id], actor="test")
    clock.forward(days=1000)
    store.prune(clock(), 30, 30, 30, dry_run=False)
    assert store.history(kept.id)[-1].op == "purge"
    assert keep(replace(kept, statement="new").statement, created=clock()).id != kept.id
