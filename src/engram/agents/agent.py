"""The record of a coding agent, and a table of all agents.

Every module in `agents/known/` has one record, loaded on first use.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from engram.disk import expand_home
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field

if TYPE_CHECKING:
    from engram.agents.sources.documents import Documents
    from engram.agents.sources.places import SourcePlaces
    from engram.agents.transcripts.session import Reader

Environment = Mapping[str, str]
FindPath = Callable[[Path, Environment], Path]
"""Finds a path from the user's home and the environment."""


def home_of(environment: Environment = os.environ) -> Path:
    """The user's home."""
    return Path(environment.get("HOME") or Path.home())


def path_from(environment: Environment, variable: str, default: Path) -> Path:
    """The path in an environment variable, else the default. Raises `InvalidInput` for an unknown user's home."""
    given = environment.get(variable)
    return expand_home(Path(given), f"${variable}") if given else default


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryForm:
    """The form of a server's entry in a configuration file."""

    servers: str = "mcpServers"
    """The key of the table of servers."""
    find_servers: Callable[[Mapping[str, Any]], tuple[str, ...]] | None = None
    """The keys of that table in a file with this data, if they depend on the file."""
    syntax: Literal["json", "toml"] = "json"
    type: str = ""
    """The entry's `type`; "" if it has none."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Further members that the agent requires; a user's own values for them stay."""
    has_one_command: bool = False
    """Whether command and arguments are one list."""
    environment: str = "env"
    passed_on: str = ""
    """The key of the list of further variables that the agent passes on; "" if it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The files that configure an agent's servers."""

    find_file: FindPath
    """The user's own file."""
    project_files: tuple[str, ...]
    """Below a project's folder; the first that exists is used, else the last."""
    own_folders: int
    """How many of the folders above the user's file belong to the agent."""
    entry: EntryForm
    passed_on: frozenset[str] | None = None
    """The only variables that the agent passes on to a server, besides those named by the entry; None if it passes on all."""
    is_desktop: bool = False
    """Whether the agent is usually started without a shell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UserFolder:
    """The folder in which an agent keeps the user's settings and instructions."""

    find: FindPath
    find_managed: Callable[[], Path] | None = None
    """The folder of an organisation's instructions and settings."""
    private: frozenset[str] = frozenset()
    """Names in the folder that no instruction may import: transcripts, histories, credentials."""
    foreign: Mapping[str, int] = field(default_factory=dict)
    """Folders in it with files of other authors, the most specific first, and how many levels below each a boundary is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionFiles:
    """The instruction files that an agent reads."""

    context_file: str
    """The file of a project that `gen-context` may write."""
    up_the_tree: tuple[str, ...] = ()
    """Names to look for in the directory and in every folder above it."""
    at_root: tuple[str, ...] = ()
    """Names to look for at the root of the project."""
    of_user: tuple[str, ...] = ()
    """Names in the user's folder."""
    managed: tuple[str, ...] = ()
    """Names in the organisation's folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStore:
    """Where an agent keeps its sessions, how to recognise them, and which reader reads them."""

    find_root: FindPath
    make_reader: "Callable[[], Reader]"
    signature: bytes = b""
    """The first bytes of a session file; b"" if they are not distinctive."""
    marks: tuple[bytes, ...] = ()
    """Keys in the first lines of a transcript that identify its agent."""
    entries: frozenset[str] = frozenset()
    """Names in a folder that identify its agent."""
    prefix: str = ""
    """Prefixes of the id in the name of a session's file."""
    has_leading_time: bool = True
    """Whether ids begin with the time, so that they differ only at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFinders:
    """Finders of the files that an agent keeps for a project; None if the agent has none of that kind."""

    memory: "Callable[[Documents], None] | None" = None
    """Adds the files of its own memory."""
    rules: "Callable[[Documents], None] | None" = None
    skills: "Callable[[Documents], None] | None" = None
    session_folders: "Callable[[SourcePlaces], list[Path]] | None" = None
    """The folders that may have sessions of a project, if they are not all in one store."""
    own_folders: "Callable[[SourcePlaces], list[Path]] | None" = None
    """Those folders that contain nothing of another project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """Engram's plugin, as installed for an agent."""

    folder: Path
    script: Path
    """Starts the server with the argument `mcp`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingAgent:
    """All that Engram knows about one coding agent."""

    name: str
    """The name used in commands and in the sources of memories."""
    title: str
    folder: UserFolder
    configuration: Configuration
    instructions: InstructionFiles
    variables: tuple[str, ...] = ()
    """Environment variables that move its files."""
    sessions: SessionStore | None = None
    load_finders: Callable[[], SourceFinders] = SourceFinders
    hook_events: Mapping[str, str] = field(default_factory=dict)
    """Its names for the events of `engram hook` that may answer."""
    find_plugins: Callable[[Path], Iterator[Plugin]] | None = None
    """Engram's enabled plugins in the user's home."""
    inside_variable: str = ""
    """The variable that it sets for programs it starts."""
    page: str = ""
    """Its page in `docs/`; "" if it has none."""


_KNOWN = Path(__file__).with_name("known")


@cache
def agent_names() -> tuple[str, ...]:
    """The names of all agents, sorted; loads no record."""
    # `pkgutil` would load `inspect`, which slows a hook more than all records do.
    modules = {path.stem for path in _KNOWN.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    return tuple(sorted(name.replace("_", "-") for name in modules - {"__init__"}))


@cache
def find_agent(name: str) -> CodingAgent:
    """The record of an agent. Raises `InvalidInput` for an unknown name."""
    if name not in agent_names():
        raise InvalidInput(f"Unknown harness {name!r}; choose {', '.join(agent_names())}")
    agent: CodingAgent = import_module(f"engram.agents.known.{name.replace('-', '_')}").AGENT
    return agent


def all_agents() -> tuple[CodingAgent, ...]:
    """The records of all agents, by name."""
    return tuple(map(find_agent, agent_names()))


def agents_with_sessions() -> tuple[CodingAgent, ...]:
    """The agents whose sessions Engram can read."""
    return tuple(agent for agent in all_agents() if agent.sessions is not None)


def session_store(name: str) -> SessionStore:
    """Where an agent keeps its sessions. Raises `InvalidInput` for an agent without readable sessions."""
    if name in agent_names() and (store := find_agent(name).sessions) is not None:
        return store
    names = ", ".join(agent.name for agent in agents_with_sessions())
    raise InvalidInput(f"Unknown harness {name!r}; choose {names} or all")


def context_file_names() -> tuple[str, ...]:
    """The project files that agents read as instructions, the most widely read first."""
    read = Counter(agent.instructions.context_file for agent in all_agents())
    return tuple(name for name, _ in read.most_common())


def instruction_file_names() -> frozenset[str]:
    """The names of all instruction files, without folders, in lower case."""
    files = (agent.instructions for agent in all_agents())
    names = (name for known in files for name in (*known.up_the_tree, *known.at_root, *known.of_user))
    return frozenset(name.rpartition("/")[2].lower() for name in names)


def agent_with_hooks() -> CodingAgent:
    """The agent whose hooks run `engram hook`."""
    return next(agent for agent in all_agents() if agent.hook_events)
