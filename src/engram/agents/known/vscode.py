"""VS Code, whose agent is GitHub Copilot: an entry below `servers` in `mcp.json`, and instructions in `.github`."""

import sys
from pathlib import Path

from engram.agents.agent import (
    CodingAgent,
    Configuration,
    EntryForm,
    Environment,
    InstructionFiles,
    UserFolder,
    path_from,
)


def _find_folder(home: Path, environment: Environment) -> Path:
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "Code" / "User"
    return path_from(environment, "XDG_CONFIG_HOME", home / ".config") / "Code" / "User"


AGENT = CodingAgent(
    name="vscode",
    title="VS Code",
    folder=UserFolder(find=_find_folder),
    variables=("XDG_CONFIG_HOME",),
    configuration=Configuration(
        find_file=lambda home, environment: _find_folder(home, environment) / "mcp.json",
        project_files=(".vscode/mcp.json",),
        own_folders=2,
        entry=EntryForm(servers="servers", type="stdio"),
        is_desktop=True,
    ),
    instructions=InstructionFiles(
        context_file="AGENTS.md", up_the_tree=("AGENTS.md",), at_root=(".github/copilot-instructions.md",)
    ),
)
