"""Each use counts once, whatever crashes in between."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from engram.model.memory import Memory
from engram.model.records import Use
from engram.rules.lifecycle import fold_uses

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
MEMORY = Memory(id="ENG-2026-0301-001", statement="x", created=NOW)


def use(position: int, session: str = "", kind: str = "recalled", signal: str = "", day: int = 0) -> Use:
    return Use(kind, (MEMORY.id,), NOW + timedelta(days=day, seconds=position), session, signal, position)


def test_a_session_reinforces_once() -> None:
    after = fold_uses(MEMORY, [use(1, "s1"), use(2, "s1", "injected"), use(3, "s2")])
    assert after.activation.frequency == 2


def test_without_a_session_a_day_reinforces_once() -> None:
    after = fold_uses(MEMORY, [use(1), use(2), use(3, day=1)])
    assert after.activation.frequency == 2


def test_a_use_in_a_session_already_folded_does_not_reinforce_again() -> None:
    early, late = use(1, "s1"), use(2, "s1")
    once = fold_uses(MEMORY, [early])
    assert fold_uses(once, [early, late]).activation.frequency == 1


def test_every_rating_counts() -> None:
    after = fold_uses(MEMORY, [use(1, "s", "rated", "positive"), use(2, "s", "rated", "positive")])
    assert after.feedback.positive == 2


USES = st.lists(
    st.builds(
        use,
        st.integers(0, 10_000),
        st.sampled_from(["", "a", "b"]),
        st.sampled_from(["recalled", "injected", "derived"]),
        day=st.integers(0, 3),
    )
    | st.builds(use, st.integers(0, 10_000), st.just("a"), st.just("rated"), st.sampled_from(["positive", "negative"])),
    unique_by=lambda u: u.position,
    max_size=20,
)


@given(USES, st.integers(0, 20))
def test_folding_in_two_steps_is_folding_in_one_and_folding_again_changes_nothing(uses: list[Use], cut: int) -> None:
    ordered = sorted(uses, key=lambda u: u.position)
    once = fold_uses(MEMORY, ordered)
    assert fold_uses(fold_uses(MEMORY, ordered[:cut]), ordered) == once
    assert fold_uses(once, ordered) == once
