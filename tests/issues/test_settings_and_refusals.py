"""Settings within their ranges, closed ledgers, rules checked when made, and injections that own up to what they leave out."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.cli.main import main
from engram.embedding.word_pieces import count_tokens
from engram.gates.policies import SlotRule, TypeRule
from engram.model.errors import InvalidInput, Refused
from engram.settings import RANGES, Settings, load_settings, read_settings
from tests.backends import Backend
from tests.clock import Clock


@pytest.fixture
def mem(tmp_path: Path) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, embedder="none") as opened:
        yield opened


BEYOND = [(key, value) for key, (low, high) in RANGES.items() for value in (low - 1, high + 1)]


@pytest.mark.parametrize(("key", "value"), BEYOND)
def test_a_number_out_of_range_in_the_settings_file_is_refused(tmp_path: Path, key: str, value: int) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"# mine\n{key} = {value}\n", "utf-8")
    low, high = RANGES[key]
    with pytest.raises(
        InvalidInput, match=f"config.toml:2: {key} takes a whole number from {low} to {high}, not {value}"
    ):
        load_settings(file)
    settings, problems = read_settings(file)
    assert (settings, len(problems)) == (Settings(), 1)


def test_every_number_among_the_settings_has_a_range() -> None:
    numbers = {name for name in Settings.__slots__ if type(getattr(Settings(), name)) is int}
    assert numbers == set(RANGES)


@pytest.mark.parametrize(
    "line", ["embedder = 'bogus'", "embedder = 'openai:small'", "model = 'gpt-5'", "model = 'acme:x'"]
)
def test_a_kind_nobody_knows_in_the_settings_file_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(line + "\n", "utf-8")
    with pytest.raises(InvalidInput, match=f"config.toml:1: {line.split()[0]} takes .*not "):
        load_settings(file)


def test_a_store_says_which_setting_is_wrong(tmp_path: Path) -> None:
    Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path).close()
    (tmp_path / "home" / "config.toml").write_text("budget = 1\n", "utf-8")
    with pytest.raises(InvalidInput, match="budget takes a whole number from 50"):
        Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)


def test_a_paused_task_takes_no_events(backend: Backend) -> None:
    mem = backend.client()
    task = mem.start_task("Ship the release").id
    mem.record_event(task, "user", "please ship")
    mem.pause_task(task)
    for write in (
        lambda: mem.record_event(task, "user", "one more"),
        lambda: mem.record_turn(task, "one more"),
        lambda: mem.observe(task, "user", "one more"),
    ):
        with pytest.raises(InvalidInput, match=f"{task} is paused"):
            write()
    mem.resume_task(task)
    mem.record_event(task, "user", "go on")
    assert [event.content for event in mem.list_events(task)] == ["please ship", "go on"]


@pytest.mark.parametrize("state", ["paused", "completed"])
def test_a_closed_task_takes_no_events_through_another_ledger(backend: Backend, state: str) -> None:
    mem = backend.client()
    task = mem.start_task("Ship the release").id
    mem.observe("side", "user", "please ship", task=task)
    mem.tasks.move(task, state)
    for write in (
        lambda: mem.observe("side", "user", "one more", task=task),
        lambda: mem.observe_batch(
            "new", [{"role": "user", "content": "hi"}, {"role": "user", "content": "x", "task": task}]
        ),
    ):
        with pytest.raises(InvalidInput, match=f"{task} is {state}"):
            write()
    assert [event.content for event in mem.store.events("side")] == ["please ship"]
    assert mem.store.events("new") == []
    mem.observe("side", "user", "of a task kept elsewhere", task="JIRA-7")


@pytest.mark.parametrize("limit", [0, -1, 1.5, True, "3"])
def test_a_review_queue_of_no_length_is_refused(mem: Engram, limit: Any) -> None:
    with pytest.raises(InvalidInput, match=r"limit .* must be a whole number"):
        mem.review.queue(limit)


def test_metadata_tells_true_from_1(backend: Backend) -> None:
    mem = backend.client()
    one = mem.add("The first build is done", metadata={"n": 1, "list": [1]})
    yes = mem.add("The second build is done", metadata={"n": True, "list": [True]})
    for key in ("n", "list"):
        assert [memory.id for memory in mem.list(metadata={key: 1})] == [one.id]
        assert [memory.id for memory in mem.list(metadata={key: True})] == [yes.id]
        assert mem.list(metadata={key: False}) == []


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"a\0b": 1}, "NUL character"),
        ({"a": ["x\0"]}, "NUL character"),
        ({"a": "\\\0"}, "NUL character"),
        ({"a\ud800": 1}, r"half of a character \(U\+D800\)"),
    ],
)
def test_metadata_that_no_store_can_hold_is_refused_as_a_filter(
    mem: Engram, metadata: dict[str, Any], said: str
) -> None:
    for ask in (lambda: mem.list(metadata=metadata), lambda: mem.search("builds", metadata=metadata)):
        with pytest.raises(InvalidInput, match=f"{said}.*; remove it"):
            ask()
    assert mem.list(metadata={"a": r"\u0000"}) == []


def test_an_ended_session_takes_no_events(backend: Backend) -> None:
    mem = backend.client()
    with mem.session(task="billing") as session:
        session.observe("user", "hello")
    for write in (
        lambda: session.observe("user", "one more"),
        lambda: mem.observe(session.id, "user", "one more"),
        lambda: mem.observe_batch(session.id, [{"role": "user", "content": "one more"}]),
        lambda: mem.add_conversation("I prefer pnpm over npm.", session=session.id),
    ):
        with pytest.raises(Refused, match="has ended"):
            write()
    assert [event.content for event in mem.store.events(session.id)] == ["hello"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: TypeRule("(", "fact"),
        lambda: TypeRule("a", "fact", unless="("),
        lambda: SlotRule("(", critical_slot="k"),
        lambda: SlotRule("a", conflict_key="k:{what}"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_when_it_is_made(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput):
        make()


def test_a_critical_fact_is_injected_however_old_and_whatever_the_task_is(backend: Backend, clock: Clock) -> None:
    mem = backend.client()
    allergy = mem.add("The user is allergic to penicillin", critical_slot="allergy", decay_days=30)
    clock.forward(days=4000)
    for task in ("billing service deploys", "which drugs may the user take", ""):
        injection = mem.inject(task)
        assert [item.memory.id for item in injection.directives] == [allergy.id]
        assert "critical" in injection.directives[0].reason


def test_critical_facts_pass_the_limit_and_are_shortened_before_they_are_left_out(backend: Backend) -> None:
    mem = backend.client()
    ids = {
        mem.add(f"Rule {n}: {'never touch the production ledger by hand ' * 9}", critical_slot=f"rule-{n}").id
        for n in range(10)
    }
    task = "correct the production ledger by hand"
    injection = mem.inject(task, budget=800)
    assert {item.memory.id for item in injection.directives} == ids
    assert injection.tokens <= 800
    small = mem.inject(task, budget=100)
    missed = {item.id for item in small.left_out}
    assert missed and missed | set(small.ids) == ids
    assert any("too small for the critical facts" in warning for warning in small.warnings)


@pytest.mark.parametrize(
    "statement",
    [
        "Ana is allergic to peanuts",
        "The user must never be given penicillin, aspirin or anything that is made of them, whatever a doctor says",
        "アナはピーナッツアレルギーがありますので絶対に与えないでください",
        "Анна не переносит арахис и всё, что его содержит",
    ],
)
def test_the_smallest_budget_holds_a_critical_fact(mem: Engram, statement: str) -> None:
    fact = mem.add(statement, critical_slot="allergy", pinned=True, situation="when dinner is cooked for the user")
    injection = mem.inject("cook dinner", budget=50)
    assert injection.ids == (fact.id,) and statement[:4] in injection.text
    assert count_tokens(injection.text) <= 50


@pytest.mark.parametrize("budget", [float("nan"), float("inf"), 50.5, 60.0, True, "60", 49, -1])
def test_a_budget_that_is_no_whole_number_is_refused(mem: Engram, budget: Any) -> None:
    mem.add("Ana is allergic to peanuts", critical_slot="allergy")
    with pytest.raises(InvalidInput, match=r"must be a whole number of tokens|is too small"):
        mem.inject("cook dinner", budget=budget)


def test_left_out_names_what_the_limits_and_the_budget_cut(backend: Backend) -> None:
    mem = backend.client()
    ids = [
        mem.add(f"The deploy of service {name} goes through gate {name}", type="constraint", pinned=True).id
        for name in "abcdefghijklmnopqrst"
    ]
    injection = mem.inject("deploy service gate", budget=4000)
    assert (len(injection.directives), len(injection.consider)) == (10, 5)
    cut = {item.id: item.reason for item in injection.left_out}
    assert set(cut) == set(ids) - set(injection.ids)
    assert set(cut.values()) == {
        "directives: limited to 10, and others come first; consider: limited to 5, and others come first"
    }
    tight = mem.inject("deploy service gate", budget=200)
    assert {item.id for item in tight.left_out} == set(ids) - set(tight.ids)
    assert all("more than is left of the budget" in item.reason for item in tight.left_out)


@pytest.mark.parametrize("words", [("list",), ("doctor",), ("init",)], ids=lambda words: words[0])
@pytest.mark.parametrize("variable", ["ENGRAM_HOME", "ENGRAM_CACHE"])
def test_a_home_of_a_user_nobody_knows_is_refused_in_words(
    variable: str,
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("ENGRAM_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(variable, "~nobody-knows-them/x")
    with pytest.raises(SystemExit) as ended:
        main([*words])
    assert ended.value.code and "no user 'nobody-knows-them'" in capsys.readouterr().err
