"""Hypothesis strategies for memories with every field, and for text that YAML readers like to misread."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from engram.model.memory import (
    STATUSES,
    Activation,
    Anchor,
    Association,
    Evidence,
    Feedback,
    Memory,
)
from engram.rules.labels import normalize_cues

MISREAD = (
    *("2026-01-31", "2026-01-31T10:00:00Z", "2001-12-14 21:59:43.10 -5", "12:30:45", "190:20:30", "1:30.5"),
    *("yes", "No", "ON", "off", "y", "N", "true", "False", "TRUE", "null", "Null", "~", "", "=", "<<"),
    *("0o14", "014", "0x1F", "0b11", "1_000", "1e3", "1.", ".5", "+1", "-0", "1.10", ".inf", "-.Inf", ".NaN"),
    *(
        " leading",
        "trailing ",
        "\ttab",
        "tab\t",
        "a: b",
        "a:b",
        "a :b",
        "a:",
        "a #b",
        "a#b",
        "#a",
        "- a",
        "-a",
        "--- a",
    ),
    *(
        "---",
        "...",
        "? a",
        "?a",
        "[a",
        "]",
        "{a",
        "}",
        "a, b",
        "a]b",
        "&a",
        "*a",
        "!a",
        "!!str a",
        "|",
        ">",
        "|-",
        "%a",
    ),
    *(
        "@a",
        "`a",
        "'a'",
        '"a"',
        "it's",
        'a "b" c',
        "a\\nb",
        "\\",
        "C:\\dir",
        "a\nb",
        "a\nb\n",
        "a\n\nb\n\n",
        "\n",
        "\na",
    ),
    *(
        "a\n b",
        " a\nb",
        "\ta\nb",
        "a\n\tb",
        "a \nb",
        "a\t\nb",
        "a\n \nb",
        "a\n  ",
        "a\n#b",
        "a\n--- b",
        "a\n...",
        "a\r\nb",
    ),
    *("a\rb", "a\x85b", "a\u2028b", "a\u2029b\nc", "\ufeffa", "a\ufeffb", "\x00", "a\x07b", "\x7f", "\x9f", "\ufffe"),
    *("\xa0a", "a\xa0", "é", "日本語", "عربي", "😀 ok", "\U0010ffff", "\ue000", "a: 😀", "key: [1, 2]", "x" * 2000),
)

text = st.one_of(st.sampled_from(MISREAD), st.text(st.characters(exclude_categories=["Cs"]), max_size=30))
multiline = st.lists(text, min_size=1, max_size=4).map("\n".join)
word = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
times = st.one_of(
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    st.dates().map(lambda day: datetime(day.year, day.month, day.day, tzinfo=UTC)),
)
maybe_time = st.none() | times
unit = st.floats(0, 1) | st.sampled_from((0.0, 0.1, 0.57, 0.91, 0.95, 1.0)) | st.integers(0, 100).map(lambda n: n / 100)
count = st.integers(0, 2**63 - 1)
plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | multiline,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text | word, inner, max_size=3),
    max_leaves=6,
)


def unknown(*known: str) -> st.SearchStrategy[dict[str, Any]]:
    """Keys that are no field of the block they stand in."""
    return st.dictionaries(word.filter(lambda key: key not in known), plain, max_size=2)


activations = st.builds(Activation, unit, unit, count, maybe_time, count)
associations = st.builds(
    Association,
    text,
    text,
    unit,
    st.floats(-1e9, 1e9),
    unit,
    maybe_time,
    unknown("target", "type", "strength", "weight", "confidence", "last_reinforced"),
)
anchors = st.builds(Anchor, text, multiline, unknown("path", "snippet"))
evidence = st.builds(Evidence, text, st.none() | st.tuples(count, count), text, unknown("event", "span", "quote_hash"))
texts = st.lists(text, max_size=3).map(tuple)

_OTHER_FIELDS = frozenset(Memory.__dataclass_fields__) | {"data", "feedback_signals"}
_BLOCK_KEYS = frozenset(Activation.__dataclass_fields__) | _OTHER_FIELDS | {"positive", "negative", "neutral"}
block_extra = st.dictionaries(word.filter(lambda key: key not in _BLOCK_KEYS), plain, min_size=1, max_size=2)
extras = st.builds(
    lambda top, blocks: {**top, **{name: block for name, block in blocks.items() if block is not None}},
    st.dictionaries(word.filter(lambda key: key not in _OTHER_FIELDS), plain, max_size=2),
    st.fixed_dictionaries(
        {
            "activation": st.none() | block_extra,
            "metadata": st.none()
            | block_extra
            | st.fixed_dictionaries({"feedback_signals": block_extra, "curator": plain}),
        }
    ),
)

memories = st.builds(
    Memory,
    id=text.filter(bool),
    statement=multiline,
    scope=text,
    type=text,
    status=st.sampled_from(STATUSES),
    name=text,
    aliases=texts,
    version=st.integers(1, 2),
    pinned=st.booleans(),
    situation=multiline,
    form=st.dictionaries(text, text, max_size=3),
    context=multiline,
    rationale=multiline,
    tags=texts,
    cues=texts.map(normalize_cues),
    domain=text,
    entities=texts,
    anchors=st.lists(anchors, max_size=2).map(tuple),
    created=maybe_time,
    updated=maybe_time,
    occurred_at=maybe_time,
    valid_from=maybe_time,
    valid_until=maybe_time,
    confidence=unit,
    importance=unit,
    emotional_weight=st.floats(0, 10),
    derivation_count=count,
    feedback=st.builds(Feedback, count, count, count),
    trigger_context=multiline,
    activation=activations,
    consolidated=st.booleans(),
    associations=st.lists(associations, max_size=2).map(tuple),
    lineage=text,
    revision=count,
    supersedes=texts,
    superseded_by=text,
    conflict_key=text,
    critical_slot=text,
    source=text,
    learned_by=text,
    last_verified=maybe_time,
    imported_at=maybe_time,
    decay_days=st.none() | st.floats(0, 1e6),
    verification=text,
    policy_class=text,
    evidence=st.lists(evidence, max_size=2).map(tuple),
    box=text,
    trace=text,
    session=text,
    task=text,
    memory_kind=text,
    metadata=st.dictionaries(text, plain, max_size=3),
    extra=extras,
)
