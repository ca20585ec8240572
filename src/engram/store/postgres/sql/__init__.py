"""All statements of the Postgres backend, by name."""

from functools import cache
from importlib import resources

from engram.store.sql import named_statements


@cache
def statement(name: str) -> str:
    """A statement from one of the `.sql` files in this folder."""
    return _statements()[name]


@cache
def _statements() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".sql"):
            found |= named_statements(file.read_text("utf-8"))
    return found
