"""export and import of feedback and facts as TOML."""

from pathlib import Path

import pytest

from tests.cli.conftest import Console
from tests.dialects.test_feedback_toml import contents

pytestmark = pytest.mark.usefixtures("person")


def stored(cli: Console) -> None:
    cli(
        "learn",
        "fact",
        "--situation",
        "building engram",
        "--subject",
        "engram",
        "--predicate",
        "uses",
        "--object",
        'the "targ" tool',
    )
    cli(
        "learn",
        "feedback",
        "--situation",
        "writing tests",
        "--behavior",
        "used sleeps",
        "--impact",
        "flaky",
        "--action",
        "wait on a channel",
    )
    cli.learned("Backups are kept for thirty days")


def test_feedback_and_facts_are_written_below_memory_and_others_left_out(cli: Console, tmp_path: Path) -> None:
    stored(cli)
    result = cli("export", "--format", "toml", str(tmp_path / "out"))
    assert set(contents(tmp_path / "out")) == {
        "memory/facts/building-engram.toml",
        "memory/feedback/writing-tests.toml",
    }
    assert "left out" in result.stderr


def test_an_export_without_a_memory_for_it_says_that_nothing_was_written(cli: Console, tmp_path: Path) -> None:
    cli.learned("Backups are kept for thirty days")
    result = cli("export", "--format", "toml", str(tmp_path / "out"))
    assert "wrote nothing to" in result.stdout and not (tmp_path / "out").exists()


def test_what_was_written_is_written_again_byte_for_byte(
    cli: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(cli)
    cli("export", "--format", "toml", str(tmp_path / "first"))
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "other"))
    cli("import", "--format", "toml", str(tmp_path / "first"))
    cli("export", "--format", "toml", str(tmp_path / "second"))
    assert contents(tmp_path / "second") == contents(tmp_path / "first")


def test_an_export_is_recognised_where_it_came_from(cli: Console, tmp_path: Path) -> None:
    stored(cli)
    cli("export", "--format", "toml", str(tmp_path / "out"))
    done = cli.json("import", str(tmp_path / "out"))
    assert (done["created"], done["updated"], len(done["unchanged"])) == ([], [], 2)


def test_a_file_in_the_way_is_not_replaced_without_force(cli: Console, tmp_path: Path) -> None:
    stored(cli)
    cli("export", "--format", "toml", str(tmp_path / "out"))
    assert cli("export", "--format", "toml", str(tmp_path / "out")).exit_code == 2
    assert cli("export", "--format", "toml", str(tmp_path / "out"), "--force").exit_code == 0
