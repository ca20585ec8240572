"""A file that no parser can read is its own problem: a clone's stops no command, an import names it, and nothing raises."""

import json
from pathlib import Path

import pytest

from engram import Engram, InvalidInput, UnreadableData
from engram.store.files.store.backend import FilesStore, trust_team_files
from engram.store.scopes import scope_of
from tests.cli.conftest import Console, cli
from tests.repositories import make_repository
from tests.tables import table

__all__ = ["cli"]

DIGITS = "9" * 5_000
BROKEN_TOML = {
    "long integer": f"scope = {DIGITS}\n".encode(),
    "long hexadecimal": f"scope = 0x{'f' * 5_000}\n".encode(),
    "deep": b"scope = " + b"[" * 50_000,
    "long key": b".".join([b"a"] * 300_000) + b" = 1\n",
    "not UTF-8": b"scope = '\xff'\n",
    "date": b"scope = 2026-02-31\n",
    "not TOML": b"scope = {{{",
    "NUL": b'scope = "project:a\\u0000b"\n',
    "wrong scope": b'scope = "nowhere"\n',
}
BROKEN_JSON = {
    "long integer": f'{{"mcpServers": {{"engram": {{"command": {DIGITS}}}}}}}'.encode(),
    "deep": b'{"mcpServers": ' + b"[" * 50_000,
    "not UTF-8": b'{"mcpServers": "\xff"}',
    "wrong escape": b'{"\\x": 1}',
    "half a character": b'{"mcpServers": {"engram": {"command": "engram", "args": ["\\ud800"]}}}',
    "NaN": b'{"mcpServers": {"engram": {"command": "engram", "args": NaN}}}',
}
VERBS = (["status"], ["list"], ["recall", "how do I deploy"], ["learn", "Use tabs here", "--type", "preference"], ["doctor"], ["inject", "deploy"], ["prepare", "deploy"], ["hook", "recall", "deploy"], ["trust"], ["config"])  # fmt: skip


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    top = tmp_path / "work"
    make_repository(top)
    (top / ".engram" / "engrams").mkdir(parents=True)
    return top


def run_verbs(cli: Console) -> list[str]:
    failed = []
    for words in VERBS:
        result = cli(*words)
        if result.exit_code not in (0, 1) or "Unexpected" in result.stderr or "Traceback" in result.stderr:
            failed.append(f"{words}: {result.exit_code} {result.stderr[:300]}")
    return failed


def test_settings_of_a_clone_that_cannot_be_parsed_stop_no_verb(cli: Console, clone: Path) -> None:
    missed = []
    for label, content in BROKEN_TOML.items():
        (clone / ".engram" / "config.toml").write_bytes(content)
        missed += [f"{label}: {line}" for line in run_verbs(cli)]
    assert not missed, "\n".join(missed)


def test_configuration_of_a_harness_in_a_clone_that_cannot_be_parsed_stops_no_verb(cli: Console, clone: Path) -> None:
    missed = []
    files = {".codex/config.toml": BROKEN_TOML, ".mcp.json": BROKEN_JSON, ".cursor/mcp.json": BROKEN_JSON, "opencode.jsonc": BROKEN_JSON}  # fmt: skip
    for name, contents in files.items():
        path = clone / name
        path.parent.mkdir(exist_ok=True)
        for label, content in contents.items():
            path.write_bytes(content)
            result = cli("doctor")
            if result.exit_code not in (0, 1) or "Unexpected" in result.stderr:
                missed.append(f"{name} {label}: {result.exit_code} {result.stderr[:300]}")
        path.unlink()
    assert not missed, "\n".join(missed)


@table("label", list(BROKEN_TOML))
def test_the_files_problem_is_listed_with_its_name(label: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    tmp_path = tmp_path_factory.mktemp("clone")
    make_repository(tmp_path / "clone")
    (tmp_path / "clone" / ".engram" / "engrams").mkdir(parents=True)
    config = tmp_path / "clone" / ".engram" / "config.toml"
    config.write_bytes(BROKEN_TOML[label])
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path / "clone", embedder="none") as mem:
        assert isinstance(mem.store, FilesStore)
        assert any("cannot be read" in warning for warning in mem.store.warnings)
        (listed,) = trust_team_files(mem.store, tmp_path / "clone")
        assert listed.error and not listed.digest
        assert mem.add("Use tabs").scope


def test_trusted_settings_that_become_unreadable_are_ignored(tmp_path: Path, clone: Path) -> None:
    config = clone / ".engram" / "config.toml"
    config.write_text('scope = "project:acme"\n')
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=clone, embedder="none") as mem:
        assert isinstance(mem.store, FilesStore)
        (file,) = trust_team_files(mem.store, clone)
        assert scope_of(clone, [file.digest]) == "project:acme"
        with config.open("wb") as sparse:
            sparse.truncate(1 << 40)
        assert scope_of(clone, [file.digest]) == "project:work"


def test_owner_settings_that_cannot_be_parsed_are_named_with_their_line(cli: Console, tmp_path: Path) -> None:
    assert cli("init").exit_code == 0
    config = tmp_path / "home" / "config.toml"
    config.write_text(f"budget = 0x{'f' * 5_000}\n")
    result = cli("list")
    assert result.exit_code == 2 and "config.toml" in result.stderr and "digits" in result.stderr
    config.write_text("\nbudget = nonsense\n")
    assert "config.toml:2: not TOML: Invalid value" in cli("list").stderr


def test_an_import_names_the_file_or_the_record(cli: Console, tmp_path: Path) -> None:
    record = {"statement": "The gate sticks in winter"}
    broken = tmp_path / "one.json"
    broken.write_text(f'{{"statement": "x", "importance": {DIGITS}}}')
    result = cli("import", str(broken))
    assert result.exit_code == 2 and "one.json:1: contains a number of 5,000 digits" in result.stderr
    lines = tmp_path / "many.jsonl"
    lines.write_text(f'{json.dumps(record)}\n{{"statement": {DIGITS}}}\n{{"statement": "a", "statement": "b"}}\n')
    imported = cli("import", str(lines))
    assert "many.jsonl line 2" in imported.stdout + imported.stderr
    assert "the key 'statement' appears twice" in imported.stdout + imported.stderr
    assert [memory["statement"] for memory in cli.json("list", "--status", "any")] == [record["statement"]]


@table("mark, rest", [("mapping", {}), ("chat_messages", [])])
def test_one_conversation_with_a_long_number_costs_that_conversation(mark: str, rest: object, tmp_path_factory: pytest.TempPathFactory) -> None:  # fmt: skip
    from engram.capture.transcripts.chat_exports import chat_format_of, read_chats

    file = tmp_path_factory.mktemp("export") / "conversations.json"
    whole = json.dumps({"id": "c2", "uuid": "c2", mark: rest})
    file.write_text(
        f'[{whole}, {{"id": "c1", "uuid": "c1", "{mark}": {json.dumps(rest)}, "create_time": {DIGITS}}}, {whole}]'
    )
    named: list[tuple[str, str]] = []
    name = chat_format_of(file)
    assert len(list(read_chats(file, name, lambda where, why: named.append((where, why))))) == 2
    assert [where for where, _ in named] == ["conversations.json conversation 2"] and "5,000 digits" in named[0][1]


def test_unreadable_data_is_invalid_input() -> None:
    assert issubclass(UnreadableData, InvalidInput)
