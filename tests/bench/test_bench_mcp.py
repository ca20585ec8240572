"""The figures of the MCP server can be measured."""

import pytest

from benchmarks import mcp

pytestmark = pytest.mark.heavy


def test_a_start_and_recalls_are_measured() -> None:
    report = mcp.measure(100, starts=1)
    figures = {figure["name"]: figure for figure in report["figures"]}
    assert figures["start to tools/list"]["value"] > 0
    assert any("recall round trip" in name and figure["floor"] > 0 for name, figure in figures.items())
    assert "the bars" in mcp.text(report)
