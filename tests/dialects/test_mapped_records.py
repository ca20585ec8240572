"""Times in records of any shape."""

from typing import Any

import pytest

from engram.dialects.record_files import parse_timestamp
from engram.model.errors import InvalidInput
from tests.tables import table


@table(
    ("value", "wanted"),
    [
        ("20250301", "2025-03-01T00:00:00+00:00"),
        (20250301, "2025-03-01T00:00:00+00:00"),
        (" 2025-03-01 ", "2025-03-01T00:00:00+00:00"),
        (1740787200, "2025-03-01T00:00:00+00:00"),
        ("1740787200", "2025-03-01T00:00:00+00:00"),
        (1740787200.5, "2025-03-01T00:00:00.500000+00:00"),
        (1740787200500, "2025-03-01T00:00:00.500000+00:00"),
        ("1740787200500", "2025-03-01T00:00:00.500000+00:00"),
    ],
)
def test_a_time_is_a_date_or_counts_since_1970(value: Any, wanted: str) -> None:
    assert parse_timestamp("when", value).isoformat() == wanted


@table("value", ["2025", 2025, 0, -1, 12.5, True, "someday", "nan", "inf", [], {}])
def test_what_is_no_time_is_refused_and_never_1970(value: Any) -> None:
    with pytest.raises(InvalidInput, match="when must be a date"):
        parse_timestamp("when", value)
