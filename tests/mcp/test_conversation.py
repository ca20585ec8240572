"""An agent at work with its memory, through the SDK's client and a server process."""

import subprocess
from pathlib import Path

import pytest

from engram import Engram
from tests.mcp.talking import Talk, data, kept, opened, said, talking, talking_inside

TABS = (
    "Indent the billing service with tabs and never with spaces, because its formatter rejects every other indentation"
)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_whole_session_from_its_start_to_its_end(tmp_path: Path, mode: str) -> None:
    """`legacy` is the handshake today's clients speak, `auto` the protocol of 2026."""
    with talking(tmp_path, mode=mode) as agent:
        first = agent.call("session_start", task="set up the formatter")
        session = data(first)["session_id"]
        assert session in said(first)
        assert "Nothing in memory is relevant to this task." in said(first)
        assert said(agent.call("recall", question="tabs or spaces?")) == "Nothing is known about this."
        learned = agent.ask("learn", statement=TABS, type="preference", session_id=session)
        assert (learned["outcome"], learned["memory"]["status"]) == ("CREATED", "active")
        memory = learned["memory"]["id"]
        recalled = agent.call("recall", question="tabs or spaces in the billing service?", session_id=session)
        assert data(recalled)["memories"][0]["id"] == memory
        assert TABS in said(recalled)
        assert "not orders" in said(recalled)
        assert agent.ask("feedback", id=memory, signal="positive", session_id=session)["positive"] == 1
        ended = agent.ask("session_end", session_id=session, summary="The formatter is set up.")
        assert ended["summary"] == "The formatter is set up."
        second = agent.ask("session_start", task="format the billing service")
        assert [item["id"] for item in second["directives"]] == [memory]
        assert TABS in second["text"]
    (stored,) = kept(tmp_path)
    assert stored.feedback.positive == 1
    assert stored.activation.frequency == 1


def test_what_is_learned_is_the_agents_word_and_so_are_its_decisions(agent: Talk) -> None:
    memory = agent.ask("learn", statement="The puffin database is restored from production every Monday night")[
        "memory"
    ]
    assert memory["source"] == "agent"
    agent.ask("forget", id=memory["id"], reason="moved to Sunday")
    with opened(agent.store) as mem:
        history = mem.history(memory["id"])
    assert [image.actor for image in history] == ["agent", "agent"]
    assert history[-1].reason == "moved to Sunday"


def test_a_session_start_stays_inside_its_budget(agent: Talk) -> None:
    agent.ask(
        "learn", statement="Kangaroo reports are rendered in landscape because their tables have nineteen columns"
    )
    prepared = agent.ask("session_start", task="render the kangaroo reports", budget=120)
    assert "landscape" in prepared["text"]
    assert 0 < prepared["tokens"] <= 120


def test_a_forgotten_memory_answers_no_longer(agent: Talk) -> None:
    learned = agent.ask(
        "learn", statement="The walrus importer reads its mapping from a spreadsheet kept by the finance team"
    )
    forgotten = agent.call("forget", id=learned["memory"]["id"])
    assert data(forgotten)["memory"]["status"] == "retired"
    assert "engram undo" in said(forgotten)
    found = agent.ask("recall", question="Where does the walrus importer read its mapping?")
    assert learned["memory"]["id"] not in [memory["id"] for memory in found["memories"]]


def test_a_duplicate_and_a_contradiction_are_answers(agent: Talk) -> None:
    first = agent.ask("learn", statement="The otter gateway listens on port 8080 in every environment we run")
    again = agent.call("learn", statement="The otter gateway listens on port 8080 in every environment we run")
    assert data(again)["outcome"] == "DUPLICATE"
    assert data(again)["memory"]["id"] == first["memory"]["id"]
    other = agent.call("learn", statement="The otter gateway listens on port 9090 in every environment we run")
    assert data(other)["outcome"] == "CONTRADICTION"
    assert data(other)["other"]["id"] == first["memory"]["id"]
    assert "engram review" in said(other)


