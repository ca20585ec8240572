"""The command line reads times in the zone of the system, or in the one that is set."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.cli.conftest import Console


@pytest.mark.usefixtures("person")
def test_the_zone_is_a_setting(cli: Console) -> None:
    assert cli.json("config", "time_zone") == {"time_zone": ""}
    assert cli.json("config", "time_zone", "Asia/Kolkata") == {"time_zone": "Asia/Kolkata"}
    refused = cli("config", "time_zone", "Mars/Olympus")
    assert refused.exit_code == 2 and "Unknown time zone" in refused.stderr
    found = cli.json("recall", "What did we decide today?", "--date", "2026-05-04T20:00")
    assert found["window"]["since"] == "2026-05-03T18:30:00Z"


def test_at_seven_in_the_evening_in_los_angeles_tomorrow_is_the_next_day(
    cli: Console, system_zone: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    system_zone("America/Los_Angeles")
    monkeypatch.setattr("engram.client.engram.utc_now", lambda: datetime(2026, 5, 5, 2, 0, tzinfo=UTC))
    found = cli.json("capture", "--dry-run", "--user", "I'm flying to Oslo tomorrow.")
    assert "2026-05-05" in json.dumps(found)
    today = cli.json("recall", "What did we decide today?")["window"]
    assert today == {"since": "2026-05-04T07:00:00Z", "until": "2026-05-05T07:00:00Z"}
    said = cli("recall", "What did we decide today?")
    assert "2026-05-04 00:00" in said.stderr


@pytest.mark.usefixtures("person")
def test_times_are_printed_in_the_zone_that_is_set(
    cli: Console, system_zone: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    system_zone("America/Los_Angeles")
    monkeypatch.setattr("engram.client.engram.utc_now", lambda: datetime(2026, 5, 5, 2, 0, tzinfo=UTC))
    memory = cli.learned("Deploys go through the staging cluster first")
    assert "2026-05-04 19:00" in cli("show", memory).stdout
    cli("config", "time_zone", "Asia/Kolkata")
    assert "2026-05-05 07:30" in cli("show", memory).stdout


def test_a_process_takes_its_zone_from_tz(tmp_path: Path) -> None:
    def run(*words: str, **variables: str) -> dict[str, object]:
        given = {
            **os.environ,
            "ENGRAM_HOME": str(tmp_path / "home"),
            "ENGRAM_CACHE": str(tmp_path / "cache"),
            **variables,
        }
        command = [sys.executable, "-m", "engram", *words, "--json"]
        done = subprocess.run(command, env=given, cwd=tmp_path, capture_output=True, text=True, check=True)
        answer: dict[str, object] = json.loads(done.stdout)
        return answer

    asked = ("recall", "What did we decide today?", "--date", "2026-05-04T19:00")
    found = run(*asked, TZ="America/Los_Angeles")
    assert found["window"] == {"since": "2026-05-04T07:00:00Z", "until": "2026-05-05T07:00:00Z"}
    found = run(*asked, TZ="America/Los_Angeles", ENGRAM_TIME_ZONE="+05:30")
    assert found["window"] == {"since": "2026-05-03T18:30:00Z", "until": "2026-05-04T18:30:00Z"}
