"""Four servers, hooks and the command line on one store at once: nothing fails, is lost, or stays behind."""

import subprocess
from pathlib import Path

import pytest

from benchmarks.traffic.checks import check
from benchmarks.traffic.mixture import measure
from benchmarks.traffic.place import TrafficPlace
from benchmarks.traffic.register import Register
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


@pytest.mark.heavy
def test_whatever_is_lost_or_left_is_reported(tmp_path: Path) -> None:
    place, register = TrafficPlace(tmp_path), Register()
    place.prepare()
    kept = place.json("add", "The heron service answers on port 4317 wherever it runs")
    back = place.json("add", "Deploys of Zorvexin go through staging first")
    register.wrote(kept["id"], "It answers on another port", "retired").positive = 1
    register.wrote("ENG-2001-0101-001", "It was never stored", "active")
    register.purged[back["id"]] = "Zorvexin"
    register.sessions["S-20010101-000000-aaaaaa"] = True
    register.typed.append("We never squash merge.")
    (place.home / "engrams" / ".one.tmp").touch()
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, env=place.env) as orphan:
        wrong = check(place, register)
        orphan.kill()
    assert len(wrong["lost or changed"]) == 4
    assert len(wrong["came back"]) >= 2
    assert len(wrong["files left"]) == len(wrong["processes left"]) == 1
    assert len(wrong["sessions"]) == len(wrong["turns not harvested"]) == 1
    assert wrong["doubled"] == wrong["harvest"] == wrong["doctor"] == []
