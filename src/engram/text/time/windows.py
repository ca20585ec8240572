"""The time phrase of a question, and the window it means relative to the time of asking, or the event that dates it.

Windows are half-open, in the zone of the question; days, weeks (from Monday), months and years are those of its
calendar.

- **today, last week, March, 2023, May 5th**: the whole day, week, month, year. Without a year, the most recent that has
  begun; if the question looks ahead ("what will I…", and for weekdays any present tense), the first that is not over; a
  month in the present tense is the nearer one. A weekday is never today. "Last March", "last summer": the most recent
  that is over; "next": the first that has not begun. Seasons are the northern ones, from the first of March, June,
  September and December; a winter is named by the year it begins in.
- **this morning, yesterday evening, last night**: 5–12, 12–18, 18–24 o'clock; a night runs from 18 to 5. "At 3pm": that
  hour.
- **two days ago, three weeks ago**: the calendar day, week, month or year that far back. "A few" is 2 to 4, "several" 3
  to 7, "a couple" 2. Hours, minutes and seconds ago: half a unit either side of that moment, or a quarter of the
  distance if that is more. Half a year ago: that month.
- **in the last three days, the past month, recently** (14 days): from that long before the question up to the question;
  what happened at that very instant is included. Hours are counted by the clock, days and longer by the calendar. The
  same goes for "earlier today", "so far this year", "month to date", from the start of the day, month or year, and
  "from May to now". "The last week" with its article is the past seven days, "last week" the calendar's. "The other
  day": the seven days before today.
- **since X**: from the start of X, open. **after X**: from the end of X, open. **before X, until X**: up to the start
  of X; "until the end of X" up to its end. **by X, through X**: up to the end of X. **between X and Y, from X to Y**:
  from the start of X to the end of Y. A time of the clock that bounds is that moment: "after 5pm", "between 2 and 4pm",
  "since 9", "between 10 last night and six this morning"; a bare hour from 1 to 6 is in the afternoon. **Monday and
  Wednesday, March, April and June**: from the first to the last. **This time last year**: that month; of last month the
  week, of last week the day.
- **early, mid, late; beginning, middle, end**: days 1–10, 11–20 and the rest of a month; Mon–Tue, Wed–Thu, Fri–Sun of a
  week; thirds of a year and a quarter in whole months. **The first Monday in March, the first ten days of May, the
  closing months of 2025** (three), **the Tuesday before Easter, the week ending May 5th, three Fridays ago**: counted.
  **The rest of the week**: from the question on, if the week is not over.
- **at Easter, on Thanksgiving, over Christmas**: holidays by their rule; after "on", the exact day. **Two days before
  Christmas, the week before Easter**: counted from it. **Week 42, Christmas week**: the calendar's. **The last three
  sprints**: of two weeks each; "last sprint" has no known dates.
- **before I moved, since the launch, when I lived in Berlin**: an anchor and a relation instead of a window.

The first of several phrases counts. Another one takes precedence over a possessive ("Friday's release") and, in a
question about the past, over a future time.
"""

from collections.abc import Iterator
from datetime import datetime, tzinfo
from typing import NamedTuple

from engram.model.lazy import dataclass
from engram.text.time.calendar import Span, resolve_repeating
from engram.text.time.dates import day_of_month, repeating, year_after
from engram.text.time.grammar import FoundTime, Grammar
from engram.text.time.words import Word, is_plain, lead_at, may_start, value_of, words
from engram.text.words import PAST_AUXILIARIES, SUBJECTS, is_act, is_participle, is_past, stem, word_class

__all__ = ["AnchorPhrase", "TimePhrase", "Window", "find_anchor", "speaks_of_past", "time_phrase"]

