"""Four servers, hooks and the command line on one store at once: nothing fails, is lost, or stays behind."""

from pathlib import Path

import pytest

from benchmarks.traffic.mixture import measure
from engram.hooks.runner import SECONDS

TURNS = 20
"""Enough for every tool, every hook and most verbs, one killed server and two clients that disconnect."""
SLOWNESS = 30.0
"""So many times its limit may a hook take before it counts."""


@pytest.mark.heavy
def test_mixed_traffic_on_one_store_loses_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    report = measure(seconds=None, turns=TURNS, slowness=SLOWNESS, keep=tmp_path / "kept")
    assert (report["errors"], report["wrong"]) == ([], {})
    assert report["passed"]
    done = set(report["operations"])
    assert {f"hook {event}" for event in SECONDS if event not in ("drain", "session-end")} <= done
    assert report["kills"] >= 1
    assert report["disconnections"] >= 2
    assert report["purges"] >= 1
    assert report["writes"] >= 20
