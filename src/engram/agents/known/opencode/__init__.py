"""OpenCode: an entry below `mcp` in its JSON settings, and a database of sessions."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

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


def _find_folder(home: Path, environment: Environment) -> Path:
    return path_from(environment, "XDG_CONFIG_HOME", home / ".config") / "opencode"


def _find_file(home: Path, environment: Environment) -> Path:
    folder = _find_folder(home, environment)
    commented = folder / "opencode.jsonc"
    return commented if commented.exists() else folder / "opencode.json"


def _find_servers(data: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of the table of servers: newer versions have an additional level."""
    servers = data.get("mcp", {}).get("servers") if isinstance(data.get("mcp"), dict) else None
    return ("mcp", "servers") if isinstance(servers, dict) and "command" not in servers else ("mcp",)


def _find_sessions(home: Path, environment: Environment) -> Path:
    if named := environment.get("OPENCODE_DB"):
        return Path(named)
    return Path(environment.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"


def _make_reader() -> "Reader":
    from engram.agents.known.opencode.transcripts import OpenCodeReader

    return OpenCodeReader()


AGENT = CodingAgent(
    name="opencode",
    title="OpenCode",
    folder=UserFolder(find=_find_folder),
    variables=("OPENCODE_DB", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    configuration=Configuration(
        find_file=_find_file,
        project_files=("opencode.jsonc", ".opencode/opencode.jsonc", ".opencode/opencode.json", "opencode.json"),
        own_folders=1,
        entry=EntryForm(find_servers=_find_servers, type="local", has_one_command=True, environment="environment"),
    ),
    instructions=InstructionFiles(context_file="AGENTS.md", up_the_tree=("AGENTS.md",)),
    sessions=SessionStore(
        find_root=_find_sessions,
        make_reader=_make_reader,
        signature=b"SQLite format 3",
        entries=frozenset({"opencode.db", "storage"}),
    ),
    page="opencode.md",
)
