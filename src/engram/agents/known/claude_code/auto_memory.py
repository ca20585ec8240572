"""Claude Code's auto memory: the Markdown files that it keeps about a repository, shared by its worktrees."""

from pathlib import Path

from engram.agents.known.claude_code.folders import ClaudeFolders
from engram.agents.sources.documents import Documents
from engram.agents.sources.places import SourcePlaces

SETTING = "autoMemoryDirectory"
INDEX = "MEMORY.md"
MAX_TOPIC_FILES = 500


def find_auto_memory(documents: Documents) -> None:
    """Add the files of the first folder that has any: its index first, then the topics by name."""
    for folder in folders_of(documents.places):
        try:
            names = sorted(path.name for path in folder.glob("*.md"))
        except OSError:
            continue
        for name in sorted(names, key=lambda name: name != INDEX)[:MAX_TOPIC_FILES]:
            documents.add_below("auto-memory", folder, name)
        if names:
            return


def folders_of(places: SourcePlaces) -> list[Path]:
    """Where the auto memory may be. Only the user's and the managed settings choose another folder: a cloned project must not."""
    own = places.make_once(ClaudeFolders)
    for settings in own.settings():
        chosen = settings.get(SETTING)
        if isinstance(chosen, str) and chosen.strip():
            folder = places.home / chosen[2:] if chosen.startswith("~/") else Path(chosen)
            if folder.is_absolute() and "\0" not in chosen:
                return [folder]
    return [folder / "memory" for folder in own.own_folders]
