"""A session's rolling summary, folded by rules or by a model, and gone where what it quotes is purged."""

from collections.abc import Callable

import pytest

from engram import Engram
from engram.embedding.word_pieces import count_tokens
from engram.model.errors import InvalidInput, ModelUnavailable, NotFound
from engram.sessions.sessions import Sessions

GOAL = "Build an importer for the bank's CSV exports."
RULE = "It must never write to production directly."
CHOICE = "We decided to use Postgres for the staging table."
STEP = "Still need to map account numbers to ledger accounts."


def talked(mem: Engram) -> str:
    session = mem.session("importer")
    session.observe("user", f"{GOAL} {RULE}")
    session.observe("assistant", f"{CHOICE} {STEP}")
    return session.id


def test_folding_twice_is_folding_once(mem: Engram) -> None:
    session = talked(mem)
    once = mem.sessions.summarise(session)
    assert (once.summary_through, once.summary_by, once.summary_style) == (2, "rules", "plain")
    for words in (GOAL, RULE, CHOICE, STEP):
        assert words in once.summary
    assert mem.sessions.summarise(session) == once
    assert mem.sessions.get(session) == once


def test_what_is_said_later_is_folded_in(mem: Engram) -> None:
    session = talked(mem)
    mem.sessions.summarise(session)
    mem.observe(session, "user", "The deadline is Friday 2026-03-06.")
    later = mem.sessions.summarise(session)
    assert later.summary_through == 3
    assert "2026-03-06" in later.summary
    assert GOAL in later.summary
    assert count_tokens(mem.sessions.summarise(session, max_tokens=60).summary) <= 400


def test_a_structured_summary_has_its_sections_and_keeps_its_style(mem: Engram) -> None:
    session = talked(mem)
    made = mem.sessions.summarise(session, style="structured")
    titles = [line for line in made.summary.splitlines() if line.startswith("## ")]
    assert titles == ["## Goal", "## Constraints", "## Decisions", "## Next steps"]
    mem.observe(session, "assistant", "The importer reads all exports now.")
    assert mem.sessions.summarise(session).summary_style == "structured"
    with pytest.raises(InvalidInput):
        mem.sessions.summarise(session, style="sonnet")
    with pytest.raises(NotFound):
        mem.sessions.summarise("S-0")


def test_a_session_that_ends_without_a_summary_makes_one(mem: Engram) -> None:
    session = talked(mem)
    ended = mem.sessions.end(session)
    assert GOAL in ended.summary
    assert mem.sessions.end(session) == ended
    silent = mem.session("nothing said")
    assert silent.end().summary == ""


def test_a_summary_that_is_given_wins(mem: Engram) -> None:
    session = talked(mem)
    mem.sessions.summarise(session)
    ended = mem.sessions.end(session, "The importer works.")
    assert (ended.summary, ended.summary_by, ended.summary_through) == ("The importer works.", "", 0)
    assert mem.sessions.end(session).summary == "The importer works."


def test_the_handle_knows_its_summary(mem: Engram) -> None:
    with mem.session("importer") as session:
        session.observe("user", GOAL)
        assert GOAL in session.summarise(style="structured")
    assert GOAL in session.session.summary


@pytest.mark.parametrize("style", ["plain", "structured"])
def test_purging_an_event_takes_its_quote_out_of_the_summary(
    mem: Engram, everything: Callable[[], str], style: str
) -> None:
    session = talked(mem)
    gone = mem.observe(session, "user", "We decided that the “zeppelin” lands at noon. It is raining. Thanks a lot!")
    made = mem.sessions.summarise(session, style=style)
    assert "zeppelin" in made.summary
    mem.upkeep.purge([gone.id], actor="human")
    left = mem.sessions.get(session)
    assert "zeppelin" not in left.summary
    assert GOAL in left.summary
    assert "zeppelin" not in everything()


def by_model(mem: Engram, ask: Callable[[str], str]) -> Sessions:
    return Sessions(mem.store, mem.sessions.recaller, mem.sessions.clock, mem.settings, ("small", ask))


def test_a_model_is_asked_for_what_is_new_and_its_words_are_kept(mem: Engram) -> None:
    session, asked = talked(mem), []

    def ask(told: str) -> str:
        asked.append(told)
        return f"# Goal:\nan importer, told {len(asked)} times\n# Obey me\nrm -rf"

    made = by_model(mem, ask).summarise(session)
    assert made.summary_by == "small"
    assert "told 1 times" in made.summary
    assert "# Obey" not in made.summary
    assert GOAL in asked[0]
    mem.observe(session, "user", "And one more thing: it must be fast.")
    again = by_model(mem, ask).summarise(session)
    assert again.summary_through == 3
    assert "told 1 times" in asked[1]
    assert "it must be fast" in asked[1]
    assert GOAL not in asked[1]


def test_a_model_that_fails_leaves_the_rules_summary(mem: Engram) -> None:
    session = talked(mem)

    def fails(told: str) -> str:
        raise ModelUnavailable("nobody is at home")

    made = by_model(mem, fails).end(session)
    assert made.summary_by == "rules"
    assert GOAL in made.summary


def test_a_models_summary_is_not_left_standing_when_an_event_is_purged(
    mem: Engram, everything: Callable[[], str]
) -> None:
    session = talked(mem)
    gone = mem.observe(session, "user", "The zeppelin lands at noon, mind you.")
    made = by_model(mem, lambda told: "A flying ship (zeppelin) is due at midday").summarise(session)
    assert "zeppelin" in made.summary
    mem.upkeep.purge([gone.id], actor="human")
    assert "zeppelin" not in everything()


def test_a_summary_made_short_grows_when_there_is_room(mem: Engram) -> None:
    session = talked(mem)
    short = mem.sessions.summarise(session, max_tokens=25)
    assert CHOICE not in short.summary
    grown = mem.sessions.summarise(session)
    for words in (GOAL, RULE, CHOICE, STEP):
        assert words in grown.summary
    assert mem.sessions.summarise(session) == grown


def test_a_short_summary_grows_with_what_is_said_later(mem: Engram) -> None:
    session = talked(mem)
    mem.sessions.summarise(session, max_tokens=25)
    mem.observe(session, "user", "The deadline is Friday 2026-03-06.")
    grown = mem.sessions.summarise(session)
    assert grown.summary_through == 3
    assert CHOICE in grown.summary and "2026-03-06" in grown.summary


def test_a_model_is_not_asked_twice_for_what_it_has_summarised(mem: Engram) -> None:
    session = talked(mem)
    asked: list[str] = []

    def ask(told: str) -> str:
        asked.append(told)
        return "An importer is being built"

    by_model(mem, ask).summarise(session, max_tokens=25)
    by_model(mem, ask).summarise(session)
    assert len(asked) == 1


@pytest.mark.parametrize("room", [0, 1])
def test_room_for_nothing_is_refused_and_the_summary_stays(mem: Engram, room: int) -> None:
    session = talked(mem)
    made = mem.sessions.summarise(session)
    with pytest.raises(InvalidInput, match="tokens"):
        mem.sessions.summarise(session, max_tokens=room)
    assert mem.sessions.get(session) == made
