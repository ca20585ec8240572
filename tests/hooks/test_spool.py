"""Sessions that hooks leave for a harvest: each waits once, is read once, and nothing else is."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest

from engram.capture.transcripts.harvest_run import harvest_lock
from engram.cli.main import main
from engram.client import source_verbs
from engram.client.source_verbs import ANOTHER_HARVEST
from engram.hooks.place import HookPlace
from engram.hooks.session_start import drain
from engram.model.errors import Refused
from engram.store import hook_files

from .conftest import Hooked

SAID = "From now on we always use pnpm, never npm."


def transcript(folder: Path, name: str = "s1", said: str = SAID) -> Path:
    turn = {"type": "user", "uuid": "u1", "sessionId": name, "timestamp": "2026-11-17T10:00:00Z", "cwd": str(folder),
            "message": {"role": "user", "content": said}}  # fmt: skip
    file = folder / f"{name}.jsonl"
    file.write_text(json.dumps(turn) + "\n")
    return file


@pytest.mark.parametrize("event", ["stop", "pre-compact", "session-end"])
def test_a_session_waits_without_any_of_its_text(hooked: Hooked, event: str) -> None:
    hooked(event, prompt="secret words", last_assistant_message="more words")
    (file,) = hook_files.spool_folder(hooked.home).iterdir()
    assert "words" not in file.read_text()
    assert json.loads(file.read_text())["transcript"] == str(hooked.project / "s1.jsonl")


def test_a_session_of_many_turns_waits_once(hooked: Hooked) -> None:
    for event in ("stop", "stop", "session-end"):
        hooked(event)
    hooked("stop", session_id="another")
    assert hook_files.count_waiting(hooked.home) == 2


def test_session_ids_that_are_no_file_names_stay_apart(hooked: Hooked) -> None:
    for session in ("../../etc", "..", "a b", "a c", ""):
        hooked("stop", session_id=session)
    assert hook_files.count_waiting(hooked.home) == 5
    assert {file.parent for file in hooked.home.rglob("*etc*")} == {hook_files.spool_folder(hooked.home)}


def test_a_harvest_of_the_spool_reads_its_transcripts_alone(hooked: Hooked) -> None:
    transcript(hooked.project)
    transcript(hooked.project, "s2", "We never deploy on Fridays.")
    hooked("stop")
    with hooked.open() as mem:
        found = mem.harvest_spooled()
    assert found.sessions == 1
    assert [fact.outcome for fact in found.facts] == ["proposed"]
    assert hook_files.count_waiting(hooked.home) == 0


@pytest.mark.parametrize("path", [f"/{'x' * 300}.jsonl", "/a\0b.jsonl", "/\ud83d.jsonl"])
def test_a_path_that_no_file_can_have_holds_up_no_other_session(hooked: Hooked, path: str) -> None:
    hooked("stop", session_id="first", transcript_path=path)
    transcript(hooked.project)
    hooked("stop")
    with hooked.open() as mem:
        found = mem.harvest_spooled()
    assert [fact.outcome for fact in found.facts] == ["proposed"]
    assert list(hook_files.spool_folder(hooked.home).iterdir()) == []


def test_an_ordinary_harvest_empties_the_spool(hooked: Hooked) -> None:
    transcript(hooked.project)
    hooked("stop")
    with hooked.open() as mem:
        assert mem.harvest().count("proposed") == 1
    assert hook_files.count_waiting(hooked.home) == 0


def test_a_dry_run_leaves_the_spool_alone(hooked: Hooked) -> None:
    transcript(hooked.project)
    hooked("stop")
    with hooked.open() as mem:
        mem.harvest(dry_run=True)
    assert hook_files.count_waiting(hooked.home) == 1


def test_a_missing_transcript_is_reported_and_waits_no_longer(hooked: Hooked) -> None:
    hooked("stop")
    with hooked.open() as mem:
        found = mem.harvest_spooled()
    assert "is gone" in found.problems[0]
    assert hook_files.count_waiting(hooked.home) == 0


def test_a_missing_transcript_that_a_session_start_meets_is_reported_by_the_next(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging")
    hooked("stop")
    hooked("drain")
    assert "is gone" in hooked("session-start")
    assert "is gone" not in hooked("session-start")


def test_an_entry_of_a_newer_version_is_left_to_it(hooked: Hooked) -> None:
    hooked("stop")
    (entry,) = hook_files.spool_folder(hooked.home).glob("*.json")
    entry.write_text(json.dumps({**json.loads(entry.read_text()), "version": hook_files.VERSION + 1}))
    before = entry.read_bytes()
    assert list(hook_files.claim_waiting(hooked.home)) == []
    assert entry.read_bytes() == before


def test_when_the_time_is_over_the_rest_waits(hooked: Hooked) -> None:
    for name in ("s1", "s2", "s3"):
        hooked("stop", session_id=name, transcript_path=str(transcript(hooked.project, name)))
    with hooked.open() as mem:
        mem.harvest_spooled(seconds=0)
    assert hook_files.count_waiting(hooked.home) == 2


def test_an_entry_whose_harvest_fails_waits_again(hooked: Hooked) -> None:
    hooked("stop")
    (claim,) = hook_files.claim_waiting(hooked.home)
    assert hook_files.count_waiting(hooked.home) == 0
    claim.release()
    assert hook_files.count_waiting(hooked.home) == 1


CLAIM = """
import sys
from pathlib import Path
from engram.store import hook_files
claims = list(hook_files.claim_waiting(Path(sys.argv[1])))
print(len(claims), flush=True)
sys.stdin.read()
"""


def test_the_claim_of_a_killed_process_is_free_at_once(hooked: Hooked) -> None:
    hooked("stop")
    command = [sys.executable, "-c", CLAIM, str(hooked.home)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"1\n"
        assert (hook_files.count_waiting(hooked.home), list(hook_files.claim_waiting(hooked.home))) == (0, [])
        other.kill()
        other.wait()
    assert hook_files.count_waiting(hooked.home) == 1
    (claim,) = hook_files.claim_waiting(hooked.home)
    assert claim.entry.session
    claim.finish()
    assert list(hook_files.spool_folder(hooked.home).iterdir()) == []


def test_the_claim_of_a_living_process_is_never_taken(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked("stop")
    (claim,) = hook_files.claim_waiting(hooked.home)
    monkeypatch.setattr(hook_files, "CLAIM_SECONDS", -1)
    assert list(hook_files.claim_waiting(hooked.home)) == []
    claim.release()
    (again,) = hook_files.claim_waiting(hooked.home)
    again.finish()


def test_without_locks_a_claim_is_free_after_a_while(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("engram.store.hook_files.fcntl.flock", unsupported)
    hooked("stop")
    (claim,) = hook_files.claim_waiting(hooked.home)
    assert list(hook_files.claim_waiting(hooked.home)) == []
    monkeypatch.setattr(hook_files, "CLAIM_SECONDS", -1)
    (again,) = hook_files.claim_waiting(hooked.home)
    assert again.entry == claim.entry
    again.finish()


def test_while_another_process_harvests_the_spool_is_left_to_it(hooked: Hooked) -> None:
    transcript(hooked.project)
    hooked("stop")
    with hooked.open() as mem, harvest_lock(hooked.home, seconds=0) as is_alone:
        assert is_alone
        found = mem.harvest_spooled()
        assert (found.sessions, found.warnings) == (0, [ANOTHER_HARVEST])
    assert hook_files.count_waiting(hooked.home) == 1


def test_an_unreadable_entry_is_removed(hooked: Hooked) -> None:
    hooked("stop")
    (file,) = hook_files.spool_folder(hooked.home).iterdir()
    file.write_text("{")
    assert list(hook_files.claim_waiting(hooked.home)) == []
    assert hook_files.count_waiting(hooked.home) == 0


def test_the_next_sessions_start_harvests_what_waits(hooked: Hooked) -> None:
    hooked.learned("Deploys go through staging")
    transcript(hooked.project)
    hooked("stop")
    drain(HookPlace(str(hooked.home)))
    with hooked.open() as mem:
        assert [memory.status for memory in mem.list(status="candidate")] == ["candidate"]


def test_a_worker_harvests_what_waits(hooked: Hooked) -> None:
    transcript(hooked.project)
    hooked("stop")
    main(["--home", str(hooked.home), "worker", "--once"])
    assert hook_files.count_waiting(hooked.home) == 0


def test_a_harvest_that_waited_long_enough_says_what_to_do(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_verbs, "HARVEST_WAIT", 0.0)
    refused = pytest.raises(Refused, match="another process is still harvesting")
    with hooked.open() as mem, harvest_lock(hooked.home, seconds=0), refused:
        mem.harvest()
