"""task: begun, written to, paused, resumed and ended, each time by another run of the program."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from .conftest import Console


@pytest.fixture
def task(cli: Console) -> str:
    return str(cli.json("task", "start", "Ship the release")["id"])


def test_start_prints_the_id_alone_on_stdout(cli: Console) -> None:
    result = cli("task", "start", "Ship the release", "--meta", "ticket=42")
    assert result.stdout.startswith("TASK-") and len(result.stdout.split()) == 1
    found = cli.json("task", "show", result.stdout.strip())["task"]
    assert (found["goal"], found["status"], found["metadata"]) == ("Ship the release", "running", {"ticket": 42})


def test_a_task_belongs_to_its_scope_and_here_needs_a_repository(cli: Console) -> None:
    assert cli.json("task", "start", "x", "--scope", "project:acme")["scope"] == "project:acme"
    assert cli.json("task", "start", "x")["scope"] == "global"
    assert cli("task", "start", "x", "--scope", "here").exit_code == 2


def test_list_is_newest_first_and_filters_by_state(cli: Console) -> None:
    first, second = (cli.json("task", "start", goal)["id"] for goal in ("Bake bread", "Sell bread"))
    cli("task", "pause", first)
    assert {one["id"] for one in cli.json("task", "list")} == {first, second}
    assert [one["id"] for one in cli.json("task", "list", "--status", "paused")] == [first]
    assert "Bake bread" in cli("task", "list").stdout
    assert cli("task", "list", "--status", "lazy").exit_code == 2
    assert cli("task", "list", "--limit", "-1").exit_code == 2


def test_an_empty_list_says_what_to_do(cli: Console) -> None:
    result = cli("task", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "task start" in result.stderr


def test_events_are_numbered_and_the_same_key_is_the_same_event(cli: Console, task: str) -> None:
    first = cli.json("task", "event", task, "user", "please ship", "--key", "k1")[0]
    again = cli.json("task", "event", task, "user", "please ship", "--key", "k1")[0]
    other = cli.json("task", "event", task, "tool", "42 passed", "--event-type", "tool_result")[0]
    assert (first["id"], first["seq"], first["task"]) == (again["id"], 1, task)
    assert (other["seq"], other["event_type"]) == (2, "tool_result")


def test_an_event_keeps_the_time_it_is_given(cli: Console, task: str) -> None:
    assert (
        cli.json("task", "event", task, "user", "hi", "--at", "2026-01-02T03:04:05Z")[0]["at"] == "2026-01-02T03:04:05Z"
    )


def test_a_batch_is_written_whole_or_not_at_all(cli: Console, task: str) -> None:
    lines = "\n".join(json.dumps({"role": "user", "content": f"message {i}"}) for i in range(3))
    assert [event["seq"] for event in cli.json("task", "event", task, "--batch", stdin=lines)] == [1, 2, 3]
    assert cli("task", "event", task, "--batch", stdin=lines + "\n{oops\n").exit_code == 2
    assert cli("task", "event", task, "--batch", stdin=lines + '\n{"content": "nobody said it"}\n').exit_code == 2
    assert cli.json("task", "show", task)["event_count"] == 3


def test_an_event_needs_a_role_and_a_known_type(cli: Console, task: str) -> None:
    assert cli("task", "event", task).exit_code == 2
    assert cli("task", "event", task, "user", "x", "--event-type", "song").exit_code == 2


def test_secrets_are_redacted_before_they_are_written(cli: Console, task: str) -> None:
    token = "ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E"
    assert token not in cli.json("task", "event", task, "user", f"my token is {token}")[0]["content"]


def test_a_turn_is_both_sides_and_leaves_a_job(cli: Console, task: str) -> None:
    events = cli.json("task", "turn", task, "--user", "Does it pass?", "--assistant", "It does.")
    assert [event["role"] for event in events] == ["user", "assistant"]
    assert cli.json("task", "show", task)["waiting_jobs"] == 1


def test_a_turn_with_the_same_key_is_the_same_turn(cli: Console, task: str) -> None:
    turn = ("task", "turn", task, "--user", "Does it pass?", "--assistant", "-", "--key", "t1", "--no-derive")
    first, again = (cli.json(*turn, stdin="It does.") for _ in range(2))
    assert [event["id"] for event in first] == [event["id"] for event in again]
    assert cli.json("task", "show", task)["waiting_jobs"] == 0


def test_a_turn_on_stdin_has_calls_and_artifacts(cli: Console, task: str) -> None:
    turn = {
        "user": "Run the tests",
        "tool_calls": [{"name": "pytest", "arguments": {"path": "tests"}, "result": "42 passed"}],
        "assistant": "All pass.",
        "artifacts": [{"name": "report.md", "content": "# Report"}],
    }
    events = cli.json("task", "turn", task, stdin=json.dumps(turn))
    kinds = [event["event_type"] for event in events]
    assert kinds == ["message", "tool_call", "tool_result", "message", "artifact"]


@pytest.mark.parametrize(
    "turn",
    ["", "{oops", "[]", '{"user": 5}', '{"song": "x"}', '{"tool_calls": "pytest"}', '{"tool_calls": ["pytest"]}', "{}",
     '{"tool_calls": [{"result": "x"}]}', '{"user": "x", "derive": "no"}'],
)  # fmt: skip
def test_a_turn_that_is_none_is_exit_2_and_writes_nothing(cli: Console, task: str, turn: str) -> None:
    assert cli("task", "turn", task, stdin=turn).exit_code == 2
    assert cli.json("task", "show", task)["event_count"] == 0


def test_stdin_is_not_read_twice(cli: Console, task: str) -> None:
    assert cli("task", "turn", task, "--user", "-", "--assistant", "-", stdin="x").exit_code == 2


@pytest.mark.usefixtures("person")
def test_a_person_is_not_left_waiting_for_a_turn_on_stdin(cli: Console, task: str) -> None:
    assert "--user" in cli("task", "turn", task).stderr


def test_a_checkpoint_has_its_parts_and_is_shown(cli: Console, task: str) -> None:
    event = cli.json("task", "event", task, "user", "please ship")[0]["id"]
    made = cli.json(
        "task", "checkpoint", task, "Half way", "--done", "build", "--done", "test", "--todo", "ship", "--decided", "v2",
        "--blocker", "the freeze", "--artifact", "dist.tar", "--event", event,
    )  # fmt: skip
    assert (made["completed_steps"], made["pending_steps"], made["decisions"]) == (["build", "test"], ["ship"], ["v2"])
    assert (made["blockers"], made["artifacts"], made["source_event_ids"]) == (["the freeze"], ["dist.tar"], [event])
    text = cli("task", "show", task).stdout
    for words in (made["id"], "Half way", "build; test", "the freeze", "please ship"):
        assert words in text


def test_a_checkpoint_needs_a_summary(cli: Console, task: str) -> None:
    assert cli("task", "checkpoint", task).exit_code == 2


def test_show_counts_and_tells_the_last_events(cli: Console, task: str) -> None:
    for i in range(5):
        cli("task", "event", task, "user", f"message {i}")
    before = datetime.now(UTC)
    found = cli.json("task", "show", task, "--events", "2")
    assert found["event_count"] == 5
    assert [event["content"] for event in found["last_events"]] == ["message 3", "message 4"]
    assert cli.json("task", "show", task, "--events", "0")["last_events"] == []
    last = datetime.fromisoformat(found["last_events"][-1]["at"])
    assert before - last <= timedelta(seconds=found["idle_seconds"]) <= datetime.now(UTC) - last
    assert "last sign" in cli("task", "show", task).stdout


def test_a_running_task_that_is_long_silent_is_to_be_resumed(
    cli: Console, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engram.sessions.tasks import Tasks

    monkeypatch.setattr(Tasks, "idle_since", lambda *_: timedelta(hours=5))
    result = cli("task", "show", task)
    assert "5 hours ago" in result.stdout
    assert f"engram task resume {task}" in result.stderr


def test_context_always_has_the_goal_and_the_latest_checkpoint(cli: Console, task: str) -> None:
    cli("task", "event", task, "user", "please ship")
    cli("task", "checkpoint", task, "Half way", "--todo", "sign the build")
    known = cli.json("add", "Releases are signed with the release key")["id"]
    text = cli("task", "context", task, "sign the build").stdout
    for words in ("Ship the release", "Half way", "sign the build", "please ship", known):
        assert words in text
    built = cli.json("task", "context", task, "--tokens", "120", "--recent", "0")
    assert built["tokens"] <= built["budget"] == 120
    assert "Half way" in built["text"] and "please ship" not in built["text"]


def test_context_without_the_graph_leaves_out_what_is_linked(cli: Console, task: str) -> None:
    known = cli.json("add", "Releases are shipped on Tuesdays")["id"]
    linked = cli.json("add", "The calendar is kept in the wiki")["id"]
    cli("relate", known, linked)
    assert linked in cli("task", "context", task, "--recent", "0").stdout
    assert "Related" not in cli("task", "context", task, "--no-graph").stdout


def test_a_context_that_cannot_hold_its_task_is_exit_2(cli: Console, task: str) -> None:
    assert cli("task", "context", task, "--tokens", "0").exit_code == 2
    assert cli("task", "context", task, "--recent", "-1").exit_code == 2
    assert cli("task", "resume", task, "--recent", "-1").exit_code == 2


def test_resume_prints_the_state_and_what_to_go_on_with(cli: Console, task: str) -> None:
    cli("task", "checkpoint", task, "Half way", "--todo", "sign the build")
    paused = cli("task", "pause", task, "lunch")
    assert paused.stdout.startswith("paused") and "lunch" in paused.stdout
    result = cli("task", "resume", task)
    assert result.stdout.splitlines()[0] == f"{task}  running  Ship the release"
    assert "sign the build" in result.stdout
    assert "it was paused" in result.stderr


def test_a_task_whose_process_died_is_resumed_as_it_is(cli: Console, task: str) -> None:
    cli("task", "event", task, "user", "please ship")
    found = cli.json("task", "resume", task)
    assert (found["was"], found["task"]["status"]) == ("running", "running")
    assert "please ship" in found["context"]["text"]


@pytest.mark.parametrize(("verb", "state"), [("complete", "completed"), ("fail", "failed"), ("cancel", "cancelled")])
def test_an_ended_task_keeps_what_came_of_it_and_takes_nothing_more(
    cli: Console, task: str, verb: str, state: str
) -> None:
    ended = cli.json("task", verb, task, "as far as it goes")
    assert (ended["status"], ended["outcome"]) == (state, "as far as it goes")
    assert cli("task", "event", task, "user", "too late").exit_code == 2
    assert cli("task", "checkpoint", task, "too late").exit_code == 2
    assert cli.json("task", "show", task)["event_count"] == 0


def test_a_state_that_may_not_follow_is_exit_2_and_says_what_may(cli: Console, task: str) -> None:
    cli("task", "complete", task)
    result = cli("task", "pause", task)
    assert result.exit_code == 2
    assert "cannot become paused" in result.stderr
    assert cli("task", "resume", task).exit_code == 2


def test_a_deleted_task_is_out_of_the_lists_and_its_ledger_stays(cli: Console, task: str) -> None:
    cli("task", "event", task, "user", "please ship")
    assert cli("task", "delete", task).exit_code == 0
    assert cli.json("task", "list") == []
    assert [one["id"] for one in cli.json("task", "list", "--status", "deleted")] == [task]
    assert [event["content"] for event in cli.json("ledger", "show", task)] == ["please ship"]


def test_search_finds_events_of_one_task_or_of_all(cli: Console, task: str) -> None:
    other = cli.json("task", "start", "Bake bread")["id"]
    cli("task", "event", task, "user", "The freeze begins on Monday")
    cli("task", "event", other, "tool", "The oven freeze failed", "--event-type", "error")
    assert [hit["event"]["task"] for hit in cli.json("task", "search", "freeze", "--task", task)["hits"]] == [task]
    assert {hit["event"]["task"] for hit in cli.json("task", "search", "freeze")["hits"]} == {task, other}
    assert [h["event"]["task"] for h in cli.json("task", "search", "freeze", "--event-type", "error")["hits"]] == [
        other
    ]
    assert [h["event"]["task"] for h in cli.json("task", "search", "freeze", "--role", "user")["hits"]] == [task]
    assert cli.json("task", "search", "freeze", "--since", "2999-01-01")["hits"] == []


def test_what_is_not_there_is_exit_3(cli: Console) -> None:
    for words in (
        ("show",), ("event", "user", "x"), ("turn", "--user", "x"), ("checkpoint", "x"), ("context",), ("resume",),
        ("pause",), ("complete",), ("fail",), ("cancel",), ("delete",),
    ):  # fmt: skip
        result = cli("task", words[0], "TASK-nope", *words[1:])
        assert (result.exit_code, result.stdout) == (3, ""), words
    assert cli("task", "search", "x", "--task", "TASK-nope").exit_code == 3


def test_the_task_may_come_from_the_environment(cli: Console, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_TASK", task)
    assert cli.json("task", "event", "user", "please ship")[0]["task"] == task
    assert cli.json("task", "event", "--batch", stdin='{"role": "user", "content": "now"}')[0]["task"] == task
    assert cli.json("task", "checkpoint", "Half way", "--todo", "ship")["summary"] == "Half way"
    assert cli.json("task", "turn", "--user", "hello")[0]["task"] == task
    assert "Half way" in cli("task", "context", "what next?").stdout
    assert len(cli.json("task", "search", "ship")["hits"]) > 0
    assert cli.json("task", "pause", "lunch")["outcome"] == "lunch"
    assert cli.json("task", "resume")["was"] == "paused"
    assert cli.json("task", "complete", "shipped")["outcome"] == "shipped"


def test_a_task_that_is_named_beats_the_environment(cli: Console, task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    other = cli.json("task", "start", "Bake bread")["id"]
    monkeypatch.setenv("ENGRAM_TASK", other)
    assert cli.json("task", "event", task, "user", "please ship")[0]["task"] == task
    assert cli("task", "event", "TASK-nope", "user", "please ship").exit_code == 3
    assert cli.json("task", "show")["task"]["id"] == other


def test_a_turn_with_nothing_on_stdin_says_how_to_give_one(cli: Console, task: str) -> None:
    result = cli("task", "turn", task, stdin="")
    assert result.exit_code == 2
    assert "stdin is empty: give --user TEXT" in result.stderr


def test_a_known_key_with_other_words_is_refused(cli: Console, task: str) -> None:
    cli("task", "event", task, "user", "please ship", "--key", "k1")
    result = cli("task", "event", task, "user", "do not ship", "--key", "k1")
    assert result.exit_code == 1
    assert "'k1' belongs to event EVT-" in result.stderr
    assert len(cli.json("task", "show", task)["last_events"]) == 1
