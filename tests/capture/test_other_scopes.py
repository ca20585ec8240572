"""A memory that repeats or contradicts one in another scope which its reader sees too."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.capture.learn import other_scopes
from engram.model.decision import Decision

SQUASH = {
    "situation": "merging our branches",
    "behavior": "merged with every small commit",
    "impact": "nobody could read the history",
    "action": "squash the commits before merging",
}
OPPOSED = SQUASH | {"action": "never squash the commits before merging"}
REWORDED = SQUASH | {"situation": "merging a branch of ours", "action": "squash commits before merging"}


@pytest.fixture
def mem(tmp_path: Path) -> Any:
    """A store opened in a repository."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "gazelle")], check=True, timeout=120)
    with Engram.open(ephemeral=True, directory=tmp_path / "gazelle") as opened:
        yield opened


def learned_where_it_belongs(mem: Engram, lesson: dict[str, str]) -> Decision:
    """A lesson learned as the command line and the tools do: where its words say."""
    form = {part: said for part, said in lesson.items() if part != "situation"}
    scope, _ = mem.infer_scope(situation=lesson["situation"], type="feedback", form=form)
    return mem.learn(scope=scope, type="feedback", **lesson)  # type: ignore[arg-type]


def test_a_lesson_that_global_knows_is_a_duplicate_in_a_project(mem: Engram) -> None:
    assert learned_where_it_belongs(mem, SQUASH).memory.scope == "project:gazelle"  # type: ignore[union-attr]
    mem.forget(mem.list()[0].id)
    known = mem.learn(scope="global", **SQUASH).memory  # type: ignore[arg-type]
    assert known is not None
    found = learned_where_it_belongs(mem, REWORDED)
    assert (found.outcome, found.other and found.other.id) == ("DUPLICATE", known.id)


def test_a_lesson_that_contradicts_one_of_global_is_a_contradiction_in_a_project(mem: Engram) -> None:
    known = mem.learn(scope="global", **SQUASH).memory  # type: ignore[arg-type]
    assert known is not None
    found = learned_where_it_belongs(mem, OPPOSED)
    assert (found.outcome, found.other and found.other.id) == ("CONTRADICTION", known.id)


@pytest.mark.parametrize(("one", "other"), [("global", "project:gazelle"), ("project:gazelle", "global")])
def test_what_another_scope_says_is_reported(mem: Engram, one: str, other: str) -> None:
    known = mem.learn(scope=one, **SQUASH).memory  # type: ignore[arg-type]
    assert known is not None
    again, opposed = (mem.learn(scope=other, **lesson) for lesson in (REWORDED, OPPOSED))  # type: ignore[arg-type]
    assert again.outcome == "CREATED"
    assert [f"in {one} already says this" in warning for warning in again.warnings] == [True]
    assert known.id in again.warnings[0]
    # In its own scope it contradicts the rewording that was just stored there.
    assert any(f"contradicts {known.id}" in warning and f"in {one}" in warning for warning in opposed.warnings)


def test_a_plain_statement_that_contradicts_global_is_stored_and_reported(mem: Engram) -> None:
    known = mem.add("The api listens on port 8080")
    found = mem.learn("The api listens on port 9090", scope="here")
    assert found.outcome == "CREATED"
    assert [known.id in warning for warning in found.warnings] == [True]


def test_a_person_is_told_too(mem: Engram) -> None:
    mem.add("The api listens on port 8080")
    assert len(mem.remember("The api listens on port 9090", scope="here").warnings) == 1


def test_what_is_not_seen_from_there_is_not_reported(mem: Engram) -> None:
    mem.learn(scope="project:other", **SQUASH)  # type: ignore[arg-type]
    mem.learn(scope="agent:shop/ana", **SQUASH)  # type: ignore[arg-type]
    assert mem.learn(scope="here", **OPPOSED).warnings == ()  # type: ignore[arg-type]


def test_what_is_out_of_use_or_waits_is_not_reported(mem: Engram) -> None:
    mem.forget(mem.add("The api listens on port 8080").id)
    mem.learn("The api listens on port 7070", source="web:example.org")
    assert mem.learn("The api listens on port 9090", scope="here").warnings == ()


def test_the_scopes_that_are_seen_together() -> None:
    assert other_scopes("project:acme/api", "") == ("project:acme", "user", "global")
    assert other_scopes("global", "project:acme/api") == ("project:acme/api", "project:acme", "user")
    assert other_scopes("project:other", "project:acme") == ("user", "global")
    assert other_scopes("agent:shop/ana", "project:acme") == ("agent:shop", "global")
