"""How well situations are matched can be measured on anybody's set."""

import json
from pathlib import Path

import pytest

from benchmarks import situations
from engram.model.errors import InvalidInput

SET = {
    "memories": [
        {"situation": "deploying to production", "statement": "Deploys go through the release bot in #ship."},
        {"situation": "writing a database migration", "statement": "Migrations are split: first add, later remove."},
        {"situation": "calling the payment API", "statement": "The key is AKIAIOSFODNN7EXAMPLQ, keep it."},
    ],
    "prompts": [
        {"text": "deploy the current main to production", "memory": 0},
        {"text": "write a migration for the orders table", "memory": 1},
        {"text": "call the payment API for a refund", "memory": 2},
        {"text": "write a limerick about penguins", "memory": None},
    ],
}


def test_what_is_found_and_what_is_silent_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "set.json"
    path.write_text(json.dumps(SET), "utf-8")
    report = situations.measure(path)
    assert set(report) == {"hook", "recall", "inject"}
    # The third memory is refused for its secret, and counts as not found.
    assert all(found == pytest.approx(2 / 3) for found, _ in report.values())
    assert report["hook"][1] == report["recall"][1] == 1.0
    assert "set: hook    right one in the first 3 0.67" in situations.text({"set": report})


@pytest.mark.parametrize("content", ["", "[]", '{"memories": []}'])
def test_what_is_no_set_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "set.json"
    path.write_text(content, "utf-8")
    with pytest.raises(InvalidInput, match="is not a set of memories and prompts"):
        situations.measure(path)
