"""What a hostile tester found refused or shown without need: an agent's own rules, spellings of a person, rejected summaries."""

import pytest

from engram import Engram
from engram.gates.trust import is_human
from engram.model.errors import Refused
from engram.model.memory import Memory
from engram.rules.sources import Rank, rank_of
from tests.tables import table

NEVER = "Never commit to main directly"
REWORDED = "Never commit to main directly; open a pull request"


def learned(mem: Engram, statement: str, **given: str) -> Memory:
    """What an agent learned."""
    memory = mem.learn(statement, source="agent", **given).memory  # type: ignore[arg-type]
    assert memory is not None
    return memory


def test_an_agent_rewords_its_own_rule_whose_type_was_inferred() -> None:
    with Engram.open(ephemeral=True) as mem:
        rule = learned(mem, NEVER)
        assert (rule.type, rule.status) == ("constraint", "active")
        assert mem.update(rule.id, statement=REWORDED, actor="agent").statement == REWORDED
        assert mem.revise(rule.id, statement=f"{REWORDED} first", actor="agent").status == "active"


def test_an_agent_does_not_make_its_rule_about_somebodys_health() -> None:
    with Engram.open(ephemeral=True) as mem:
        rule = learned(mem, NEVER)
        with pytest.raises(Refused, match="health"):
            mem.update(rule.id, statement="Never offer Ana sugar, she has type 1 diabetes", actor="agent")


def test_an_agent_does_not_give_its_memory_a_type_of_tier_3() -> None:
    with Engram.open(ephemeral=True) as mem:
        fact = learned(mem, "The build takes four minutes on the old runner")
        with pytest.raises(Refused, match="constraint"):
            mem.update(fact.id, type="constraint", actor="agent")


def test_an_agent_does_not_reword_a_rule_that_a_person_approved() -> None:
    with Engram.open(ephemeral=True) as mem:
        rule = learned(mem, NEVER, type="constraint")
        mem.review.approve(rule.id, actor="human")
        with pytest.raises(Refused):
            mem.update(rule.id, statement=REWORDED, actor="agent")


@table("source", ["human", "human:ana", "Human", " human ", "HUMAN:ana", "hand", "", "agent", "manual", "web:x"])
def test_who_is_a_person_is_asked_in_one_place(source: str) -> None:
    assert is_human(source) == (rank_of(source) == Rank.PERSON)


REJECTED = "The lobby plant is a ficus"


@pytest.mark.parametrize("summary", [REJECTED, f"We watered everything. {REJECTED}."])
def test_a_summary_that_repeats_a_rejected_text_is_not_injected(summary: str) -> None:
    with Engram.open(ephemeral=True) as mem:
        first = mem.session("Water the lobby plant")
        first.end(summary)
        assert "ficus" in mem.session("Water the lobby plant").injection.text
        waiting = mem.learn(REJECTED, source="web:plants.example").memory
        assert waiting is not None
        mem.review.reject(waiting.id, actor="human")
        assert "ficus" not in mem.session("Water the lobby plant").injection.text
        assert "ficus" not in mem.get_context_block("Which plant is in the lobby?", session=first.id)
        finding = next(one for one in mem.doctor(seconds=0).findings if one.code == "summaries")
        assert f"{first.id} repeats what was rejected ({waiting.id})" in finding.message


def test_a_statement_that_ends_without_a_full_stop_is_read_as_if_another_followed() -> None:
    """Scanned alone, "up the lock-up" at the very end looked like a password."""
    with Engram.open(ephemeral=True) as mem:
        assert mem.add("gear's all in my brother's garage, gave up the lock-up").status == "active"
