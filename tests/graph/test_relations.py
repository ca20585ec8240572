"""The registry of relations, and what may be asked of the graph."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engram.dialects.engram_yaml import _ASSOCIATION, from_mapping
from engram.dialects.fields import Block
from engram.graph.graph import check_metadata, check_weight, hops
from engram.model import relations
from engram.model.arguments import checked_limit
from engram.model.errors import InvalidInput
from engram.model.memory import LIVE_STATUSES
from tests.tables import table

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def test_every_word_of_the_design_is_known() -> None:
    known = set(relations.known_relations())
    assert {"semantic", "temporal", "causal", "co_accessed", "entity", "related_to", "supports", "contradicts"} <= known


def test_an_unknown_relation_is_refused_with_the_known_ones_and_how_to_add_one() -> None:
    with pytest.raises(InvalidInput, match=r"'admires'; known: .*supports.*register_relation"):
        relations.relation("admires")


@pytest.mark.parametrize("name", ["supersedes", "superseded_by"])
def test_succession_is_no_relation_to_be_made(name: str) -> None:
    with pytest.raises(InvalidInput, match="use `revise`"):
        relations.relation(name)
    with pytest.raises(InvalidInput, match="use `revise`"):
        relations.register_relation(name)


def test_a_relation_of_ones_own_can_be_registered_and_registered_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_REGISTRY", dict(relations._REGISTRY))
    relations.register_relation("reviewed_by")
    relations.register_relation("reviewed_by")
    assert relations.relation("reviewed_by") == "reviewed_by"


@table("name", ["", "Reviewed", "reviewed by", "a" * 49, "—→", "9th", None, 3])
def test_a_name_that_is_none_is_not_registered(name: Any) -> None:
    with pytest.raises(InvalidInput, match="not a valid relation name"):
        relations.register_relation(name)


@pytest.mark.parametrize("name", [None, 3, ["supports"], {}])
def test_what_is_no_text_is_no_relation(name: Any) -> None:
    with pytest.raises(InvalidInput, match="unknown relation"):
        relations.relation(name)


@table("weight", [0, 0.0, -1, -0.5, float("nan"), float("inf"), -float("inf"), 10**400, 1e7, 1e-9, True, "1", None])
def test_a_weight_no_path_can_be_reckoned_with_is_refused(weight: Any) -> None:
    with pytest.raises(InvalidInput, match="weight"):
        check_weight(weight)


def test_a_whole_number_is_a_weight() -> None:
    assert check_weight(2) == 2.0


@table("metadata", [[], "text", {1: "a"}, {"a": float("nan")}, {"a": object()}, {"a": "x" * 20_000}])
def test_metadata_that_no_file_could_hold_is_refused(metadata: Any) -> None:
    with pytest.raises(InvalidInput, match="metadata"):
        check_metadata(metadata)


@table("limit", [0, -1, 1001, 2.0, True, "3", None])
def test_a_limit_is_a_whole_number_from_one(limit: Any) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        checked_limit(limit, "limit")


@table(
    ("wrong", "said"),
    [
        ({"direction": "up"}, "outbound, inbound, any"),
        ({"types": ["admires"]}, "unknown relation"),
        ({"types": "admires"}, "unknown relation"),
        ({"min_weight": -0.1}, "min_weight"),
        ({"min_weight": float("nan")}, "min_weight"),
        ({"min_weight": 10**400}, "min_weight"),
        ({"status": "alive"}, "unknown status"),
        ({"scope": "no such scope"}, "scope"),
    ],
)
def test_what_cannot_be_asked_is_said(wrong: dict[str, Any], said: str) -> None:
    asked = {"direction": "any", "types": None, "min_weight": 0.0, "status": LIVE_STATUSES, "scope": None, **wrong}
    with pytest.raises(InvalidInput, match=said):
        hops(**asked, now=NOW)


def test_one_word_stands_for_a_list_of_one() -> None:
    asked = hops("any", "supports", 0, "archived", "user", NOW)
    assert (asked.types, asked.filters.statuses, asked.filters.scopes) == (("supports",), ("archived",), ("user",))


def test_any_status_asks_for_what_is_no_longer_in_force_and_no_longer_true() -> None:
    asked = hops("any", None, 0, "any", None, NOW)
    assert (asked.filters.statuses, asked.filters.valid_at) == (None, None)
    assert hops("any", None, 0, None, None, NOW).filters.valid_at == NOW


@table(
    "link",
    [
        {"target": "ENG-1", "type": "supports", "strength": 0.5},
        {"target": "ENG-1", "type": "supports", "strength": 0.5, "weight": 2},
        {"target": "ENG-1", "type": "supports", "strength": 0.5, "weight": 0.25},
        {"target": "ENG-1", "type": "supports", "strength": 1, "weight": 0.25},
        {"target": "ENG-1", "type": "supports", "strength": 0.5, "confidence": 0.5},
        {"target": "ENG-1", "type": "supports", "strength": 0.5, "last_reinforced": "2026-03-01T09:00:00Z"},
        {"target": "ENG-1", "type": "supports", "strength": 0.5, "metadata": {"by": "Ann"}},
        {"target": "ENG-1", "type": "supports"},
        {"target": 7, "type": "supports", "strength": 0.5},
    ],
)
def test_a_link_read_at_once_is_the_one_the_table_reads(link: dict[str, Any]) -> None:
    record = {"id": "ENG-2", "statement": "x", "associations": [link]}
    (read,) = from_mapping(record).associations
    assert read == Block.read_item(_ASSOCIATION, link)


@table(
    ("link", "said"),
    [
        ({"type": "supports", "strength": 0.5, "weight": 1.0}, "associations.*target"),
        ({"target": "ENG-1", "type": "supports", "strength": 1.5}, r"associations.*strength"),
        ({"target": "ENG-1", "type": "supports", "strength": 0.5, "weight": float("nan")}, "associations.*weight"),
        ({"target": "ENG-1", "type": "supports", "strength": 0.5, "weight": True}, "associations.*weight"),
        ({"target": "ENG-1", "type": "supports", "strength": 0.5, "weight": "2"}, "associations.*weight"),
        ("ENG-1", "associations"),
    ],
)
def test_a_link_that_cannot_be_read_is_named(link: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        from_mapping({"id": "ENG-2", "statement": "x", "associations": [link]})
