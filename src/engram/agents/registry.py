"""The table of coding agents: every module in `agents/known/`, loaded when its record is asked for."""

from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

from engram.agents.agent import CodingAgent, SessionStore
from engram.model.errors import InvalidInput

_KNOWN = Path(__file__).with_name("known")


@cache
def agent_names() -> tuple[str, ...]:
    """The names of all agents, sorted; no record is loaded."""
    # `pkgutil` would load `inspect`, which costs a hook more than all records.
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
    """The agents whose sessions can be read."""
    return tuple(agent for agent in all_agents() if agent.sessions is not None)


def session_store(name: str) -> SessionStore:
    """Where an agent keeps its sessions. Raises `InvalidInput` for an agent without any that can be read."""
    if name in agent_names() and (store := find_agent(name).sessions) is not None:
        return store
    names = ", ".join(agent.name for agent in agents_with_sessions())
    raise InvalidInput(f"Unknown harness {name!r}; choose {names} or all")


def context_file_names() -> tuple[str, ...]:
    """The files of a project that agents read as instructions, those that most agents read first."""
    read = Counter(agent.instructions.context_file for agent in all_agents())
    return tuple(name for name, _ in read.most_common())


def instruction_file_names() -> frozenset[str]:
    """The names of all files with instructions, without their folders, in small letters."""
    files = (agent.instructions for agent in all_agents())
    names = (name for known in files for name in (*known.up_the_tree, *known.at_root, *known.of_user))
    return frozenset(name.rpartition("/")[2].lower() for name in names)


def agent_with_hooks() -> CodingAgent:
    """The agent whose hooks run `engram hook`."""
    return next(agent for agent in all_agents() if agent.hook_events)
