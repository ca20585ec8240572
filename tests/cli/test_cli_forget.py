"""forget and purge."""

import pytest

from .conftest import Console

WORDS = "The launch code of the drill is swordfish"


def bytes_of(cli: Console) -> bytes:
    return b"".join(path.read_bytes() for path in cli.folder.rglob("*") if path.is_file())


def test_forget_retires_and_says_how_to_come_back(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    result = cli("forget", known, "--reason", "outdated")
    assert result.stdout.startswith("retired")
    assert f"engram undo {known}" in result.stderr
    assert cli.json("list") == []
    assert cli.json("history", known)[-1]["reason"] == "outdated"


def test_purge_without_a_terminal_needs_yes(cli: Console) -> None:
    known = cli.learned(WORDS)
    result = cli("forget", known, "--purge")
    assert result.exit_code == 2
    assert "--yes" in result.stderr
    assert cli.json("show", known)["statement"] == WORDS


def test_purge_leaves_no_byte_and_proves_it(cli: Console) -> None:
    known = cli.learned(WORDS)
    cli("update", known, "--statement", WORDS + " again")
    assert b"swordfish" in bytes_of(cli)
    result = cli("forget", known, "--purge", "--yes")
    assert result.exit_code == 0
    assert "proof" in result.stdout
    assert "out of reach" in result.stdout and "backups" in result.stdout
    assert b"swordfish" not in bytes_of(cli)
    assert cli("show", known).exit_code == 3


def test_purge_in_json_lists_what_remains_and_what_is_out_of_reach(cli: Console) -> None:
    known = cli.learned(WORDS)
    proof = cli.json("forget", known, "--purge", "--yes")
    assert proof["purged"] == [known]
    assert proof["remaining"] == []
    assert proof["out_of_reach"]


def test_an_event_can_be_purged(cli: Console) -> None:
    session = cli.json("session", "start", "x")["id"]
    event = cli.json("session", "observe", session, "user", WORDS)[0]["id"]
    assert cli.json("forget", event, "--purge", "--yes")["remaining"] == []
    assert b"swordfish" not in bytes_of(cli)


@pytest.mark.usefixtures("person")
def test_a_person_is_asked_first_and_may_say_no(cli: Console) -> None:
    known = cli.learned(WORDS)
    result = cli("forget", known, "--purge", stdin="n\n")
    assert result.exit_code == 1
    assert "nothing was destroyed" in result.stderr
    assert cli.json("show", known)["id"] == known


@pytest.mark.usefixtures("person")
def test_a_person_who_says_yes_destroys_it(cli: Console) -> None:
    known = cli.learned(WORDS)
    assert cli("forget", known, "--purge", stdin="y\n").exit_code == 0
    assert b"swordfish" not in bytes_of(cli)
