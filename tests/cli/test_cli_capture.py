"""capture: an exchange is kept, and what lasts of it becomes memories."""

from .conftest import Console

SAID = "I prefer tea over coffee. What a day!"


def test_every_fact_has_a_decision_and_its_reason(cli: Console) -> None:
    kept = cli.json("capture", "--user", SAID, "--assistant", "Noted.", "--session", "chat-1")
    assert kept["decisions"] and all(one["reason"] for one in kept["decisions"])
    first = kept["decisions"][0]
    assert (first["operation"], first["applied"]) == ("ADD", True)
    assert "tea" in first["fact"]
    assert first["memory_id"] == kept["memories"][0]["id"] == cli.json("show", first["memory_id"])["id"]
    assert not kept["pending"] and kept["warnings"] == []


def test_the_turns_are_kept_as_they_were_said(cli: Console) -> None:
    kept = cli.json("capture", "--user", SAID, "--assistant", "Noted.", "--session", "chat-1")
    events = cli.json("ledger", "show", "chat-1")
    assert [(event["role"], event["content"]) for event in events] == [("user", SAID), ("assistant", "Noted.")]
    assert [event["id"] for event in events] == kept["events"]


def test_a_person_reads_operation_id_and_reason(cli: Console) -> None:
    result = cli("capture", "--user", SAID)
    first, second = result.stdout.splitlines()[:2]
    assert first.startswith("ADD") and "tea" in first
    assert second.startswith("          ")


def test_the_same_exchange_doubles_nothing_unless_a_key_tells_them_apart(cli: Console) -> None:
    first, again = (cli.json("capture", "--user", SAID, "--session", "chat-1") for _ in range(2))
    assert first["events"] == again["events"]
    assert all(one["operation"] == "NOOP" for one in again["decisions"])
    other = cli.json("capture", "--user", SAID, "--session", "chat-1", "--key", "k2")
    assert other["events"] != first["events"]


def test_what_says_nothing_lasting_is_kept_in_the_ledger_alone(cli: Console) -> None:
    result = cli("capture", "--user", "Thanks, bye!", "--session", "chat-1")
    assert result.exit_code == 0
    assert [line[:10].strip() for line in result.stdout.splitlines()[::2]] == ["NOOP"] * (
        len(result.stdout.splitlines()) // 2
    )
    assert "skipped: " in result.stdout
    assert "they contain nothing to remember" in result.stderr
    assert len(cli.json("ledger", "show", "chat-1")) == 1
    assert cli.json("list", "--status", "any") == []


def test_what_waits_for_review_is_said(cli: Console) -> None:
    result = cli("capture", "--user", "My passport number is 12345678.")
    assert "1 memory awaits review" in result.stderr
    assert cli.json("list") == []


def test_dry_run_shows_what_the_rules_take_and_writes_nothing(cli: Console) -> None:
    found = cli.json("capture", "--user", SAID, "--session", "chat-1", "--dry-run")
    assert [fact["type"] for fact in found] == ["preference"]
    start, end = found[0]["span"]
    assert "tea" in SAID[start:end]
    assert "tea" in cli("capture", "--user", SAID, "--dry-run").stdout
    assert cli.json("list", "--status", "any") == []
    assert cli("ledger", "show", "chat-1").exit_code == 3


def test_the_assistant_is_listened_to_only_when_asked(cli: Console) -> None:
    said = ("capture", "--assistant", "You live in Rome.", "--dry-run")
    assert cli.json(*said) == []
    assert [fact["role"] for fact in cli.json(*said, "--listen")] == ["assistant"]


def test_the_scope_is_that_of_the_memory(cli: Console) -> None:
    kept = cli.json("capture", "--user", SAID, "--scope", "project:acme")
    assert {memory["scope"] for memory in kept["memories"]} == {"project:acme"}
    assert cli("capture", "--user", SAID, "--scope", "here").exit_code == 2


def test_a_side_may_come_from_stdin_but_not_both(cli: Console) -> None:
    assert cli.json("capture", "--user", "-", stdin=SAID)["decisions"]
    assert cli("capture", "--user", "-", "--assistant", "-", stdin=SAID).exit_code == 2


def test_nothing_said_is_exit_2(cli: Console) -> None:
    assert cli("capture").exit_code == 2
    assert cli("capture", "--user", "  ").exit_code == 2


