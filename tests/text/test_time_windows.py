"""When a question speaks of: its time phrase and the window it means."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from engram.text.time.windows import TimePhrase, Window, time_phrase
from tests.properties import examples
from tests.tables import table

BERLIN = ZoneInfo("Europe/Berlin")
AT = datetime(2024, 6, 12, 15, 30, tzinfo=BERLIN)  # a Wednesday
NOW = "2024-06-12T15:30:00.000001"
BACK_AND_FORTH = 20.0
"""Seconds of the processor: a slow machine needs a tenth of it, a rule that reads the text again from each place minutes."""


def read(text: str, at: datetime = AT) -> TimePhrase:
    phrase = time_phrase(text, at)
    assert phrase is not None, text
    return phrase


def window(since: str, until: str, zone: ZoneInfo = BERLIN) -> Window:
    ends = [datetime.fromisoformat(end).replace(tzinfo=zone) if end else None for end in (since, until)]
    return Window(ends[0], ends[1])


@table(
    ("phrase", "since", "until"),
    [
        ("today", "2024-06-12", "2024-06-13"),
        ("yesterday", "2024-06-11", "2024-06-12"),
        ("between 10 last night and 6 this morning", "2024-06-11T22:00", "2024-06-12T06:00"),
        ("between two and three yesterday afternoon", "2024-06-11T14:00", "2024-06-11T15:00"),
        ("between 10pm and 2am last night", "2024-06-11T22:00", "2024-06-12T02:00"),
        ("around eight yesterday evening", "2024-06-11T20:00", "2024-06-11T21:00"),
        ("on Monday between 4 and 6 pm", "2024-06-10T16:00", "2024-06-10T18:00"),
        ("from 2023 up to now", "2023-01-01", NOW),
        ("from May to the present day", "2024-05-01", NOW),
        ("from 2021 onwards", "2021-01-01", ""),
        ("month to date", "2024-06-01", NOW),
        ("this week so far", "2024-06-10", NOW),
        ("up until the end of May", "", "2024-06-01"),
        ("in the first ten days of May", "2024-05-01", "2024-05-11"),
        ("in the last two weeks of May", "2024-05-18", "2024-06-01"),
        ("in the closing months of 2023", "2023-10-01", "2024-01-01"),
        ("in the opening week of May", "2024-05-01", "2024-05-08"),
        ("in the latter half of May", "2024-05-16", "2024-06-01"),
        ("in the years 2020 through 2022", "2020-01-01", "2023-01-01"),
        ("in the course of 2023", "2023-01-01", "2024-01-01"),
        ("over the summer holidays in 2023", "2023-06-01", "2023-09-01"),
        ("in the week leading up to Easter", "2024-03-22", "2024-03-29"),
        ("on Black Friday", "2023-11-24", "2023-11-25"),
        ("the day before yesterday", "2024-06-10", "2024-06-11"),
        ("the day after tomorrow", "2024-06-14", "2024-06-15"),
        ("tonight", "2024-06-12T18:00", "2024-06-13T05:00"),
        ("this morning", "2024-06-12T05:00", "2024-06-12T12:00"),
        ("this afternoon", "2024-06-12T12:00", "2024-06-12T18:00"),
        ("this evening", "2024-06-12T18:00", "2024-06-13"),
        ("yesterday afternoon", "2024-06-11T12:00", "2024-06-11T18:00"),
        ("last night", "2024-06-11T18:00", "2024-06-12T05:00"),
        ("on Monday night", "2024-06-10T18:00", "2024-06-11T05:00"),
        ("on the morning of May 5th", "2024-05-05T05:00", "2024-05-05T12:00"),
        ("yesterday at 3pm", "2024-06-11T15:00", "2024-06-11T16:00"),
        ("at noon on Monday", "2024-06-10T12:00", "2024-06-10T13:00"),
        ("last week", "2024-06-03", "2024-06-10"),
        ("this week", "2024-06-10", "2024-06-17"),
        ("next week", "2024-06-17", "2024-06-24"),
        ("the previous week", "2024-06-03", "2024-06-10"),
        ("the week before last", "2024-05-27", "2024-06-03"),
        ("the week of May 5th", "2024-04-29", "2024-05-06"),
        ("last weekend", "2024-06-08", "2024-06-10"),
        ("next weekend", "2024-06-22", "2024-06-24"),
        ("last month", "2024-05-01", "2024-06-01"),
        ("last quarter", "2024-01-01", "2024-04-01"),
        ("this quarter", "2024-04-01", "2024-07-01"),
        ("next year", "2025-01-01", "2026-01-01"),
        ("the year before last", "2022-01-01", "2023-01-01"),
        ("two days ago", "2024-06-10", "2024-06-11"),
        ("twenty-one days ago", "2024-05-22", "2024-05-23"),
        ("3 weeks ago", "2024-05-20", "2024-05-27"),
        ("a couple of months ago", "2024-04-01", "2024-05-01"),
        ("a few days ago", "2024-06-08", "2024-06-11"),
        ("a day or two ago", "2024-06-10", "2024-06-12"),
        ("five years ago", "2019-01-01", "2020-01-01"),
        ("an hour ago", "2024-06-12T14:00", "2024-06-12T15:00"),
        ("half an hour ago", "2024-06-12T14:45", "2024-06-12T15:15"),
        ("20 minutes ago", "2024-06-12T15:05", "2024-06-12T15:15"),
        ("more than a year ago", "", "2023-06-12T15:30"),
        ("less than two weeks ago", "2024-05-29T15:30", NOW),
        ("in the last 3 days", "2024-06-09T15:30", NOW),
        ("over the past month", "2024-05-12T15:30", NOW),
        ("within the last hour", "2024-06-12T14:30", NOW),
        ("the past few weeks", "2024-05-22T15:30", NOW),
        ("in the last 24h", "2024-06-11T15:30", NOW),
        ("in recent months", "2024-03-12T15:30", NOW),
        ("in the next two weeks", "2024-06-12T15:30", "2024-06-26T15:30"),
        ("since Tuesday", "2024-06-11", ""),
        ("since March", "2024-03-01", ""),
        ("since 2024-05-01", "2024-05-01", ""),
        ("ever since yesterday", "2024-06-11", ""),
        ("since 9am", "2024-06-12T09:00", ""),
        ("from March onwards", "2024-03-01", ""),
        ("until Friday", "", "2024-06-07"),
        ("before June 3rd", "", "2024-06-03"),
        ("by last Friday", "", "2024-06-08"),
        ("after June 3rd", "2024-06-04", ""),
        ("after 2022", "2023-01-01", ""),
        ("between March and May", "2024-03-01", "2024-06-01"),
        ("between March and May 2022", "2022-03-01", "2022-06-01"),
        ("between November and January", "2023-11-01", "2024-02-01"),
        ("between May 3 and 10", "2024-05-03", "2024-05-11"),
        ("from Monday to Tuesday", "2024-06-10", "2024-06-12"),
        ("from 2021 to 2023", "2021-01-01", "2024-01-01"),
        ("between 2pm and 4pm yesterday", "2024-06-11T14:00", "2024-06-11T16:00"),
        ("between 2 and 4pm yesterday", "2024-06-11T14:00", "2024-06-11T16:00"),
        ("between 11 and 1pm yesterday", "2024-06-11T11:00", "2024-06-11T13:00"),
        ("yesterday between 2pm and 4pm", "2024-06-11T14:00", "2024-06-11T16:00"),
        ("from 9 to 5 on Monday", "2024-06-10T09:00", "2024-06-10T17:00"),
        ("between 10am and noon", "2024-06-12T10:00", "2024-06-12T12:00"),
        ("after 5pm yesterday", "2024-06-11T17:00", ""),
        ("by noon on Monday", "", "2024-06-10T12:00"),
        ("at half past three yesterday", "2024-06-11T15:30", "2024-06-11T16:30"),
        ("on Monday the 3rd", "2024-06-03", "2024-06-04"),
        ("on Friday the 5th", "2024-04-05", "2024-04-06"),
        ("on Monday the 6th of May", "2024-05-06", "2024-05-07"),
        ("between 1 and 5 April", "2024-04-01", "2024-04-06"),
        ("between the 3rd and 7th of May", "2024-05-03", "2024-05-08"),
        ("between May 3 and 10 June 2023", "2023-05-03", "2023-06-11"),
        ("April 3-5", "2024-04-03", "2024-04-06"),
        ("on April 3rd–5th, 2023", "2023-04-03", "2023-04-06"),
        ("in Jan-Mar 2023", "2023-01-01", "2023-04-01"),
        ("Mon-Tue", "2024-06-10", "2024-06-12"),
        ("in Sept '22", "2022-09-01", "2022-10-01"),
        ("in the summer of '98", "1998-06-01", "1998-09-01"),
        ("in 03/2023", "2023-03-01", "2023-04-01"),
        ("in H1", "2024-01-01", "2024-07-01"),
        ("on the first Monday in March", "2024-03-04", "2024-03-05"),
        ("on the last Friday of May", "2024-05-31", "2024-06-01"),
        ("on the second Tuesday of last month", "2024-05-14", "2024-05-15"),
        ("the Tuesday before Easter", "2024-03-26", "2024-03-27"),
        ("the Friday after May 5th", "2024-05-10", "2024-05-11"),
        ("in the week ending 10 May", "2024-05-04", "2024-05-11"),
        ("the week commencing 6 May", "2024-05-06", "2024-05-13"),
        ("three Fridays ago", "2024-05-24", "2024-05-25"),
        ("three summers ago", "2021-06-01", "2021-09-01"),
        ("two Christmases ago", "2022-12-24", "2022-12-27"),
        ("for most of March", "2024-03-01", "2024-04-01"),
        ("for the rest of the week", "2024-06-12T15:30", "2024-06-17"),
        ("two weeks from tomorrow", "2024-06-27", "2024-06-28"),
        ("in three days' time", "2024-06-15", "2024-06-16"),
        ("by end of day", "", "2024-06-13"),
        ("by EOD yesterday", "", "2024-06-12"),
        ("a month or so back", "2024-05-01", "2024-06-01"),
        ("the other night", "2024-06-05", "2024-06-12"),
        ("as late as March", "2024-03-01", "2024-04-01"),
        ("since around February", "2024-02-01", ""),
        ("on Monday", "2024-06-10", "2024-06-11"),
        ("on Wednesday", "2024-06-05", "2024-06-06"),
        ("last Tuesday", "2024-06-11", "2024-06-12"),
        ("this Friday", "2024-06-14", "2024-06-15"),
        ("next Monday", "2024-06-17", "2024-06-18"),
        ("on Tuesday last week", "2024-06-04", "2024-06-05"),
        ("last week on Tuesday", "2024-06-04", "2024-06-05"),
        ("in March", "2024-03-01", "2024-04-01"),
        ("in June", "2024-06-01", "2024-07-01"),
        ("in July", "2023-07-01", "2023-08-01"),
        ("last June", "2023-06-01", "2023-07-01"),
        ("in March 2022", "2022-03-01", "2022-04-01"),
        ("in March of last year", "2023-03-01", "2023-04-01"),
        ("last year in March", "2023-03-01", "2023-04-01"),
        ("in 2023", "2023-01-01", "2024-01-01"),
        ("in the 90s", "1990-01-01", "2000-01-01"),
        ("in early March", "2024-03-01", "2024-03-11"),
        ("in mid-March", "2024-03-11", "2024-03-21"),
        ("in late March 2022", "2022-03-21", "2022-04-01"),
        ("early last week", "2024-06-03", "2024-06-05"),
        ("at the beginning of the year", "2024-01-01", "2024-05-01"),
        ("at the end of last month", "2024-05-21", "2024-06-01"),
        ("in the second half of 2023", "2023-07-01", "2024-01-01"),
        ("the first week of May", "2024-05-01", "2024-05-08"),
        ("on May 5", "2024-05-05", "2024-05-06"),
        ("on May 5th, 2022", "2022-05-05", "2022-05-06"),
        ("on 5 May 2022", "2022-05-05", "2022-05-06"),
        ("on the 5th of May", "2024-05-05", "2024-05-06"),
        ("on the 20th", "2024-05-20", "2024-05-21"),
        ("on Monday, June 3", "2024-06-03", "2024-06-04"),
        ("on 25/03/2024", "2024-03-25", "2024-03-26"),
        ("on 03/25/2024", "2024-03-25", "2024-03-26"),
        ("in 2024-03", "2024-03-01", "2024-04-01"),
        ("in Q3", "2023-07-01", "2023-10-01"),
        ("in Q3 2022", "2022-07-01", "2022-10-01"),
        ("in Q3/2022", "2022-07-01", "2022-10-01"),
        ("in Q3'22", "2022-07-01", "2022-10-01"),
        ("in 2022-Q3", "2022-07-01", "2022-10-01"),
        ("this coming weekend", "2024-06-15", "2024-06-17"),
        ("this past weekend", "2024-06-08", "2024-06-10"),
        ("in the third quarter of 2022", "2022-07-01", "2022-10-01"),
        ("in the summer", "2024-06-01", "2024-09-01"),
        ("last summer", "2023-06-01", "2023-09-01"),
        ("in the fall of 2022", "2022-09-01", "2022-12-01"),
        ("over the holidays", "2023-12-24", "2024-01-02"),
        ("on New Year's Eve", "2023-12-31", "2024-01-01"),
        ("earlier today", "2024-06-12", NOW),
        ("earlier this week", "2024-06-10", NOW),
        ("later this week", "2024-06-12T15:30", "2024-06-17"),
        ("so far this year", "2024-01-01", NOW),
        ("recently", "2024-05-29T15:30", NOW),
        ("the other day", "2024-06-05", "2024-06-12"),
        ("in March and April", "2024-03-01", "2024-05-01"),
        ("on Monday and Tuesday", "2024-06-10", "2024-06-12"),
        ("in 2022 and 2023", "2022-01-01", "2024-01-01"),
        ("in 1850", "1850-01-01", "1851-01-01"),
        ("in March 1789", "1789-03-01", "1789-04-01"),
        ("in the nineties", "1990-01-01", "2000-01-01"),
        ("2018-2020", "2018-01-01", "2021-01-01"),
        ("at Easter", "2024-03-29", "2024-04-02"),
        ("on Easter", "2024-03-31", "2024-04-01"),
        ("on Good Friday 2025", "2025-04-18", "2025-04-19"),
        ("on Easter Monday 2000", "2000-04-24", "2000-04-25"),
        ("on Thanksgiving", "2023-11-23", "2023-11-24"),
        ("on Memorial Day", "2024-05-27", "2024-05-28"),
        ("on Mother's Day", "2024-05-12", "2024-05-13"),
        ("on Christmas", "2023-12-25", "2023-12-26"),
        ("at Christmas", "2023-12-24", "2023-12-27"),
        ("two days before Christmas", "2023-12-22", "2023-12-23"),
        ("a week after May 5th", "2024-05-12", "2024-05-13"),
        ("the week before Easter", "2024-03-22", "2024-03-29"),
        ("a year ago today", "2023-06-12", "2023-06-13"),
        ("in the last 3 sprints", "2024-05-01T15:30", NOW),
        ("in the first half of May", "2024-05-01", "2024-05-16"),
        ("in week 20", "2024-05-13", "2024-05-20"),
        ("in week 40", "2023-10-02", "2023-10-09"),
        ("in calendar week 1 of 2021", "2021-01-04", "2021-01-11"),
        ("on 25/3", "2024-03-25", "2024-03-26"),
        ("in jan", "2024-01-01", "2024-02-01"),
        ("on fri", "2024-06-07", "2024-06-08"),
        ("at 14:00", "2024-06-12T14:00", "2024-06-12T15:00"),
        ("at 6pm", "2024-06-11T18:00", "2024-06-11T19:00"),
        ("yesterday at 3 o'clock", "2024-06-11T15:00", "2024-06-11T16:00"),
        ("on Monday and Wednesday last week", "2024-06-03", "2024-06-06"),
        ("on Monday, Wednesday and Friday last week", "2024-06-03", "2024-06-08"),
        ("on Thursday and Friday", "2024-06-06", "2024-06-08"),
        ("on Tuesday and Thursday", "2024-06-04", "2024-06-07"),
        ("on Friday and on Monday", "2024-06-07", "2024-06-11"),
        ("in March and May 2023", "2023-03-01", "2023-06-01"),
        ("this time last year", "2023-06-01", "2023-07-01"),
        ("this time last month", "2024-05-06", "2024-05-13"),
        ("this time last week", "2024-06-05", "2024-06-06"),
        ("this time two years ago", "2022-06-01", "2022-07-01"),
        ("this time yesterday", "2024-06-11T15:00", "2024-06-11T16:00"),
        ("half a year ago", "2023-12-01", "2024-01-01"),
        ("since 9", "2024-06-12T09:00", ""),
        ("since 5", "2024-06-11T17:00", ""),
        ("since 9 this morning", "2024-06-12T09:00", ""),
        ("after 3 in the afternoon on Monday", "2024-06-10T15:00", ""),
        ("by 5 on Friday", "", "2024-06-07T17:00"),
        ("at 9 yesterday", "2024-06-11T09:00", "2024-06-11T10:00"),
        ("in Easter week", "2024-03-25", "2024-04-01"),
        ("in the week of Easter", "2024-03-25", "2024-04-01"),
        ("in Christmas week 2022", "2022-12-19", "2022-12-26"),
        ("the Monday after Easter", "2024-04-01", "2024-04-02"),
    ],
)
def test_a_phrase_means_its_window(phrase: str, since: str, until: str) -> None:
    found = read(f"What did Ann do {phrase}?")
    assert (found.text, found.window) == (phrase, window(since, until))


@table(
    "text",
    [
        "May I march in?",
        "before may I ask",
        "What is my last name?",
        "current password for March AFB",
        "Is the second replica up?",
        "How hot is the sun?",
        "Did he fall?",
        "Is spring boot configured?",
        "What did I order at the last minute?",
        "Did I sign on 05/03/2024?",
        "What was in report-2024-05-01.pdf?",
        "Which port, 2023 or 8080?",
        "We saw a jump in 2000 rows",
        "What do I do on Mondays?",
        "What is our policy on Sunday shifts?",
        "What did I do in the past?",
        "Which is my most recently used key?",
        "When did I move?",
        "Do you know when I moved?",
        "What do I check before I deploy?",
        "What should happen after each release?",
        "Where was my last day at Acme?",
        "Since I am vegan, what can I eat?",
        "Since when do I live here?",
        "What did we ship last sprint?",
        "What was our revenue in FY23?",
        "What was our revenue in Q3 FY23?",
        "Which version came after 3?",
        "Who came by 5?",
        "Did I pass the test on 3/4?",
        "What happened 500000000 years ago",
        "2024-13-45",
        "",
    ],
)
def test_what_only_looks_like_a_time_is_none(text: str) -> None:
    assert time_phrase(text, AT) is None


@table(
    ("text", "phrase", "anchor", "relation"),
    [
        ("Where did I live before I moved?", "before I moved", "I moved", "before"),
        ("Who was my boss after the merger?", "after the merger", "the merger", "after"),
        ("What have we shipped since the launch?", "since the launch", "the launch", "after"),
        ("What was it when I lived in Berlin?", "when I lived in Berlin", "I lived in Berlin", "during"),
        ("When I lived in Berlin, what was my bank?", "When I lived in Berlin", "I lived in Berlin", "during"),
        ("What did I use until we migrated to uv?", "until we migrated to uv", "we migrated to uv", "before"),
        ("What was it before I moved last year?", "before I moved last year", "I moved last year", "before"),
        ("What was it before it was extended?", "before it was extended", "it was extended", "before"),
        ("What did you do the day before the launch?", "the day before the launch", "the launch", "before"),
    ],
)
def test_a_time_told_by_an_event_gives_the_event(text: str, phrase: str, anchor: str, relation: str) -> None:
    found = read(text)
    assert (found.text, found.anchor, found.relation, found.window) == (phrase, anchor, relation, None)


@table(
    ("text", "since", "until"),
    [
        ("What do I have on Friday?", "2024-06-14", "2024-06-15"),
        ("Where will I be in July?", "2024-07-01", "2024-08-01"),
        ("What is due before July?", "", "2024-07-01"),
        ("What are we doing in two weeks?", "2024-06-24", "2024-07-01"),
        ("What bills come in August?", "2024-08-01", "2024-09-01"),
        ("What are the figures in May?", "2024-05-01", "2024-06-01"),
        ("What is due Friday week?", "2024-06-21", "2024-06-22"),
        ("What is due a week on Friday?", "2024-06-21", "2024-06-22"),
        ("Where will I be this time next month?", "2024-07-08", "2024-07-15"),
        ("Which invoices have to be paid by Friday?", "", "2024-06-15"),
    ],
)
def test_a_question_that_looks_ahead_gets_the_window_ahead(text: str, since: str, until: str) -> None:
    assert read(text).window == window(since, until)


@table(
    ("text", "phrase"),
    [
        ("What did I say yesterday about the trip on Friday?", "yesterday"),
        ("What did I say about Friday's release last week?", "last week"),
        ("What did I say about the trip next week two days ago?", "two days ago"),
        ("Where did we eat when we met last week?", "last week"),
        ("What was I working on last week?", "last week"),
        ("Who was late on Monday?", "on Monday"),
        ("What have you been working on lately?", "lately"),
    ],
)
def test_of_several_phrases_the_one_of_the_verb_counts(text: str, phrase: str) -> None:
    assert read(text).text == phrase


def test_a_day_is_the_zones_own_where_the_clocks_change() -> None:
    found = read("yesterday", datetime(2024, 4, 1, 9, 0, tzinfo=BERLIN)).window
    assert found is not None and found.since is not None and found.until is not None
    assert found.until.timestamp() - found.since.timestamp() == 23 * 3600


def test_hours_are_counted_on_the_clock_where_it_changes() -> None:
    at = datetime(2024, 3, 31, 4, 0, tzinfo=BERLIN)
    found = read("in the last 3 hours", at).window
    assert found is not None and found.since is not None
    assert at.timestamp() - found.since.timestamp() == 3 * 3600


def test_what_happened_as_the_question_was_asked_is_in_the_window() -> None:
    found = read("in the last two days").window
    assert found is not None and found.since is not None and found.until is not None
    assert found.since <= AT < found.until == AT + timedelta(microseconds=1)


PIECES = st.sampled_from(
    [
        "what",
        "did",
        "I",
        "say",
        "was",
        "on",
        "in",
        "the",
        "last",
        "this",
        "next",
        "past",
        "two",
        "3",
        "a",
        "couple",
        "of",
        "few",
        "days",
        "weeks",
        "months",
        "years",
        "ago",
        "since",
        "until",
        "before",
        "after",
        "by",
        "between",
        "and",
        "from",
        "to",
        "March",
        "may",
        "May",
        "5th",
        "2024",
        ",",
        "?",
        "Monday",
        "sun",
        "Q3",
        "early",
        "mid",
        "late",
        "end",
        "week",
        "weekend",
        "yesterday",
        "today",
        "tonight",
        "morning",
        "at",
        "3pm",
        "noon",
        "when",
        "while",
        "during",
        "moved",
        "half",
        "or",
        "first",
        "second",
        "summer",
        "Christmas",
        "so",
        "far",
        "earlier",
        "recently",
        "more",
        "than",
        "'",
        "-",
    ]
)
ZONES = st.sampled_from(
    (UTC, BERLIN, ZoneInfo("America/Sao_Paulo"), ZoneInfo("Asia/Kolkata"), ZoneInfo("Pacific/Apia"))
)
TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=ZONES)
TEXTS = st.one_of(st.text(max_size=300), st.lists(PIECES, max_size=24).map(" ".join))


@examples(200)
@given(TEXTS, TIMES)
def test_any_text_at_any_time_gives_a_sound_phrase_or_none(text: str, at: datetime) -> None:
    phrase = time_phrase(text, at)
    if phrase is None:
        return
    assert phrase.text == text[phrase.start : phrase.end] != ""
    assert (phrase.window is None) == bool(phrase.anchor) == bool(phrase.relation)
    if phrase.window is None:
        return
    ends = [end for end in (phrase.window.since, phrase.window.until) if end is not None]
    assert ends and all(end.tzinfo is at.tzinfo for end in ends)
    assert len(ends) == 1 or ends[0].timestamp() < ends[1].timestamp()


@table(
    "piece",
    [
        "early ",
        "about ",
        "Monday ",
        "a good ",
        "when ",
        "before ",
        "the ",
        "last ",
        "from ",
        "1",
        "-",
        "a",
        "so far ",
        "May 5 ",
        "mid-",
        "since 9 ",
        "on Monday, ",
        "on Monday and ",
        "this time ",
        "Easter week ",
        "—",
        " ",
    ],
)
def test_a_hundred_thousand_characters_are_read_at_once(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    started = time.process_time()
    time_phrase(text, AT)
    assert time.process_time() - started < BACK_AND_FORTH


@table(
    ("utc", "hours"),
    [("2026-11-01T08:30", 1), ("2026-11-01T09:30", 1), ("2026-11-01T09:30", 2), ("2026-11-01T08:59:59.999999", 1)],
)
def test_a_rolling_window_ends_in_the_same_of_two_equal_hours(utc: str, hours: int) -> None:
    asked = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    at = asked.astimezone(ZoneInfo("America/Los_Angeles"))
    found = read(f"What did we do in the last {hours} hours?", at).window
    assert found is not None and found.since is not None and found.until is not None
    assert found.until.astimezone(UTC) == asked + timedelta(microseconds=1)
    assert found.since.astimezone(UTC) == asked - timedelta(hours=hours)
    now = read("What did we do from May to now?", at).window
    assert now is not None and now.until is not None
    assert now.until.astimezone(UTC) == asked + timedelta(microseconds=1)
