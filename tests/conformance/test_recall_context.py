"""Memories of any backend and the sources of this machine are recalled together; the index of sources is no part of a store."""

from pathlib import Path

import pytest

from tests.backends import Backend
from tests.recall.sources.home import SourceHome


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceHome:
    made = SourceHome(tmp_path / "user")
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "cache-of-user"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_DB", "CLAUDECODE"):
        monkeypatch.delenv(name, raising=False)
    made.in_project("CLAUDE.md", "# Deploys\nDeploys go through the staging cluster first.\n")
    return made


def test_memories_and_sources_answer_together(backend: Backend, user: SourceHome) -> None:
    mem = backend.client()
    known = mem.add("Deploys need two approvals", scope="global")
    found = mem.recall_context("how do deploys work?", directory=user.project)
    assert [section.phase for section in found.sections] == ["memories", "instructions"]
    assert found.sections[0].id == known.id


def test_a_briefing_is_made_on_any_backend(backend: Backend, user: SourceHome) -> None:
    mem = backend.client()
    mem.add("Deploys need two approvals", scope="global")
    text = mem.prepare("Deploy the service", directory=user.project).text
    assert "two approvals" in text and "staging cluster" in text
