"""Names and fixed paths of Claude Code."""

import sys
from pathlib import Path

from engram.agents.agent import Environment

NAME = "claude-code"
CONFIG = ".claude"
_MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}


def find_config(home: Path, environment: Environment) -> Path:
    """The user's configuration file."""
    return Path(environment.get("CLAUDE_CONFIG_DIR") or home / CONFIG).expanduser()


def find_managed() -> Path:
    """The folder of an organisation's own CLAUDE.md and settings."""
    return Path(_MANAGED.get(sys.platform, "/etc/claude-code"))