_RELATIONS = {
    "before": "before", "prior to": "before", "until": "before", "till": "before", "til": "before", "up until": "before",
    "by the time": "before", "ahead of": "before", "leading up to": "before",
    "after": "after", "since": "after", "following": "after", "ever since": "after", "as soon as": "after", "upon": "after",
    "during": "during", "while": "during", "whilst": "during", "when": "during", "back when": "during", "at the time of": "during",
    "at the time": "during", "in the run-up to": "before", "in the lead-up to": "before", "on the eve of": "before",
    "in the wake of": "after", "in the aftermath of": "after",
}  # fmt: skip
_RELATION_WORDS = frozenset(key.split()[0] for key in _RELATIONS)
_MAX_EVENT_WORDS = 48
_PASSIVE = frozenset(("is", "are", "am", "be", "being", "get", "gets", "getting"))
_TAKES_AFTER = frozenset(map(stem, ("look", "take", "name", "ask")))
_TOLD_BY = frozenset(("was", "were", "got", "had", "became"))
_EMPTY = word_class("asking", "no_event")
_ASKS_WHEN = word_class("asking", "asks_when")
_AUXILIARIES = PAST_AUXILIARIES | word_class("asking", "inverted")
_PRESENT_FORMS = word_class("asking", "holds")
_HAVE = word_class("asking", "have")
_BEING = frozenset(("is", "are", "am", "isn't", "aren't", "have", "has", "haven't", "hasn't"))
_OTHER_QUESTIONS = frozenset(("what", "what's", "which", "who", "where", "how", "why", "what'd", "whom"))
_LAST_OF_CLAUSE = frozenset(("what", "what's", "where", "who", "how", "why", "which", "but", "did", "do", "does", "so"))


class AnchorPhrase(NamedTuple):
    """The position of the time words (first, and after the last), the start of the event, and its relation to the
    time.
    """

    first: int
    event: int
    last: int
    relation: str
    clause: bool
    """Whether the event is a clause of its own: "I moved"."""


def speaks_of_past(found: list[Word]) -> bool:
    """Whether some verb is in the past or the perfect."""
    return any(_is_past_verb(found, place) for place in range(len(found)))


def _is_past_verb(found: list[Word], place: int) -> bool:
    key = found[place].key
    if key in PAST_AUXILIARIES or key == "used":
        return True
    if key in _HAVE:
        return _is_perfect(found, place)
    if place == 0 or not is_past(key) or found[place - 1].owner:
        return False
    before = found[place - 1]
    if place > 1 and before.key in SUBJECTS and found[place - 2].key in _BEING:
        return False  # "am I supposed to"
    return before.key in SUBJECTS or before.key.endswith("'ve") or _is_name(before, place)


def _is_name(word: Word, place: int) -> bool:
    return word.capital and place > 1 and not word.closed


def _is_perfect(found: list[Word], place: int) -> bool:
    if {"do", "does", "to", "will", "don't"} & {word.key for word in found[max(0, place - 2) : place]}:
        return False
    if place + 1 < len(found) and found[place + 1].key == "to":
        return False  # "which invoices have to be paid"
    return any(is_participle(word.key) and word.key != "got" for word in found[place + 1 : place + 5])


def find_anchor(found: list[Word], past: bool) -> AnchorPhrase | None:
    """The first time in the words that refers to an event.

    Only memory can say which window that is; this function finds the event and its relation to the time. Such words
    count as a time only if the question or the event is in the past: "what do I check before I deploy?" asks for a
    rule, and its words are what to search for.
    """
    for place in range(len(found)):
        if found[place].key not in _RELATION_WORDS and found[place].key not in (
            "by",
            "at",
            "back",
            "as",
            "leading",
            "up",
            "in",
            "on",
        ):
            continue
        read = _relation(found, place)
        if read is not None and (told := _event(found, place, *read, past)) is not None:
            return told
    return None


def _relation(found: list[Word], place: int) -> tuple[int, str] | None:
    for length in (4, 3, 2, 1):
        run = found[place : place + length]
        if len(run) == length and not any(word.closed for word in run):
            relation = _RELATIONS.get(" ".join(word.key for word in run))
            if relation is not None:
                return place + length, relation
    return None


def _event(found: list[Word], place: int, event: int, relation: str, past: bool) -> AnchorPhrase | None:
    if (
        event >= len(found)
        or found[event].key[:1].isdigit()
        or (found[event].key in _EMPTY and not _has_own_verb(found, event))
        or found[event].key in _AUXILIARIES
    ):
        return None
    if place and found[place - 1].key == found[event].key and found[event].key not in SUBJECTS:
        return None  # "draft after draft"
    key = found[place].key
    if key == "after" and place and stem(found[place - 1].key) in _TAKES_AFTER:
        return None  # "who looks after the account"
    if key == "when" and not _is_time_clause(found, place):
        return None
    last = _clause_end(found, event)
    run = found[event:last]
    subject = run[0].key in SUBJECTS or run[0].key in ("i'd", "we'd", "i'm")
    told_past = any(_is_past_form(run, at) for at in range(len(run)))
    if subject and not told_past and any(word.key in _PRESENT_FORMS for word in run):
        return None
    if key in ("when", "while", "whilst") and not told_past and not any(word.key.endswith("ing") for word in run):
        return None
    since = found[event - 1].key == "since" and not subject  # "her pain scores since admission" is past in any tense
    if not (past or told_past or since):
        return None
    return AnchorPhrase(_with_unit(found, place), event, last, relation, told_past)


