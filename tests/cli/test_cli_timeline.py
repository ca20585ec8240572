"""`engram timeline`."""

from tests.cli.conftest import Console


def test_a_timeline_has_memories_and_sessions_in_their_order(cli: Console) -> None:
    session = cli.json("session", "start", "plan the launch")["id"]
    learned = cli.learned("The launch of the airship is planned for the fifth of May")
    assert cli("session", "end", session, "--summary", "The launch is planned.").exit_code == 0
    entries = cli.json("timeline")["entries"]
    assert [entry["id"] for entry in entries] == [session, learned, session]
    assert "The launch is planned." in cli("timeline").stdout
    assert [entry["id"] for entry in cli.json("timeline", "airship", "-n", "1")["entries"]] == [learned]


def test_a_time_without_entries_says_so(cli: Console) -> None:
    result = cli("timeline", "--until", "2001-01-01")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing is known of that time" in result.stderr
