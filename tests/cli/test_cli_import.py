"""import and export in the formats of other tools, and the examples of docs/import.md."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from engram.capture.import_source import CHATS, FORMATS
from tests.capture.test_chat_exports import TEA, claude, packed
from tests.dialects.test_memory_v1 import EXAMPLE

from .conftest import Console

PAGE = Path(__file__).parents[2] / "docs" / "import.md"
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def memory_v1(cli: Console) -> Path:
    folder = cli.folder / "old"
    folder.mkdir()
    (folder / "memory.md").write_text(EXAMPLE, "utf-8")
    return folder


def test_every_format_is_in_the_help_and_on_the_page(cli: Console) -> None:
    shown = cli("import", "--help").stdout
    page = PAGE.read_text("utf-8")
    for name in (*FORMATS, *CHATS):
        assert name in shown and f"`{name}`" in page, name


def test_memory_v1_is_recognised_and_exported_to_a_directory(cli: Console, memory_v1: Path) -> None:
    assert len(cli.json("import", str(memory_v1))["created"]) == 2
    assert cli.json("show", "mem-0001")["statement"] == "I prefer pnpm over npm"
    out = cli.folder / "out"
    assert cli.json("export", "--format", "memory.v1", str(out))["written"] == 2
    assert "mem-0001" in (out / "memory-log.md").read_text()
    again = cli("export", "--format", "memory.v1", str(out))
    assert again.exit_code == 2 and "--force" in again.stderr
    assert cli("export", "--format", "memory.v1", str(out), "--force").exit_code == 0


def test_another_schema_version_is_refused_with_what_to_do(cli: Console, memory_v1: Path) -> None:
    (memory_v1 / "memory.md").write_text(EXAMPLE.replace("memory.v1", "memory.v2"))
    done = cli("import", str(memory_v1))
    assert done.exit_code != 0 and "Update Engram" in done.stderr
    assert cli.json("list", "--status", "any") == []


def test_a_dry_run_of_each_format_writes_nothing(cli: Console, memory_v1: Path) -> None:
    note = cli.folder / "notes" / "a.md"
    note.parent.mkdir()
    note.write_text("---\ndescription: Deploys happen on Mondays\n---\n")
    table = cli.folder / "t.csv"
    table.write_text("text\nUse tabs\n")
    for path in (memory_v1, note.parent, table):
        assert cli.json("import", str(path), "--dry-run")["created"] != []
    assert cli.json("import", str(packed(cli.folder / "c.zip", claude(("human", TEA)))), "--dry-run")["proposed"] == 1
    assert cli.json("list", "--status", "any") == []


def test_notes_are_exported_with_one_file_per_memory(cli: Console) -> None:
    cli.learned("Deploys happen on Mondays", "--type", "decision")
    out = cli.folder / "notes"
    assert cli.json("export", "-f", "notes", str(out))["written"] == 1
    (file,) = out.rglob("*.md")
    assert re.fullmatch(r"facts/\d{4}-\d\d-\d\d/decision-\d{13}-[a-z0-9]{4}\.md", file.relative_to(out).as_posix())


@pytest.mark.parametrize("format_", ["memory.v1", "notes"])
def test_a_format_of_many_files_does_not_go_to_stdout_or_over_a_file(cli: Console, format_: str) -> None:
    cli.learned("Deploys happen on Mondays")
    (cli.folder / "file").write_text("mine")
    assert cli("export", "-f", format_, "-").exit_code == 2
    assert cli("export", "-f", format_, str(cli.folder / "file"), "--force").exit_code == 2
    assert (cli.folder / "file").read_text() == "mine"


def test_a_mapping_names_the_columns(cli: Console) -> None:
    table = cli.folder / "t.csv"
    table.write_text("what,kind,who\nUse tabs,preference,ada\n")
    (created,) = cli.json("import", str(table), "--map", "statement=what,type=kind")["created"]
    memory = cli.json("show", created)
    assert (memory["type"], memory["metadata"]) == ("preference", {"who": "ada"})


@pytest.mark.parametrize("mapping", ["statement", "colour=what", "statement=a,statement=b", "=what"])
def test_a_mapping_that_means_nothing_is_wrong_usage(cli: Console, mapping: str) -> None:
    (cli.folder / "t.csv").write_text("what\nUse tabs\n")
    assert cli("import", str(cli.folder / "t.csv"), "--map", mapping).exit_code == 2


def test_chats_are_proposed_and_summed_up(cli: Console) -> None:
    file = packed(cli.folder / "data.zip", claude(("human", TEA)))
    found = cli.json("import", str(file))
    assert (found["proposed"], found["sessions"]) == (1, 1)
    assert found["facts"][0]["source"] == "import:data.zip"
    assert cli.json("import", str(file))["unchanged"] == 1


@pytest.mark.usefixtures("person")
def test_a_rehearsal_of_many_chats_lists_the_first_facts_and_sums_up(cli: Console) -> None:
    names = ("Ada", "Bea", "Cleo", "Dora", "Edda", "Finn", "Gil", "Hugo", "Ines", "Jon", "Kai", "Lea", "Max", "Nora", "Olga",
             "Paul", "Quinn", "Rosa", "Sven", "Tove", "Ulla", "Vera", "Willi", "Xaver", "Yara")  # fmt: skip
    chats = packed(
        cli.folder / "c.zip", *(claude(("human", f"My cousin {name} lives in Oslo."), name=name) for name in names)
    )
    found = cli.json("import", str(chats), "--dry-run")["proposed"]
    assert found > 20
    result = cli("import", str(chats), "--dry-run")
    assert result.stdout.splitlines()[20:] == [f"… and {found - 20} more; --verbose lists them"]
    assert f"{found} proposed" in result.stderr
    assert "more;" not in cli("import", str(chats), "--dry-run", "--verbose").stdout


def test_nobody_vouches_for_chats_as_a_whole(cli: Console) -> None:
    file = packed(cli.folder / "data.zip", claude(("human", TEA)))
    refused = cli("import", "--trusted", str(file))
    assert refused.exit_code == 2 and "review" in refused.stderr


def test_an_unknown_format_is_wrong_usage_and_the_known_ones_are_named(cli: Console, memory_v1: Path) -> None:
    refused = cli("import", "--format", "xml", str(memory_v1))
    assert refused.exit_code == 2 and "memory.v1" in refused.stderr and "chatgpt" in refused.stderr


def test_a_folder_of_records_with_notes_says_that_it_has_notes(cli: Console) -> None:
    folder = cli.folder / "mixed"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(["Use tabs, not spaces"]))
    (folder / "b.md").write_text("Deploys happen on Mondays\n")
    done = cli.json("import", str(folder))
    assert len(done["created"]) == 1 and "--format markdown" in done["not_read"][0]


def test_what_else_is_in_a_folder_of_chats_is_named_as_not_read(cli: Console) -> None:
    folder = cli.folder / "mixed"
    for name in ("a.csv", "b.csv", "old/memory.md", ".hidden/c.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\nUse tabs\n")
    (folder / "conversations.json").write_text(json.dumps([claude(("human", TEA))]))
    assert cli.json("import", str(folder))["problems"] == [
        "not read: 2 .csv files: a.csv, b.csv",
        "not read: 1 .md file: old/memory.md",
    ]


@pytest.mark.parametrize("name", ["memory.md", "note.md", "records.json"])
def test_a_table_next_to_what_is_imported_is_named_as_not_read(cli: Console, name: str) -> None:
    folder = cli.folder / "mixed"
    folder.mkdir()
    texts = {"memory.md": EXAMPLE, "note.md": "Deploys happen on Mondays\n", "records.json": '["Use tabs, not spaces"]'}
    (folder / name).write_text(texts[name])
    (folder / "table.csv").write_text("text\nUse spaces\n")
    assert cli.json("import", str(folder))["not_read"] == ["1 .csv file: table.csv"]


@pytest.mark.usefixtures("person")
def test_a_dry_run_says_what_would_be_imported(cli: Console) -> None:
    table = cli.folder / "t.csv"
    table.write_text("text\nUse tabs\n")
    assert "1 memory would be imported as evidence" in cli("import", str(table), "--dry-run").stderr
    assert "1 memory imported as evidence" in cli("import", str(table)).stderr


def test_what_is_imported_without_a_person_waits(cli: Console) -> None:
    table = cli.folder / "t.csv"
    table.write_text("text\nUse tabs\n")
    done = cli("import", str(table))
    assert "1 await review" in done.stderr and "evidence" not in done.stderr
    assert [item["memory"]["statement"] for item in cli.json("review")] == ["Use tabs"]


def test_words_that_are_here_count_as_known_and_repeated_ones_are_named_by_their_place(cli: Console) -> None:
    table = cli.folder / "table.csv"
    table.write_text("text\nUse tabs in Makefiles\n")
    (known,) = cli.json("import", str(table))["created"]
    copy = cli.folder / "copy.csv"
    copy.write_text("note,text\n1,Use tabs in Makefiles\n2,Ship on Mondays\n3,Ship on Mondays\n")
    done = cli.json("import", str(copy))
    assert done["unchanged"] == [known]
    (skipped,) = done["skipped"]
    assert skipped["what"] == "copy.csv line 4" and done["created"][0] in skipped["reason"]


@pytest.mark.usefixtures("person")
def test_old_records_of_other_tools_are_not_due_for_retirement_at_once(cli: Console) -> None:
    (cli.folder / "mem0.json").write_text(
        json.dumps([{"id": "m", "memory": "Likes green tea", "created_at": "2015-07-01T10:00:00Z", "user_id": "ada"}])
    )
    (cli.folder / "loose.json").write_text(json.dumps([{"content": "Ship on Mondays", "created": "2015-07-01"}]))
    created = [cli.json("import", str(cli.folder / name))["created"] for name in ("mem0.json", "loose.json")]
    shown = [cli.json("show", memory_id) for (memory_id,) in created]
    assert [one["created"][:10] for one in shown] == ["2015-07-01", "2015-07-01"]
    assert [one["strength"] for one in shown] == [0.7, 0.7]
    assert cli.json("review") == []


def test_a_record_file_that_is_a_link_out_of_the_folder_is_named_and_not_read(cli: Console) -> None:
    folder = cli.folder / "records"
    folder.mkdir()
    (cli.folder / "outside.json").write_text(json.dumps(["Outside of the folder"]))
    (folder / "in.json").write_text(json.dumps(["Use tabs, not spaces"]))
    (folder / "link.json").symlink_to(cli.folder / "outside.json")
    done = cli.json("import", str(folder))
    assert len(done["created"]) == 1
    assert "link.json" in done["skipped"][0]["what"] and "symbolic link" in done["skipped"][0]["reason"]


def test_the_examples_of_the_page_run(cli: Console) -> None:
    """In order: later examples import what earlier ones exported."""
    assert len(BLOCKS) >= 8
    shell: list[str] = []
    for line in "\n".join(BLOCKS).splitlines():
        if not line.startswith("engram "):
            shell.append(line)
            continue
        subprocess.run(["bash", "-euc", "\n".join(shell)], check=True, stdin=subprocess.DEVNULL)
        shell.clear()
        ran = cli(*shlex.split(line)[1:])
        assert ran.exit_code == 0, f"{line}\n{ran.stderr}"
    assert shell == [], "the page ends with what nobody ran"


def test_what_is_left_out_of_an_imported_record_is_shown_as_a_note(cli: Console) -> None:
    cli("add", "Use tabs")
    (cli.folder / "in.json").write_text(json.dumps([{"statement": "Redis caches pages", "aliases": ["use-tabs"]}]))
    shown = cli("import", str(cli.folder / "in.json")).stdout
    assert (
        "1 created" in shown and "0 skipped" in shown and "note " in shown and "already names another memory" in shown
    )