def _is_past_form(run: list[Word], place: int) -> bool:
    """Whether the word is a distinct past form: "the lift got stuck", not "the lift gets stuck"."""
    return is_past(run[place].key, same=True) and (place == 0 or run[place - 1].key not in _PASSIVE)


def _has_own_verb(found: list[Word], event: int) -> bool:
    """Whether "it" has a verb of its own: "before it was extended", not "before it"."""
    verb = found[event + 1].key if event + 1 < len(found) and not found[event].closed else ""
    return found[event].key in ("it", "that", "this", "they", "these") and (verb in _TOLD_BY or is_past(verb))


def _is_time_clause(found: list[Word], place: int) -> bool:
    """Whether "when" introduces a time, as in "what was it when I moved", and does not ask for one, as in "tell me when
    I moved".
    """
    if place == 0 or found[place - 1].closed:
        return any(word.closed for word in found[place + 1 : place + _MAX_EVENT_WORDS - 1][:-1]) and place + 1 < len(
            found
        )
    asks_else = any(word.key in _OTHER_QUESTIONS for word in found[max(0, place - _MAX_EVENT_WORDS) : place])
    return asks_else or found[place - 1].key not in _ASKS_WHEN


def _clause_end(found: list[Word], event: int) -> int:
    for place in range(event, min(event + _MAX_EVENT_WORDS, len(found))):
        if place > event and found[place].key in _LAST_OF_CLAUSE:
            echoed = (
                found[place].key in _OTHER_QUESTIONS and found[place - 1].key in _TOLD_BY
            )  # "before the injury | was what"
            return place - 1 if echoed and place - 1 > event else place
        if found[place].closed:
            return place + 1
    return min(event + _MAX_EVENT_WORDS, len(found))


def _with_unit(found: list[Word], place: int) -> int:
    """The start of the phrase: in "the day before the launch", the words before it belong to it too."""
    if place >= 2 and value_of("unit", found[place - 1].key) and found[place - 2].key in ("the", "a"):
        return place - 2
    return place - 1 if place and found[place - 1].key in ("just", "right", "shortly", "long", "soon") else place


_JOINS = {
    "between": ("and",),
    "from": ("to", "till", "until", "til", "through", "thru", "up"),
    "": ("to", "through", "thru"),
}
_LONGEST_LIST = 6
_ON = frozenset(("on", "during", "over", "in"))


def range_at(grammar: Grammar, place: int) -> FoundTime | None:
    """From one time to another: "between March and May", "from Monday to Wednesday", "June 3rd to June 10th"."""
    word = grammar.words[place].key
    opener = word if word in ("between", "from") else ""
    start = place + 1 if opener or word in _ON else place
    if opener and (hours := grammar.first("hours", place)) is not None:
        return hours
    if (days := _days_of_one_month(grammar, start, _JOINS[opener])) is not None:
        return days
    first = grammar.moment(start, "in" if start > place else "") or (_read_bound(grammar, start) if opener else None)
    if first is None or first[0] >= len(grammar.words) or grammar.words[first[0]].key not in _JOINS[opener]:
        return None
    behind = first[0] + 1
    if grammar.words[behind - 1].key == "up" and behind < len(grammar.words):
        behind += 1
    second = _same_month(grammar, behind, first[1]) or _the_present(grammar, behind) or grammar.moment(behind, "in")
    if second is None and first[1].grain == "hour":
        second = _hour(grammar, behind)
    if second is None:
        return None
    since = _first_of(grammar, start, first, second[1]).since
    until = second[1].since if second[1].grain == "hour" else second[1].until
    return (second[0], Span(since, until, "range")) if since < until else None


def _read_bound(grammar: Grammar, place: int) -> FoundTime | None:
    """A bound that only "between" or "from" makes a time: an hour, or "now" in "between now and Friday"."""
    now = place < len(grammar.words) and grammar.words[place].key == "now"
    return _the_present(grammar, place) if now else _hour(grammar, place)


