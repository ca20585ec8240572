"""Zones: their names, the system's own, and windows that begin and end at local midnight."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from engram.model.errors import InvalidInput
from engram.text.time.windows import time_phrase
from engram.text.time.zone import SYSTEM, in_zone, local, zone_named
from tests.tables import table

NAMES = (
    "America/Los_Angeles", "America/St_Johns", "America/Sao_Paulo", "UTC", "Europe/London", "Europe/Berlin", "Asia/Kolkata",
    "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Kiritimati",
)  # fmt: skip
"""West and east of UTC, with half and quarter hours, with a summer time of half an hour, and the earliest of days."""


@pytest.mark.parametrize("name", NAMES)
def test_the_system_zone_agrees_with_the_database(name: str, system_zone: Callable[[str], None]) -> None:
    system_zone(name)
    known, start = ZoneInfo(name), datetime(2026, 1, 1, tzinfo=UTC)
    for half_hours in range(0, 2 * 24 * 366, 7):
        moment = start + timedelta(minutes=30 * half_hours)
        found, expected = moment.astimezone(SYSTEM), moment.astimezone(known)
        assert found.replace(tzinfo=None) == expected.replace(tzinfo=None)
        assert (found.utcoffset(), found.fold) == (expected.utcoffset(), expected.fold)
        assert found.timestamp() == moment.timestamp()


@pytest.mark.parametrize("transition", ["2026-03-08T10:00+00:00", "2026-11-01T09:00+00:00"])
def test_the_hours_around_a_change_of_the_clock_keep_their_instants(
    transition: str, system_zone: Callable[[str], None]
) -> None:
    system_zone("America/Los_Angeles")
    for minutes in range(-180, 181, 15):
        moment = datetime.fromisoformat(transition) + timedelta(minutes=minutes)
        assert moment.astimezone(SYSTEM).timestamp() == moment.timestamp()


@table("name", NAMES)
@table("day", ["2026-03-07", "2026-03-08", "2026-03-29", "2026-06-30", "2026-10-25", "2026-11-01", "2026-12-31"])
def test_today_is_the_local_day_at_both_of_its_ends(name: str, day: str) -> None:
    zone = zone_named(name)
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    next_day = (datetime.fromisoformat(day) + timedelta(days=1)).replace(tzinfo=zone)
    after_next = (datetime.fromisoformat(day) + timedelta(days=2)).replace(tzinfo=zone)
    last_minute = next_day.astimezone(UTC) - timedelta(minutes=1)
    for moment in (midnight.astimezone(UTC), last_minute):
        at = in_zone(moment, zone)
        today, tomorrow = time_phrase("What is on today?", at), time_phrase("What will I do tomorrow?", at)
        assert today is not None and today.window is not None
        assert tomorrow is not None and tomorrow.window is not None
        assert (today.window.since, today.window.until) == (midnight.astimezone(UTC), next_day.astimezone(UTC))
        assert (tomorrow.window.since, tomorrow.window.until) == (next_day.astimezone(UTC), after_next.astimezone(UTC))


def test_names_and_offsets() -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=UTC)
    offsets = {
        "UTC": 0,
        "Z": 0,
        "+05:30": 330,
        "-0330": -210,
        "UTC+9": 540,
        "Europe/Berlin": 120,
        " Asia/Kolkata ": 330,
    }
    found = {name: moment.astimezone(zone_named(name)).utcoffset() for name in offsets}
    assert found == {name: timedelta(minutes=minutes) for name, minutes in offsets.items()}
    assert zone_named("") is SYSTEM


@table("name", ["Mars/Olympus", "+25:00", "+05:75", "../../etc/passwd", "/etc/localtime", "America"])
def test_a_name_there_is_not_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="time zone"):
        zone_named(name)


def test_a_time_with_a_zone_of_its_own_keeps_it() -> None:
    berlin, denver = ZoneInfo("Europe/Berlin"), zone_named("America/Denver")
    said = datetime(2026, 7, 1, 12, tzinfo=berlin)
    assert in_zone(said, denver).tzinfo is berlin
    assert local(said, denver).hour == 4
    assert in_zone(said.astimezone(UTC), denver).hour == 4


def test_the_ends_of_the_calendar_stay_as_they_are(system_zone: Callable[[str], None]) -> None:
    system_zone("America/Los_Angeles")
    first, last = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
    assert local(first, zone_named("America/Los_Angeles")) == first
    assert local(last, zone_named("Asia/Tokyo")) == last
    assert local(first, SYSTEM).year == 1
