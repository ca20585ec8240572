"""What each hook says, and when it says nothing."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engram.hooks import place as payload
from engram.hooks import prompt, runner, session_memo, session_start
from engram.hooks.place import HookPlace
from engram.settings import parse_setting, read_settings, save_setting
from engram.store import hook_files
from engram.upkeep.upkeep import hook_findings

from .conftest import Hooked

DEPLOYS = "Deploys go through the staging cluster first"
SITUATION = "deploying the payments service"
TASK = "please start deploying the payments service to the staging cluster"


def test_a_session_starts_with_what_memory_holds(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    text = hooked("session-start", source="startup")
    assert "1 memory that applies everywhere" in text
    assert DEPLOYS not in text


def test_a_session_starts_with_pinned_memories_quoted(hooked: Hooked) -> None:
    memory = hooked.learned("Never push to <main>\n# directly", pinned=True)
    text = hooked("session-start", source="startup")
    assert f"- [{memory}] “Never push to ‹main› # directly”" in text


def test_a_session_starts_with_what_waits_for_review(hooked: Hooked) -> None:
    with hooked.open() as mem:
        mem.learn("Anna's phone number is +49 170 1234567", type="people")
    assert "1 proposed memory waits for review: `engram review`." in hooked("session-start")


def test_files_of_another_program_are_reported(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS)
    (hooked.home / "memory").mkdir()
    assert f"`engram import {hooked.home}`" in hooked("session-start")


def test_without_a_store_a_session_starts_and_none_is_created(hooked: Hooked) -> None:
    assert "holds nothing yet" in hooked("session-start")
    assert not (hooked.home / "store.json").exists()


def test_a_store_without_memories_is_said_to_hold_nothing(hooked: Hooked) -> None:
    with hooked.open() as mem:
        mem.forget(mem.add("Deploys go through staging").id)
    assert hooked("session-start").startswith(session_start.EMPTY)


def test_an_answer_is_in_utf_8_whatever_the_encoding_of_the_terminal_is(hooked: Hooked) -> None:
    hooked.learned("Größere Deploys gehen über staging → dann prod", situation="deploying the payments service")
    assert "Größere" in hooked("prompt", prompt="please deploy the payments service")


def test_a_prompt_gets_the_memory_that_is_about_it(hooked: Hooked) -> None:
    memory = hooked.learned(DEPLOYS, SITUATION)
    text = hooked("prompt", prompt=TASK)
    assert text.startswith(prompt.HEADER)
    assert f"- [{memory}] “{DEPLOYS}” When: “{SITUATION}”." in text


def test_a_memory_is_given_once_per_session(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    hooked("prompt", prompt=TASK)
    assert DEPLOYS not in hooked("prompt", prompt=TASK)
    assert DEPLOYS in hooked("prompt", prompt=TASK, session_id="another")


def test_what_a_session_is_given_is_noted_as_a_use(hooked: Hooked) -> None:
    known = hooked.learned(DEPLOYS, SITUATION)
    hooked("prompt", prompt=TASK)
    hooked("prompt", prompt=TASK)
    with hooked.open() as mem:
        assert [(use.kind, use.ids) for use in mem.store.uses([known])] == [("injected", (known,))]


def test_an_unrelated_prompt_gets_a_note_once_and_then_nothing(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    assert hooked("prompt", prompt="who painted the night watch and when") == prompt.NOTE
    assert hooked("prompt", prompt="tell me a joke about two penguins") == ""


@pytest.mark.parametrize("words", ["", "yes", "go on", "/engram:recall deploys and staging"])
def test_a_prompt_that_names_no_task_gets_nothing(hooked: Hooked, words: str) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    assert hooked("prompt", prompt=words) == ""


def test_the_setting_turns_recall_at_prompts_off(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    (hooked.home / "config.toml").write_text("hooks.prompt_recall = false\n")
    assert hooked("prompt", prompt=TASK) == prompt.NOTE


def test_what_waits_for_review_or_was_forgotten_reaches_no_prompt(hooked: Hooked) -> None:
    memory = hooked.learned(DEPLOYS, SITUATION)
    with hooked.open() as mem:
        mem.forget(memory)
    assert DEPLOYS not in hooked("prompt", prompt=TASK)


def test_a_changed_memory_is_found_by_its_new_words(hooked: Hooked) -> None:
    memory = hooked.learned("Use tabs in Makefiles", "writing a Makefile")
    hooked("prompt", prompt="write a haiku about the autumn rain")
    with hooked.open() as mem:
        mem.update(memory, statement=DEPLOYS, situation=SITUATION)
    assert DEPLOYS in hooked("prompt", prompt=TASK)


def test_after_compaction_the_session_gets_again_what_it_had(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    hooked("prompt", prompt=TASK)
    text = hooked("session-start", source="compact")
    assert text.startswith(session_start.COMPACTED)
    assert DEPLOYS in text


@pytest.mark.parametrize(
    "command",
    [
        "git -C sub -c user.name=a commit -m x",
        'git -c user.name="A B" commit -m x',
        "make && git push",
        "cd web; GIT_DIR=x git tag v1",
        "gh pr create --fill",
        "uv publish",
    ],
)
def test_work_ends_with_any_of_these_commands(hooked: Hooked, command: str) -> None:
    assert hooked("post-tool", tool_calls=[{"tool_input": {"command": command}}]) == session_memo.REMINDER


@pytest.mark.parametrize(
    "command",
    [
        "git merge-base a b",
        "git commit-graph write",
        "git merge --abort",
        "git tag -l",
        "git commit --dry-run",
        'git log --grep "git commit"',
        'grep -rn "git push" docs',
        "man git commit",
        "echo git push",
    ],
)
def test_no_work_ends_with_these(hooked: Hooked, command: str) -> None:
    assert hooked("post-tool", tool_calls=[{"tool_input": {"command": command}}]) == ""


def test_a_commit_is_followed_by_one_reminder(hooked: Hooked) -> None:
    calls = [{"tool_name": "Bash", "tool_input": {"command": "git commit -m done"}, "tool_response": "[main 1] done"}]
    assert hooked("post-tool", hook_event_name="PostToolBatch", tool_calls=calls) == session_memo.REMINDER
    assert hooked("post-tool", hook_event_name="PostToolBatch", tool_calls=calls) == ""


def test_a_failed_commit_and_other_commands_are_followed_by_none(hooked: Hooked) -> None:
    failed = [
        {"tool_input": {"command": "git commit -m x"}, "tool_response": "Exit code 128\nfatal: not a git repository"}
    ]
    assert hooked("post-tool", tool_calls=failed) == ""
    assert hooked("post-tool", tool_calls=[{"tool_input": {"command": "ls"}, "tool_response": ""}]) == ""


def test_the_answer_names_the_event_that_asked(hooked: Hooked) -> None:
    given = {"session_id": "s", "hook_event_name": "PostToolUse", "tool_input": {"command": "git push"}}
    answer = json.loads(hooked.raw("post-tool", json.dumps(given).encode()))
    assert answer["hookSpecificOutput"]["hookEventName"] == "PostToolUse"


def test_an_answer_stays_below_ten_thousand_characters(hooked: Hooked) -> None:
    text = "\n".join(f"- {'word ' * 40}{number}" for number in range(100))
    answer = json.loads(payload.answer("SessionStart", text))
    assert len(answer["hookSpecificOutput"]["additionalContext"]) <= 10_000


def test_a_paused_store_says_so_at_the_start_and_nothing_else(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    with hooked.open() as mem:
        mem.upkeep.pause()
    assert hooked("session-start") == session_start.PAUSED
    assert hooked("prompt", prompt=TASK) == ""
    assert hooked("stop") == ""
    assert not (hooked.home / "state" / "spool").exists()


@pytest.mark.parametrize("name", ["a project", "проект 数据", "x" * 100 + "/" + "y" * 100 + "/" + "z" * 100])
@pytest.mark.parametrize("event", ["session-start", "prompt", "stop"])
def test_any_project_path_is_served(hooked: Hooked, name: str, event: str) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    place = hooked.project / name
    place.mkdir(parents=True)
    text = hooked(event, cwd=str(place), prompt=TASK)
    assert bool(text) == (event != "stop")
    assert hook_files.read_failures(hook_files.failure_log(hooked.home)) == []


def test_a_project_that_is_gone_is_served(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    assert DEPLOYS in hooked("prompt", cwd=str(hooked.project / "gone"), prompt=TASK)


def test_a_prompt_is_answered_with_the_standard_library_alone(hooked: Hooked) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    program = (
        "import sys; from engram.hooks import runner\n"
        f"runner.run('prompt', {str(hooked.home)!r})\n"
        "heavy = {'numpy', 'rich', 'regex', 'yaml', 'pydantic', 'engram.client'} & set(sys.modules)\n"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    given = json.dumps({"session_id": "s", "cwd": str(hooked.project), "prompt": TASK})
    ended = subprocess.run([sys.executable, "-c", program], input=given, text=True, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert DEPLOYS in ended.stdout


def test_the_short_command_line_of_a_hook_works_as_the_long_one(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    monkeypatch.setenv("ENGRAM_HOME", str(hooked.home))
    for words in (["hook", "prompt"], ["--home", str(hooked.home), "hook", "prompt"]):
        given = json.dumps({"session_id": " ".join(words), "cwd": str(hooked.project), "prompt": TASK})
        command = [sys.executable, "-m", "engram", *words]
        ended = subprocess.run(command, input=given, text=True, capture_output=True, check=True)
        assert DEPLOYS in ended.stdout, words


def test_every_event_is_given_less_time_than_the_harness_gives() -> None:
    file = Path(__file__).parents[2] / "plugin" / "hooks" / "hooks.json"
    groups = json.loads(file.read_text("utf-8"))["hooks"].values()
    limits = {hook["command"].split()[2]: hook["timeout"] for group in groups for one in group for hook in one["hooks"]}
    assert limits.keys() == runner.SECONDS.keys()
    assert all(runner.SECONDS[event] < limit for event, limit in limits.items())


def test_a_hook_that_takes_too_long_gives_up(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(runner.SECONDS, "post-tool", 0.2)
    monkeypatch.setattr(session_memo, "remind", lambda *_: signal.pause())
    assert hooked("post-tool") == ""
    assert "took longer than 0.2 seconds" in hooked.finding().message


def test_a_store_on_a_server_is_not_mistaken_for_the_one_here(hooked: Hooked, monkeypatch: pytest.MonkeyPatch) -> None:
    hooked.learned(DEPLOYS, SITUATION)
    monkeypatch.setenv("ENGRAM_URL", "postgresql://nowhere.invalid/engram")
    monkeypatch.setenv("ENGRAM_HOME", str(hooked.home))
    given = json.dumps({"session_id": "s", "cwd": str(hooked.project), "prompt": TASK}).encode()
    place = HookPlace()
    assert place.is_server
    assert prompt.find_matching_memories(place, TASK, str(hooked.project)) == []
    assert DEPLOYS not in session_start.start_session(place, payload.read_payload(given))


def test_with_a_store_on_a_server_the_session_and_the_doctor_say_that_prompts_get_no_memories(
    hooked: Hooked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_URL", "postgresql://nowhere.invalid/engram")
    monkeypatch.setenv("ENGRAM_HOME", str(hooked.home))
    place, started = HookPlace(), payload.HookPayload(session="s1", cwd=str(hooked.project))
    assert session_start.NO_PROMPT_RECALL in session_start.start_session(place, started)
    (hooked.home / "state" / "hooks").mkdir(parents=True)
    assert "no memories are added to prompts" in hook_findings(None)[0].message
    (hooked.home / "config.toml").write_text("[hooks]\nprompt_recall = false\n")
    assert session_start.NO_PROMPT_RECALL not in session_start.start_session(place, started)
    assert "prompts" not in hook_findings(None)[0].message


def test_the_setting_is_shown_set_and_checked(hooked: Hooked) -> None:
    file = hooked.home / "config.toml"
    hooked.home.mkdir()
    save_setting(file, "hooks.prompt_recall", parse_setting("hooks.prompt_recall", "false"))
    assert not read_settings(file)[0].prompt_recall
    save_setting(file, "hooks.prompt_recall", True)
    assert read_settings(file)[0].value_of("hooks.prompt_recall") is True
    file.write_text('hooks.prompt_recall = "no"\nhooks.unknown = true\n')
    assert "takes true or false" in read_settings(file)[1][0]
