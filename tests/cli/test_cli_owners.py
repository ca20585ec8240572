"""`--scope` on the verbs that show what was said and done: an owner sees their own, and another's is not found."""

from tests.cli.conftest import Console

ANA, EVE = "agent:shop/ana", "agent:other/eve"


def test_sessions_ledgers_and_events_of_another_are_not_found(cli: Console) -> None:
    [event] = cli.json("session", "observe", "chat", "user", "The quokka likes drums.", "--scope", ANA)
    cli.json("session", "end", "chat", "--summary", "All about the quokka")
    shown = [("session", "show", "chat"), ("ledger", "show", "chat"), ("show", event["id"])]
    for words in shown:
        assert "quokka" in cli(*words, "--json").stdout
        assert "quokka" in cli(*words, "--scope", ANA, "--json").stdout
        refused = cli(*words, "--scope", EVE)
        assert (refused.exit_code, "quokka" in refused.stdout + refused.stderr) == (3, False), words
    assert [one["id"] for one in cli.json("session", "list", "--scope", ANA)] == ["chat"]
    assert cli.json("session", "list", "--scope", EVE) == []
    assert cli("session", "observe", "chat2", "user", "Hello", "--scope", EVE).exit_code == 0
    assert cli("session", "observe", "chat2", "user", "Hello", "--scope", ANA).exit_code == 1


def test_tasks_of_another_are_not_listed_shown_or_searched(cli: Console) -> None:
    task = cli.json("task", "start", "Feed the quokka", "--scope", ANA)["id"]
    cli("task", "event", task, "user", "The quokka likes drums.")
    assert [one["id"] for one in cli.json("task", "list", "--scope", ANA)] == [task]
    assert cli.json("task", "list", "--scope", EVE) == []
    for words in (("task", "show", task), ("task", "context", task)):
        assert cli(*words, "--scope", ANA).exit_code == 0
        assert cli(*words, "--scope", EVE).exit_code == 3
    assert len(cli.json("task", "search", "drums", "--scope", ANA)["hits"]) == 1
    assert cli.json("task", "search", "drums", "--scope", EVE)["hits"] == []


def test_a_memory_of_another_is_not_shown(cli: Console) -> None:
    memory = cli.json("add", "The quokka likes drums", "--scope", ANA)["id"]
    for verb in ("show", "history", "lineage"):
        assert cli(verb, memory, "--scope", ANA).exit_code == 0
        assert cli(verb, memory, "--scope", EVE).exit_code == 3
