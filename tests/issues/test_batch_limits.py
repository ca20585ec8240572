"""`add_batch` checks the limits of each item: the error names the item, and `on_error="skip"` stores the others."""

from typing import Any

import pytest

from engram import Engram
from engram.model.errors import InvalidInput, SecretRefused

TOO_LARGE: tuple[dict[str, Any], ...] = (
    {"situation": "s" * 5_000},
    {"tags": ["t" * 1_001]},
    {"rationale": "r" * 32_001},
    {"form": {"subject": "s" * 5_000, "predicate": "is", "object": "long"}},
)
TOKEN = "ghp_" + "0123456789abcdefABCDEF0123456789abcd"


@pytest.mark.parametrize("fields", TOO_LARGE, ids=lambda fields: str(next(iter(fields))))
def test_an_item_that_is_too_large_is_named_or_skipped(fields: dict[str, Any]) -> None:
    items: list[dict[str, Any]] = [{"statement": "fine one"}, {"statement": "fact about oak", **fields}]
    with Engram.open(ephemeral=True) as mem:
        with pytest.raises(InvalidInput, match=r"items\[1\] \(“fact about oak”\).*maximum"):
            mem.add_batch(items)
        stored = mem.add_batch(items, on_error="skip")
        assert [memory.statement for memory in stored] == ["fine one"]
        assert [(item.index, item.excerpt) for item in stored.skipped] == [(1, "fact about oak")]


def test_a_secret_in_metadata_is_reported_with_the_beginning_of_the_statement() -> None:
    items: list[dict[str, Any]] = [{"statement": "fact about oak", "metadata": {"note": TOKEN}}]
    with Engram.open(ephemeral=True) as mem, pytest.raises(SecretRefused, match=r"items\[0\] \(“fact about oak”\)"):
        mem.add_batch(items)


def test_a_secret_in_the_statement_is_not_quoted() -> None:
    items: list[dict[str, Any]] = [{"statement": f"the token is {TOKEN}"}]
    with Engram.open(ephemeral=True) as mem:
        assert mem.add_batch(items, on_error="skip").skipped[0].excerpt == ""