def test_a_pause_refuses_it_and_nothing_is_written(cli: Console) -> None:
    cli("pause")
    assert cli("capture", "--user", SAID, "--session", "chat-1").exit_code == 1
    assert cli("ledger", "show", "chat-1").exit_code == 3


# -- the buffer


def test_buffered_turns_wait_until_one_has_a_high_signal(cli: Console) -> None:
    first = cli.json("capture", "--buffer", "--session", "chat", "--user", "What now?", "--assistant", "Nothing.")
    assert [(one["level"], one["trigger"], one["waiting"]) for one in first] == [("none", "", 1), ("none", "", 2)]
    assert cli.json("status")["waiting_turns"] == 2 and cli.json("list") == []
    [read] = cli.json("capture", "--buffer", "--session", "chat", "--user", SAID)
    assert (read["level"], read["trigger"], read["waiting"]) == ("high", "high", 0)
    assert [memory["id"] for memory in read["memories"]] == [memory["id"] for memory in cli.json("list")]
    assert cli.json("status")["waiting_turns"] == 0


def test_a_person_sees_what_waits_and_what_was_read(cli: Console) -> None:
    waits = cli("capture", "--buffer", "--session", "chat", "--user", "My sister lives in Oslo.")
    assert waits.stdout.startswith("stored, waits (low signal)  EVT-")
    assert "1 turn waits for extraction in chat" in waits.stderr
    assert "1 turn waits for extraction: engram capture --flush" in cli("status").stdout
    read = cli("capture", "--flush")
    assert read.stdout.startswith("extracted  chat\n") and "Oslo" in read.stdout
    assert "no turn waits" in cli("capture", "--flush").stderr
    assert "no turn is due" in cli("capture", "--due").stderr


def test_a_person_sees_why_a_turn_waits_or_does_not(cli: Console) -> None:
    waits = cli("capture", "--buffer", "--session", "chat", "--user", "Which port does staging use?")
    assert waits.stdout.startswith("stored, waits (no signal)  EVT-")
    at_once = cli("capture", "--buffer", "--session", "chat", "--user", SAID)
    assert at_once.stdout.startswith("extracted at once: high signal  EVT-")


def test_a_flush_of_a_session_that_there_is_not_says_where_the_sessions_are_listed(cli: Console) -> None:
    refused = cli("capture", "--flush", "--session", "nope")
    assert "session list" in refused.stderr and "session start" not in refused.stderr


def test_one_session_is_flushed_and_the_others_wait(cli: Console) -> None:
    for session in ("one", "two"):
        cli("capture", "--buffer", "--session", session, "--user", "My sister lives in Oslo.")
    assert [one["session"] for one in cli.json("capture", "--flush", "--session", "two")] == ["two"]
    assert cli.json("status")["waiting_turns"] == 1
    assert cli("capture", "--flush", "--session", "three").exit_code == 3


def test_turns_without_a_session_wait_in_the_scopes_own(cli: Console) -> None:
    [waits] = cli.json("capture", "--buffer", "--scope", "user", "--user", "My sister lives in Oslo.")
    assert waits["session"] == "conversation:user"
    [read] = cli.json("capture", "--flush", "--scope", "user")
    assert {memory["scope"] for memory in read["memories"]} == {"user"}


def test_a_buffered_turn_repeated_by_its_key_is_one(cli: Console) -> None:
    said = ("capture", "--buffer", "--session", "chat", "--user", "My sister lives in Oslo.", "--key", "k1")
    assert cli.json(*said) == cli.json(*said)
    assert len(cli.json("ledger", "show", "chat")) == 1


def test_options_that_contradict_each_other_are_refused(cli: Console) -> None:
    for options, words in (
        (("--flush", "--due"), "Give only one of"),
        (("--buffer", "--dry-run", "--user", SAID), "Give only one of"),
        (("--flush", "--user", SAID), "it takes --session and --scope"),
        (("--due", "--session", "chat"), "it takes --scope and no other option"),
        (("--buffer",), "Give --user TEXT"),
    ):
        refused = cli("capture", *options)
        assert refused.exit_code == 2 and words in refused.stderr


def test_the_end_of_a_session_reads_its_buffer(cli: Console) -> None:
    session = cli.json("session", "start")["id"]
    cli("capture", "--buffer", "--session", session, "--user", "My sister lives in Oslo.")
    assert cli("session", "end", session).exit_code == 0
    assert cli.json("status")["waiting_turns"] == 0 and len(cli.json("list", "--status", "any")) == 1
