"""Every statement the Postgres backend runs, by name."""

import re
from functools import cache
from importlib import resources

_NAMED = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.DOTALL | re.MULTILINE)


@cache
def statement(name: str) -> str:
    """A statement of one of the `.sql` files beside this module."""
    return _statements()[name]


@cache
def _statements() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in resources.files(__package__).iterdir():
        if file.name.endswith(".sql"):
            found |= {name: body.strip() for name, body in _NAMED.findall(file.read_text("utf-8"))}
    return found
