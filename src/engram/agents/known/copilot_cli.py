"""GitHub Copilot CLI: an entry in `~/.copilot/mcp-config.json`, and instructions in `.github`."""

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

_INSTRUCTIONS = "copilot-instructions.md"
_PRIVATE = frozenset(("logs", "session-state", "history-session-state", "installed-plugins", "pkg"))
"""Transcripts of all projects, and files of other authors."""


def _find_folder(home: Path, environment: Environment) -> Path:
    return Path(environment.get("COPILOT_HOME") or home / ".copilot")


def _find_file(home: Path, environment: Environment) -> Path:
    return path_from(environment, "COPILOT_HOME", home / ".copilot") / "mcp-config.json"


AGENT = CodingAgent(
    name="copilot-cli",
    title="GitHub Copilot CLI",
    folder=UserFolder(find=_find_folder, private=_PRIVATE),
    variables=("COPILOT_HOME",),
    configuration=Configuration(
        find_file=_find_file,
        project_files=(".github/mcp.json",),
        own_folders=1,
        entry=EntryForm(type="local", fixed={"tools": ["*"]}),
    ),
    instructions=InstructionFiles(
        context_file="AGENTS.md",
        up_the_tree=("AGENTS.md",),
        at_root=(f".github/{_INSTRUCTIONS}",),
        of_user=(_INSTRUCTIONS,),
    ),
)
