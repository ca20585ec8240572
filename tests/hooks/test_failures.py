"""A hook that fails disturbs nobody: it says so to the doctor, and once to the next session."""

import json
import sqlite3
from pathlib import Path

import pytest

from engram.cli.main import main
from engram.hooks import prompt, runner
from engram.store import hook_files

from .conftest import Hooked


@pytest.mark.parametrize("data", [b"", b"{not json", b"[1, 2]", b"\xff\xfe", b"null", b"[" * 100_000])
@pytest.mark.parametrize("event", sorted(runner.SECONDS))
def test_malformed_input_is_answered_with_nothing(hooked: Hooked, event: str, data: bytes) -> None:
    assert hooked.raw(event, data) == ""


def test_a_failure_is_told_once_to_the_next_session(hooked: Hooked) -> None:
    hooked.raw("stop", b"{not json")
    assert "Engram's hook stop failed: “the hook's input is not JSON" in hooked("session-start")
    assert "failed" not in hooked("session-start")


def test_a_failure_is_the_doctors_finding_until_the_hook_succeeds(hooked: Hooked) -> None:
    hooked.raw("stop", b"{not json")
    hooked.raw("stop", b"{not json")
    found = hooked.finding()
    assert found.level == "problem"
    assert "stop failed 2 times" in found.message
    hooked("stop")
    assert hooked.finding().ok
    assert "stop failed 2 times" in hooked.finding().message
    assert "and works again" in hooked.finding().message


def test_a_failure_between_two_successes_is_told_to_the_next_session(hooked: Hooked) -> None:
    hooked.raw("stop", b"{not json")
    hooked("stop")
    assert "Engram's hook stop failed and works again: “the hook's input is not JSON" in hooked("session-start")
    assert "failed" not in hooked("session-start")


