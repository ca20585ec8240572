"""Every statement of the `.sql` files as it goes to the server: each `{placeholder}` filled in every way the product fills it."""

import re
import string
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
from psycopg import sql

from engram.model.memory import CO_ACCESSED
from engram.store.postgres import neighbours, search, tenants
from engram.store.postgres.search import where
from engram.store.postgres.sql import _statements, statement
from engram.store.postgres.store import ORDER_BY_USE
from engram.store.protocol import Filters, Hops
from tests.postgres.one_shard import TENANT, Statement, tables

NOW = datetime(2026, 3, 1, tzinfo=UTC)
FRAGMENTS = {"hops_outbound", "hops_inbound", "hop_weight", "hop_given"}
"""Parts of other statements."""
FILLED = {
    "lexical", "near_among", "listed", "counted", "together", "near", "near_all", "near_scopes", "near_by_index", "links"
}  # fmt: skip
"""Templates that are filled here."""
METADATA = {"none": None, "text": "x", "truth": True, "number": 1.5, "list": ["x", 1], "nul": "\0"}
FILTERS = {
    "plain": Filters(),
    "all": Filters(kinds=("memory", "event"), statuses=None),
    "scope": Filters(scopes=("user",)),
    "scopes": Filters(scopes=("user", "global")),
    "types": Filters(types=("decision", "fact")),
    "parents": Filters(parents=("TASK-1", "TASK-2")),
    "roles": Filters(kinds=("event",), roles=("Ann",)),
    "pinned": Filters(pinned=True),
    "critical": Filters(critical=True),
    "tags": Filters(tags=("x",)),
    "domain": Filters(domain="ops"),
    "time": Filters(since=NOW, until=NOW),
    "known": Filters(known_at=NOW),
    "valid": Filters(valid_at=NOW),
    "as of": Filters(valid_at=NOW, as_of=True),
    **{f"metadata {name}": Filters(metadata={"key": value}) for name, value in METADATA.items()},
}
EVERYTHING = Filters(
    kinds=("memory", "event"), scopes=("user", "global"), types=("fact", "decision"), parents=("a", "b"), roles=("Ann",),
    pinned=True, critical=True, tags=("x",), domain="ops", since=NOW, until=NOW, known_at=NOW, valid_at=NOW,
    metadata={name: value for name, value in METADATA.items() if name != "nul"},
)  # fmt: skip
"""Two of a filter of everything: each filter meets each other one in one statement."""


def numbered(name: str, text: str | sql.Composed) -> Statement:
    """A statement with `$1` for its first value, as the server sees it."""
    places: dict[str, int] = {}
    plain = text if isinstance(text, str) else text.as_string(None)
    seen = re.sub(r"%\((\w+)\)[sbt]", lambda m: f"${places.setdefault(m.group(1), len(places) + 1)}", plain)
    return Statement(name, seen.replace("%%", "%"), frozenset({places["tenant"]} if "tenant" in places else ()))


def placeholders(text: str) -> set[str]:
    """The names in braces that a template leaves open."""
    try:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name and name.isidentifier()}
    except ValueError:  # braces of its own
        return set()


def conditions() -> Iterator[tuple[str, str]]:
    """Filters as conditions, by what they filter."""
    for name, filters in {**FILTERS, "everything": EVERYTHING, "as of all": replace(EVERYTHING, as_of=True)}.items():
        yield name, where(filters)[0]


@cache
def every_statement() -> list[Statement]:
    """All of them, each text once."""
    return list({made.text: made for made in _made()}.values())


def _made() -> Iterator[Statement]:
    for name, text in _statements().items():
        if not placeholders(text) and name not in FRAGMENTS:
            yield numbered(name, text)
    yield numbered("memory_slice for update", f"{statement('memory_slice')} FOR UPDATE")
    yield numbered("event_slice for update", f"{statement('event_slice')} FOR UPDATE")
    for kind, condition in conditions():
        for name in ("lexical", "near_among", "counted", "together"):
            yield numbered(f"{name} [{kind}]", statement(name).format(condition=condition))
        for order, uses in (("", ""), (" by use", ORDER_BY_USE)):
            yield numbered(f"listed{order} [{kind}]", statement("listed").format(condition=condition, uses=uses))
    yield from nearest_ones()
    yield from walks()
    for table in sorted(tables()):
        yield numbered(f"tenants.remove [{table}]", tenants.removal(table))


def nearest_ones() -> Iterator[Statement]:
    """The nearest of all by comparing and by the index, in some scopes and in all, for short and long vectors; alone and filtered."""
    parts: Any = SimpleNamespace(database=SimpleNamespace(tenant=TENANT))
    for way, dim, name in product(
        (neighbours.exact_search, neighbours.index_search), (4, 1536), ("plain", "scope", "scopes", "everything")
    ):
        filters = FILTERS.get(name, EVERYTHING)
        asked = way(parts, np.zeros(dim, dtype=np.float32), filters, 60, 1)
        for text, _ in asked.statements():
            yield numbered(f"nearest [{way.__name__} {dim} {name}]", text)
        for kind, condition in conditions() if (dim, name) == (4, "plain") else [(name, where(filters)[0])]:
            for text, _ in asked.statements_among(condition, {}):
                yield numbered(f"near [{way.__name__} {dim} {name}, {kind}]", text)


def walks() -> Iterator[Statement]:
    """Walks in every direction, along all, some and learned links, past every filter."""
    types = {"all": None, "some": ("semantic", "causal"), "learned": (CO_ACCESSED,), "both": (CO_ACCESSED, "semantic")}
    for direction, (followed, wanted) in product(("outbound", "inbound", "any"), types.items()):
        whole = direction == "any" and followed == "all"
        for kind, filters in {"everything": EVERYTHING, **(FILTERS if whole else {})}.items():
            hops = Hops(NOW, direction, wanted, 0.1, filters)
            yield numbered(f"links [{direction} {followed} {kind}]", search.links_statement(hops)[0])
