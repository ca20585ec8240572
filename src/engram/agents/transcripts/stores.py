"""The stores of sessions that coding agents keep: where each is, who reads it, and whose a file or folder is."""

import os
from collections.abc import Mapping
from pathlib import Path

from engram.agents.agent import home_of
from engram.agents.registry import agents_with_sessions, session_store
from engram.agents.transcripts.session import Problems, Reader, StoredSession, directory_in, entries
from engram.disk import reading

_OPENING = 64 * 1024
"""Bytes of a file by which the agent that wrote it is recognised."""


def default_root(agent: str, environment: Mapping[str, str] = os.environ) -> Path:
    """Where an agent keeps its sessions: as its own variable says, else the usual folder."""
    return session_store(agent).find_root(home_of(environment), environment)


def reader_of(agent: str) -> Reader:
    """The reader of an agent's sessions. Raises `InvalidInput` for an agent without any that can be read."""
    return session_store(agent).make_reader()


def directory_of(session: StoredSession) -> str:
    """The folder that a session ran in; "" if it does not say. Raises `OSError` if it cannot be read."""
    return directory_in(reader_of(session.harness), session)


def detect_agents(path: Path) -> tuple[str, ...]:
    """The agents whose sessions a folder or a file has; none if that is not clear."""
    if path.is_file():
        return tuple(filter(None, [_find_writer(path.resolve())]))
    names = {entry.name for entry in entries(path, Problems(), lambda _: True)}
    found = {_find_writer(file) for file in path.rglob("*.jsonl") if file.is_file() and not file.is_symlink()}
    stores = {agent.name: agent.sessions for agent in agents_with_sessions()}
    return tuple(name for name, store in stores.items() if name in found or (store and store.entries & names))


def _find_writer(path: Path) -> str:
    """The agent that wrote a file; "" for one that cannot be read, which its reader reports."""
    try:
        return find_writer(path)
    except OSError:
        return ""


def find_writer(path: Path) -> str:
    """The agent that wrote a file, by its first records; "" if that is not clear. Raises `OSError` if it cannot be read."""
    with reading(path) as file:
        opening = file.read(_OPENING)
    stores = [(agent.name, agent.sessions) for agent in agents_with_sessions() if agent.sessions is not None]
    for name, store in stores:
        if store.signature and opening.startswith(store.signature):
            return name
    for line in opening.splitlines():
        # What a record quotes comes after its own first key.
        places = [(at, name) for name, store in stores for mark in store.marks if (at := line.find(mark)) >= 0]
        if places:
            return min(places)[1]
    return ""
