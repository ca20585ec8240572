"""Gemini CLI: an entry in `~/.gemini/settings.json`, and GEMINI.md as instructions."""

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

_PRIVATE = frozenset(("tmp", "history", "memory", "antigravity", "antigravity-cli", "policies", "extensions"))
"""Transcripts and snapshots of all projects, and files of other authors."""


def _find_folder(home: Path, environment: Environment) -> Path:
    return Path(environment.get("GEMINI_CLI_HOME") or home) / ".gemini"


def _find_file(home: Path, environment: Environment) -> Path:
    return path_from(environment, "GEMINI_CLI_HOME", home) / ".gemini" / "settings.json"


AGENT = CodingAgent(
    name="gemini-cli",
    title="Gemini CLI",
    folder=UserFolder(find=_find_folder, private=_PRIVATE),
    variables=("GEMINI_CLI_HOME",),
    configuration=Configuration(
        find_file=_find_file,
        project_files=(".gemini/settings.json",),
        own_folders=1,
        entry=EntryForm(),
    ),
    instructions=InstructionFiles(context_file="GEMINI.md", up_the_tree=("GEMINI.md",), of_user=("GEMINI.md",)),
)
