"""Learn 8080, learn 9090, forget 8080, learn 9090: nothing was known afterwards, on any surface."""

from pathlib import Path

from engram import Engram
from engram.model.decision import Outcome
from tests.backends import Backend
from tests.cli.conftest import Console, cli  # noqa: F401
from tests.mcp.talking import said, talking_inside

OLD, NEW = "The api listens on port 8080", "The api listens on port 9090"
QUESTION = "Which port does the api listen on?"


def test_the_library_knows_what_waited_once_the_other_is_forgotten(backend: Backend) -> None:
    mem = backend.client()
    old = mem.learn(OLD).memory
    assert old is not None
    assert mem.learn(NEW).outcome == Outcome.CONTRADICTION
    mem.forget(old.id)
    assert mem.learn(NEW).outcome == Outcome.DUPLICATE
    assert [hit.text for hit in mem.recall(QUESTION).hits] == [NEW]


def test_an_earlier_versions_dead_end_opens_when_it_is_said_again(backend: Backend) -> None:
    """What waited for a memory whose file was retired by hand."""
    mem = backend.client()
    old, new = mem.learn(OLD).memory, mem.learn(NEW).memory
    assert old is not None
    assert new is not None
    with mem.store.deciding("edit", actor="human", about=[old.id]) as deciding:
        deciding.put(old.replace(status="retired"))
    assert mem.get(new.id).status == "candidate"
    again = mem.learn(NEW)
    assert (again.outcome, again.memory and again.memory.status) == (Outcome.UPDATED, "active")


def test_the_command_line_says_what_it_waits_for_and_what_to_do(cli: Console) -> None:  # noqa: F811
    old, new = cli.learned(OLD), cli.learned(NEW)
    again = cli("learn", NEW)
    assert f"contradicts {old}" in again.stdout.replace("\n", " ")
    assert f"engram review {new} --keep new" in again.stderr
    assert f"engram forget {old}" in again.stderr
    data = cli.json("learn", NEW)
    (related,) = data["related"]
    assert (data["outcome"], related["memory"]["id"]) == ("DUPLICATE", old)
    assert related["call"] == f"engram learn '{NEW}' --supersedes {old}"
    cli("forget", old)
    assert cli.json("learn", NEW)["memory"]["status"] == "active"
    assert NEW in cli("recall", QUESTION).stdout


def test_the_command_line_replaces_it_at_once(cli: Console) -> None:  # noqa: F811
    old, new = cli.learned(OLD), cli.learned(NEW)
    decision = cli.json("learn", NEW, "--supersedes", old)
    assert (decision["outcome"], decision["memory"]["id"]) == ("SUPERSEDED", new)
    assert cli.json("undo", new)["status"] == "candidate"
    kept = cli.json("learn", "The api listens on both ports", "--supersedes", old, "--relation", "refinement")
    assert [link["type"] for link in kept["memory"]["associations"]] == ["refines"]


def test_an_mcp_client_is_given_the_call_that_replaces_it(tmp_path: Path) -> None:
    with Engram.open(ephemeral=True, directory=tmp_path) as mem, talking_inside(mem) as agent:
        old = agent.ask("learn", statement=OLD)["memory"]["id"]
        answer = agent.call("learn", statement=NEW)
        call = f'learn(statement="{NEW}", supersedes=["{old}"])'
        assert call in said(answer)
        again = agent.ask("learn", statement=NEW)
        assert (again["outcome"], again["related"][0]["call"]) == ("DUPLICATE", call)
        agent.ask("forget", id=old)
        assert agent.ask("learn", statement=NEW)["memory"]["status"] == "active"
        assert [found["statement"] for found in agent.ask("recall", question=QUESTION)["memories"]] == [NEW]


def test_an_mcp_client_replaces_it_at_once(tmp_path: Path) -> None:
    with Engram.open(ephemeral=True, directory=tmp_path) as mem, talking_inside(mem) as agent:
        old = agent.ask("learn", statement=OLD)["memory"]["id"]
        new = agent.ask("learn", statement=NEW)["memory"]["id"]
        replaced = agent.ask("learn", statement=NEW, supersedes=[old])
        assert (replaced["outcome"], replaced["memory"]["id"]) == ("SUPERSEDED", new)
        other = agent.ask("learn", statement="The api has two ports", supersedes=[new], relation="contradiction")
        assert other["outcome"] == "CONTRADICTION"
        assert "ENG-1900-0101-001" in agent.refusal("learn", statement="It rains", supersedes=["ENG-1900-0101-001"])


def test_an_mcp_client_that_was_told_to_say_different_is_heard(tmp_path: Path) -> None:
    with Engram.open(ephemeral=True, directory=tmp_path) as mem, talking_inside(mem) as agent:
        old = agent.ask("learn", statement=OLD, scope="project:quay")["memory"]["id"]
        waits = agent.ask("learn", statement=NEW, scope="project:quay")
        assert waits["outcome"] == "CONTRADICTION"
        kept = agent.ask("learn", statement=NEW, supersedes=[old], relation="different", scope="project:quay")
        assert (kept["outcome"], kept["memory"]["id"]) == ("UPDATED", waits["memory"]["id"])
        assert kept["memory"]["status"] == "active"
