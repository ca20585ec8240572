"""session start, observe, summarise, end, list, show."""

import json

import pytest

from engram.cli.surface import Surface

from .conftest import Console


def test_start_prints_its_id_and_then_what_memory_has_to_say(cli: Console) -> None:
    known = cli.learned("Deploys go through the staging cluster first", "--type", "convention")
    result = cli("session", "start", "deploy to staging")
    assert result.stdout.splitlines()[0].startswith("S-")
    assert known in result.stdout


def test_a_session_without_a_task_injects_nothing(cli: Console) -> None:
    begun = cli.json("session", "start")
    assert begun["injection"]["text"] == ""


def test_observe_appends_and_the_same_key_is_the_same_event(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    first = cli.json("session", "observe", session, "user", "hello", "--key", "k1")
    again = cli.json("session", "observe", session, "user", "hello", "--key", "k1")
    assert first[0]["id"] == again[0]["id"]
    assert len(cli.json("session", "show", session)["events"]) == 1


def test_observe_takes_a_batch_of_json_lines(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    lines = "\n".join(json.dumps({"role": "user", "content": f"message {i}"}) for i in range(3))
    assert len(cli.json("session", "observe", session, "--batch", stdin=lines)) == 3


def test_a_broken_batch_writes_nothing(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    result = cli("session", "observe", session, "--batch", stdin='{"role": "user", "content": "a"}\n{oops\n')
    assert result.exit_code == 2
    assert "line 2" in result.stderr
    assert cli.json("session", "show", session)["events"] == []


def test_secrets_are_redacted_before_they_are_written(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    token = "ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E"
    event = cli.json("session", "observe", session, "user", f"my token is {token}")[0]
    assert token not in event["content"]


def test_the_end_folds_in_what_was_used(cli: Console) -> None:
    known = cli.learned("Deploys go through the staging cluster first", "--type", "convention")
    session = cli.json("session", "start", "deploy to staging")["id"]
    ended = cli.json("session", "end", session, "--summary", "deployed")
    assert ended["ended"] is not None
    assert cli.json("show", known)["activation"]["frequency"] == 1


def test_list_shows_sessions_newest_first(cli: Console) -> None:
    first = cli.json("session", "start", "bake bread")["id"]
    cli("session", "end", first, "--summary", "bread baked")
    second = cli.json("session", "start", "sell bread")["id"]
    found = cli.json("session", "list")
    assert {one["id"] for one in found} == {first, second}
    text = cli("session", "list").stdout
    assert "bread baked" in text and "ended" in text and "open" in text


def test_show_has_the_ledger_and_what_was_used(cli: Console) -> None:
    known = cli.learned("Deploys go through the staging cluster first", "--type", "convention")
    session = cli.json("session", "start", "deploy to staging")["id"]
    cli("session", "observe", session, "user", "please deploy")
    text = cli("session", "show", session).stdout
    assert "please deploy" in text
    assert known in text


def test_an_unknown_session_is_exit_3(cli: Console) -> None:
    assert cli("session", "end", "S-nope").exit_code == 3
    assert cli("session", "show", "S-nope").exit_code == 3


def test_a_session_begun_by_observing_can_be_ended(cli: Console) -> None:
    cli("session", "observe", "my-own-name", "user", "hello", "--at", "2026-01-02T03:04:05Z")
    ended = cli.json("session", "end", "my-own-name", "--summary", "greeted")
    assert ended["started"] == "2026-01-02T03:04:05Z"
    assert ended["ended"] is not None
    assert [one["id"] for one in cli.json("session", "list")] == ["my-own-name"]


def test_a_session_that_has_ended_takes_nothing_more(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    cli("session", "end", session)
    result = cli("session", "observe", session, "user", "too late")
    assert result.exit_code == 1
    assert "has ended" in result.stderr
    assert cli.json("session", "show", session)["events"] == []


def test_observe_needs_a_role_or_a_batch(cli: Console) -> None:
    assert cli("session", "observe", "S-1").exit_code == 2


def talked(cli: Console) -> str:
    session = str(cli.json("session", "start", "x")["id"])
    for words in ("The goal is to ship version two.", "We decided to use the blue cluster.", "Next we sign the build."):
        cli.json("session", "observe", session, "user", words)
    return session


def test_summarise_folds_in_what_was_said_and_prints_it(cli: Console) -> None:
    session = talked(cli)
    assert "blue cluster" in cli("session", "summarise", session).stdout
    made = cli.json("session", "summarise", session)
    assert (made["summary_through"], made["summary_by"], made["summary_style"]) == (3, "rules", "plain")
    assert cli.json("session", "show", session)["session"]["summary"] == made["summary"]


def test_a_structured_summary_has_headings_and_keeps_its_style(cli: Console) -> None:
    session = talked(cli)
    assert "Decisions" in cli("session", "summarise", session, "--style", "structured").stdout
    assert cli.json("session", "summarise", session)["summary_style"] == "structured"


def test_a_summary_keeps_to_its_tokens(cli: Console) -> None:
    short, long = (cli.json("session", "summarise", talked(cli), "--tokens", n)["summary"] for n in ("20", "400"))
    assert 0 < len(short.splitlines()) < len(long.splitlines())
    assert cli("session", "summarise", talked(cli), "--tokens", "-1").exit_code == 2


def test_a_session_begun_by_observing_can_be_summarised(cli: Console) -> None:
    cli("session", "observe", "my-own-name", "user", "We decided to use the blue cluster.")
    assert "blue cluster" in cli("session", "summarise", "my-own-name").stdout


def test_a_summary_needs_a_session_and_a_known_style(cli: Console) -> None:
    assert cli("session", "summarise", "S-nope").exit_code == 3
    assert cli("session", "summarise", talked(cli), "--style", "baroque").exit_code == 2


def test_a_summary_that_repeats_a_rejection_says_that_it_is_held_back(
    cli: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    rejected = cli.json("learn", "The patient Ana Schmidt has type 1 diabetes", "--type", "health")["memory"]["id"]
    monkeypatch.setattr(Surface, "person", property(lambda _: True))
    assert cli("reject", rejected).exit_code == 0
    session = cli.json("session", "start", "x")["id"]
    ended = cli("session", "end", session, "--summary", "The patient Ana Schmidt has type 1 diabetes")
    assert f"repeats what was rejected ({rejected})" in ended.stderr
    assert f"the summary repeats what was rejected ({rejected})" in cli("session", "show", session).stdout
    assert "not injected" in cli("session", "list").stdout
