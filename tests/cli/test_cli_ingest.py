"""ingest, cite: documents and their quotes."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import Console

CONTRACT = """# Supply contract

The term of this contract is five years from the date of signature.

## Payment

Payment is due within 30 days of the invoice. Late payment bears interest of 4 percent a year.
"""


@pytest.fixture
def contract() -> Path:
    path = Path.cwd() / "contract.md"
    path.write_text(CONTRACT, "utf-8")
    return path


def ingested(cli: Console, *words: str) -> Any:
    return cli.json("ingest", *words)[0]


def test_a_document_begins_a_task_and_leaves_chunks_facts_and_a_manifest(cli: Console, contract: Path) -> None:
    taken = ingested(cli, "contract.md")
    assert (taken["title"], taken["kind"]) == ("contract.md", "markdown")
    assert taken["chunks"] >= 1 and taken["facts"]
    shown = cli.json("task", "show", taken["task"])
    assert "contract.md" in shown["task"]["goal"]
    assert shown["latest_checkpoint"]["kind"] == "manifest"
    assert shown["event_count"] == taken["chunks"] + 1


def test_a_person_reads_what_was_taken_in(cli: Console, contract: Path) -> None:
    result = cli("ingest", "contract.md")
    assert result.stdout.split()[0].startswith("TASK-")
    assert "contract.md" in result.stdout
    assert "engram cite" in result.stderr


def test_a_document_goes_into_the_task_that_is_named(
    cli: Console, contract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = cli.json("task", "start", "Review the contract")["id"]
    assert ingested(cli, "contract.md", "--task", task)["task"] == task
    monkeypatch.setenv("ENGRAM_TASK", task)
    assert ingested(cli, "contract.md")["task"] == task
    assert len(cli.json("task", "list")) == 1


def test_kind_chunk_size_number_of_facts_and_scope_are_the_callers(cli: Console, contract: Path) -> None:
    small = ingested(
        cli, "contract.md", "--chunk-tokens", "20", "--facts", "0", "--kind", "text", "--scope", "project:law"
    )
    assert small["kind"] == "text"
    assert small["chunks"] > ingested(cli, "contract.md")["chunks"]
    assert small["facts"] == []
    assert cli.json("task", "show", small["task"])["task"]["scope"] == "project:law"


def test_a_folder_is_taken_in_file_by_file_without_what_is_no_text(cli: Console, contract: Path) -> None:
    (contract.parent / "notes.txt").write_text("The supplier is called Acme Mills.\n", "utf-8")
    (contract.parent / "logo.png").write_bytes(b"\x89PNG\0\0\0")
    (contract.parent / ".hidden.md").write_text("# Not this one\n", "utf-8")
    taken = cli.json("ingest", ".")
    assert [one["title"] for one in taken] == ["contract.md", "notes.txt"]
    assert len({one["task"] for one in taken}) == 1
    told = cli("ingest", ".").stderr
    assert f"left out: {contract.parent / 'logo.png'}: binary" in told
    assert f"left out: {contract.parent / '.hidden.md'}: hidden" in told
    assert "2 read, 0 unreadable, 2 left out" in told


def test_a_file_that_should_have_been_read_and_cannot_be_is_named_and_exit_1(cli: Console, contract: Path) -> None:
    (contract.parent / "old.txt").write_bytes("Grüße aus Köln".encode("latin-1"))
    result = cli("ingest", ".", "--json")
    assert result.exit_code == 1
    assert [one["title"] for one in json.loads(result.stdout)] == ["contract.md"]
    assert "not read: " in result.stderr
    assert "iconv" in result.stderr


def test_what_a_changed_file_no_longer_states_is_told(cli: Console, contract: Path) -> None:
    cli("ingest", "contract.md")
    contract.write_text(CONTRACT.replace("30 days", "60 days"), "utf-8")
    result = cli("ingest", "contract.md", "--json")
    (taken,) = json.loads(result.stdout)
    (gone,) = taken["superseded"]
    assert result.exit_code == 0
    assert f"changed: 1 fact was superseded, no longer stated ({gone})" in result.stderr
    assert cli.json("undo", gone)["status"] == "active"


def test_facts_beyond_the_limit_are_told(cli: Console, contract: Path) -> None:
    result = cli("ingest", "contract.md", "--facts", "1", "--json")
    (taken,) = json.loads(result.stdout)
    assert taken["facts_left_out"] > 0
    assert f"{taken['facts_left_out']} more facts were not stored (maximum 1 per chunk" in result.stderr


def test_links_that_lead_nowhere_and_pipes_are_exit_2(cli: Console) -> None:
    Path("round.md").symlink_to("round.md")
    os.mkfifo("pipe.md")
    for name in ("round.md", "pipe.md"):
        assert cli("ingest", name).exit_code == 2
    assert cli.json("task", "list") == []


def test_a_model_is_asked_only_where_there_is_one(cli: Console, contract: Path) -> None:
    result = cli("ingest", "contract.md", "--llm")
    assert result.exit_code == 2
    assert "set `model`" in result.stderr
    assert cli.json("task", "list") == []


@pytest.mark.parametrize("content", [b"", b" \n ", b"\x89PNG\0\0\0"])
def test_what_is_empty_or_binary_is_exit_2_and_nothing_is_written(cli: Console, content: bytes) -> None:
    Path("thing.bin").write_bytes(content)
    assert cli("ingest", "thing.bin").exit_code == 2
    assert cli.json("task", "list") == []


def test_wrong_options_are_exit_2_and_what_is_not_there_exit_3(cli: Console, contract: Path) -> None:
    assert cli("ingest", "contract.md", "--kind", "song").exit_code == 2
    assert cli("ingest", "contract.md", "--facts", "-1").exit_code == 2
    assert cli("ingest", "contract.md", "--chunk-tokens", "1").exit_code == 2
    assert cli("ingest", "contract.md", "--task", "TASK-nope").exit_code == 3
    assert cli("ingest", "nowhere.md").exit_code == 3


def test_a_pause_refuses_it(cli: Console, contract: Path) -> None:
    cli("pause")
    assert cli("ingest", "contract.md").exit_code == 1


def test_the_quote_behind_a_fact_stands_in_its_source_word_for_word(cli: Console, contract: Path) -> None:
    for fact in ingested(cli, "contract.md")["facts"]:
        found = cli.json("cite", fact)
        start, end = found["span"]
        assert found["state"] == "verified"
        assert CONTRACT[start:end] == found["quote"]
        assert (found["title"], found["path"]) == ("contract.md", str(contract))


def test_a_chunk_can_be_cited_as_it_is_found(cli: Console, contract: Path) -> None:
    task = ingested(cli, "contract.md")["task"]
    hits = cli.json("task", "search", "late payment interest", "--task", task, "--event-type", "artifact")["hits"]
    found = cli.json("cite", hits[0]["id"])
    assert CONTRACT[slice(*found["span"])] == found["quote"]
    text = cli("cite", hits[0]["id"]).stdout
    assert text.splitlines()[0] == f"{hits[0]['id']}  verified"
    assert "4 percent" in text


def test_an_answer_says_that_its_quotes_are_unchecked(cli: Console, contract: Path) -> None:
    task = ingested(cli, "contract.md")["task"]
    text = cli("task", "context", task, "late payment", "--sources").stdout
    assert "unchecked)" in text
    assert "verified" not in text


def test_a_source_that_changed_is_exit_1_and_says_what_to_do(cli: Console, contract: Path) -> None:
    fact = ingested(cli, "contract.md")["facts"][0]
    contract.write_text("An entirely different document.\n", "utf-8")
    result = cli("cite", fact, "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["state"] == "changed"
    assert "engram ingest" in cli("cite", fact).stderr


def test_a_source_that_is_gone_is_exit_1(cli: Console, contract: Path) -> None:
    fact = ingested(cli, "contract.md")["facts"][0]
    contract.unlink()
    assert cli("cite", fact).exit_code == 1


def test_what_quotes_no_document_is_exit_2_and_what_is_not_there_exit_3(cli: Console) -> None:
    known = cli.learned("Use tabs, not spaces")
    assert cli("cite", known).exit_code == 2
    assert cli("cite", "ENG-2020-0101-001").exit_code == 3
