"""Codex: a table in `~/.codex/config.toml`, and rollouts as sessions."""

from pathlib import Path
from typing import TYPE_CHECKING

from engram.agents.agent import (
    CodingAgent,
    Configuration,
    EntryForm,
    Environment,
    InstructionFiles,
    SessionStore,
    UserFolder,
    path_from,
)

if TYPE_CHECKING:
    from engram.agents.transcripts.session import Reader

_PASSED_ON = frozenset(
    {"HOME", "LOGNAME", "PATH", "SHELL", "USER", "__CF_USER_TEXT_ENCODING", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ"}
)
"""`DEFAULT_ENV_VARS` in its `rmcp-client`."""


def _find_folder(home: Path, environment: Environment) -> Path:
    return path_from(environment, "CODEX_HOME", home / ".codex")


def _make_reader() -> "Reader":
    from engram.agents.known.codex.transcripts import CodexReader

    return CodexReader()


AGENT = CodingAgent(
    name="codex",
    title="Codex",
    folder=UserFolder(find=_find_folder),
    variables=("CODEX_HOME",),
    configuration=Configuration(
        find_file=lambda home, environment: _find_folder(home, environment) / "config.toml",
        project_files=(".codex/config.toml",),
        own_folders=1,
        entry=EntryForm(servers="mcp_servers", syntax="toml", passed_on="env_vars"),
        passed_on=_PASSED_ON,
    ),
    instructions=InstructionFiles(context_file="AGENTS.md", up_the_tree=("AGENTS.md",)),
    sessions=SessionStore(
        find_root=_find_folder,
        make_reader=_make_reader,
        marks=(b'"payload"', b'"record_type"', b'"instructions"'),
        entries=frozenset({"sessions", "archived_sessions"}),
        prefix="rollout-",
    ),
    page="codex.md",
)
