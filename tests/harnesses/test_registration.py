"""`engram init HARNESS`: Engram's entry in each harness's own file, shown, backed up and removed again."""

import json
from pathlib import Path

import pytest

from engram.harnesses.configuration import HARNESSES, ServerCommand, config_file
from engram.harnesses.registration import unwire, wire
from engram.model.errors import InvalidInput, Refused

SERVER = ServerCommand("engram")


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_harness_is_wired_once_and_unwired_without_a_trace(home: Path, harness: str) -> None:
    config = config_file(harness, None)
    assert "engram" in wire(config, SERVER).diff
    assert config.server_in(config.parsed(config.path.read_text("utf-8"))) == ServerCommand("engram", environment={})
    assert not wire(config, SERVER).diff
    unwire(config)
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_file_with_comments_is_as_it_was_afterwards(home: Path) -> None:
    config = config_file("codex", None)
    config.path.parent.mkdir()
    config.path.write_text('# mine\nmodel = "x"\n')
    config.path.chmod(0o640)
    change = wire(config, SERVER)
    assert change.backup is not None and change.backup.read_text() == '# mine\nmodel = "x"\n'
    assert change.backup.stat().st_mode & 0o777 == 0o600
    assert config.path.stat().st_mode & 0o777 == 0o640
    assert unwire(config).backup is None
    assert config.path.read_text() == '# mine\nmodel = "x"\n'
    assert not change.backup.exists()


BLANK = ["", "\n", "   ", "\ufeff", "{}", "{ }", "{\r\n}\r\n", "{ /* mine */ }", "// a\n{\n  // b\n}\n"]
JSON_FILES = [*BLANK, '{"mcpServers": {}, "mcp": {}}', '{"mcp": {"servers": {}}}', '{"a": 1}\r\n', '{\r\n  "a": 1\r\n}']
TOML_FILES = ["", "\n", "\n\n", "# mine", "a = 1", "a = 1\r\n\r\n[b]\r\nx = 1", "a = 1\n\n\n", "[mcp_servers]\n"]


@pytest.mark.parametrize("harness", HARNESSES)
def test_a_file_of_any_form_is_byte_for_byte_as_it_was_afterwards(home: Path, harness: str) -> None:
    config, changed = config_file(harness, None), []
    config.path.parent.mkdir(parents=True, exist_ok=True)
    for text in TOML_FILES if harness == "codex" else JSON_FILES:
        config.path.write_bytes(text.encode())
        wire(config, SERVER)
        wire(config, ServerCommand("engram", environment={"ENGRAM_HOME": "/elsewhere"}))
        unwire(config)
        if config.path.read_bytes() != text.encode() or len(list(config.path.parent.glob("*.engram-backup"))):
            changed.append(text)
    assert changed == []


@pytest.mark.parametrize("harness", HARNESSES)
def test_an_entry_renewed_in_a_new_file_leaves_nothing_behind(home: Path, harness: str) -> None:
    config = config_file(harness, None)
    wire(config, SERVER)
    wire(config, ServerCommand("engram", environment={"ENGRAM_HOME": "/elsewhere"}))
    assert unwire(config).is_removed
    assert [path for path in home.rglob("*") if path.name != ".config"] == []


def test_a_new_file_with_a_comment_of_the_users_stays(home: Path) -> None:
    config = config_file("cursor", None)
    wire(config, SERVER)
    config.path.write_text("// mine\n" + config.path.read_text())
    assert not unwire(config).is_removed
    assert config.path.read_text().startswith("// mine\n{")


def test_an_entry_that_names_an_address_is_left_to_the_user(home: Path) -> None:
    config = config_file("cursor", None)
    config.path.parent.mkdir()
    config.path.write_text('{"mcpServers": {"engram": {"url": "http://127.0.0.1:8377/mcp"}}}')
    with pytest.raises(Refused, match="by its address"):
        wire(config, SERVER)
    assert config.path.read_text() == '{"mcpServers": {"engram": {"url": "http://127.0.0.1:8377/mcp"}}}'


def test_what_was_added_since_is_kept(home: Path) -> None:
    config = config_file("cursor", None)
    config.path.parent.mkdir()
    config.path.write_text('{"mcpServers": {}}')
    wire(config, SERVER)
    data = json.loads(config.path.read_text())
    data["mcpServers"]["other"] = {"command": "x"}
    config.path.write_text(json.dumps(data))
    change = unwire(config)
    assert json.loads(config.path.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
    assert change.backup is not None and change.backup.exists()


def test_a_rehearsal_writes_nothing(home: Path) -> None:
    assert wire(config_file("cursor", None), SERVER, dry_run=True).diff
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("harness", "text"),
    [
        ("cursor", '{"mcpServers": '),
        ("cursor", '{"mcpServers": 3}'),
        ("codex", "mcp_servers = { engram = {} }"),
        ("codex", 'notes = """\n[mcp_servers.engram]\nnot a table\n"""\n'),
    ],
)
def test_a_file_that_cannot_be_changed_safely_stays(home: Path, harness: str, text: str) -> None:
    config = config_file(harness, None)
    config.path.parent.mkdir()
    config.path.write_text(text)
    with pytest.raises(Refused, match=r"nothing was written"):
        wire(config, SERVER)
    assert config.path.read_text() == text
    assert [path.name for path in config.path.parent.iterdir()] == [config.path.name]


def test_the_users_own_link_is_followed(home: Path) -> None:
    kept = home / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    config = config_file("cursor", None)
    config.path.parent.mkdir()
    config.path.symlink_to(kept)
    wire(config, SERVER)
    assert config.path.is_symlink() and "engram" in kept.read_text()


def test_newer_versions_of_opencode_keep_their_servers_one_level_deeper(home: Path) -> None:
    config = config_file("opencode", None)
    assert config.place({"mcp": {"other": {}}}) == ("mcp", "engram")
    assert config.place({"mcp": {"servers": {"other": {}}}}) == ("mcp", "servers", "engram")
    assert config.place({"mcp": {"servers": {"type": "local", "command": ["x"]}}}) == ("mcp", "engram")


def test_an_existing_file_with_comments_is_preferred(home: Path, tmp_path: Path) -> None:
    (tmp_path / "opencode.jsonc").write_text("{} // mine")
    assert config_file("opencode", tmp_path).path.name == "opencode.jsonc"
    assert config_file("opencode", tmp_path / "elsewhere").path.name == "opencode.json"


def test_an_unknown_harness_is_an_error(home: Path) -> None:
    with pytest.raises(InvalidInput, match="choose claude-code, codex, opencode, cursor"):
        config_file("emacs", None)


def test_what_the_user_added_to_the_entry_is_kept(home: Path) -> None:
    config = config_file("codex", None)
    config.path.parent.mkdir()
    config.path.write_text('[mcp_servers.engram]\ncommand = "old"\nargs = ["mcp"]\nenabled = false\n')
    wire(config, SERVER)
    entry = config.parsed(config.path.read_text())["mcp_servers"]["engram"]
    assert entry == {"command": "engram", "args": ["mcp"], "enabled": False}
    text = config.path.read_text()
    assert not wire(config, SERVER).diff and config.path.read_text() == text
