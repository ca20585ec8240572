"""The time zone for time phrases and for times without a zone.

It is injected like the clock: `Engram.open(time_zone=…)`, else `$ENGRAM_TIME_ZONE`, else the setting `time_zone`, else
the zone of the system. Stored times are instants in UTC; only reading "tomorrow" or "2026-05-04" requires the user's
zone.
"""

from datetime import UTC, datetime, timedelta, timezone, tzinfo

from engram.model.errors import InvalidInput
from engram.model.lazy import lazy_pattern

__all__ = ["SYSTEM", "VARIABLE", "SystemZone", "in_zone", "local", "zone_named"]

VARIABLE = "ENGRAM_TIME_ZONE"
"""The environment variable that names the zone."""
_OFFSET = lazy_pattern(r"(?:UTC)?([+-])(\d{1,2})(?::?(\d{2}))?")
_WIDEST = timedelta(hours=14)


class SystemZone(tzinfo):
    """The zone of the system, as reported by its C library: `$TZ`, else `/etc/localtime`."""

    def utcoffset(self, moment: datetime | None, /) -> timedelta:
        """The offset at a local time; None outside the range of the system's calendar."""
        try:
            found = None if moment is None else moment.replace(tzinfo=None).astimezone().utcoffset()
        except (OverflowError, ValueError, OSError):
            found = None
        return found or timedelta()

    def dst(self, moment: datetime | None, /) -> timedelta | None:
        """Unknown, because the offset already includes it."""
        return None

    def tzname(self, moment: datetime | None, /) -> str:
        """The abbreviation at a local time, such as PDT."""
        try:
            return (moment or datetime.now()).replace(tzinfo=None).astimezone().tzname() or "local"
        except (OverflowError, ValueError, OSError):
            return "local"

    def fromutc(self, moment: datetime, /) -> datetime:
        """The local time of an instant; the second of two equal local times has `fold` set."""
        try:
            local = moment.replace(tzinfo=UTC).astimezone()
        except (OverflowError, ValueError, OSError):
            return moment
        found = local.replace(tzinfo=self)
        return found if found.utcoffset() == local.utcoffset() else found.replace(fold=1)

    def __repr__(self) -> str:
        return "SystemZone()"


SYSTEM = SystemZone()
"""The zone of the system."""


def zone_named(name: str) -> tzinfo:
    """The zone with a name such as America/Los_Angeles, UTC or +05:30; "" means the system's. Raises `InvalidInput` for
    any other text.
    """
    name = name.strip()
    if not name:
        return SYSTEM
    if name.upper() in ("UTC", "Z"):
        return UTC
    if (offset := _OFFSET.fullmatch(name)) is not None:
        ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        if ahead <= _WIDEST and int(offset[3] or 0) < 60:
            return timezone(ahead if offset[1] == "+" else -ahead)
        raise _unknown_zone_error(name)
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise _unknown_zone_error(name) from None


def _unknown_zone_error(name: str) -> InvalidInput:
    return InvalidInput(
        f"Unknown time zone {name!r:.60}; write it as America/Los_Angeles, UTC or +05:30. "
        "A system without a time zone database needs the package tzdata for names"
    )


def in_zone(moment: datetime, zone: tzinfo) -> datetime:
    """The same instant in the zone, for reading phrases. A time in a zone other than UTC keeps it, because it shows
    where it was written.
    """
    return local(moment, zone) if moment.tzname() == "UTC" else moment


def local(moment: datetime, zone: tzinfo) -> datetime:
    """The same instant in the zone; unchanged at the very ends of the calendar."""
    try:
        return moment.astimezone(zone)
    except OverflowError:
        return moment