def test_a_secret_is_refused_and_not_repeated(agent: Talk) -> None:
    secret = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    refused = agent.call("learn", statement=f"The deploy token of the lemur service is {secret}, rotated every month")
    assert data(refused)["outcome"] == "REJECTED"
    assert data(refused)["memory"] is None
    assert secret not in said(refused)


def test_what_a_person_must_decide_waits(agent: Talk) -> None:
    answer = agent.call("learn", statement="The customer Ibex Limited pays its invoices by direct debit", type="fiscal")
    assert data(answer)["outcome"] == "PENDING"
    assert "until a person approves it" in said(answer)


def test_ending_a_session_twice_changes_nothing(agent: Talk) -> None:
    session = agent.ask("session_start", task="count the marmots")["session_id"]
    first = agent.ask("session_end", session_id=session, summary="counted")
    assert agent.ask("session_end", session_id=session, summary="counted again") == first


def test_here_is_the_project_the_memory_was_opened_in(tmp_path: Path) -> None:
    project = tmp_path / "gazelle"
    project.mkdir()
    subprocess.run(["git", "init", "--quiet", str(project)], check=True, timeout=120)
    with Engram.open(ephemeral=True, directory=project) as mem, talking_inside(mem) as agent:
        statement = "Migrations of this project are written by hand and reviewed by two people before they run"
        learned = agent.ask("learn", statement=statement, scope="here")
        assert learned["memory"]["scope"] == "project:gazelle"
        seen_by_default = agent.ask("recall", question="how are migrations written?")
        assert [memory["id"] for memory in seen_by_default["memories"]] == [learned["memory"]["id"]]
        assert agent.ask("recall", question="how are migrations written?", scope="global")["memories"] == []


@pytest.mark.parametrize(
    ("herd", "tags"),
    [("eastern", ["zebra", "stripes"]), ("western", '["zebra", "stripes"]'), ("northern", "zebra, stripes")],
)
def test_a_list_may_come_as_its_json_or_as_words(agent: Talk, herd: str, tags: object) -> None:
    statement = f"The {herd} savanna exporter writes parquet partitioned by its own calendar"
    learned = agent.ask("learn", statement=statement, tags=tags)
    with opened(agent.store) as mem:
        assert mem.get(learned["memory"]["id"]).tags == ("zebra", "stripes")


def test_a_close_memory_is_possible_and_not_among_those_that_answer(agent: Talk) -> None:
    agent.ask("learn", statement="Anna likes tea and biscuits", scope="global", type="preference")
    found = agent.ask("recall", question="Where does Anna live?")
    assert (found["memories"], found["text"].splitlines()[0]) == ([], "Possibly related:")
    assert found["possible"][0]["statement"] == "Anna likes tea and biscuits"
    text = said(agent.call("recall", question="Where does Anna live?"))
    assert text.splitlines()[1] == "Possibly related:"
    known = agent.ask("recall", question="What does Anna like?")
    assert known["memories"][0]["relevance"] > found["possible"][0]["relevance"] and known["possible"] == []


def test_the_least_relevance_can_be_given(agent: Talk) -> None:
    agent.ask("learn", statement="Anna likes tea and biscuits", scope="global", type="preference")
    question = "What does Anna like?"
    assert "biscuits" in agent.ask("recall", question=question)["text"]
    found = agent.ask("recall", question=question, min_relevance=1)["text"]
    assert "biscuits" not in found.partition("Possibly related:")[0]
    for wrong in (2, True):
        assert "min_relevance" in agent.refusal("recall", question=question, min_relevance=wrong)


def test_a_whole_number_may_be_written_with_a_point(agent: Talk) -> None:
    for code in ("amber", "cobalt"):
        agent.ask("learn", statement=f"The ibex importer writes its {code} files into a folder of their own")
    assert (
        len(agent.ask("recall", question="Where does the ibex importer write its files?", limit=1.0)["memories"]) == 1
    )
