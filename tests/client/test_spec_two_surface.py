"""The calls that spec 2's users program against, under its names."""

from collections.abc import Callable
from typing import Any

import pytest

from engram import Engram
from engram.client.arguments import owner_scope
from engram.model.errors import InvalidInput, ModelUnavailable, NotFound
from engram.recall.recaller import UNKNOWN, compose_cited_answer
from engram.rules.scopes import wider_scopes
from tests.client.conftest import Clock
from tests.tables import table

BERLIN, LISBON = "The office is in Berlin", "The office is in Lisbon"


def moved(mem: Engram, clock: Clock) -> tuple[str, str]:
    old = mem.add(BERLIN, type="fact", name="office")
    clock.forward(days=1)
    return old.id, mem.revise(old.id, statement=LISBON, actor="human", reason="they moved").id


# -- owners


@table(
    ("agent", "user", "scope"),
    [
        ("bot", None, "agent:bot"),
        ("bot", "ana", "agent:bot/ana"),
        (None, "ana", "user:ana"),
        ("a/b", "ana@example.com", "agent:a%2Fb/ana@example.com"),
        ("50%2F", None, "agent:50%252F"),
    ],
)
def test_an_owner_has_a_scope(agent: str | None, user: str | None, scope: str) -> None:
    assert owner_scope(agent, user) == scope


NAMES_NOBODY = [
    (None, None),
    ("", None),
    (None, ""),
    ("bot", ""),
    ("", "ana"),
    ("..", None),
    ("bot", " ana"),
    (3, None),
]


@table(("agent", "user"), [*NAMES_NOBODY, ("bot\n", None), ("bot", False)])
def test_a_name_that_is_none_is_refused(agent: Any, user: Any) -> None:
    with pytest.raises(InvalidInput):
        owner_scope(agent, user)


def test_users_of_one_agent_see_what_is_the_agents_and_not_each_others() -> None:
    assert wider_scopes([owner_scope("bot", "ana")]) == ("agent:bot/ana", "agent:bot", "global")


def test_what_an_owner_says_is_found_by_that_owner_alone(mem: Engram) -> None:
    ana: dict[str, Any] = {"agent_id": "bot", "user_id": "ana"}
    ben: dict[str, Any] = {"agent_id": "bot", "user_id": "ben"}
    mem.add(content="Ana's editor is vim", **ana)
    mem.learn("Ben's editor is emacs", **ben)
    mem.add_batch([{"content": "The bot answers in English", "agent_id": "bot"}])

    def told(**owner: Any) -> set[str]:
        return {hit.text for hit in mem.recall("the editor and the bot's language", min_relevance=0, **owner).hits}

    assert told(**ana) == {"Ana's editor is vim", "The bot answers in English"}
    assert told(**ben) == {"Ben's editor is emacs", "The bot answers in English"}
    assert [hit.text for hit in mem.search("editor", **ana)] == ["Ana's editor is vim"]
    assert [m.scope for m in mem.get_memories(**ben)] == [mem.scope_for("bot", "ben")]
    assert [m.statement for m in mem.get_history(**ana)] == ["Ana's editor is vim"]
    assert "vim" in mem.get_context_block("editor", **ana)
    assert "emacs" not in mem.inject("open the editor", **ana).text
    assert mem.start_task("Ship it", **ana).scope == "agent:bot/ana"
    assert mem.session("editor", **ana).session.scopes[0] == "agent:bot/ana"


def test_a_critical_fact_of_an_owner_is_recalled_for_that_owner(mem: Engram) -> None:
    mem.add("Ana is allergic to peanuts", agent_id="bot", user_id="ana")
    assert [m.statement for m in mem.recall_critical(agent_id="bot", user_id="ana")] == ["Ana is allergic to peanuts"]
    assert mem.recall_critical(agent_id="bot", user_id="ben") == []


