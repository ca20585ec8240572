"""pause, resume, sync, prune, backup, restore."""

from pathlib import Path

import pytest

from engram.cli.surface import Surface

from .conftest import Console


def test_pause_stops_learning_and_injecting_until_resume(cli: Console) -> None:
    cli.learned("Deploys go through staging first", "--type", "convention")
    assert cli.json("pause") == {"paused": True}
    assert cli.json("status")["paused"] is True
    assert cli("inject", "deploys").stdout.strip() == ""
    assert "paused" in cli("inject", "deploys").stderr
    assert cli("learn", "Another thing to know about deploys").exit_code == 1
    assert cli.json("resume") == {"paused": False}
    assert "staging" in cli("inject", "deploys").stdout


def test_while_paused_only_a_person_adds_by_hand(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    cli("pause")
    for verb in ("remember", "add"):
        result = cli(verb, f"What {verb} says about deploys")
        assert result.exit_code == 1
        assert "paused" in result.stderr
    assert cli.json("list", "--status", "any") == []
    monkeypatch.setattr(Surface, "person", property(lambda _: True))
    for verb in ("remember", "add"):
        assert cli(verb, f"What {verb} says about deploys").exit_code == 0
    assert len(cli.json("list")) == 2


def test_while_paused_recall_still_answers(cli: Console) -> None:
    known = cli.learned("Deploys go through staging first")
    cli("pause")
    assert known in cli("recall", "deploys").stdout


@pytest.mark.parametrize("days", ["-1", "0", "99999999999"])
def test_prune_refuses_days_that_mean_nothing(cli: Console, days: str) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("pin", known)
    assert cli("prune", "--days", days, "--yes").exit_code == 2
    assert len(cli.json("history", known)) == 2


def test_sync_takes_in_hand_edits(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    path = Path(cli.json("show", known)["file"])
    path.write_text(path.read_text("utf-8").replace("Use tabs, not spaces", "Use spaces, not tabs"), "utf-8")
    assert cli.json("sync")["edited"] == [known]
    assert cli.json("show", known)["statement"] == "Use spaces, not tabs"
    assert "agree" in cli("sync").stderr


def test_sync_names_the_file_it_cannot_read(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    path = Path(cli.json("show", known)["file"])
    path.write_text("- id: [unclosed\n", "utf-8")
    result = cli("sync")
    assert str(path) in result.stdout
    assert cli.json("show", known)["statement"] == "Use tabs, not spaces"


def test_prune_only_says_what_would_go(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    cli("pin", known)
    assert cli.json("prune")["dry_run"] is True
    assert "keep everything" in cli("prune").stderr
    assert len(cli.json("history", known)) == 2


def test_backup_and_restore_bring_everything_back(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    archive = cli.folder / "memory.tar.gz"
    assert cli.json("backup", str(archive))["files"] > 0
    other = cli.folder / "elsewhere"
    assert cli.json("restore", str(archive), "--home", str(other))["memories"] == 1
    assert cli.json("show", known, "--home", str(other))["statement"] == "Use tabs, not spaces"


def test_backup_does_not_replace_a_file_unasked(cli: Console) -> None:
    archive = cli.folder / "memory.tar.gz"
    archive.write_text("mine")
    assert cli("backup", str(archive)).exit_code == 2
    assert archive.read_text() == "mine"
    assert cli("backup", str(archive), "--force").exit_code == 0


@pytest.mark.usefixtures("person")
def test_restore_over_a_store_needs_force_and_sets_it_aside(cli: Console) -> None:
    cli.learned("Use tabs, not spaces")
    archive = str(cli.folder / "memory.tar.gz")
    cli("backup", archive)
    later = cli.learned("Backups are kept for thirty days")
    assert cli("restore", archive).exit_code == 2
    assert cli("restore", archive, "--force").exit_code == 0
    assert cli("show", later).exit_code == 3
    assert (cli.folder / "home.before-restore").is_dir()


@pytest.mark.usefixtures("person")
def test_a_damaged_backup_restores_nothing(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    broken = cli.folder / "broken.tar.gz"
    broken.write_bytes(b"not an archive")
    result = cli("restore", str(broken), "--force")
    assert result.exit_code == 1
    assert "nothing was restored" in result.stderr
    assert cli("show", known).exit_code == 0
