"""Where Claude Code keeps what is about a project."""

from engram.agents.agent import SourceFinders
from engram.agents.known.claude_code.auto_memory import find_auto_memory
from engram.agents.known.claude_code.folders import ClaudeFolders
from engram.agents.known.claude_code.rules import find_rules
from engram.agents.known.claude_code.skills import find_skills

FINDERS = SourceFinders(
    memory=find_auto_memory,
    rules=find_rules,
    skills=find_skills,
    session_folders=lambda places: places.make_once(ClaudeFolders).session_folders(),
    own_folders=lambda places: places.make_once(ClaudeFolders).own_folders,
)
