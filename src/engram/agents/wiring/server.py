"""How a coding agent starts Engram's server, and with which variables."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from engram.disk import expand_home
from engram.model.lazy import dataclass

SERVER = "engram"
"""The name of the entry."""
STORE_VARIABLES = ("ENGRAM_HOME", "ENGRAM_CACHE", "ENGRAM_URL", "ENGRAM_TENANT")
"""Environment variables that decide which store a server opens."""
SAFE_PATH = "PYTHONSAFEPATH"
"""The environment variable that does what Python's `-P` does: modules are not looked for in the working directory."""
_MODULES = (("-m", "engram", "mcp"), ("-m", "engram.mcp"))
"""Arguments with which Python starts the server."""
_SAFE = (("-P",), ("-I",))
"""Options of Python without which `-m` looks for modules in the working directory first."""


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """How a coding agent starts the server."""

    command: str
    arguments: tuple[str, ...] = ("mcp",)
    environment: Mapping[str, str] | None = None
    passed_on: tuple[str, ...] = ()
    """Names of further variables that the agent passes on; few agents have such a list."""

    @property
    def words(self) -> list[str]:
        """The command with its arguments."""
        return [self.command, *self.arguments]

    @property
    def is_engram(self) -> bool:
        """Whether it is this program's own server, in whatever environment."""
        if self.arguments == ("mcp",):
            return Path(self.command).name == SERVER
        return self.arguments in _MODULES or (self.arguments[:1] in _SAFE and self.arguments[1:] in _MODULES)

    @property
    def runs_working_directory(self) -> bool:
        """Whether Python looks for modules in the directory in which the agent works, so that a clone can replace any of them."""
        return self.arguments in _MODULES and not (self.environment or {}).get(SAFE_PATH)


def server_command(*, is_shared: bool, is_desktop: bool, environment: Mapping[str, str] | None = None) -> ServerCommand:
    """How to start this program's server. A project's file names it as everybody calls it; the user's own, so that it is found.

    A desktop application has a shorter `PATH` than the shell in which `engram` was found, so it gets the full path.
    """
    found = shutil.which(SERVER)
    if is_shared or (found and not is_desktop):
        return ServerCommand(SERVER, environment=environment)
    script = Path(found).absolute() if found else Path(sys.executable).with_name(SERVER)
    if script.exists():
        return ServerCommand(str(script), environment=environment)
    return ServerCommand(sys.executable, ("-P", "-m", "engram", "mcp"), environment)


def store_environment(
    home: Path | None, *, is_shared: bool, around: Mapping[str, str] = os.environ
) -> tuple[dict[str, str], str]:
    """The variables that make a server open the store in use here, and a warning about those that must not be written to its file.

    An agent may not pass on what is set in this shell. The given home takes the place of all of it.
    """
    if home is not None:
        return {"ENGRAM_HOME": str(expand_home(home, "--home").absolute())}, ""
    found = {name: around[name].strip() for name in STORE_VARIABLES if around.get(name, "").strip()}
    if found and is_shared:
        return {}, _SHARED.format(" and ".join(found))
    for name in ("ENGRAM_HOME", "ENGRAM_CACHE"):
        if name in found:
            found[name] = str(expand_home(Path(found[name]), f"${name}").absolute())
    if _has_password(found.get("ENGRAM_URL", "")):
        del found["ENGRAM_URL"]
        return found, _PASSWORD
    return found, ""


_SHARED = "{} of this shell is not written to a file that others share; without --project it is written to your own"
_PASSWORD = (
    "ENGRAM_URL contains a password, so it was not written to the file, and the server may open another store. Put the password "
    "into ~/.pgpass, set ENGRAM_URL without it, and run this again"
)


def _has_password(url: str) -> bool:
    """Whether a server's URL may contain one; in doubt it does."""
    plain = unquote(url)
    return ":" in plain.partition("://")[2].rpartition("@")[0] or "password" in plain.lower()
