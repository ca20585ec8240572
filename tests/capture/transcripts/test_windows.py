"""Windows of turns, with what explains them."""

from datetime import UTC, datetime, timedelta

from engram.agents.transcripts.session import Role, TranscriptTurn
from engram.capture.transcripts.windows import MAX_WINDOW_TURNS, windows

START = datetime(2026, 11, 2, 9, tzinfo=UTC)


def turn(number: int, content: str = "", role: Role = "user", days: int = 0) -> TranscriptTurn:
    return TranscriptTurn(
        role, content or f"turn {number}", START + timedelta(days=days, minutes=number), f"k{number}", number * 10
    )


def shapes(turns: list[TranscriptTurn], start: int = 0) -> list[tuple[list[str], list[str]]]:
    found = windows(turns, start, lambda one: one.at.date() if one.at else None)
    return [([one.turn.key for one in window.before], [one.turn.key for one in window.turns]) for window in found]


def test_a_window_is_full_after_some_turns_of_the_user() -> None:
    keys = [f"k{number}" for number in range(1, MAX_WINDOW_TURNS + 3)]
    assert shapes([turn(number) for number in range(1, MAX_WINDOW_TURNS + 3)]) == [
        ([], keys[:MAX_WINDOW_TURNS]),
        (keys[MAX_WINDOW_TURNS - 6 : MAX_WINDOW_TURNS], keys[MAX_WINDOW_TURNS:]),
    ]


def test_a_window_is_of_one_day() -> None:
    assert shapes([turn(1), turn(2, days=1)]) == [([], ["k1"]), (["k1"], ["k2"])]


def test_turns_that_were_harvested_before_only_explain() -> None:
    assert shapes([turn(1), turn(2), turn(3)], start=20) == [(["k1", "k2"], ["k3"])]


def test_only_the_assistants_last_words_before_a_turn_are_read() -> None:
    said = [turn(1), turn(2, role="assistant"), turn(3, role="assistant"), turn(4, role="tool"), turn(5)]
    assert shapes(said) == [([], ["k1", "k3", "k5"])]


def test_secrets_are_redacted_before_anything_else_reads_a_turn() -> None:
    (window,) = windows([turn(1, "the token is ghp_abcdefghijklmnopqrstuvwxyz0123456789")], 0, lambda one: 0)
    assert "ghp_" not in window.turns[0].turn.content + window.turns[0].words


def test_a_pasted_line_with_a_secret_is_still_known_to_be_a_tools() -> None:
    line = "always log in with the token ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    (window,) = windows([turn(1, line, role="tool"), turn(2, f"see:\n{line}")], 0, lambda one: 0)
    assert "log in" in window.turns[0].turn.content and window.turns[0].words.split() == ["see."]
