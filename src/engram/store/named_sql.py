"""Statements kept in `.sql` files, each under a line `-- name: …`."""

import re

_NAMED = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)


def named_statements(text: str) -> dict[str, str]:
    """The statements of a file by name."""
    return {name: body.strip() for name, body in _NAMED.findall(text)}
