"""Times counted from the question itself: "two days ago", "in the last month", "yesterday", "recently"."""

from datetime import UTC, datetime, timedelta, tzinfo

from engram.text.time import numbers as count
from engram.text.time.calendar import LENGTHS, Span, holding, shifted
from engram.text.time.words import Word, is_plain, value_of

__all__ = ["INSTANT", "Counted", "Found"]

Found = tuple[int, Span]
INSTANT = timedelta(microseconds=1)
"""What lies between the question and the end of a window that reaches up to it."""

_RECENT_DAYS = 14
_OTHER_DAY = 7
_OTHERS = frozenset(("day", "night", "evening", "morning", "afternoon"))
_TO_DATE = {"ytd": "year", "qtd": "quarter", "mtd": "month", "wtd": "week"}
_DAYS = {"today": 0, "yesterday": -1, "tomorrow": 1}
_OVER_LEADS = frozenset(("in", "over", "during", "within", "for", "throughout", "across"))
_CALENDAR_AFTER_THE = frozenset(("weekend", "quarter", "night", "sprint"))
FINER = {"decade": "year", "year": "month", "quarter": "week", "month": "week", "week": "day"}
"""The unit that a time is told to where it is counted to the part of a longer one."""
OWNING = frozenset(("my", "your", "his", "her", "our", "their", "every", "each", "any", "no"))


