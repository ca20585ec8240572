"""No regular expression of the package takes more than its share of time on texts made from its own parts.

`tests.patterns.catalog` finds the patterns, `tests.patterns.pumps` makes the texts, `tests.patterns.growth` measures.
"""

import re

import pytest

from tests.patterns.catalog import SEARCHED, FoundPattern, all_patterns
from tests.patterns.growth import superlinear_pump

SHARES = 16
"""Tests that share the patterns, so that they run in parallel."""


def slow_patterns(share: int, every: int) -> list[str]:
    """The patterns of a share that grow faster than their texts, each with the text that shows it."""
    found = []
    for pattern in all_patterns()[share::SHARES]:
        if slow := superlinear_pump(pattern, every):
            pump, growth = slow
            found.append(
                f"{pattern.name}: {growth:.0f}× on {pump.before[-40:]!r} + n × {pump.piece[:60]!r}: {pattern.source[:200]}"
            )
    return found


@pytest.mark.parametrize("share", range(SHARES))
def test_patterns_take_time_in_proportion_to_their_text(share: int) -> None:
    assert slow_patterns(share, every=4) == []


@pytest.mark.heavy
@pytest.mark.parametrize("share", range(SHARES))
def test_patterns_take_time_in_proportion_to_every_text(share: int) -> None:
    assert slow_patterns(share, every=1) == []


@pytest.mark.heavy
@pytest.mark.parametrize(
    "source",
    [r"\s+x", r"<!--.*?-->", r"(`+)(?:(?!\1).)*\1", r"(?:a|a)*b", r"(a+)+b", r",?\s+(?:and|then)\s+", r"x*y*x*z"],
)
def test_a_pattern_that_goes_back_and_forth_is_found(source: str) -> None:
    assert superlinear_pump(FoundPattern("example", source, re.DOTALL.value, 0, SEARCHED)) is not None


@pytest.mark.parametrize("source", [r"(?<!\s)\s++x", r"[a-z]+|\d+", r"<!--.*?(?:-->|\Z)", r"\b\w{1,40}ing\b"])
def test_a_linear_pattern_passes(source: str) -> None:
    assert superlinear_pump(FoundPattern("example", source, re.DOTALL.value, 0, SEARCHED)) is None


def test_the_catalog_finds_constants_builders_tables_and_literals() -> None:
    names = [pattern.name for pattern in all_patterns()]
    for start in (
        "engram.recall.briefing._JOINT",  # a constant
        "engram.agents.sources.documents._FENCED",  # compiled on first use
        "engram.capture.extraction.statement._fillers",  # returned by a cached function
        "engram.capture.extraction.rules.rules",  # inside objects that one returns
        "engram.gates.secrets.scan#",  # a row of a table
        "engram.agents.sources.frontmatter:",  # a literal inside a function
    ):
        assert any(name.startswith(start) for name in names), start
