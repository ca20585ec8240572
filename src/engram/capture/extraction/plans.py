"""Plans: "I'm flying to Oslo next Friday" becomes a sentence with the date, so that it can be read later."""

import re
from datetime import date, datetime, timedelta

from engram.capture.extraction.third_person import in_third_person, swapped

_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "ten": 10}
_MONTH = "|".join(_MONTHS)
_DAY = "|".join(_DAYS)

_WHEN = re.compile(
    rf"\b(?:(?:on|by|until|for) )?(?:the )?(?:(?P<iso>\d{{4}}-\d{{2}}-\d{{2}})"
    rf"|(?P<d1>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<m1>{_MONTH})(?:,? (?P<y1>\d{{4}}))?"
    rf"|(?P<m2>{_MONTH}) (?P<d2>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y2>\d{{4}}))?"
    rf"|(?P<tomorrow>tomorrow)|(?P<after>day after tomorrow)"
    rf"|(?P<next>next|this coming|this) (?P<w1>{_DAY})|(?P<w2>{_DAY}))\b"
    rf"|\bin (?P<count>\d{{1,2}}|{'|'.join(_COUNTS)}) (?P<unit>days?|weeks?)\b",
    re.IGNORECASE,
)
_SEASON = re.compile(
    rf"\b(?P<lead>in|by|for|until|at|before)(?: the)? (?:(?P<end>end|start|beginning|middle) of )?(?:the )?(?:(?P<which>next|this) )?"
    rf"(?:(?P<month>{_MONTH})(?: (?P<y1>\d{{4}}))?|(?P<quarter>Q[1-4])(?: (?P<y2>\d{{4}}))?|(?P<unit>year|month|quarter)|(?P<y3>20\d\d))\b(?! \d)"
    rf"|\b(?P<bare>next) (?P<unit2>year|month)\b",
    re.IGNORECASE,
)
_RELATIVE = ("tomorrow", "after", "next", "count")
_LEAD = re.compile(r"^(by|until|for)\b", re.IGNORECASE)
_DOING = (
    r"flying|travell?ing|going on|going to|moving|relocating|starting|launching|releasing|shipping|visiting|meeting|getting (?:married|surgery)|having (?:surgery|a baby)|"
    r"presenting|speaking|leaving|migrating|switching|cutting over|on (?:vacation|holiday|leave|parental leave)|away|out of office|off|retiring|graduating|hosting|"
    r"deprecating|sunsetting|dropping|upgrading|rolling out|opening|closing|renewing|freezing|planning to|aiming to|hoping to|taking|running (?:a|the|my)|giving a|due"
)
_WILL = (
    r"fly|travel|move|relocate|launch|release|ship|visit|marry|present|leave|migrate|switch|retire|graduate|host|deprecate|sunset|drop|upgrade|roll out|open|close|renew|"
    r"freeze|start|stop supporting|hire|replace|cut over|be (?:on|away|out|off|in)"
)
_EVENT = (
    r"appointment|deadline|release|launch|flight|exam|interview|wedding|demo|trip|surgery|vacation|holiday|conference|talk|cutover|migration|code freeze|freeze|audit|"
    r"go-live|maternity leave|parental leave|review|beta|alpha|proposal|report|contract|lease|subscription|licen[cs]e|certificate|domain|visa|passport|invoice|thesis|paper|"
    r"submission|application|project|feature|version|milestone|kickoff|kick-off|workshop|training|course|meetup|hackathon|onboarding|offsite|off-site|party|concert|"
    r"graduation|term|semester|season|move|operation|election|hearing|trial|renewal|payment|rent|tax return|taxes|sprint|phase \w+|mvp|app|site|website|store|office"
)
_HAPPENS = (
    r"is|are|is due|are due|starts|ends|begins|launches|ships|opens|closes|expires|renews|lands|arrives|goes live|kicks off|takes place|happens|is happening|runs out|"
    r"(?:is|are) (?:scheduled|planned|set|booked|expected)|has to be (?:done|ready|in|out)|must be (?:done|ready|in|out)|will (?:be|start|end|launch|ship|open|close|happen|go live|take place)"
)
_SCHEDULED = r"starts?|ends?|begins?|launches|opens|closes|expires|renews|kicks off|goes live|is due|are due|graduates|gets married|moves|retires|arrives|leaves|departs|lands|takes off|turns"
_PLAN = re.compile(
    rf"(?P<who>i'm|i am|we're|we are) (?:currently |also )?(?P<doing>(?:{_DOING})\b.*)"
    rf"|(?:i|we)(?:'ll| will|'re going to| are going to|'m going to| plan to| intend to| aim to) (?:{_WILL})\b.*"
    rf"|(?:i|we)(?: have|'ve got| have got) (?:an?|my|our|the) (?:[\w'.-]+ ){{0,4}}(?:{_EVENT}|dentist|doctor)\b.*"
    rf"|(?:my|our|the) (?:[\w'.-]+ ){{0,4}}(?:{_EVENT}) (?:{_HAPPENS})\b.*"
    rf"|(?:my|our) (?:[\w'.-]+ ){{1,5}}(?:{_SCHEDULED})\b.*",
    re.IGNORECASE,
)


