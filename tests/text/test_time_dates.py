"""Dates in questions."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from engram.text.time.dates import date_spans, without_dates
from tests.tables import table


def day(year: int, month: int, number: int) -> float:
    return datetime(year, month, number, tzinfo=UTC).timestamp()


@table(
    ("text", "since", "until", "rest"),
    [
        ("What did Ann do on 8 May, 2023?", day(2023, 5, 8), day(2023, 5, 9), "What did Ann do ?"),
        ("What happened on the 3rd of June 2021", day(2021, 6, 3), day(2021, 6, 4), "What happened"),
        ("Who called on May 8th, 2023", day(2023, 5, 8), day(2023, 5, 9), "Who called"),
        ("Deployed 2024-02-29 at noon", day(2024, 2, 29), day(2024, 3, 1), "Deployed at noon"),
        ("Where was Bob in December 2022?", day(2022, 12, 1), day(2023, 1, 1), "Where was Bob ?"),
        ("since Sept. 2020 everything", day(2020, 9, 1), day(2020, 10, 1), "everything"),
    ],
)
def test_a_date_gives_its_span_and_leaves_the_rest(text: str, since: float, until: float, rest: str) -> None:
    found = date_spans(text)
    assert [(span.since, span.until) for span in found] == [(since, until)]
    assert without_dates(text, found).split() == rest.split()


@table("text", ["May I come in?", "2023-13-01", "version 2023", "the march of time", ""])
def test_what_is_no_date_is_left_alone(text: str) -> None:
    assert date_spans(text) == []


def test_two_dates_are_two_spans() -> None:
    assert len(date_spans("between 1 March 2023 and 4 April 2023")) == 2


@given(st.text(max_size=200))
def test_any_text_can_be_read(text: str) -> None:
    found = date_spans(text)
    assert len(without_dates(text, found)) <= len(text) + len(found)
