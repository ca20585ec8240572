"""`engram init HARNESS`: Engram's entry in each harness's own file, shown, backed up and removed again."""

import errno
import json
import os
from pathlib import Path

import pytest

from engram.agents.agent import agent_names, find_agent
from engram.agents.wiring.registration import ServerCommand, config_file, unwire, wire
from engram.model.errors import InvalidInput, Refused
from tests.tables import table

SERVER = ServerCommand("engram")


@pytest.mark.parametrize("harness", agent_names())
def test_a_harness_is_wired_once_and_unwired_without_a_trace(home: Path, harness: str) -> None:
    config = config_file(find_agent(harness), None)
    assert "engram" in wire(config, SERVER).diff
    assert config.server_in(config.parse(config.path.read_text("utf-8"))) == ServerCommand("engram", environment={})
    assert not wire(config, SERVER).diff
    unwire(config)
    assert [path for path in home.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("text", ['# mine\nmodel = "x"\n', 'notes = """\n[mcp_servers.engram]\nno table\n"""\n'])
def test_a_file_with_comments_is_as_it_was_afterwards(home: Path, text: str) -> None:
    config = config_file(find_agent("codex"), None)
    config.path.parent.mkdir()
    config.path.write_text(text)
    config.path.chmod(0o640)
    change = wire(config, SERVER)
    assert change.backup is not None and change.backup.read_text() == text
    assert change.backup.stat().st_mode & 0o777 == 0o600
    assert config.path.stat().st_mode & 0o777 == 0o640
    assert unwire(config).backup is None
    assert config.path.read_text() == text
    assert not change.backup.exists()


BLANK = ["", "\n", "   ", "\ufeff", "{}", "{ }", "{\r\n}\r\n", "{ /* mine */ }", "// a\n{\n  // b\n}\n"]
JSON_FILES = [*BLANK, '{"mcpServers": {}, "mcp": {}}', '{"mcp": {"servers": {}}}', '{"a": 1}\r\n', '{\r\n  "a": 1\r\n}']
TOML_FILES = ["", "\n", "\n\n", "# mine", "a = 1", "a = 1\r\n\r\n[b]\r\nx = 1", "a = 1\n\n\n", "[mcp_servers]\n"]


@pytest.mark.parametrize("harness", agent_names())
def test_a_file_of_any_form_is_byte_for_byte_as_it_was_afterwards(home: Path, harness: str) -> None:
    config, changed = config_file(find_agent(harness), None), []
    config.path.parent.mkdir(parents=True, exist_ok=True)
    for text in TOML_FILES if harness == "codex" else JSON_FILES:
        config.path.write_bytes(text.encode())
        wire(config, SERVER)
        wire(config, ServerCommand("engram", environment={"ENGRAM_HOME": "/elsewhere"}))
        unwire(config)
        if config.path.read_bytes() != text.encode() or len(list(config.path.parent.glob("*.engram-backup"))):
            changed.append(text)
    assert changed == []


@pytest.mark.parametrize("harness", agent_names())
def test_an_entry_renewed_in_a_new_file_leaves_nothing_behind(home: Path, harness: str) -> None:
    config = config_file(find_agent(harness), None)
    wire(config, SERVER)
    wire(config, ServerCommand("engram", environment={"ENGRAM_HOME": "/elsewhere"}))
    assert unwire(config).is_removed
    assert [path for path in home.rglob("*") if path.name != ".config"] == []


def test_a_new_file_with_a_comment_of_the_users_stays(home: Path) -> None:
    config = config_file(find_agent("cursor"), None)
    wire(config, SERVER)
    config.path.write_text("// mine\n" + config.path.read_text())
    assert not unwire(config).is_removed
    assert config.path.read_text().startswith("// mine\n{")


def test_an_entry_that_names_an_address_is_left_to_the_user(home: Path) -> None:
    config = config_file(find_agent("cursor"), None)
    config.path.parent.mkdir()
    config.path.write_text('{"mcpServers": {"engram": {"url": "http://127.0.0.1:8377/mcp"}}}')
    with pytest.raises(Refused, match="by its address"):
        wire(config, SERVER)
    assert config.path.read_text() == '{"mcpServers": {"engram": {"url": "http://127.0.0.1:8377/mcp"}}}'


@pytest.mark.parametrize(
    "entry", ['{"command": "docker", "args": ["run", "engram"]}', '{"url": "http://localhost:1/mcp"}', "[]"]
)
def test_an_entry_that_init_did_not_write_is_not_removed(home: Path, entry: str) -> None:
    config = config_file(find_agent("cursor"), None)
    config.path.parent.mkdir()
    text = f'{{"mcpServers": {{"engram": {entry}}}}}'
    config.path.write_text(text)
    with pytest.raises(Refused, match="is not one that `engram init` writes"):
        unwire(config)
    assert config.path.read_text() == text


def test_the_backup_is_of_the_file_before_the_last_wiring(home: Path) -> None:
    config = config_file(find_agent("codex"), None)
    config.path.parent.mkdir()
    config.path.write_text("a = 1\n")
    wire(config, SERVER)
    config.path.write_text("b = 1\n" + config.path.read_text())
    assert unwire(config).backup is not None
    wire(config, SERVER)
    backup = wire(config, ServerCommand("/elsewhere/engram")).backup
    assert backup is not None and backup.read_text() == "b = 1\na = 1\n"
    assert unwire(config).backup is None


def test_no_backup_is_named_where_there_is_none(home: Path) -> None:
    config = config_file(find_agent("codex"), None)
    assert wire(config, SERVER).backup is None
    config.path.write_text("a = 1\n" + config.path.read_text())
    assert unwire(config, dry_run=True).backup is None
    assert unwire(config).backup is None


def test_what_was_added_since_is_kept(home: Path) -> None:
    config = config_file(find_agent("cursor"), None)
    config.path.parent.mkdir()
    config.path.write_text('{"mcpServers": {}}')
    wire(config, SERVER)
    data = json.loads(config.path.read_text())
    data["mcpServers"]["other"] = {"command": "x"}
    config.path.write_text(json.dumps(data))
    change = unwire(config)
    assert json.loads(config.path.read_text()) == {"mcpServers": {"other": {"command": "x"}}}
    assert change.backup is not None and change.backup.exists()


def test_a_comment_added_after_the_entry_is_kept(home: Path) -> None:
    config = config_file(find_agent("codex"), None)
    wire(config, SERVER)
    config.path.write_text(config.path.read_text() + "# about the entry\n\n# mine\n\n# mine, too\n")
    unwire(config)
    assert config.path.read_text() == "# mine\n\n# mine, too\n"


def test_a_rehearsal_writes_nothing(home: Path) -> None:
    assert wire(config_file(find_agent("cursor"), None), SERVER, dry_run=True).diff
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    ("harness", "text"),
    [
        ("cursor", '{"mcpServers": '),
        ("cursor", '{"mcpServers": 3}'),
        ("codex", "mcp_servers = { engram = {} }"),
        ("codex", "[mcp_servers]\nengram = { command = 'old' }\n"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_stays(home: Path, harness: str, text: str) -> None:
    config = config_file(find_agent(harness), None)
    config.path.parent.mkdir()
    config.path.write_text(text)
    by_hand = {"cursor": '"command": "engram"', "codex": 'command = "engram"'}[harness]
    with pytest.raises(Refused, match=rf"nothing was written(?s:.*)by hand(?s:.*){by_hand}"):
        wire(config, SERVER)
    assert config.path.read_text() == text
    assert [path.name for path in config.path.parent.iterdir()] == [config.path.name]


def test_a_large_file_is_changed_and_a_huge_one_refused_with_what_to_add(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_file(find_agent("claude-code"), None)
    text = json.dumps({"projects": {"/a": {"history": ["x" * 1000] * 5000}}})
    config.path.write_text(text)
    wire(config, SERVER)
    unwire(config)
    assert config.path.read_text() == text
    monkeypatch.setattr("engram.agents.wiring.registration.MAX_AGENT_CONFIG_BYTES", len(text) - 1)
    with pytest.raises(Refused, match=r'bytes \(maximum(?s:.*)by hand(?s:.*)"command": "engram"'):
        wire(config, SERVER)


def test_a_new_file_of_the_users_is_readable_by_them_alone_and_a_projects_by_everyone(home: Path) -> None:
    before = os.umask(0o022)
    try:
        for config, mode in (
            (config_file(find_agent("claude-code"), None), 0o600),
            (config_file(find_agent("claude-code"), home / "repo"), 0o644),
        ):
            wire(config, SERVER)
            assert config.path.stat().st_mode & 0o777 == mode
    finally:
        os.umask(before)


@pytest.mark.parametrize("text", [None, "{}"])
def test_an_error_of_the_system_names_the_file_that_cannot_be_written(
    home: Path, text: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = config_file(find_agent("claude-code"), None)
    if text is not None:
        config.path.write_text(text)

    def fail(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", f"{path}.tmp")

    monkeypatch.setattr("engram.agents.wiring.registration.write_temporary", fail)
    monkeypatch.setattr("engram.agents.wiring.user_file.write_temporary", fail)
    with pytest.raises(Refused) as refused:
        wire(config, SERVER)
    assert str(refused.value) == f"{config.path} cannot be written: Permission denied"


def test_the_users_own_link_is_followed(home: Path) -> None:
    kept = home / "dotfiles" / "mcp.json"
    kept.parent.mkdir()
    kept.write_text("{}")
    config = config_file(find_agent("cursor"), None)
    config.path.parent.mkdir()
    config.path.symlink_to(kept)
    wire(config, SERVER)
    assert config.path.is_symlink() and "engram" in kept.read_text()


def test_newer_versions_of_opencode_keep_their_servers_one_level_deeper(home: Path) -> None:
    config = config_file(find_agent("opencode"), None)
    assert config.place({"mcp": {"other": {}}}) == ("mcp", "engram")
    assert config.place({"mcp": {"servers": {"other": {}}}}) == ("mcp", "servers", "engram")
    assert config.place({"mcp": {"servers": {"type": "local", "command": ["x"]}}}) == ("mcp", "engram")


def test_an_existing_file_with_comments_is_preferred(home: Path, tmp_path: Path) -> None:
    (tmp_path / "opencode.jsonc").write_text("{} // mine")
    assert config_file(find_agent("opencode"), tmp_path).path.name == "opencode.jsonc"
    assert config_file(find_agent("opencode"), tmp_path / "elsewhere").path.name == "opencode.json"


def test_an_unknown_harness_is_an_error(home: Path) -> None:
    with pytest.raises(InvalidInput, match=", ".join(agent_names())):
        config_file(find_agent("emacs"), None)


RENEWED = [
    (
        "codex",
        '[mcp_servers.engram] # my note\n# why old\ncommand = "old"\nargs = ["mcp"]\nsince = 2020-01-01\nslow = 20 # disk\n',
        'command = "old"',
        'command = "engram"',
    ),
    (
        "codex",
        '[mcp_servers.engram]\ncommand = "old"\nargs = ["mcp"]\n\n[mcp_servers.engram.env] # mine\nA = "1" # one\n\n[x]\n',
        'command = "old"',
        'command = "engram"',
    ),
    (
        "cursor",
        '{"mcpServers": {\n  // mine\n  "engram": {"command": "old", /* why */ "args": ["mcp"], "env": {"A": "1" /* one */}}\n}}',
        '"old"',
        '"engram"',
    ),
    (
        "cursor",
        '{"mcpServers": {"engram": {"args": ["mcp"], "command": "old", "env": {"A": "\\u00e9"}}}}',
        '"old"',
        '"engram"',
    ),
    (
        "opencode",
        '{"mcp": {"engram": {"type": "local", // here\n  "command": ["old"], "enabled": false /* yet */}}}',
        '["old"]',
        '[\n        "engram",\n        "mcp"\n      ]',
    ),
]


@table(("harness", "text", "before", "after"), RENEWED)
def test_a_renewed_entry_keeps_its_comments_and_keys_and_undo_brings_it_back(
    home: Path, harness: str, text: str, before: str, after: str
) -> None:
    config = config_file(find_agent(harness), None)
    config.path.parent.mkdir(parents=True, exist_ok=True)
    config.path.write_text(text)
    wire(config, SERVER)
    assert config.path.read_text() == text.replace(before, after)
    assert not wire(config, SERVER).diff
    wire(config, ServerCommand("engram", environment={"ENGRAM_HOME": "/elsewhere"}))
    assert "/elsewhere" in config.path.read_text()
    unwire(config)
    assert config.path.read_text() == text


@table(("harness", "text", "before", "after"), RENEWED)
def test_undo_brings_the_users_entry_back_and_keeps_what_was_added_since(
    home: Path, harness: str, text: str, before: str, after: str
) -> None:
    config = config_file(find_agent(harness), None)
    config.path.parent.mkdir(parents=True, exist_ok=True)
    config.path.write_text(text)
    wire(config, SERVER)
    new = "new = 1\n" if harness == "codex" else "// new\n"
    config.path.write_text(new + config.path.read_text())
    assert unwire(config).backup is not None
    assert config.path.read_text() == new + text
