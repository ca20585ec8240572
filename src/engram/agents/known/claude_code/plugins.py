"""Engram's plugin, as Claude Code has installed it."""

import os
from collections.abc import Iterator
from pathlib import Path

from engram.agents.agent import Plugin
from engram.agents.known.claude_code.paths import find_config
from engram.agents.sources.places import settings_of

_NAME = "engram"


def find_plugins(home: Path) -> Iterator[Plugin]:
    """The plugins of this name that are switched on and have a script."""
    config = find_config(home, os.environ)
    listed = settings_of(config / "plugins" / "installed_plugins.json").get("plugins")
    enabled = settings_of(config / "settings.json").get("enabledPlugins")
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        is_off = isinstance(enabled, dict) and enabled.get(name) is False
        last = entry[-1] if isinstance(entry, list) and entry else entry
        folder = Path(str(last.get("installPath") if isinstance(last, dict) else None))
        script = folder / "hooks" / "engram.sh"
        if name.partition("@")[0] == _NAME and not is_off and script.is_file():
            yield Plugin(folder=folder, script=script)
