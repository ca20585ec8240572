"""The graph's figures, on a small graph."""

import pytest

from benchmarks.graph import DIRECTIONS, Shape, measure

pytestmark = pytest.mark.heavy


def test_every_direction_is_measured() -> None:
    report = measure(Shape(memories=60, edges=200, hub=10, rounds=2))
    names = [figure["name"] for figure in report["figures"]]
    assert all(any(direction in name for name in names) for direction in DIRECTIONS)
    assert all(0 < figure["value"] <= figure["p95"] for figure in report["figures"])