def test_a_start_that_fails_each_time_is_told_to_the_second_session(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging")
    card = hooked.home / "store.json"
    card.write_text(json.dumps({**json.loads(card.read_text()), "format": 99}))
    assert hooked("session-start") == ""
    assert "Engram's hook session-start failed: “UnknownVersion: " in hooked("session-start")
    assert hooked("session-start") == ""


def test_the_verb_doctor_names_a_failure(hooked: Hooked, capsys: pytest.CaptureFixture[str]) -> None:
    hooked.learned("Deploys go through staging")
    hooked.raw("stop", b"{not json")
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--home", str(hooked.home)])
    assert ended.value.code == 1
    assert "stop failed 1 time" in capsys.readouterr().out


def test_a_secret_in_a_failure_is_not_kept(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> str:
        raise RuntimeError("cannot reach https://me:hunter2secret@example.com/")

    monkeypatch.setattr(runner, "_handle_event", failing)
    hooked("stop")
    kept = hook_files.failure_log(hooked.home).read_text("utf-8")
    assert "RuntimeError" in kept
    assert "hunter2secret" not in kept


def test_fields_of_the_wrong_type_are_ignored(hooked: Hooked) -> None:
    given: dict[str, object] = {
        "session_id": 7,
        "cwd": None,
        "prompt": ["x"],
        "transcript_path": {},
        "tool_calls": [1, {"tool_input": 3}],
    }
    for event in ("prompt", "post-tool", "stop", "session-start"):
        hooked.raw(event, json.dumps(given).encode())
    assert hook_files.read_failures(hook_files.failure_log(hooked.home)) == []


def test_a_store_of_a_newer_version_is_reported_and_left_alone(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging")
    card = hooked.home / "store.json"
    before = card.read_text()
    card.write_text(json.dumps({**json.loads(before), "format": 99}))
    assert hooked("prompt", prompt="please deploy the payments service") == ""
    card.write_text(before)
    assert "Upgrade Engram" in hooked("session-start")


@pytest.mark.parametrize("event", ["session-start", "prompt", "drain"])
def test_an_index_that_is_only_being_made_is_no_failure(hooked: Hooked, event: str) -> None:
    hooked.learned("Deploys go through staging")
    (index,) = hooked.cache.rglob("index.db")
    index.unlink()
    sqlite3.connect(index).close()
    index.touch()
    hooked(event, prompt="please deploy the payments service", source="compact")
    assert hook_files.read_failures(hook_files.failure_log(hooked.home)) == []


def test_where_the_home_cannot_be_written_the_failure_is_kept_in_the_cache(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging")
    blocked = hooked.home / "state" / "spool"
    blocked.write_text("")
    hook_files.failure_log(hooked.home).mkdir()
    assert hooked("stop") == ""
    assert not hooked.finding().ok
    assert "stop failed" in hooked.finding().message


def test_where_nothing_can_be_written_a_sessions_start_reports_its_own_failure(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> str:
        raise RuntimeError("the disk is gone")

    for log in hook_files.failure_logs(hooked.home, hooked.cache):
        log.mkdir(parents=True)
    monkeypatch.setattr(runner, "_handle_event", failing)
    assert "Engram's hook session-start failed: “RuntimeError: the disk is gone”" in hooked("session-start")
    assert hooked("stop") == ""


def test_where_home_and_cache_cannot_be_written_failures_are_still_told_once_and_notes_given_once(
    hooked: Hooked,
) -> None:
    hooked.learned("Deploys go through staging")
    for blocked in (hooked.home / "state" / "spool", hooked.home / "state" / "hooks", hooked.cache / "hooks.json"):
        blocked.write_text("")
    hook_files.failure_log(hooked.home).mkdir()
    (hooked.cache / "hooks.json").unlink()
    (hooked.cache / "hooks.json").mkdir()
    assert hooked("stop") == ""
    assert "stop failed" in hooked.finding().message
    assert "Engram's hook stop failed" in hooked("session-start")
    assert "failed" not in hooked("session-start")
    assert hooked("prompt", prompt="write a limerick about penguins") == prompt.NOTE
    assert hooked("prompt", prompt="write a limerick about penguins") == ""


def test_a_temporary_folder_that_others_may_write_is_not_used(hooked: Hooked, tmp_path: Path) -> None:
    (folder,) = hook_files.temporary_folders()
    folder.mkdir(parents=True, mode=0o700)
    assert hook_files.temporary_folders() == [folder]
    folder.chmod(0o777)
    assert hook_files.temporary_folders() == []
    folder.rmdir()
    folder.symlink_to(tmp_path)
    assert hook_files.temporary_folders() == []


def test_an_index_that_cannot_be_written_is_not_called_damaged(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    hooked.learned("Deploys go through staging")
    monkeypatch.setattr("engram.hooks.memory_index.MemoryIndex.__init__", refused)
    assert hooked("prompt", prompt="please deploy the payments service") == ""
    (failure,) = hook_files.read_failures(hook_files.failure_log(hooked.home))
    assert "set ENGRAM_CACHE to a folder that you can write" in failure.message
    assert "Corrupt" not in failure.message


def test_settings_with_a_mistake_turn_recall_at_prompts_off_and_the_session_says_so(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging", situation="deploying a service")
    (hooked.home / "config.toml").write_text("# mine\n[hooks\nprompt_recall = false\n")
    assert "staging" not in hooked("prompt", prompt="please deploy the payments service")
    assert "prompts get no memories before that is mended" in hooked("session-start")
    (hooked.home / "config.toml").write_text("journal_days = 3\n")
    assert "unknown setting" in hooked("session-start")
    assert "prompts get no memories" not in hooked("session-start")
    (hooked.home / "config.toml").write_text("# mine\n[hooks]\nprompt_recall = 0\n")
    assert "config.toml:3: hooks.prompt_recall takes true or false" in hooked("session-start")


@pytest.mark.parametrize("number", ["1e999", "-1e300", "1e200"])
def test_a_number_that_nobody_wrote_does_not_stop_the_doctor(hooked: Hooked, number: str) -> None:
    hooked.learned("Deploys go through staging")
    log = hook_files.failure_log(hooked.home)
    log.write_text(f'{{"prompt": {{"message": "x", "at": {number}, "count": {number}}}}}')
    assert "prompt failed" in hooked.finding().message
