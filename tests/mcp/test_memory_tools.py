"""The tools that keep and show memories: remember, update, show, list, timeline, prepare, and recall with sources."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.mcp.tools import NO_SUCH_SESSION
from tests.mcp.talking import Talk, data, said, talking, talking_inside
from tests.tables import table


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    """An empty store, opened outside of any repository."""
    with Engram.open(ephemeral=True, directory=tmp_path) as mem:
        yield mem


@pytest.fixture
def inside(mem: Engram) -> Iterator[Talk]:
    """A conversation on that store."""
    with talking_inside(mem) as agent:
        yield agent


def test_what_is_remembered_is_stamped_and_active(mem: Engram, inside: Talk) -> None:
    answer = inside.ask("remember", fact="I prefer pnpm over npm for every new repository")
    assert (answer["outcome"], answer["memory"]["source"]) == ("CREATED", "tool:remember")
    (memory,) = mem.list()
    assert (memory.type, memory.confidence, memory.learned_by, memory.decay_days) == (
        "preference",
        0.6,
        "remember",
        180,
    )


@pytest.mark.parametrize("kind", ["identity", "fiscal", "people", "constraint", "location", "health"])
def test_a_kind_of_tier_3_waits(mem: Engram, inside: Talk, kind: str) -> None:
    assert inside.ask("remember", fact=f"The {kind} of the heron is a long story", kind=kind)["outcome"] == "PENDING"
    assert mem.list() == []


def test_an_unknown_kind_is_refused_with_the_known_ones(inside: Talk) -> None:
    assert "tooling" in inside.refusal("remember", fact="x", kind="hunch")


def test_nothing_is_remembered_while_engram_is_paused(mem: Engram, inside: Talk) -> None:
    mem.upkeep.pause()
    answer = inside.ask("remember", fact="I prefer pnpm over npm")
    assert (answer["outcome"], answer["gate"]) == ("REJECTED", "paused")
    assert mem.list(status="any") == []


def test_a_lesson_and_a_fact_are_learned_in_their_forms(mem: Engram, inside: Talk) -> None:
    lesson = {"behavior": "slept in tests", "impact": "they were flaky", "action": "wait on events instead"}
    inside.ask("learn", situation="writing asynchronous tests", **lesson)
    fact = {"subject": "the heron service", "predicate": "answers on", "object": "port 4317"}
    inside.ask("learn", situation="calling the heron service", **fact)
    stored = {memory.type: memory for memory in mem.list()}
    assert (dict(stored["feedback"].form), stored["feedback"].situation) == (lesson, "writing asynchronous tests")
    assert dict(stored["fact"].form) == fact
    assert "4317" in stored["fact"].statement


def test_a_memory_is_changed_in_place_and_nothing_else_of_it(mem: Engram, inside: Talk) -> None:
    memory = mem.add("The kestrel report is due on Fridays", scope="global", source="agent", tags=["report"])
    changed = inside.ask("update", id=memory.name, statement="The kestrel report is due on Mondays", reason="moved")
    assert changed["memory"]["statement"].endswith("Mondays")
    assert mem.get(memory.id).tags == ("report",)
    last = mem.history(memory.id)[-1]
    assert (last.actor, last.reason) == ("agent", "moved")


def test_a_part_of_a_form_is_changed_alone(mem: Engram, inside: Talk) -> None:
    form = {"subject": "the heron service", "predicate": "answers on", "object": "port 4317"}
    memory = mem.add(form=form, type="fact", scope="global", source="agent")
    inside.ask("update", id=memory.id, object="port 4318")
    assert dict(mem.get(memory.id).form) == {**form, "object": "port 4318"}
    assert "4318" in mem.get(memory.id).statement


def test_a_situation_in_hindsight_is_warned_of_when_it_is_changed(mem: Engram, inside: Talk) -> None:
    form = {"subject": "the heron service", "predicate": "answers on", "object": "port 4317"}
    memory = mem.add(form=form, type="fact", situation="calling the heron service", scope="global", source="agent")
    changed = inside.ask("update", id=memory.id, situation="after the deploy to staging failed")
    assert ["“deploying to staging”" in warning for warning in changed["warnings"]] == [True]
    assert inside.ask("update", id=memory.id, object="port 4318")["warnings"] == []


@pytest.mark.parametrize("changes", [{"type": "feedback"}, {"statement": "The heron service answers on port 4318"}])
def test_no_change_takes_the_parts_from_a_form(mem: Engram, inside: Talk, changes: dict[str, str]) -> None:
    form = {"subject": "the heron service", "predicate": "answers on", "object": "port 4317"}
    memory = mem.add(form=form, type="fact", scope="global", source="agent")
    assert "subject, predicate, object" in inside.refusal("update", id=memory.id, **changes)


def test_an_agent_may_not_change_what_a_person_said(mem: Engram, inside: Talk) -> None:
    memory = mem.remember("I prefer pnpm over npm").memory
    assert memory is not None
    assert "person" in inside.refusal("update", id=memory.id, statement="I prefer yarn over npm")


def test_a_memory_is_shown_with_its_versions_and_decisions(mem: Engram, inside: Talk) -> None:
    old = mem.add("The launch is in May", scope="global", situation="planning the launch")
    new = mem.revise(old.id, statement="The launch is in June")
    shown = inside.call("show", id=new.id)
    assert data(shown)["versions"] == [old.id, new.id]
    assert (data(shown)["current"], data(shown)["situation"]) == (new.id, "planning the launch")
    assert "version 2 of 2" in said(shown)


def test_memories_are_listed_newest_first_by_page(mem: Engram, inside: Talk) -> None:
    for number in range(3):
        mem.add(f"Fact number {number}", scope="global", tags=["even"] if number % 2 == 0 else [])
    first = inside.ask("list", limit=2)
    assert ([one["statement"][-1] for one in first["memories"]], first["more"]) == (["2", "1"], True)
    rest = inside.ask("list", limit=2, offset=2)
    assert ([one["statement"][-1] for one in rest["memories"]], rest["more"]) == (["0"], False)
    assert [one["statement"][-1] for one in inside.ask("list", tags=["even"])["memories"]] == ["2", "0"]


def test_what_waits_is_listed_on_request(mem: Engram, inside: Talk) -> None:
    mem.learn("The user's salary is 4000 euros.")
    assert inside.ask("list")["memories"] == []
    assert [one["status"] for one in inside.ask("list", status="candidate")["memories"]] == ["candidate"]


def test_another_projects_memories_are_not_listed(mem: Engram, inside: Talk) -> None:
    mem.add("The heron service answers on port 4317", scope="project:elsewhere")
    assert inside.ask("list")["memories"] == []
    assert len(inside.ask("list", scope="project:elsewhere")["memories"]) == 1


@table(
    ("tool", "arguments"),
    [
        ("remember", {"fact": "The tapir prefers its reports in the morning", "kind": "tooling"}),
        ("learn", {"statement": "The tapir importer reads its mapping from a spreadsheet in the attic"}),
        ("recall", {"question": "what does the tapir prefer?"}),
        ("feedback", {"signal": "positive"}),
    ],
)
@pytest.mark.parametrize("session", ["no-such-session", "../../etc"])
def test_a_session_that_was_never_started_is_ignored_and_the_answer_says_so(
    mem: Engram, inside: Talk, tool: str, arguments: dict[str, str], session: str
) -> None:
    known = mem.add("Tapirs prefer reports in the morning")
    given = {"id": known.id, **arguments} if tool == "feedback" else arguments
    answer = inside.call(tool, session_id=session, **given)
    assert data(answer)["warnings"] == [NO_SUCH_SESSION]
    assert f"Note: {NO_SUCH_SESSION}" in said(answer)
    assert session not in {memory.session for memory in mem.list()}
    assert session not in {use.session for use in mem.store.uses([known.id])}
    started = inside.ask("session_start", task="feed the tapir")["session_id"]
    assert inside.ask(tool, session_id=started, **given)["warnings"] == []


def test_a_timeline_tells_facts_and_sessions_in_order(inside: Talk) -> None:
    session = inside.ask("session_start", task="plan the launch")["session_id"]
    learned = inside.ask(
        "learn", statement="The launch of the airship is planned for the fifth of May", session_id=session
    )
    inside.ask("session_end", session_id=session, summary="The launch is planned.")
    timeline = inside.call("timeline")
    ids = [entry["id"] for entry in data(timeline)["entries"]]
    assert ids == [session, learned["memory"]["id"], session]
    assert "“The launch is planned.”" in said(timeline)


def test_a_briefing_quotes_memories_and_the_projects_instructions(tmp_path: Path) -> None:
    project = tmp_path / "gazelle"
    subprocess.run(["git", "init", "--quiet", str(project)], check=True, timeout=120)
    (project / "CLAUDE.md").write_text(
        "# Migrations\n\nEvery migration of the ledger is reversible and tested twice.\n"
    )
    with talking(tmp_path, project) as agent:
        statement = "Migrations of the ledger are reviewed by two people before they run in production"
        agent.ask("learn", statement=statement)
        briefed = agent.call("prepare", task="Write a migration of the ledger")
        recalled = agent.call("recall", question="How are migrations of the ledger tested?", sources=True)
        plain = agent.ask("recall", question="How are migrations of the ledger tested?")
    for result in (briefed, recalled):
        assert statement in said(result) and "reversible and tested twice" in said(result)
        assert "CLAUDE.md" in said(result)
    assert {card["phase"] for card in data(briefed)["passages"]} == {"memories", "instructions"}
    assert "reversible" not in plain["text"]


def test_recall_without_a_question_and_without_sessions_is_no_error(agent: Talk) -> None:
    assert agent.ask("recall")["memories"] == []


def test_what_is_about_the_project_is_learned_for_it_and_the_answer_says_why(tmp_path: Path) -> None:
    project = tmp_path / "gazelle"
    subprocess.run(["git", "init", "--quiet", str(project)], check=True, timeout=120)
    with Engram.open(ephemeral=True, directory=project) as mem, talking_inside(mem) as agent:
        ours = agent.call(
            "learn", statement="Our migrations are written by hand and reviewed by two people before they run"
        )
        mine = agent.ask("remember", fact="I prefer pnpm over npm for every new repository")
        named = agent.ask("learn", statement="Our invoices are sent on the last Friday of every month", scope="global")
        replaced = agent.ask(
            "learn",
            statement="Our invoices are sent on the first Monday of a month",
            supersedes=[named["memory"]["id"]],
        )
    assert (data(ours)["memory"]["scope"], data(ours)["placed"]) == ("project:gazelle", "it says “our”")
    assert "Only project:gazelle sees it: it says “our”." in said(ours)
    assert (mine["memory"]["scope"], mine["placed"]) == ("global", "")
    assert (named["memory"]["scope"], named["placed"]) == ("global", "")
    assert replaced["memory"]["scope"] == "global"


def test_recall_without_a_question_says_where_there_are_no_sessions(
    inside: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert inside.ask("recall")["text"] == "No recent sessions of this project."


def test_recall_without_a_question_finds_what_the_start_of_a_session_shows(
    inside: Talk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "OPENCODE_DB", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    first = inside.ask("session_start", task="ship the importer")
    inside.ask("remember", fact="The importer of our project reads CSV files")
    inside.ask("session_end", session_id=first["session_id"], summary="The importer is shipped; its docs are missing.")
    started = inside.ask("session_start", task="write the docs of the importer")["text"]
    recalled = inside.ask("recall")["text"]
    for known in ("The importer is shipped", "reads CSV files"):
        assert known in started and known in recalled
    assert "Newest memories" in recalled and "Summaries of sessions" in recalled


CUES = ["psql: connection refused", "which port, and where"]


@table(
    ("tool", "words"),
    [
        ("learn", {"statement": "The staging database listens on 6543"}),
        ("remember", {"fact": "I prefer the herons over the storks"}),
    ],
)
def test_what_is_stored_with_cues_shows_them(mem: Engram, inside: Talk, tool: str, words: dict[str, str]) -> None:
    known = inside.ask(tool, cues=CUES, **words)["memory"]["id"]
    shown = inside.ask("show", id=known)
    assert shown["cues"] == list(mem.get(known).cues) == CUES
    assert f"cues: “{'; '.join(CUES)}”" in shown["text"]


def test_update_replaces_cues_and_an_empty_list_removes_them(mem: Engram, inside: Talk) -> None:
    memory = mem.add("The staging database listens on 6543", source="agent", cues=CUES)
    inside.ask("update", id=memory.id, cues=["timeout"])
    assert mem.get(memory.id).cues == ("timeout",)
    inside.ask("update", id=memory.id, cues=[])
    assert mem.get(memory.id).cues == ()


def test_too_many_cues_are_refused_with_the_maximum(inside: Talk) -> None:
    cues = [f"cue {number}" for number in range(9)]
    assert "maximum 8" in inside.refusal("learn", statement="The heron stands still", cues=cues)


def test_no_text_for_a_prompt_has_cues(mem: Engram, inside: Talk) -> None:
    mem.add("The staging database listens on 6543", cues=CUES, type="convention")
    answers = [
        inside.ask("prepare", task="psql: connection refused on staging"),
        inside.ask("recall", question="psql: connection refused"),
        inside.ask("session_start", task="psql: connection refused on staging"),
    ]
    assert "6543" in str(answers[0]) and "6543" in str(answers[1])
    assert [answer for answer in answers if CUES[1] in str(answer)] == []


def test_nothing_is_known_only_if_every_part_is_empty(inside: Talk) -> None:
    asked = {"question": "What is the staging server called?"}
    assert inside.ask("recall", **asked)["text"] == "Nothing is known about this."
    inside.ask("learn", statement="Never restart the staging server without asking the user", type="constraint")
    for sources in (False, True):
        found = inside.ask("recall", **asked, sources=sources)
        assert found["memories"] == [] and "Nothing is known" not in found["text"]
        assert "Unconfirmed, waiting for review" in found["text"]
