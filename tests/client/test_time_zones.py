"""Time phrases are read in the user's zone, wherever they are read, and what is stored are instants."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from engram import Engram, InvalidInput
from tests.backends import Backend
from tests.clock import Clock

EVENINGS = {
    "America/Los_Angeles": "2026-05-05T02:00+00:00",
    "America/St_Johns": "2026-05-04T23:30+00:00",
    "Europe/Berlin": "2026-05-04T21:59+00:00",
    "Asia/Kolkata": "2026-05-04T18:29+00:00",
    "Pacific/Kiritimati": "2026-05-04T09:59+00:00",
}
"""The evening of 4 May, a Monday, in zones on both sides of UTC."""
MORNINGS = {
    "America/Los_Angeles": "2026-05-04T07:01+00:00",
    "America/St_Johns": "2026-05-04T02:31+00:00",
    "Europe/Berlin": "2026-05-03T22:01+00:00",
    "Asia/Kolkata": "2026-05-03T18:31+00:00",
    "Pacific/Kiritimati": "2026-05-03T10:01+00:00",
}
"""The first minutes of the same day."""
BOTH_ENDS = [*EVENINGS.items(), *MORNINGS.items()]


@pytest.mark.parametrize(("zone", "moment"), BOTH_ENDS)
def test_tomorrow_is_stored_as_the_local_date(backend: Backend, clock: Clock, zone: str, moment: str) -> None:
    clock.now = datetime.fromisoformat(moment)
    mem = backend.client(zone)
    kept = mem.add_conversation("I'm flying to Oslo tomorrow.", session="S-zones")
    assert [memory.statement for memory in kept if "2026-05-05" in memory.statement], [kept, kept.decisions]
    (found,) = mem.extract([{"role": "user", "content": "I'm flying to Oslo tomorrow."}])
    assert "2026-05-05" in found.statement


@pytest.mark.parametrize(("zone", "moment"), BOTH_ENDS)
def test_today_covers_the_local_day(backend: Backend, clock: Clock, zone: str, moment: str) -> None:
    clock.now = datetime.fromisoformat(moment)
    mem = backend.client(zone)
    window = mem.recall("What did we decide today?").window
    assert window is not None and window.since is not None and window.until is not None
    start, end = datetime(2026, 5, 4), datetime(2026, 5, 5)
    assert (window.since, window.until) == (
        start.replace(tzinfo=mem.time_zone).astimezone(UTC),
        end.replace(tzinfo=mem.time_zone).astimezone(UTC),
    )


def test_a_question_in_the_evening_finds_the_event_of_the_morning_and_dates_it_by_the_local_day(
    backend: Backend, clock: Clock
) -> None:
    mem = backend.client("America/Los_Angeles")
    clock.now = datetime.fromisoformat("2026-05-04T15:30+00:00")
    mem.observe("standup", "user", "We decided to ship the parser on Rust.")
    clock.now = datetime.fromisoformat("2026-05-05T03:00+00:00")
    mem.observe("standup", "user", "We decided to keep the linter in Python.")
    found = mem.recall("What did we decide today?")
    assert {hit.text for hit in found.hits} == {
        "We decided to ship the parser on Rust.",
        "We decided to keep the linter in Python.",
    }
    assert found.text.count("2026-05-04") == 2 and "2026-05-05" not in found.text


@pytest.mark.parametrize(
    ("zone", "day", "hours"),
    [("America/Los_Angeles", "2026-03-08", 23), ("America/Los_Angeles", "2026-11-01", 25),
     ("Australia/Lord_Howe", "2026-04-05", 24.5), ("Asia/Kolkata", "2026-03-29", 24)],
)  # fmt: skip
def test_a_day_on_which_the_clock_changes_is_as_long_as_it_is(
    backend: Backend, zone: str, day: str, hours: float
) -> None:
    mem = backend.client(zone)
    window = mem.recall("What did we decide today?", question_date=f"{day}T20:00").window
    assert window is not None and window.since is not None and window.until is not None
    assert window.until.astimezone(UTC) - window.since.astimezone(UTC) == timedelta(hours=hours)


def test_times_without_a_zone_are_the_users(backend: Backend, clock: Clock) -> None:
    clock.now = datetime.fromisoformat("2026-05-05T03:00+00:00")
    mem = backend.client("America/Los_Angeles")
    memory = mem.add("The office has moved to Fremont", valid_from="2026-05-01", occurred_at=datetime(2026, 5, 1, 9))
    assert memory.valid_from == datetime(2026, 5, 1, 7, tzinfo=UTC)
    assert mem.get(memory.id).occurred_at == datetime(2026, 5, 1, 16, tzinfo=UTC)
    event = mem.observe("standup", "user", "The boiler was serviced.", at="2026-05-04T08:00")
    assert event.at == datetime(2026, 5, 4, 15, tzinfo=UTC)
    task = mem.start_task("Move the office")
    assert mem.record_event(task.id, "user", "Boxes ordered.", at="2026-05-04T08:00").at == event.at
    since = mem.list(since="2026-05-01", until="2026-05-02", kinds="memory")
    assert [found.id for found in since] == [memory.id]
    assert mem.list(since="2026-05-02", until="2026-05-03") == []
    ledger = mem.search("boiler", kinds=("event",), session="standup", since="2026-05-04", until="2026-05-04T08:01")
    assert [hit.id for hit in ledger] == [event.id]
    assert not mem.search("boiler", kinds=("event",), session="standup", since="2026-05-04T08:01", until="2026-05-05")
    assert mem.search_events("boxes", since="2026-05-04T08:00", until="2026-05-04T08:01")
    assert not mem.search_events("boxes", since="2026-05-04T08:01")


def test_a_question_asked_elsewhere_is_read_there(backend: Backend) -> None:
    mem = backend.client("America/Los_Angeles")
    window = mem.recall("What did we decide today?", question_date="2026-05-04T09:00:00+09:00").window
    assert window is not None and window.since == datetime(2026, 5, 3, 15, tzinfo=UTC)
    in_utc = mem.recall("What did we decide today?", question_date="2026-05-05T02:00:00Z").window
    assert in_utc is not None and in_utc.since == datetime(2026, 5, 4, 7, tzinfo=UTC)


def test_a_day_in_a_question_is_the_users_day(backend: Backend, clock: Clock) -> None:
    mem = backend.client("Pacific/Kiritimati")
    clock.now = datetime.fromisoformat("2026-05-04T10:30+00:00")
    late = mem.observe("standup", "user", "We talked about the budget.")
    clock.now = datetime.fromisoformat("2026-05-09T10:30+00:00")
    found = mem.recall("What did we talk about on 5 May 2026?")
    assert [hit.id for hit in found.hits] == [late.id]


def test_the_zone_comes_from_the_caller_the_environment_the_settings_and_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system_zone: Callable[[str], None]
) -> None:
    home = tmp_path / "home"

    def hours(time_zone: str | None = None) -> float:
        with Engram.open(home, cache=tmp_path / "cache", time_zone=time_zone) as mem:
            found = datetime(2026, 7, 1, 12, tzinfo=UTC).astimezone(mem.time_zone).utcoffset()
            assert found is not None
            return found / timedelta(hours=1)

    assert hours() == 0
    system_zone("America/Los_Angeles")
    assert hours() == -7
    (home / "config.toml").write_text('time_zone = "Europe/Berlin"\n')
    assert hours() == 2
    monkeypatch.setenv("ENGRAM_TIME_ZONE", "Asia/Kolkata")
    assert hours() == 5.5
    assert hours("Asia/Tokyo") == 9
    with pytest.raises(InvalidInput, match="Unknown time zone 'Mars'"):
        hours("Mars")
    monkeypatch.delenv("ENGRAM_TIME_ZONE")
    (home / "config.toml").write_text('time_zone = "Mars"\n')
    with pytest.raises(InvalidInput, match=r"config\.toml:1: Unknown time zone"):
        hours()


@pytest.mark.parametrize("zone", [5, 5.5, b"UTC", ["UTC"]])
def test_a_zone_is_a_name_or_a_tzinfo(tmp_path: Path, zone: object) -> None:
    with pytest.raises(InvalidInput, match="time_zone must be a name"):
        Engram.open(tmp_path, time_zone=zone)  # type: ignore[arg-type]
