"""The clock and the source of randomness, where none is injected."""

import os
from datetime import UTC, datetime


def utc_now() -> datetime:
    """Now, to the millisecond, as a person can still read it in a file."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def random_hex(size: int) -> str:
    """Random bytes as hex digits."""
    return os.urandom(size).hex()
