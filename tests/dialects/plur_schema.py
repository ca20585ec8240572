"""PLUR's schema (generation 2) as a checker of its own, and strategies for entries that PLUR may have written."""

import re
from typing import Any

from hypothesis import strategies as st

from .memories import text

ID = re.compile(r"^(ENG|ABS|META)-[A-Za-z0-9-]+$")
NULLABLE = {"pack", "abstract", "derived_from", "polarity"}
ENTITY_TYPES = (
    "person",
    "organization",
    "technology",
    "concept",
    "project",
    "tool",
    "place",
    "event",
    "standard",
    "other",
)


def _is(kind: type | tuple[type, ...]) -> Any:
    return lambda value: isinstance(value, kind) and not (isinstance(value, bool) and kind is not bool)


def _between(low: float, high: float, kind: Any = (int, float)) -> Any:
    return lambda value: _is(kind)(value) and low <= value <= high


def _one_of(*words: str) -> Any:
    return lambda value: value in words


def _list_of(check: Any) -> Any:
    return lambda value: isinstance(value, list) and all(map(check, value))


def _block(required: dict[str, Any], optional: dict[str, Any], extra: bool = False) -> Any:
    def check(value: Any) -> bool:
        fields = {**required, **optional}
        return (
            isinstance(value, dict)
            and required.keys() <= value.keys()
            and (extra or value.keys() <= fields.keys())
            and all(fields[key](item) for key, item in value.items() if key in fields)
        )

    return check


_text = _is(str)
_count = _between(0, float("inf"), int)
_unit = _between(0, 1)
ENTRY = _block(
    {
        "id": lambda value: isinstance(value, str) and ID.match(value) is not None,
        "status": _one_of("active", "dormant", "retired", "candidate"),
        "type": _one_of("behavioral", "terminological", "procedural", "architectural"),
        "scope": _text,
        "statement": lambda value: isinstance(value, str) and value != "",
    },
    {
        "version": _between(1, 100, int),
        "consolidated": _is(bool),
        "created_at": _text,
        "updated_at": _text,
        "rationale": _text,
        "source": _text,
        "derivation_count": _count,
        "domain": _text,
        "tags": _list_of(_text),
        "activation": _block(
            {"retrieval_strength": _unit, "storage_strength": _unit, "frequency": _count, "last_accessed": _text},
            {},
            True,
        ),
        "relations": _block({}, {"supersedes": _list_of(_text), "superseded_by": _list_of(_text)}, True),
        "associations": _list_of(
            _block(
                {
                    "target_type": _one_of("engram", "document"),
                    "target": _text,
                    "strength": _between(0, 0.95),
                    "type": _one_of("semantic", "temporal", "causal", "co_accessed"),
                },
                {"updated_at": _text},
                True,
            )
        ),
        "knowledge_anchors": _list_of(
            _block({"path": _text}, {"snippet": lambda value: _text(value) and len(value) <= 200}, True)
        ),
        "feedback_signals": _block({}, dict.fromkeys(("positive", "negative", "neutral"), _count), True),
        "entities": _list_of(_block({"name": _text, "type": _one_of(*ENTITY_TYPES)}, {"uri": _text})),
        "temporal": _block(
            {"learned_at": _text}, {"valid_from": _text, "valid_until": _text, "ingested_at": _text}, True
        ),
        "episodic": _block(
            {},
            {"emotional_weight": _between(1, 10, int), "confidence": _between(1, 10, int), "trigger_context": _text},
            True,
        ),
        "content_hash": lambda value: re.fullmatch("[0-9a-f]{64}", value) is not None,
        "pinned": _is(bool),
    },
    extra=True,
)

_dates = st.dates().map(lambda day: day.isoformat())
_instants = st.datetimes().map(lambda time: time.isoformat(timespec="milliseconds") + "Z")
_ids = st.from_regex(r"\AENG-2026-11-[0-3][0-9]-[0-9]{3}\Z")
_texts = st.lists(text, max_size=2)


def _some(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(required, optional=optional)


entries = _some(
    {
        "id": _ids,
        "status": st.sampled_from(("active", "dormant", "retired", "candidate")),
        "type": st.sampled_from(("behavioral", "terminological", "procedural", "architectural")),
        "scope": text,
        "statement": text.filter(bool),
    },
    {
        "version": st.just(2),
        "consolidated": st.booleans(),
        "visibility": st.sampled_from(("private", "public", "template")),
        "created_at": _instants,
        "updated_at": _instants,
        "rationale": text,
        "contraindications": _texts,
        "source": text,
        "derivation_count": st.integers(0, 9),
        "pack": st.none() | text,
        "abstract": st.none(),
        "derived_from": st.none() | _ids,
        "knowledge_type": _some({"memory_class": st.just("semantic"), "cognitive_level": st.just("apply")}, {}),
        "domain": text,
        "tags": _texts,
        "activation": _some(
            {
                "retrieval_strength": st.floats(0, 1),
                "storage_strength": st.floats(0, 1) | st.just(1),
                "frequency": st.integers(0, 99),
                "last_accessed": _dates | _instants,
            },
            {},
        ),
        "relations": _some(
            {}, {name: st.lists(_ids, max_size=2) for name in ("broader", "conflicts", "supersedes", "superseded_by")}
        ),
        "associations": st.lists(
            _some(
                {
                    "target_type": st.sampled_from(("engram", "document")),
                    "target": _ids,
                    "strength": st.floats(0, 0.95),
                    "type": st.sampled_from(("semantic", "temporal", "causal", "co_accessed")),
                },
                {"updated_at": _dates | _instants},
            ),
            max_size=2,
        ),
        "knowledge_anchors": st.lists(
            _some(
                {"path": text},
                {
                    "relevance": st.sampled_from(("primary", "supporting", "example")),
                    "snippet": st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
                    "snippet_extracted_at": _dates,
                },
            ),
            max_size=2,
        ),
        "dual_coding": _some({"example": text}, {"analogy": text}),
        "provenance": _some({"origin": text, "signature": st.none()}, {"chain": _texts}),
        "feedback_signals": _some({}, dict.fromkeys(("positive", "negative", "neutral"), st.integers(0, 9))),
        "entities": st.lists(_some({"name": text, "type": st.sampled_from(ENTITY_TYPES)}, {"uri": text}), max_size=2),
        "temporal": _some(
            {"learned_at": _dates | _instants}, {"valid_from": _dates, "valid_until": _instants, "ingested_at": _dates}
        ),
        "episodic": _some(
            {},
            {
                "emotional_weight": st.integers(1, 10),
                "confidence": st.integers(1, 10),
                "trigger_context": text,
                "journal_ref": text,
            },
        ),
        "polarity": st.sampled_from(("do", "dont", None)),
        "commitment": st.sampled_from(("exploring", "leaning", "decided", "locked", "draft")),
        "write_count": st.integers(0, 9),
        "sources": st.lists(_some({"scope": text, "session_id": st.none(), "stored_at": _instants}, {}), max_size=1),
        "structured_data": st.dictionaries(text, text | st.integers(), max_size=2),
        "summary": text,
        "pinned": st.booleans(),
        "x_custom": st.dictionaries(text, st.none() | _texts, max_size=2),
    },
)
