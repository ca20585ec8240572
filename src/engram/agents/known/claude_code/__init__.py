"""Claude Code: a plugin with hooks and skills, sessions, auto memory, rules, and an entry in `~/.claude.json`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from engram.agents.agent import (
    CodingAgent,
    Configuration,
    EntryForm,
    Environment,
    InstructionFiles,
    Plugin,
    SessionStore,
    SourceFinders,
    UserFolder,
    path_from,
)
from engram.agents.known.claude_code.paths import NAME, find_config, find_managed

if TYPE_CHECKING:
    from engram.agents.transcripts.session import Reader

_PRIVATE = frozenset(
    ("projects", "todos", "tasks", "teams", "plans", "sessions", "session-env", "shell-snapshots", "file-history",
     "paste-cache", "image-cache", "debug", "statsig", "telemetry", "backups", "history.jsonl", "ide", "cache")
)  # fmt: skip
"""Entries of Claude Code's folder that are about all projects: transcripts, memories, histories, pasted text."""


def _find_file(home: Path, environment: Environment) -> Path:
    return path_from(environment, "CLAUDE_CONFIG_DIR", home) / ".claude.json"


def _find_sessions(home: Path, environment: Environment) -> Path:
    return find_config(home, environment) / "projects"


def _make_reader() -> "Reader":
    from engram.agents.known.claude_code.transcripts import ClaudeCodeReader

    return ClaudeCodeReader()


def _load_finders() -> SourceFinders:
    from engram.agents.known.claude_code.finders import FINDERS

    return FINDERS


def _find_plugins(home: Path) -> "Iterator[Plugin]":
    from engram.agents.known.claude_code.finders import find_plugins

    return find_plugins(home)


AGENT = CodingAgent(
    name=NAME,
    title="Claude Code",
    folder=UserFolder(
        find=find_config,
        find_managed=find_managed,
        private=_PRIVATE,
        foreign={"plugins/cache": 2, "plugins": 2},
    ),
    variables=("CLAUDE_CONFIG_DIR",),
    configuration=Configuration(
        find_file=_find_file,
        project_files=(".mcp.json",),
        own_folders=0,
        entry=EntryForm(type="stdio"),
    ),
    instructions=InstructionFiles(
        context_file="CLAUDE.md",
        up_the_tree=("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"),
        of_user=("CLAUDE.md",),
        managed=("CLAUDE.md",),
    ),
    sessions=SessionStore(
        find_root=_find_sessions,
        make_reader=_make_reader,
        marks=(b'"sessionId"', b'"uuid"', b'"leafUuid"'),
        has_leading_time=False,
    ),
    load_finders=_load_finders,
    hook_events={
        "session-start": "SessionStart",
        "prompt": "UserPromptSubmit",
        "post-tool": "PostToolBatch",
        "drain": "SessionStart",
    },
    find_plugins=_find_plugins,
    inside_variable="CLAUDECODE",
    page="claude-code.md",
)