def test_a_conversation_belongs_to_its_owner(mem: Engram) -> None:
    made = mem.add_conversation("I prefer tea over coffee.", agent_id="bot", user_id="ana")
    assert {memory.scope for memory in made} == {"agent:bot/ana"}


# -- purge


def test_purging_an_owner_destroys_all_that_was_theirs_and_nothing_else(
    mem: Engram, everything: Callable[[], str]
) -> None:
    mem.add("Zanzibar is where Ana was born", agent_id="bot", user_id="ana")
    kept = mem.add("Quito is where Ben was born", agent_id="bot", user_id="ben")
    mem.add_conversation("My landlord is called Okonkwo.", agent_id="bot", user_id="ana")
    task = mem.start_task("Book the ferry to Pemba", agent_id="bot", user_id="ana")
    mem.record_turn(task.id, "Which pier does it leave from?", "From Malindi")
    with mem.session("Plan Stonetown", agent_id="bot", user_id="ana") as session:
        session.observe("user", "We start at Forodhani")
    purged = mem.purge(agent_id="bot", user_id="ana")
    assert purged.remaining == ()
    left = everything()
    for word in ("Zanzibar", "Okonkwo", "Pemba", "pier", "Malindi", "Stonetown", "Forodhani"):
        assert word not in left, word
    assert [m.id for m in mem.list(status="any")] == [kept.id]
    assert mem.get_task(task.id).status == "deleted"


@pytest.mark.parametrize("owner", [{"agent_id": "bot", "user_id": ""}, {"agent_id": "", "user_id": ""}])
def test_an_empty_id_never_means_everyone(mem: Engram, owner: dict[str, Any]) -> None:
    kept = mem.add("Ana drinks tea", agent_id="bot", user_id="ana")
    calls: list[Callable[[], object]] = [
        lambda: mem.purge(**owner),
        lambda: mem.add("Tea is served at five", **owner),
        lambda: mem.learn("Tea is served at five", **owner),
        lambda: mem.remember("Tea is served at five", **owner),
        lambda: mem.add_batch([{"statement": "Tea is served at five", **owner}]),
        lambda: mem.add_conversation("I drink tea at five.", **owner),
        lambda: mem.get_memories(**owner),
        lambda: mem.get_history(**owner),
        lambda: mem.recall_critical(**owner),
        lambda: mem.inject("tea", **owner),
        lambda: mem.session("tea", **owner),
        lambda: mem.start_task("Make tea", **owner),
        lambda: mem.scope_for(**owner),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="_id '' must be text, not empty"):
            call()
    assert [m.id for m in mem.list(status="any")] == [kept.id]


def test_purging_an_agent_reaches_its_users(mem: Engram) -> None:
    mem.add("Ana drinks tea", agent_id="bot", user_id="ana")
    mem.add("The bot is polite", agent_id="bot")
    other = mem.add("The other bot is not", agent_id="bot-2")
    mem.purge(agent_id="bot")
    assert [m.id for m in mem.list(status="any")] == [other.id]


def test_checkpoints_of_a_purged_scope_lose_their_words(mem: Engram, everything: Callable[[], str]) -> None:
    task = mem.start_task("Ship it", scope="project:acme").id
    point = mem.create_checkpoint(
        task, "Half of the ballast is shipped", pending_steps=["Weigh the capstan"], decisions=["Sail by Gibraltar"],
        data={"captain": "Okonkwo"},
    )  # fmt: skip
    mem.create_checkpoint(task, "The rudder is mended")
    assert mem.purge("project:acme").remaining == ()
    left = everything()
    for word in ("ballast", "capstan", "Gibraltar", "Okonkwo", "rudder"):
        assert word not in left, word
    assert [(p.number, p.summary) for p in mem.tasks.checkpoints(task)] == [(2, "purged"), (1, "purged")]
    assert mem.tasks.checkpoints(task)[1].id == point.id


