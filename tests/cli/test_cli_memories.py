"""show, list, history."""

from pathlib import Path

import pytest

from .conftest import Console


def test_show_tells_everything_by_id_name_or_alias(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--name", "indent", "--why", "the formatter says so")
    by_id, by_name = cli("show", known).stdout, cli("show", "indent").stdout
    assert by_id == by_name
    assert "the formatter says so" in by_id
    assert "0.70 active" in by_id


def test_show_names_the_file_that_holds_it(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    path = Path(cli.json("show", known)["file"])
    assert path.name == f"{known}.yaml"
    assert "Use tabs, not spaces" in path.read_text("utf-8")


def test_show_takes_an_event_too(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    event = cli.json("session", "observe", session, "user", "hello there")[0]["id"]
    assert cli.json("show", event)["content"] == "hello there"
    assert "hello there" in cli("show", event).stdout


def test_what_is_not_there_is_exit_3(cli: Console) -> None:
    for verb in ("show", "history", "undo", "forget", "verify", "reinforce", "pin"):
        result = cli(verb, "ENG-2020-0101-001")
        assert result.exit_code == 3, verb
        assert result.stderr.startswith("engram: no memory")
        assert result.stdout == ""


def test_list_is_newest_first_and_aligned(cli: Console) -> None:
    first, second = cli.learned("Use tabs, not spaces"), cli.learned("Backups are kept for thirty days")
    lines = cli("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == [second, first]
    assert len({line.index("global") for line in lines}) == 1


def test_list_filters_by_status(cli: Console) -> None:
    kept, gone = cli.learned("Use tabs, not spaces"), cli.learned("Backups are kept for thirty days")
    cli("forget", gone)
    assert [memory["id"] for memory in cli.json("list")] == [kept]
    assert {memory["id"] for memory in cli.json("list", "--status", "any")} == {kept, gone}
    assert [memory["id"] for memory in cli.json("list", "--status", "retired")] == [gone]


def test_list_pages(cli: Console) -> None:
    ids = [cli.learned(text) for text in ("Use tabs", "Ship on Fridays never", "Keep backups for a month")]
    assert [m["id"] for m in cli.json("list", "--limit", "1", "--offset", "1")] == [ids[1]]


@pytest.mark.parametrize("options", [["--type", "feedback"], ["--tag", "nothing"], ["--offset", "9"]])
def test_filters_that_match_nothing_are_no_empty_store(cli: Console, options: list[str]) -> None:
    cli.learned("Lunch is at noon")
    result = cli("list", *options)
    assert (result.exit_code, "nothing matches" in result.stderr, "first memory" in result.stderr) == (0, True, False)


def test_an_empty_store_lists_nothing_and_says_what_to_do(cli: Console) -> None:
    result = cli("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "engram learn" in result.stderr


def test_a_statement_with_line_breaks_stays_on_its_line(cli: Console) -> None:
    cli.learned("First line of it\nsecond line of it")
    assert len(cli("list").stdout.splitlines()) == 1


def test_control_characters_are_shown_and_not_obeyed(cli: Console) -> None:
    known = cli.learned("A red herring")
    path = Path(cli.json("show", known)["file"])
    text = path.read_text("utf-8").replace("A red herring", r'"A red \e[31mherring\a and \u202eback"')
    path.write_text(text, "utf-8")
    for result in (cli("show", known), cli("list"), cli("search", "herring")):
        assert "\x1b" not in result.stdout
        assert "\x07" not in result.stdout
        assert "\\x1b[31mherring" in result.stdout


def test_text_that_looks_like_markup_is_text(cli: Console) -> None:
    known = cli.learned("Write [bold]tags[/bold] as :smile: they are")
    assert "[bold]tags[/bold] as :smile:" in cli("show", known).stdout


def test_history_shows_each_change_before_and_after(cli: Console) -> None:
    before, after = (f"The API of the payment service listens on port {port}" for port in (8080, 9090))
    known = cli.learned(before)
    cli("update", known, "--statement", after, "--tag", "api", "--reason", "moved")
    text = cli("history", known).stdout
    assert f"- {before}" in text
    assert f"+ {after}" in text
    assert "tags: + api" in text
    assert "moved" in text


def test_history_in_json_is_a_list_of_steps(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("pin", known)
    steps = cli.json("history", known)
    assert [step["op"] for step in steps] == ["learn", "pin"]
    assert steps[1]["changes"]["pinned"] == {"before": False, "after": True}
    assert steps[0]["actor"] == "agent"


def test_list_as_of_shows_the_state_of_that_time(cli: Console) -> None:
    cli.json("add", "The office is in Bonn", "--valid-from", "2024-01-01", "--valid-until", "2025-01-01")
    assert cli.json("list") == []
    assert cli.json("list", "--as-of", "2024-07-01")[0]["state"] == "active"
    assert "no longer valid" not in cli("list", "--as-of", "2024-07-01").stdout
    assert cli.json("search", "office", "--as-of", "2024-07-01")["hits"][0]["memory"]["state"] == "active"


@pytest.mark.parametrize("words", [("list",), ("search", "tabs")])
@pytest.mark.parametrize(("option", "known"), [("--status", "superseded"), ("--type", "preference")])
def test_an_unknown_filter_value_is_wrong_usage_and_the_known_ones_are_named(
    cli: Console, words: tuple[str, ...], option: str, known: str
) -> None:
    result = cli(*words, option, "bogus")
    assert result.exit_code == 2
    assert "bogus" in result.stderr
    assert known in result.stderr


def test_an_unknown_kind_or_type_of_a_question_is_wrong_usage(cli: Console) -> None:
    assert "memory, event" in cli("search", "tabs", "--kind", "bogus").stderr
    assert cli("search", "tabs", "--kind", "bogus").exit_code == 2
    assert cli("recall", "tabs", "--type", "bogus").exit_code == 2


def test_a_type_that_only_a_file_has_can_be_asked_for(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces", "--type", "preference")
    file = Path(cli.json("show", known)["file"])
    file.write_text(file.read_text("utf-8").replace("type: preference", "type: terminological"), "utf-8")
    cli("sync")
    assert [memory["id"] for memory in cli.json("list", "--type", "terminological")] == [known]


@pytest.mark.usefixtures("person")
def test_list_critical_has_what_the_policy_holds_critical(cli: Console) -> None:
    critical = cli.json("add", "The user is allergic to peanuts")["id"]
    cli.learned("Use tabs, not spaces")
    assert [memory["id"] for memory in cli.json("list", "--critical")] == [critical]
    assert "nothing critical" in cli("list", "--critical", "--scope", "project:acme").stderr
