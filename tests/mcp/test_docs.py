"""docs/mcp.md stays true: every tool, argument, hint and example."""

import json
import re
from pathlib import Path

import pytest

from engram.mcp.protocol import describe_tool
from engram.mcp.tools import TOOLS, Tool

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_every_tool_is_documented_with_its_arguments_and_what_it_returns(tool: Tool) -> None:
    (row,) = [row for row in ROWS if row[0] == f"`{tool.name}`" and len(row) == 4]
    required = [name for name, is_required in tool.arguments.items() if is_required]
    assert re.findall(r"\*\*(\w+)\*\*", row[1]) == required
    assert row[1].replace("*", "").split(", ") == list(tool.arguments)
    assert set(tool.returns.model_fields) <= set(re.findall(r"\w+", row[3]))


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_every_tools_hints_are_documented(tool: Tool) -> None:
    (row,) = [row for row in ROWS if f"`{tool.name}`" in row[0] and len(row) == 5]
    hints = describe_tool(tool).annotations
    assert hints is not None
    given = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    assert row[1:] == ["yes" if hint else "no" for hint in given]


def test_no_tool_is_documented_that_does_not_exist() -> None:
    named = {name for row in ROWS for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(TOOLS)


def test_every_example_configuration_starts_this_server() -> None:
    blocks = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert len(blocks) == 3
    for block in blocks:
        (servers,) = block.values()
        assert (servers["engram"]["command"], servers["engram"]["args"]) == ("engram", ["mcp"])