def test_a_conversation_of_which_nothing_was_kept_goes_with_the_scope_above(
    mem: Engram, everything: Callable[[], str]
) -> None:
    made = mem.add_conversation("What do you make of Quetzaltenango?", agent_id="bot", user_id="ana")
    assert list(made) == []
    kept = mem.add_conversation("What do you make of Antananarivo?", agent_id="bot-2", user_id="ana")
    assert mem.purge(agent_id="bot").remaining == ()
    assert "Quetzaltenango" not in everything()
    assert mem.store.event(kept.events[0]).content.endswith("Antananarivo?")  # type: ignore[union-attr]


def test_another_user_who_says_the_same_keeps_it(mem: Engram) -> None:
    mem.add_conversation("I prefer oolong tea.", agent_id="bot", user_id="ana")
    ben = mem.add_conversation("I prefer oolong tea.", agent_id="bot", user_id="ben")
    purged = mem.purge(agent_id="bot", user_id="ana")
    assert [m.id for m in mem.list(status="any")] == [m.id for m in ben]
    said = mem.store.event(ben.events[0])
    assert said is not None and said.content == "I prefer oolong tea."
    assert any("other owners" in line for line in purged.remaining)
    assert not any(ben[0].id in line for line in purged.remaining)


# -- lineage, history, health


def test_an_explanation_tells_state_versions_decisions_and_links(mem: Engram, clock: Clock) -> None:
    old, new = moved(mem, clock)
    lease = mem.add("The lease ends in May", type="fact").id
    mem.relate(lease, new, "supports", 0.8)
    told = mem.explain_memory(old)
    assert (told.memory.id, told.current.id) == (old, new)
    assert [version.id for version in told.versions] == [old, new]
    assert not told.state.found
    assert [image.op for image in told.decisions] == ["add", "revise"]
    assert f"{new} is current" in told.text and "version 1 of 2" in told.text
    head = mem.explain_memory("office")
    assert head.memory.id == new and head.state.found
    assert head.linked_from == ((lease, "supports"),)
    assert "revise by human: “they moved”" in head.text
    assert mem.explain_memory(lease).links[0].target == new
    with pytest.raises(NotFound):
        mem.explain_memory("nobody")


def test_get_memories_is_the_list(mem: Engram) -> None:
    mem.add_batch([{"statement": f"Fact number {n}", "metadata": {"n": n}} for n in range(3)])
    assert mem.get_memories(limit=2) == mem.list(limit=2)
    assert [m.metadata["n"] for m in mem.get_memories(metadata_filter={"n": 1})] == [1]


def test_superseded_versions_are_found_when_asked_for(mem: Engram, clock: Clock) -> None:
    old, new = moved(mem, clock)
    assert [hit.id for hit in mem.search("office")] == [new]
    assert {hit.id for hit in mem.search("office", include_superseded=True)} == {old, new}
    assert {hit.id for hit in mem.deep_search("office", include_superseded=True)} == {old, new}


def test_weaker_hits_are_left_out(mem: Engram) -> None:
    mem.add("The staging server is called nightshift")
    mem.add("The server room is cold")
    question = "What is the staging server called?"
    best, second = mem.search(question)
    between = (best.score + second.score) / 2
    assert [hit.id for hit in mem.search(question, min_score=between)] == [best.id]
    assert mem.search(question, min_score=2 * best.score) == []


def test_health_is_the_doctors_word_and_a_text_embedded(mem: Engram) -> None:
    found = mem.health_check()
    assert found.ok and found.findings[-1].code == "embedding"
    assert "256 dimensions" in found["embedding"].message
    assert mem.health_check(skip_embedding_test=True) == mem.doctor()