def plan(clause: str, at: datetime) -> str:
    """The plan in a clause, with its day as a date; "" if there is none, or if its day is past or unclear."""
    if _PLAN.fullmatch(clause) is None:
        return ""
    whens = list(_WHEN.finditer(clause))
    if not whens:
        return _rendered(_by_season(clause, at.date())) if _SEASON.search(clause) else ""
    day = _day_of(whens[0], at.date()) if len(whens) == 1 else None
    if day is None or day < at.date():
        return ""
    return _rendered(_with_day(clause, whens[0], day))


def dated(text: str, at: datetime) -> str:
    """The text with "tomorrow" and the like as a date; a bare "Tuesday" may recur and stays."""
    whens = [when for when in _WHEN.finditer(text) if any(when.groupdict()[name] for name in _RELATIVE)]
    day = _day_of(whens[0], at.date()) if len(whens) == 1 else None
    return _with_day(text, whens[0], day) if day is not None else text


def _with_day(text: str, when: re.Match[str], day: date) -> str:
    return f"{text[: when.start()]}{_phrase(when, day)}{text[when.end() :]}"


def _by_season(clause: str, today: date) -> str:
    """ "By the end of the year", "in May" and "next month", with the year they mean."""
    return _SEASON.sub(lambda found: _season(found, today), clause)


def _season(found: re.Match[str], today: date) -> str:
    parts = found.groupdict()
    ahead = 1 if (parts["which"] or parts["bare"] or "").lower() == "next" else 0
    unit = (parts["unit"] or parts["unit2"] or "").lower()
    end = f"the {parts['end'].lower()} of " if parts["end"] else ""
    lead = f"{(parts['lead'] or 'in').lower()} {end}"
    if parts["y3"] or parts["y1"] or parts["y2"]:
        return found[0]
    if parts["month"]:
        month = _MONTHS.index(parts["month"].lower()) + 1
        return f"{lead}{parts['month'].capitalize()} {today.year + (month < today.month)}"
    if parts["quarter"]:
        past = int(parts["quarter"][1]) < (today.month + 2) // 3
        return f"{lead}{parts['quarter'].upper()} {today.year + past}"
    if unit == "year":
        return f"{lead}{today.year + ahead}"
    if unit == "quarter":
        quarter = (today.month + 2) // 3 - 1 + ahead
        return f"{lead}Q{quarter % 4 + 1} {today.year + quarter // 4}"
    month = today.month - 1 + ahead
    return f"{lead}{_MONTHS[month % 12].capitalize()} {today.year + month // 12}"


def _rendered(clause: str) -> str:
    if clause.lower().startswith("we're "):
        return f"We are {swapped(clause[6:])}"
    return in_third_person(clause)


def _phrase(when: re.Match[str], day: date) -> str:
    lead = _LEAD.match(when[0])
    return f"{lead[1].lower() if lead else 'on'} {day.isoformat()}"


def _day_of(when: re.Match[str], today: date) -> date | None:
    parts = when.groupdict()
    try:
        if parts["iso"]:
            return date.fromisoformat(parts["iso"])
        if parts["m1"] or parts["m2"]:
            return _calendar_day(parts, today)
    except ValueError:
        return None
    if parts["after"]:
        return today + timedelta(days=2)
    if parts["tomorrow"]:
        return today + timedelta(days=1)
    if parts["count"]:
        count = _COUNTS.get(parts["count"].lower()) or int(parts["count"])
        return today + timedelta(days=count * (7 if parts["unit"].lower().startswith("week") else 1))
    return _weekday(parts, today)


def _calendar_day(parts: dict[str, str | None], today: date) -> date:
    """The date; a day without a year is the next one."""
    month = _MONTHS.index((parts["m1"] or parts["m2"] or "").lower()) + 1
    day, year = int(parts["d1"] or parts["d2"] or 0), parts["y1"] or parts["y2"]
    found = date(int(year) if year else today.year, month, day)
    return found if year or found >= today else date(today.year + 1, month, day)


def _weekday(parts: dict[str, str | None], today: date) -> date | None:
    """The coming day of that name; None for an ambiguous "next Friday" said earlier in the same week."""
    wanted = _DAYS.index((parts["w1"] or parts["w2"] or "").lower())
    ahead = (wanted - today.weekday()) % 7 or 7
    if (parts["next"] or "").lower() == "next":
        monday = today + timedelta(days=7 - today.weekday())
        named = monday + timedelta(days=wanted)
        return named if named == today + timedelta(days=ahead) else None
    return today + timedelta(days=ahead)