class Counted:
    """Reads times that are counted from when the question was asked.

    `ahead` says where the question looks: 0 back, 1 at the present (its weekdays lie ahead), 2 ahead.
    """

    def __init__(self, found: list[Word], at: datetime, ahead: int = 0) -> None:
        self.words, self.ahead = found, ahead
        self.zone: tzinfo | None = at.tzinfo
        self.aware = at
        self.at = at.replace(tzinfo=None)

    def _key(self, place: int) -> str:
        return self.words[place].key if 0 <= place < len(self.words) else ""

    def _keys(self, place: int, *keys: str) -> bool:
        """Whether these words stand here, with no mark between them."""
        run = self.words[place : place + len(keys)]
        return [word.key for word in run] == list(keys) and not any(word.closed or word.owner for word in run[:-1])

    def _open(self, place: int) -> bool:
        """Whether the phrase may go on here: no mark or possessive before it."""
        return 0 < place < len(self.words) and not self.words[place - 1].closed and not self.words[place - 1].owner

    def _day(self, offset: float) -> Span:
        return holding(shifted(self.at, "day", offset), "day")

    def _until_now(self, since: datetime, grain: str = "rolling") -> Span:
        return Span(since, self.at + INSTANT, grain)

    def _named_day(self, place: int) -> Found | None:
        if self._keys(place, "day", "before", "yesterday"):
            return place + 3, self._day(-2)
        if self._keys(place, "day", "after", "tomorrow"):
            return place + 3, self._day(2)
        key = self._key(place)
        if key == "tonight":
            return place + 1, holding(self.at, "night")
        if key in _DAYS:
            return place + 1, self._day(_DAYS[key])
        if key == "overnight":
            return place + 1, holding(shifted(self.at, "day", -1), "night")
        return None

    def _vague(self, place: int, start: int) -> Found | None:
        key, before = self._key(place), self._key(start - 1)
        if key in ("recently", "lately") and before not in ("most", "more", "less", "how", "until", "till", "as"):
            return place + 1, self._until_now(shifted(self.at, "day", -_RECENT_DAYS))
        if self._keys(place, "of", "late"):
            return place + 2, self._until_now(shifted(self.at, "day", -_RECENT_DAYS))
        if key == "other" and self._key(place + 1) in _OTHERS:
            return place + 2, Span(self._day(-_OTHER_DAY).since, self._day(0).since, "rolling")
        if self._keys(place, "just", "now") or self._keys(place, "a", "moment", "ago"):
            return place + (2 if key == "just" else 3), self._until_now(self._clock_back("hour", 1))
        if key in _TO_DATE or (self._keys(place + 1, "to", "date") and value_of("unit", key) in _TO_DATE.values()):
            end = place + (1 if key in _TO_DATE else 3)
            return end, self._until_now(holding(self.at, _TO_DATE.get(key, key)).since)
        return None

    def _clock_back(self, unit: str, number: float) -> datetime:
        moved = self.aware.astimezone(UTC) - LENGTHS[unit] * number
        return moved.astimezone(self.zone).replace(tzinfo=None)

    def back(self, unit: str, number: float) -> datetime:
        """The moment so many units before the question: hours on the clock, days and longer on the calendar."""
        return self._clock_back(unit, number) if unit in LENGTHS else shifted(self.at, unit, -number)

    def _ago(self, place: int) -> Found | None:
        read = count.amount(self.words, place)
        if read is None or read.unit in ("", "sprint"):
            return None
        if self._keys(read.end, "ago", "today"):
            return read.end + 2, holding(self.back(read.unit, read.number), "day")
        if self._key(read.end) == "ago" or (self._key(read.end) == "back" and is_plain(self.words, read.end + 1)):
            return read.end + 1, self._distant(read.unit, -read.most, -read.least)
        if self._keys(read.end, "from", "now") or self._keys(read.end, "from", "today"):
            return read.end + 2, self._distant(read.unit, read.least, read.most)
        if self._keys(read.end, "time") and self._key(place - 1) == "in":
            return read.end + 1, self._distant(read.unit, read.least, read.most)
        if self._key(place - 1) == "in" and self.ahead and is_plain(self.words, read.end):
            return read.end, self._distant(read.unit, read.least, read.most)
        return None

    def _distant(self, unit: str, nearest: float, furthest: float) -> Span:
        """From the unit that lies `nearest` units away up to the one `furthest` away, both included."""
        if unit in LENGTHS:
            distance = abs(nearest + furthest) / 2
            slack = max(min(0.5, distance / 2), distance / 4)
            return Span(self._clock_back(unit, -nearest + slack), self._clock_back(unit, -furthest - slack), unit)
        step = "week" if unit == "fortnight" else unit
        if nearest == furthest and nearest != int(nearest):
            step = FINER.get(unit, "day")  # "half a year ago"
        first, last = holding(shifted(self.at, unit, nearest), step), holding(shifted(self.at, unit, furthest), step)
        return Span(first.since, last.until, first.grain)

    def _counted(self, place: int, lead: str, article: bool) -> Found | None:
        """Up to the question or from it on: "the last three days", "the past week", "the next two months"."""
        key = self._key(place)
        if key == "this" and self._key(place + 1) == "past":
            place, key = place + 1, "past"
        if key == "recent" and (unit := value_of("unit", self._key(place + 1))):
            return place + 2, self._until_now(self.back(unit, 3))
        step = "-1" if key == "past" else value_of("step", key)
        if step not in ("-1", "1") or self._owned(place):
            return None
        read = count.amount(self.words, place + 1, bare=key == "past" or (article and step == "-1"))
        if (
            read is None
            or read.unit == ""
            or (read.bare and (self._key(read.end) == "of" or not self._rolls(key, read.unit, lead)))
        ):
            return None
        if step == "1":
            return read.end, Span(self.at, self.back(read.unit, -read.number), "rolling")
        return read.end, self._until_now(self.back(read.unit, read.number))

    def _rolls(self, key: str, unit: str, lead: str) -> bool:
        """Whether "the last UNIT" counts back from now: "at the last minute" and "the last quarter" do not."""
        if unit in _CALENDAR_AFTER_THE or key in ("previous", "preceding"):
            return False
        return key == "past" or unit not in (*LENGTHS, "day") or lead in _OVER_LEADS

    def _owned(self, place: int) -> bool:
        """Whether it is somebody's and not the calendar's: "my last week", "Anna's last day"."""
        before = self._key(place - 1)
        return before in OWNING or (place > 0 and self.words[place - 1].owner)

    def beyond(self, place: int) -> tuple[int, datetime, bool] | None:
        """Where "more than a year ago" (True) or "less than two weeks ago" (False) ends, and the moment it hangs on."""
        start = place + 1 if self._key(place) in ("over", "under") else place + 2
        further = self._key(place) == "over" or self._keys(place, "more", "than") or self._keys(place, "longer", "than")
        if not further and self._key(place) != "under" and not self._keys(place, "less", "than"):
            return None
        read = count.amount(self.words, start)
        if read is None or not read.unit or self._key(read.end) != "ago":
            return None
        return read.end + 1, self.back(read.unit, read.number), further