def _the_present(grammar: Grammar, place: int) -> FoundTime | None:
    """The end of "from 2023 up to now", "from May to date", "from March to the present day"."""
    keys = [word.key for word in grammar.words[place : place + 3]]
    article = keys[:1] == ["the"]
    if keys[article : article + 1] not in (["now"], ["date"], ["present"]):
        return None
    end = place + article + (2 if keys[article + 1 : article + 2] == ["day"] else 1)
    return (end, Span(grammar.at, grammar.just_after, "rolling")) if is_plain(grammar.words, end) else None


def _hour(grammar: Grammar, place: int) -> FoundTime | None:
    """A clock time, or an hour with its day: "between 10 last night and 6 this morning"."""
    return grammar.first("clock_today", place) or grammar.first("hour", place)


def with_next(grammar: Grammar, start: int, end: int, span: Span) -> FoundTime:
    """Join several times of one kind from the first to the last: "in January and February", "on Monday, Wednesday and
    Friday last week".
    """
    joint = _behind_list(grammar, end)
    if joint + 1 >= len(grammar.words) or grammar.words[joint].key not in ("and", "or"):
        return end, span
    behind = joint + 2 if grammar.words[joint + 1].key in _ON else joint + 1
    other = grammar.moment(behind, "in")
    if other is None or other[1].grain != span.grain:
        return end, span
    told = other[0] > behind + 1 or other[1].since < span.since  # they are named in the order they came in
    first = _first_of(grammar, start, (end, span), other[1]) if told else span
    since, until = min(first.since, other[1].since), max(first.until, other[1].until)
    return other[0], Span(since, until, "range")


def _behind_list(grammar: Grammar, end: int) -> int:
    """The position of the "and" in a list that continues after a comma; the same position if there is none."""
    place = end
    while grammar.words[place - 1].closed and place < min(end + _LONGEST_LIST, len(grammar.words)):
        if grammar.words[place].key in ("and", "or"):
            return place
        named = repeating(grammar.words, place, named=False)
        if named is None or named[1].kind not in ("weekday", "month"):
            return len(grammar.words)
        place = named[0]
    return place


def _days_of_one_month(grammar: Grammar, place: int, joins: tuple[str, ...]) -> FoundTime | None:
    """Two days followed by their month: "between 1 and 5 April", "from the 3rd to the 7th of June"."""
    first = day_of_month(grammar.words, place)
    if first is None or first[0] >= len(grammar.words) or grammar.words[first[0]].key not in joins:
        return None
    last = grammar.moment(first[0] + 1, "in")
    if last is None or last[1].grain != "day" or first[1] >= last[1].since.day or last[0] < first[0] + 3:
        return None
    return last[0], Span(last[1].since.replace(day=first[1]), last[1].until, "range")


def _first_of(grammar: Grammar, start: int, first: FoundTime, second: Span) -> Span:
    """The start of a range, completed from its end if it names no year itself: "between March and May 2023"."""
    start += grammar.words[start].key == "the"
    what = repeating(grammar.words, start, named=True)
    if what is not None and what[0] == first[0] and year_after(grammar.words, what[0]) is None:
        return resolve_repeating(what[1], second.since, None, False) or first[1]
    clocked = grammar.first("clock_today", start)
    if first[1].grain == second.grain == "hour" and clocked is not None and clocked[0] == first[0]:
        clock = first[1].since - first[1].since.replace(hour=0, minute=0)
        since = second.since.replace(hour=0, minute=0) + clock
        return Span(since, first[1].until, "hour")
    return first[1]


def _same_month(grammar: Grammar, place: int, first: Span) -> FoundTime | None:
    """The second day of "between May 3 and 10", in the month of the first day and the year after it."""
    read = day_of_month(grammar.words, place)
    if first.grain != "day" or read is None or not first.since.day < read[1] <= 31:
        return None
    dated = repeating(grammar.words, read[0] - 1, named=False)
    if dated is not None and dated[1].kind == "date":
        return None  # "between May 3 and 10 June"
    end, year = year_after(grammar.words, read[0]) or (read[0], first.since.year)
    since = first.since.replace(year=year, day=read[1])
    return end, Span(since, since + (first.until - first.since), "day")


