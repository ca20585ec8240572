"""What Engram does can be followed in logs, without the text of memories."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import InvalidInput
from engram.model.logs import LEVELS, VARIABLE, Log, start_logging

SECRET_WORD = "zanzibarite"


def test_a_message_has_its_facts_in_words_and_in_the_record(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "engram.test"):
        Log("test").info("rebuild", records=3)
        Log("test").debug("unseen")
    assert [record.getMessage() for record in caplog.records] == ["rebuild records=3"]
    assert caplog.records[0].__dict__["engram"] == {"event": "rebuild", "records": 3}


def test_a_timed_event_has_a_duration_and_the_type_of_an_error(caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG, "engram.test"),
        pytest.raises(ZeroDivisionError),
        Log("test").measure("divide") as facts,
    ):
        facts["by"] = 0
        _ = 1 / 0
    facts = caplog.records[0].__dict__["engram"]
    assert (facts["event"], facts["by"], facts["error"]) == ("divide", 0, "ZeroDivisionError")
    assert facts["ms"] >= 0


def test_opening_writing_and_reading_are_logged_without_their_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "engram"), Engram.open(ephemeral=True) as mem:
        mem.learn(f"The {SECRET_WORD} quarry closes on Mondays", cues=[f"{SECRET_WORD} hours"])
        mem.recall(f"When is the {SECRET_WORD} quarry closed?")
    events = {record.__dict__["engram"]["event"] for record in caplog.records if hasattr(record, "engram")}
    assert {"open", "write", "search"} <= events
    assert SECRET_WORD not in caplog.text


def test_the_command_line_logs_on_stderr(tmp_path: Path) -> None:
    def run(level: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "-P", "-m", "engram", "--home", str(tmp_path / "home"), "recall", SECRET_WORD]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), VARIABLE: level}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert "DEBUG engram.client open" in run("debug").stderr
    assert SECRET_WORD not in run("debug").stderr
    assert "engram.client" not in run("error").stderr
    assert (run("loud").returncode, "ENGRAM_LOG is one of debug" in run("loud").stderr) == (2, True)


@pytest.mark.parametrize("level", ["", *LEVELS])
def test_each_level_can_be_named(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engram = logging.getLogger("engram")
    monkeypatch.setattr(engram, "handlers", [])
    monkeypatch.setattr(engram, "propagate", True)
    before = engram.level
    monkeypatch.setenv(VARIABLE, level)
    try:
        start_logging()
        assert engram.level == LEVELS.get(level, before)
        assert len(engram.handlers) == bool(level)
    finally:
        engram.setLevel(before)


def test_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "loud")
    with pytest.raises(InvalidInput, match="one of debug, info"):
        start_logging()