def test_an_embedder_that_fails_is_not_healthy(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    from engram.model.errors import EmbedderError

    def failing(self: object, texts: object) -> None:
        raise EmbedderError("the provider answered 500")

    monkeypatch.setattr(type(mem.store), "embed", failing)
    found = mem.health_check()
    assert not found.ok
    assert found["embedding"].message == "the provider answered 500"


@pytest.mark.parametrize(("boost", "expected"), [(0.1, 0.8), (0.25, 0.95), (1.0, 1.0)])
def test_a_boost_is_added_to_the_strength(mem: Engram, boost: float, expected: float) -> None:
    memory = mem.add("Use tabs")
    assert mem.reinforce(memory.id, boost=boost).activation.retrieval_strength == pytest.approx(expected, abs=1e-3)


def test_a_relation_is_said_in_one_line_and_followed_by_its_type(mem: Engram) -> None:
    a, b, c = (m.id for m in mem.add_batch([{"statement": text} for text in ("One", "Two", "Three")]))
    link = mem.relate(a, b, "supports", 0.8, {"by": "Ann"}).associations[0]
    assert (link.type, link.weight, link.extra) == ("supports", 0.8, {"metadata": {"by": "Ann"}})
    mem.relate(a, c, "blocks")
    assert [one.memory.id for one in mem.traverse(a, relation_types=["supports"])] == [b]
    assert [one.memory.id for one in mem.traverse_many([a], relation_types="blocks")] == [c]
    assert {one.memory.id for one in mem.traverse(a)} == {b, c}


# -- composed answers


def test_an_answer_is_composed_of_the_memories_own_words_with_their_ids(mem: Engram, clock: Clock) -> None:
    old, new = moved(mem, clock)
    assert mem.recall("Where is the office?").answer == ""
    current = mem.recall("Where is the office?", compose_answer=True)
    assert current.answer == f"“{LISBON}” [{new}]"
    way = mem.recall("How has the office changed over time?", compose_answer=True)
    assert way.intent == "lineage"
    assert way.answer == f"“{BERLIN}” (superseded) [{old}], then “{LISBON}” [{new}]"


def test_where_nothing_is_known_no_answer_is_made_up(mem: Engram) -> None:
    mem.add("Bread is baked on Fridays")
    found = mem.recall("Who won the chess tournament in Reykjavik?", compose_answer=True)
    assert found.answer == ""
    assert UNKNOWN in found.warnings


def test_a_models_answer_cites_what_was_found_and_nothing_else(mem: Engram, clock: Clock) -> None:
    _, new = moved(mem, clock)
    found = mem.recall("Where is the office?")

    def ask(question: str, known: str) -> tuple[str, list[str]]:
        assert question == "Where is the office?" and LISBON in known
        return "It is in Lisbon.", [f"[{new}]", "ENG-2020-0101-001"]

    assert compose_cited_answer(found, ask) == (f"It is in Lisbon. [{new}]", "")


def test_a_model_that_fails_or_names_no_source_costs_its_words_only(mem: Engram, clock: Clock) -> None:
    moved(mem, clock)
    found = mem.recall("Where is the office?")

    def away(question: str, known: str) -> tuple[str, list[str]]:
        raise ModelUnavailable("it cannot be reached")

    for ask, said in ((away, "cannot be reached"), (lambda *_: ("In Rome.", ["ENG-1"]), "named no source")):
        answer, warning = compose_cited_answer(found, ask)
        assert answer == compose_cited_answer(found)[0]
        assert said in warning


def test_a_configured_model_words_the_answer(mem: Engram, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    _, new = moved(mem, clock)
    mem.recall("Where is the office?")

    class Small:
        def ask(self, task: str, schema: Callable[..., Any], values: dict[str, str]) -> Any:
            assert task == "answer" and values["question"] == "Where is the office?"
            return schema(answer=f"It is\nin {values['known'].split()[-1].rstrip('”')}.", sources=[new])

    monkeypatch.setitem(vars(mem), "model", Small())
    assert mem.recall("Where is the office?", compose_answer=True).answer == f"It is in Lisbon. [{new}]"
