"""Cues on the command line: given, shown, changed, exported and imported again."""

from pathlib import Path

import pytest

from tests.cli.conftest import Console
from tests.tables import table

CUES = ["psql: connection refused", "which port, and where"]
OPTIONS = [word for cue in CUES for word in ("--cue", cue)]
PORT = "The staging database listens on 6543"
FACT = [
    "learn",
    "fact",
    "--situation",
    "deploying",
    "--subject",
    "staging",
    "--predicate",
    "listens on",
    "--object",
    "6543",
]
FEEDBACK = ["learn", "feedback", "--situation", "writing migrations", "--behavior", "dropped a column", "--impact",
            "a rollback failed", "--action", "add a column first"]  # fmt: skip


@table("words", [["learn", PORT], FACT, FEEDBACK, ["remember", "The kiosk opens at nine"], ["add", "Rain is wet"]])
def test_every_verb_that_stores_takes_cues(cli: Console, words: list[str]) -> None:
    answer = cli.json(*words, *OPTIONS)
    assert answer.get("memory", answer)["cues"] == CUES


def test_show_lists_the_cues(cli: Console) -> None:
    known = cli.learned(PORT, *OPTIONS)
    assert "; ".join(CUES) in cli("show", known).stdout
    assert cli.json("show", known)["cues"] == CUES


def test_update_replaces_revise_keeps_and_an_empty_text_empties(cli: Console) -> None:
    known = cli.learned(PORT, *OPTIONS)
    newer = cli.json("revise", known, "The staging database listens on 6544")
    assert newer["cues"] == CUES
    assert cli.json("revise", newer["id"], "The staging database listens on 6545", "--cue", "timeout")["cues"] == [
        "timeout"
    ]
    assert cli.json("update", newer["id"], "--cue", "port")["cues"] == ["port"]
    assert cli.json("update", newer["id"], "--cue", "")["cues"] == []


def test_learning_again_says_which_cues_were_added(cli: Console) -> None:
    cli.learned(PORT, "--cue", CUES[0])
    assert f"its cues now include “{CUES[1]}”" in cli("learn", PORT, "--cue", CUES[1]).stdout


def test_too_many_cues_are_refused_with_the_maximum(cli: Console) -> None:
    result = cli("learn", PORT, *(word for number in range(9) for word in ("--cue", f"cue {number}")))
    assert result.exit_code == 2
    assert "cues has 9 entries (maximum 8)" in result.stderr


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize("format_", ["engram", "json", "plur", "memory.v1", "notes", "toml"])
def test_cues_survive_an_export_and_an_import(
    cli: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str
) -> None:
    cli.json(*FACT, *OPTIONS)
    target = tmp_path / ("out.json" if format_ == "json" else "out.yaml" if format_ == "engram" else "out")
    result = cli("export", str(target), "--format", format_)
    assert result.exit_code == 0, result.stderr
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "other"))
    result = cli("import", str(target), "--trusted")
    assert result.exit_code == 0, result.stderr
    (memory,) = cli.json("list", "--status", "any")
    assert memory["cues"] == CUES


@table(
    ("name", "text"),
    [
        ("rows.csv", f'text,ask\n{PORT},"{"; ".join(CUES)}"\n'),
        ("rows.jsonl", f'{{"text": "{PORT}", "ask": ["{CUES[0]}", "{CUES[1]}", "{CUES[1].upper()}"]}}\n'),
    ],
)
def test_a_mapping_fills_cues(cli: Console, tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    cli("import", str(path), "--map", "statement=text,cues=ask")
    assert cli.json("list", "--status", "any")[0]["cues"] == CUES
