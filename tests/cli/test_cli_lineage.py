"""revise, lineage: a fact that changes."""

from .conftest import Console


def lived(cli: Console, *cities: str) -> list[str]:
    first = cli.json("add", f"The office is in {cities[0]}")["id"]
    return [first, *(cli.json("revise", first, f"The office is in {city}")["id"] for city in cities[1:])]


def test_a_revision_takes_the_place_of_the_version_before(cli: Console) -> None:
    old, new = lived(cli, "Berlin", "Lisbon")
    assert cli.json("show", old)["status"] == "superseded"
    assert [memory["id"] for memory in cli.json("list")] == [new]


def test_revise_says_what_changed_and_whose_place_it_takes(cli: Console) -> None:
    old = cli.json("add", "The office is in Berlin", "--tag", "place")["id"]
    result = cli("revise", old, "The office is in Lisbon", "--reason", "moved")
    assert "statement: The office is in Berlin → The office is in Lisbon" in result.stdout
    assert f"replaces {old}" in result.stderr
    new = result.stdout.split()[0]
    assert cli.json("show", new)["tags"] == ["place"]
    assert cli.json("history", new)[-1]["reason"] == "moved"


def test_an_old_version_can_be_named_and_the_new_one_follows_on_the_head(cli: Console) -> None:
    first, second, third = lived(cli, "Berlin", "Lisbon", "Rome")
    assert cli.json("show", third)["supersedes"] == [second]
    assert cli.json("show", first)["superseded_by"] == second


def test_lineage_tells_every_version_oldest_first_from_any_of_them(cli: Console) -> None:
    ids = lived(cli, "Berlin", "Lisbon", "Rome")
    for known in ids:
        found = cli.json("lineage", known)
        assert [version["id"] for version in found] == ids
        assert [version["in_force"] for version in found] == [False, False, True]
    lines = cli("lineage", ids[0]).stdout.splitlines()
    assert [line[0] for line in lines] == ["○", "○", "●"]
    assert "current" in lines[2] and "Rome" in lines[2]


def test_a_fact_that_never_changed_is_its_own_lineage(cli: Console) -> None:
    only = cli.learned("Use tabs, not spaces")
    assert [version["id"] for version in cli.json("lineage", only)] == [only]


def test_where_no_version_is_in_force_none_is_marked(cli: Console) -> None:
    only = cli.learned("Use tabs, not spaces")
    cli("forget", only)
    result = cli("lineage", only)
    assert "●" not in result.stdout
    assert "no version is current" in result.stderr


def test_forgetting_the_head_puts_the_version_before_in_force(cli: Console) -> None:
    old, new = lived(cli, "Berlin", "Lisbon")
    cli("forget", new)
    assert [version["in_force"] for version in cli.json("lineage", new)] == [True, False]
    assert [memory["id"] for memory in cli.json("list")] == [old]


def test_what_came_late_is_history_and_the_head_stays(cli: Console) -> None:
    head = cli.json("add", "The office is in Berlin", "--valid-from", "2026-01-01")["id"]
    result = cli("revise", head, "The office is in Bonn", "--valid-from", "2020-01-01")
    assert f"before {head}, which stays current" in result.stderr
    assert [version["in_force"] for version in cli.json("lineage", head)] == [False, True]


def test_one_field_alone_makes_a_version_too(cli: Console) -> None:
    old = cli.json("add", "The office is in Berlin")["id"]
    new = cli.json("revise", old, "--confidence", "0.4")
    assert (new["statement"], new["confidence"]) == ("The office is in Berlin", 0.4)


def test_the_text_may_come_from_stdin(cli: Console) -> None:
    old = cli.json("add", "The office is in Berlin")["id"]
    assert cli.json("revise", old, "-", stdin="The office is in Lisbon\n")["statement"] == "The office is in Lisbon"


def test_nothing_to_revise_is_exit_2_and_nobody_there_is_exit_3(cli: Console) -> None:
    only = cli.learned("Use tabs, not spaces")
    assert cli("revise", only).exit_code == 2
    assert cli("revise", "ENG-2020-0101-001", "x").exit_code == 3
    assert cli("lineage", "ENG-2020-0101-001").exit_code == 3


def test_what_waits_for_review_is_not_put_in_force_by_revising_it(cli: Console) -> None:
    waiting = cli.learned("The patient is allergic to penicillin", "--type", "health")
    assert cli.json("show", waiting)["status"] == "candidate"
    result = cli("revise", waiting, "The patient is allergic to aspirin")
    assert result.exit_code == 1
    assert "awaits review" in result.stderr
    assert cli.json("list") == []


def test_a_secret_is_no_new_version(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    result = cli("revise", known, "The key is AKIA" + "IOSFODNN7ABCDEFG" + " and more")
    assert result.exit_code == 1
    assert len(cli.json("lineage", known)) == 1
