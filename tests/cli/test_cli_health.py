"""index, doctor, status."""

import shutil

import pytest

from .conftest import Console


def test_status_says_what_was_injected_last_and_how_to_stop_it(cli: Console) -> None:
    known = cli.learned("Deploys go through the staging cluster first", "--type", "convention")
    assert "nothing has been injected yet" in cli("status").stdout
    cli("inject", "deploy to staging")
    text = cli("status").stdout
    assert known in text
    for way in ("engram forget ID", "engram feedback ID negative", "engram update ID --status dormant"):
        assert way in text


def test_status_in_json(cli: Console) -> None:
    cli.learned("Use tabs, not spaces")
    found = cli.json("status")
    assert found["statuses"] == {"active": 1}
    assert found["paused"] is False
    assert found["store"] == str(cli.folder / "home")


def test_index_says_what_it_holds(cli: Console) -> None:
    cli.learned("Use tabs, not spaces")
    assert cli.json("index")["documents"] == {"memory": 1}
    assert "1 memory" in cli("index").stdout


def test_a_deleted_index_is_made_again(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    shutil.rmtree(cli.folder / "cache")
    assert [memory["id"] for memory in cli.json("list")] == [known]


def test_rebuild_gives_the_same_answers(cli: Console) -> None:
    cli.learned("Use tabs, not spaces")
    before = cli.json("search", "tabs")["hits"][0]
    cli("index", "--rebuild")
    after = cli.json("search", "tabs")["hits"][0]
    assert (before["id"], round(before["score"], 3)) == (after["id"], round(after["score"], 3))


@pytest.mark.usefixtures("person")
def test_reembed_goes_from_keyword_to_meaning(cli: Console) -> None:
    cli("config", "embedder", "none")
    cli.learned("Use tabs, not spaces")
    assert cli.json("index")["vectors"] == 0
    cli("config", "embedder", "static")
    assert cli.json("index", "--reembed")["reembedded"] == 1
    assert cli.json("index")["vectors"] == 1


def test_rebuild_and_reembed_together_are_wrong_usage(cli: Console) -> None:
    assert cli("index", "--rebuild", "--reembed").exit_code == 2


def test_a_healthy_store_passes_every_check(cli: Console) -> None:
    cli.learned("Use tabs, not spaces")
    result = cli("doctor")
    assert result.exit_code == 0
    assert "✗" not in result.stdout
    assert cli.json("doctor")["ok"] is True


def test_repair_moves_an_unreadable_journal_line_away_and_keeps_the_rest(cli: Console) -> None:
    first = cli.learned("Use tabs, not spaces")
    journal = next((cli.folder / "home" / "journal").glob("*.jsonl"))
    journal.write_bytes(b"{garbage}\n" + journal.read_bytes())
    shutil.rmtree(cli.folder / "cache")
    broken = cli("list")
    assert broken.exit_code == 1
    assert "engram doctor --repair" in broken.stderr
    repaired = cli("doctor", "--repair")
    assert "moved to quarantine" in repaired.stdout
    assert [memory["id"] for memory in cli.json("list")] == [first]
    quarantined = b"".join(p.read_bytes() for p in (cli.folder / "home" / "quarantine").iterdir())
    assert b"{garbage}" in quarantined


def test_a_store_of_a_newer_engram_is_refused_with_what_to_do(cli: Console) -> None:
    cli("init")
    (cli.folder / "home" / "store.json").write_text('{"format": 99, "id": "x"}')
    result = cli("list")
    assert result.exit_code == 1
    assert "Upgrade Engram" in result.stderr


def test_a_memory_of_a_newer_engram_is_not_called_damaged_alone(cli: Console) -> None:
    known = cli.learned("Lunch is at noon")
    file = cli.folder / "home" / cli.json("show", known)["file"]
    file.write_text(file.read_text("utf-8").replace("version: 2", "version: 99", 1))
    cli("sync")
    doctor = cli("doctor").stdout
    assert "version 99" in doctor and "or update Engram" in doctor
    assert "`engram doctor` says how" in cli("update", known, "--tag", "kitchen").stderr


@pytest.mark.usefixtures("person")
def test_the_doctor_names_a_pair_that_disagrees_and_how_to_put_it_before_review(cli: Console) -> None:
    older = cli.learned("The staging server listens on port 8080")
    newer = cli.learned("Lunch is at noon")
    file = cli.folder / "home" / cli.json("show", newer)["file"]
    file.write_text(file.read_text("utf-8").replace("Lunch is at noon", "The staging server listens on port 9090"))
    cli("sync")
    finding = next(check for check in cli.json("doctor")["checks"] if check["name"] == "conflicts")
    assert (finding["level"], finding["count"], finding["ids"]) == ("advice", 1, [newer, older])
    assert "engram relate NEWER OLDER --type may_supersede" in finding["advice"]
    assert cli("relate", newer, older, "--type", "may_supersede").exit_code == 0
    assert [item["waits_as"] for item in cli.json("review")] == ["update"]


def test_advice_about_memories_is_no_problem(cli: Console) -> None:
    known = cli.learned("The office is in Lyon", "--confidence", "0.2")
    result = cli("doctor")
    assert result.exit_code == 0
    assert f"! confidence 1 memory has a confidence below 0.5: {known}" in result.stdout


def test_the_time_for_the_memories_can_be_given(cli: Console) -> None:
    assert cli("doctor", "--seconds", "0").exit_code == 0
    assert cli("doctor", "--seconds", "-1").exit_code == 2


def test_the_doctor_names_a_hook_that_failed(cli: Console) -> None:
    cli.learned("The office is in Lyon")
    cli("hook", "stop", stdin="{not json")
    result = cli("doctor")
    assert result.exit_code == 1
    assert "✗ hooks      stop failed 1 time" in result.stdout
