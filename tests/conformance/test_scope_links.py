"""Links between scopes are kept by every backend: an older scope is seen from a repository once a person has linked it."""

import subprocess
from pathlib import Path

import pytest

from engram import Engram
from engram.store.scopes import scope_links, session_scope
from engram.upkeep.scope_links import link_scope, scope_notices, separate_scope, unlink_scope
from tests.backends import Backend

SECRET = "The zebra contract pays four million for Nightshift"
OLD, NEW = "project:acme/api", "project:github.com:acme/api"


def init(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    if remote:
        subprocess.run(["git", "remote", "add", "origin", remote], cwd=folder, check=True)
    return folder


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    return init(tmp_path / "acme", "git@github.com:acme/api.git")


@pytest.fixture
def mem(backend: Backend, acme: Path) -> Engram:
    client = backend.client()
    client.directory = acme
    return client


def recalled(mem: Engram, directory: Path) -> list[str]:
    mem.directory = directory
    return [hit.memory.statement for hit in mem.recall("zebra contract").hits if hit.memory is not None]


def test_a_repository_on_another_host_gets_nothing(mem: Engram, acme: Path, tmp_path: Path) -> None:
    evil = init(tmp_path / "evil", "https://evil.example/acme/api")
    claimed = tmp_path / "claimed"
    claimed.mkdir()
    (claimed / ".git").write_text("gitdir: ../acme/.git\n")
    mem.add(SECRET, scope="here")
    assert recalled(mem, acme) == [SECRET]
    assert recalled(mem, evil) == recalled(mem, claimed) == []


def test_an_older_scope_is_seen_once_it_is_linked_and_no_record_changes(
    mem: Engram, acme: Path, tmp_path: Path
) -> None:
    old = mem.add(SECRET, scope=OLD)
    mem.add("The whole of Acme deploys zebras on Fridays", scope="project:acme")
    between = mem.add("Zebra tests need the contract database", scope="here")
    assert between.scope == NEW
    assert recalled(mem, acme) == [between.statement]
    [first, second] = scope_notices(mem.store, acme)
    assert f"1 memory of {OLD}" in first and f"engram scope --link {OLD}" in first
    assert "1 memory of project:acme " in second
    assert link_scope(mem.store, acme, OLD) == (NEW, OLD)
    assert mem.scope_here() == OLD
    assert {SECRET, between.statement} <= set(recalled(mem, acme))
    assert mem.get(old.id).scope == OLD
    assert [image.op for image in mem.history(old.id)] == ["add"]
    evil = init(tmp_path / "evil", "https://evil.example/acme/api")
    assert recalled(mem, evil) == []
    assert unlink_scope(mem.store, acme) == [OLD]
    assert recalled(mem, acme) == [between.statement]


def test_an_owners_scope_is_linked_for_all_of_its_repositories(mem: Engram, acme: Path, tmp_path: Path) -> None:
    mem.add(SECRET, scope="project:acme")
    link_scope(mem.store, acme, "project:acme")
    assert mem.scope_here() == NEW
    web = init(tmp_path / "web", "https://github.com/acme/web")
    assert recalled(mem, acme) == recalled(mem, web) == [SECRET]
    assert scope_notices(mem.store, web) == []


def test_a_scope_that_does_not_belong_here_is_not_offered_again(mem: Engram, acme: Path) -> None:
    mem.add(SECRET, scope=OLD)
    assert separate_scope(mem.store, acme) == [OLD, "project:acme"]
    assert scope_notices(mem.store, acme) == []
    assert recalled(mem, acme) == []


def test_links_move_with_a_store(backend: Backend, mem: Engram, acme: Path) -> None:
    mem.add(SECRET, scope=OLD)
    link_scope(mem.store, acme, OLD)
    with backend.copied("copy") as copy:
        copy.directory = acme
        assert recalled(copy, acme) == [SECRET]


def test_a_session_of_yesterday_belongs_to_the_linked_scope(mem: Engram, acme: Path) -> None:
    link_scope(mem.store, acme, OLD)
    links = scope_links(mem.store)
    assert session_scope(str(acme), "", (), links) == OLD
    assert session_scope("/gone/api", "https://github.com/acme/api.git", (), links) == OLD
    assert session_scope("/gone/api", "https://evil.example/acme/api.git", (), links) == "project:evil.example:acme/api"