_AHEAD = word_class("asking", "ahead")
_WH = word_class("asking", "wh")
_PRESENT = word_class("asking", "now")
_AGENDA = word_class("asking", "agenda")
_HEARD = word_class("asking", "heard")
_RECORDS = word_class("questionsigns", "record")
_GOES_BY = word_class("asking", "goes_by")
_UP_TO = frozenset(("i", "we", "you", "he", "she", "they", "been", "get", "got", "gotten"))
_AT = frozenset(("at", "around"))
_ABOUT = frozenset(("around", "about", "roughly", "approximately", "circa"))
_BOUND_HOURS = frozenset(("since", "after", "until", "before"))
_STRANDED = frozenset(("on", "at", "in"))
_NEVER_LED = frozenset(("yesterday", "today", "tomorrow", "tonight", "recently", "lately"))
_PHRASES_READ = 8
_STARTS_READ = 300
"""The maximum number of words that may begin a phrase and are tried."""
_FROM_TO = 8


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open time span, `since` included and `until` excluded; None leaves that end open."""

    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class TimePhrase:
    """The words of a question that name a time, and their meaning."""

    text: str
    """The phrase as written in the question: `question[start:end]`."""
    start: int
    end: int
    window: Window | None
    anchor: str = ""
    """The event the phrase depends on ("I moved" in "before I moved"); the window is then None."""
    relation: str = ""
    """The relation of the time to the anchor: "before", "after" or "during"."""


@dataclass(frozen=True, slots=True)
class _ReadPhrase:
    first: int
    last: int
    window: Window
    owner: bool


def time_phrase(text: str, at: datetime) -> TimePhrase | None:
    """The phrase of the question that names a time, or None. `at`, when it was asked, is aware; windows are in its
    zone.
    """
    found = words(text)
    past = speaks_of_past(found)
    grammar = Grammar(found, at, ahead=0 if past else _looks_ahead(found))
    read = _best(_phrases(grammar), at if past else None)
    event = find_anchor(found, past)
    if event is not None and (read is None or _describes_event(event, read)):
        return _anchor_phrase(text, found, event)
    if read is None:
        return None
    start, end = found[read.first].start, found[read.last - 1].end
    return TimePhrase(text[start:end], start, end, read.window)


def _looks_ahead(found: list[Word]) -> int:
    keys = {word.key for word in found}
    if keys & _AHEAD:
        told = any(map(is_past, keys - _AHEAD)) and not keys & _PRESENT  # "how the plan progressed"
        return 0 if told else 2
    asks_now = found[:1] and (found[0].key in _WH or keys & _AGENDA or _any_to_come(found))
    return 1 if keys & _PRESENT or (asks_now and not any(is_past(key, same=True) for key in keys)) else 0


def _any_to_come(found: list[Word]) -> bool:
    """Whether a question without a verb may ask about the future: "any classes on Thursday"; "any errors" asks about
    the past.
    """
    if found[0].key not in ("any", "anything") or any(is_act(word.key) for word in found):
        return False
    keys = {word.key for word in found}
    return keys.isdisjoint(_RECORDS | _HEARD) and "from" not in keys


def _best(reads: Iterator[_ReadPhrase], past_of: datetime | None) -> _ReadPhrase | None:
    kept = [read for _, read in zip(range(_PHRASES_READ), reads, strict=False)]

    def burden(read: _ReadPhrase) -> int:
        since = read.window.since
        ahead = past_of is not None and since is not None and since.timestamp() > past_of.timestamp()
        return 2 * ahead + read.owner

    return min(kept, key=burden, default=None)


def _describes_event(event: AnchorPhrase, read: _ReadPhrase) -> bool:
    """Whether the calendar phrase only describes the event: "before I moved last year"."""
    return event.clause and event.relation != "during" and event.event <= read.first and read.last <= event.last


def _anchor_phrase(text: str, found: list[Word], event: AnchorPhrase) -> TimePhrase:
    start, end = found[event.first].start, found[event.last - 1].end
    told = text[found[event.event].start : end]
    return TimePhrase(text[start:end], start, end, None, told, event.relation)


def _phrases(grammar: Grammar) -> Iterator[_ReadPhrase]:
    place, tried, found = 0, 0, grammar.words
    while place < len(found) and tried < _STARTS_READ:
        starts = may_start(found[place])
        tried += starts
        try:
            read = _phrase(grammar, place) if starts else None
        except (OverflowError, ValueError):
            read = None  # further away than the calendar reaches
        if read is not None:
            yield read
        place = read.last if read is not None else place + 1


def _phrase(grammar: Grammar, place: int) -> _ReadPhrase | None:
    if (beyond := grammar.first("beyond", place)) is not None:
        end, span = beyond
        return _make_phrase(grammar, place, end, None if span.grain == "open" else span.since, span.until)
    ranged = range_at(grammar, place)
    if ranged is not None:
        return _make_phrase(grammar, place, ranged[0], ranged[1].since, ranged[1].until)
    lead = lead_at(grammar.words, place)
    if lead is not None and (read := _read_led_time(grammar, place, *lead)) is not None:
        return read
    bare = grammar.moment(place)
    if bare is None:
        return None
    bare = with_next(grammar, place, *bare)
    return _make_phrase(grammar, place, bare[0], None if _is_only_end(grammar, place) else bare[1].since, bare[1].until)


def _is_only_end(grammar: Grammar, place: int) -> bool:
    """Whether the time is only the end of a range: "from the first draft to today"."""
    before = [word.key for word in grammar.words[max(0, place - _FROM_TO) : place]]
    return before[-1:] == ["to"] and "from" in before


def _read_led_time(grammar: Grammar, place: int, start: int, kind: str) -> _ReadPhrase | None:
    word = grammar.words[place].key if start == place + 1 else kind
    if not _is_lead(grammar, place, start, word):
        return None
    if kind != "in" and grammar.words[start].key in _ABOUT:
        start += 1  # "since around February"
    read = _time_behind_lead(grammar, start, word, kind)
    if read is None or (kind == "in" and grammar.words[read[0] - 1].key == "ago"):
        return None  # "participate in | a month ago"
    end, span = with_next(grammar, start, *read) if kind == "in" else read
    behind = grammar.words[end].key if end < len(grammar.words) else ""
    if word == "from" and behind in ("on", "onward", "onwards"):
        end, kind = end + 1, "since"
    if kind in ("until", "before") and "end" in (word.key for word in grammar.words[start : start + 2]):
        kind = "by"  # "until the end of 2024"
    end_of = span.since if span.grain == "hour" else span.until  # "after 5pm", "by noon": that moment
    bounds: dict[str, tuple[datetime | None, datetime | None]] = {
        "in": (span.since, span.until),
        "since": (span.since, None),
        "after": (end_of, None),
        "until": (None, span.since),
        "before": (None, span.since),
        "by": (None, end_of),
    }
    return _make_phrase(grammar, place, end, *bounds[kind])


def _is_lead(grammar: Grammar, place: int, start: int, word: str) -> bool:
    """Whether the word introduces what follows, and does not end what precedes it: "what was I working on | last
    week".
    """
    if start >= len(grammar.words) or grammar.words[start - 1].closed:
        return False
    before = grammar.words[place - 1].key if place else ""
    if word in ("through", "by") and before in _GOES_BY:
        return False  # "what has gone through | today", "who dropped by | on Monday"
    if word == "until" and grammar.words[place].key == "up" and before in _UP_TO:
        return False  # "what was I up to | last weekend"
    return word not in _STRANDED or not _has_no_lead(grammar, start)


def _has_no_lead(grammar: Grammar, start: int) -> bool:
    """Whether the time is one that "on" or "at" never introduces: "lately", "yesterday", "last week"."""
    key, after = (word.key for word in (grammar.words[start : start + 2] * 2)[:2])
    return key in _NEVER_LED or (value_of("step", key) is not None and value_of("unit", after) not in (None, "day"))


def _time_behind_lead(grammar: Grammar, start: int, word: str, kind: str) -> FoundTime | None:
    """The time after a lead. "Since" looks back in any tense; a limit in the present ("due before July") is in the
    future.
    """
    seen = grammar.ahead
    if kind in ("since", "before", "until", "by"):
        grammar.ahead = 0 if kind == "since" else 2 * min(seen, 1)
    clocked = kind != "in" or (word in _AT and not seen)
    read = grammar.moment(start, word) or (grammar.first("clock_today", start) if clocked else None)
    if read is None and (kind != "in" or word in _AT):
        read = grammar.first("hour", start)
        read = read or (grammar.first("hour_alone", start) if kind in _BOUND_HOURS else None)
    grammar.ahead = seen
    return read


def _make_phrase(
    grammar: Grammar, first: int, last: int, since: datetime | None, until: datetime | None
) -> _ReadPhrase | None:
    window = Window(_in_zone(since, grammar.zone), _in_zone(until, grammar.zone))
    if window.since is not None and window.until is not None and window.since.timestamp() >= window.until.timestamp():
        return None
    return _ReadPhrase(first, last, window, grammar.words[last - 1].owner)


def _in_zone(moment: datetime | None, zone: tzinfo | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=zone)
