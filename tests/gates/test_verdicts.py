"""The way through the gates: duplicates, contradictions, paraphrases, trust."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.gates.pipeline import GATES, admit, judge
from engram.gates.proposal import GateSettings, Neighbour, Proposal, Verdict
from engram.model.decision import Outcome
from engram.model.errors import Refused, SecretRefused
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.tokens import tokens
from tests.relations import DIFFERENT, SAME, choose
from tests.tables import table


class Stored:
    """A store that holds a few memories and finds all of its scope near."""

    def __init__(self, *memories: Memory, cosine: float = 0.98) -> None:
        self.memories = memories
        self.cosine = cosine
        self.asked_near = 0

    def exact(self, content_hash_: str, scope: str) -> Memory | None:
        same = (m for m in self.memories if content_hash(m.statement) == content_hash_ and m.scope == scope)
        return next(same, None)

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        return [m for m in self.memories if m.conflict_key == conflict_key and m.scope == scope]

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        self.asked_near += 1
        return [Neighbour(m, self.cosine) for m in self.memories]

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        return ()

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        return ()


def known(statement: str, **fields: Any) -> Memory:
    return Memory(**{"id": "ENG-2026-0101-001", "statement": statement, "source": "human"} | fields)


def proposed(statement: str, *, autonomous: bool = False, **fields: Any) -> Proposal:
    memory = Memory(**{"id": "", "statement": statement, "source": "agent"} | fields)
    return Proposal(memory, autonomous, content_hash(statement), tuple(tokens(statement)))


def judged(statement: str, *stored: str | Memory, cosine: float = 0.98, **fields: Any) -> Verdict:
    memories = [known(item) if isinstance(item, str) else item for item in stored]
    return judge(proposed(statement, **fields), Stored(*memories, cosine=cosine), GateSettings())


# -- duplicates


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("use tabs not spaces", "Use tabs, not spaces."),
        ("Use  tabs,\nnot spaces", "Use tabs, not spaces"),
        ("周五不要部署", "周五不要部署。"),
        ("🎉🎉", "🎉🎉"),
        ("Use C++", "use c++."),
    ],
)
def test_the_same_text_is_an_exact_duplicate(new: str, old: str) -> None:
    verdict = judged(new, old)
    assert (verdict.outcome, verdict.gate) == (Outcome.DUPLICATE, "exact")
    assert verdict.other is not None and verdict.other.statement == old


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Run the tests before pushing to main", "Run tests before you push to main"),
        ("Always use the tabs in Go files", "Use tabs in Go files"),
        ("Never deploy on Fridays", "Don't ever deploy on Fridays"),
        ("The timeout is 120 seconds for uploads", "The timeout is 2 minutes for uploads"),
    ],
)
@pytest.mark.parametrize("cosine", [0.99, math.nan, -1.0])
def test_the_same_words_in_the_same_order_are_a_near_duplicate_or_a_paraphrase(
    new: str, old: str, cosine: float
) -> None:
    verdict = judged(new, old, cosine=cosine)
    assert verdict.other is not None
    assert verdict.gate in ("near", "paraphrase")


def test_a_near_duplicate_needs_the_meaning_to_be_near_too(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: DIFFERENT)
    new, old = "Run tests before pushing to the main branch", "Run the tests before pushing to the main branch"
    assert judged(new, old, cosine=0.98).gate == "near"
    assert judged(new, old, cosine=0.90).outcome == Outcome.CREATED


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("使用缓存提高速度", "数据库部署在上海"),
        ("默认端口是八千", "默认语言是中文"),
        ("既定のブランチは main です", "テストは毎朝実行する"),
        ("Тесты запускаются ночью", "Сервер стоит в Москве"),
        ("الخادم في دبي", "الاختبارات سريعة"),
        ("A calls B", "B calls A"),
        ("Use C", "Use C++"),
        ("Status is 👍", "Status is 👎"),
        ("The limit is -5", "The limit is 5"),
        ("x > 5 means retry", "x < 5 means retry"),
        ("Copy from staging to production", "Copy to staging from production"),
        (
            "Restart the api in Berlin after each deploy of the billing job",
            "Restart the api in Munich after each deploy of the billing job",
        ),
        ("Service A listens on port 8080", "Service B listens on port 8080"),
        ("Use Python 3.1", "Use Python 3.10"),
    ],
)
@pytest.mark.parametrize("cosine", [0.995, math.nan])
def test_statements_that_differ_in_meaning_are_never_duplicates(new: str, old: str, cosine: float) -> None:
    assert judged(new, old, cosine=cosine).outcome != Outcome.DUPLICATE
    assert judged(old, new, cosine=cosine).outcome != Outcome.DUPLICATE


def test_the_same_words_in_another_scope_or_situation_are_no_duplicate() -> None:
    elsewhere = known("Use tabs", scope="project:other")
    assert judged("Use tabs", elsewhere).outcome == Outcome.CREATED
    in_go = known("Use the tabs", situation="writing Go code")
    assert judged("Use tabs", in_go, situation="formatting a spreadsheet").outcome == Outcome.CREATED


# -- contradictions

CONTRADICTIONS = [
    # another number
    ("use port 8080", "use port 9090"),
    ("Service A listens on port 8080", "Service A listens on port 9090"),
    ("使用端口8080", "使用端口9090"),
    ("Retry 3 times with a pause of 5 s", "Retry 5 times with a pause of 5 s"),
    ("Wait 2 minutes before retrying", "Wait 3 minutes before retrying"),
    ("Requests must not exceed 100 per minute", "Requests must not exceed 200 per minute"),
    ("Node 18 is required", "Node 20 is required"),
    ("Max upload size is 8,000 bytes", "Max upload size is 9k bytes"),
    ("Meetings start at 9am", "Meetings start at 10:00"),
    ("重试三次", "重试5次"),
    # a negation
    ("Always use tabs", "Never use tabs"),
    ("Deploy on Fridays", "Do not deploy on Fridays"),
    ("Deploy with approval", "Deploy without approval"),
    ("Never deploy without approval", "Deploy without approval"),
    ("We ship on Tuesdays", "We no longer ship on Tuesdays"),
    ("Log request bodies", "Don't log request bodies"),
    ("The user likes cilantro", "The user doesn't like cilantro"),
    ("周五部署", "周五不部署"),
    ("キャッシュを使用する", "キャッシュを使用しない"),
    ("Выкладывай в пятницу", "Никогда не выкладывай в пятницу"),
    ("احذف الملفات القديمة", "لا احذف الملفات القديمة"),
    ("캐시를 사용하세요", "캐시를 사용하지 마세요"),
    ("Use spaces", "Use tabs, not spaces"),
    ("we use black", "We use Ruff, not Black"),
    # an opposite
    ("Enable caching in production", "Disable caching in production"),
    ("The cache is enabled", "The cache is disabled"),
    ("Run lint before tests", "Run lint after tests"),
    ("Sort results in ascending order", "Sort results in descending order"),
    ("This endpoint is safe", "This endpoint is unsafe"),
    ("Use single quotes in Python", "Use double quotes in Python"),
    ("Trailing commas are allowed", "Trailing commas are forbidden"),
    ("The user likes cilantro", "The user hates cilantro"),
    ("启用缓存", "禁用缓存"),
    ("Turn on logging", "Turn off logging"),
    # swapped order
    ("A calls B", "B calls A"),
    ("Alice manages Bob", "Bob manages Alice"),
    ("Use tabs, not spaces", "Use spaces, not tabs"),
    ("Prefer composition over inheritance", "Prefer inheritance over composition"),
    ("Copy data from staging to production", "Copy data to staging from production"),
    ("Run lint before tests", "Run tests before lint"),
    # competing choices
    ("Use tabs", "Use spaces"),
    ("Use pnpm to install packages", "Use npm to install packages"),
    ("Builds run on Linux", "Builds run on Windows"),
]


@table(("new", "old"), CONTRADICTIONS)
@table("cosine", [0.9, math.nan])
def test_what_cannot_both_hold_is_a_contradiction_either_way_round(new: str, old: str, cosine: float) -> None:
    for one, other in ((new, old), (old, new)):
        verdict = judged(one, other, cosine=cosine)
        assert (verdict.outcome, verdict.status) == (Outcome.CONTRADICTION, "candidate"), (one, other)
        assert verdict.other is not None and verdict.other.statement == other
        assert verdict.other.id in verdict.reason


ANOTHER_VALUE = [
    ("The user lives in Berlin.", "The user lives in Munich."),
    ("The user's favourite colour is blue.", "The user's favorite color is green."),
    ("The project uses Celery for background jobs.", "The project uses Huey for background jobs."),
    ("The default branch is main.", "The default branch is master."),
    ("The CTO is Alice.", "The CTO is Bob."),
    ("The deadline is 2026-05-01.", "The deadline is 2026-06-01."),
]


@pytest.mark.parametrize(
    ("new", "old", "reason"),
    [
        ("svc runs on aws", "svc runs on azure", "competing choices: aws / azure"),
        ("The cache is enabled", "The cache is disabled", "opposite words: enabled / disabled"),
    ],
)
def test_a_contradiction_is_explained_in_the_words_of_the_statements(new: str, old: str, reason: str) -> None:
    assert reason in judged(new, old).reason


def test_another_value_of_the_same_thing_is_at_least_mentioned() -> None:
    verdicts = {(old, new): judged(new, old, cosine=0.9) for old, new in ANOTHER_VALUE}
    assert [pair for pair, verdict in verdicts.items() if not verdict.conflicts] == []


COMPATIBLE = [
    ("Service A listens on port 8080", "Service B listens on port 9090"),
    ("Service 1 uses port 8080", "Service 2 uses port 9090"),
    ("The API listens on port 8080", "The API listens on port 9090 in staging"),
    ("The port is 8080 in dev", "The port is 9090 in prod"),
    ("Use port 8080", "Use port 9090 for the admin console"),
    ("Retry 3 times", "Retry 3 times with a pause of 5 s"),
    ("Never use port 8080", "Never use port 9090"),
    ("Use port 8080", "Do not use port 9090"),
    ("On 2024-05-01 we released 1.2", "On 2024-06-01 we released 1.3"),
    ("Python 3.11 supports exception groups", "Python 3.12 supports exception groups"),
    ("Issue #12 is fixed", "Issue #13 is fixed"),
    ("Use tabs", "Use tabs, not spaces"),
    ("Use pnpm", "Do not use npm"),
    ("Do not use npm", "Do not use yarn"),
    ("Enable caching in production", "Do not disable caching in production"),
    ("Trailing commas are forbidden", "Trailing commas are not allowed"),
    ("Run lint before tests", "Run tests after lint"),
    ("Install numpy and pandas", "Install pandas and numpy"),
    ("Never deploy on Fridays", "On Fridays, never deploy"),
    ("Never deploy without approval", "Always deploy with approval"),
    ("The public API uses REST", "The private API uses REST"),
    ("The default branch was master", "The default branch is main"),
    ("The user lives in Berlin", "The user lives in Berlin, Germany"),
    ("The user likes hiking", "The user likes swimming"),
    ("The user speaks German", "The user speaks French"),
    ("Alice is German", "Alice is Catholic"),
    ("Alice works at Acme", "Bob works at Globex"),
    ("Alice has a dog", "Alice has a cat"),
    ("The API is fast", "The API is versioned"),
    ("The database is slow", "The database is large"),
    ("The billing service uses PostgreSQL", "The billing service uses Redis"),
    ("Use pytest for tests", "Use hypothesis for tests"),
    ("The user prefers short answers", "The user prefers dark mode"),
    ("Wait 2 minutes before retrying", "Wait 120 seconds before retrying"),
    ("今天天气很好", "数据库在上海"),
    ("缓存在北京", "缓存在北京的机房里"),
    ("Rotate keys every 90 days", "Back up the database every 7 days"),
    ("Deploy on Fridays", "Do not merge on Fridays"),
    ("Deploy on Fridays", "Do not deploy Acme on Fridays"),
    ("Room 12 seats 8 people", "Room 14 seats 20 people"),
    ("Room 12 seats 8 people", "Room 14 seats 8 people"),
    ("Widget 3 weighs 40 grams", "Widget 4 weighs 55 grams"),
]


@table(("new", "old"), COMPATIBLE)
@table("cosine", [0.99, math.nan])
def test_what_can_both_hold_is_no_contradiction_by_any_rule(
    new: str, old: str, cosine: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose(monkeypatch, lambda older, newer: DIFFERENT)
    assert judged(new, old, cosine=cosine).outcome != Outcome.CONTRADICTION
    assert judged(old, new, cosine=cosine).outcome != Outcome.CONTRADICTION


def fact(subject: str, predicate: str, value: str, **fields: Any) -> dict[str, Any]:
    form = {"subject": subject, "predicate": predicate, "object": value}
    return {"statement": f"{subject} {predicate} {value}", "form": form, "type": "fact"} | fields


def test_two_facts_with_one_subject_and_predicate_and_two_objects_contradict() -> None:
    old = Memory(id="ENG-2026-0101-001", **fact("billing", "depends on", "redis"))
    verdict = judge(proposed(**fact("Billing", "depends on", "memcached")), Stored(old, cosine=0.4), GateSettings())
    assert verdict.outcome == Outcome.CONTRADICTION
    other_subject = proposed(**fact("Search", "depends on", "memcached"))
    assert judge(other_subject, Stored(old), GateSettings()).outcome == Outcome.CREATED


def test_what_held_at_different_times_is_no_contradiction() -> None:
    june = datetime(2026, 6, 1, tzinfo=UTC)
    old = known("The default branch is master", valid_until=june)
    assert judged("The default branch is main", old, valid_from=june).outcome != Outcome.CONTRADICTION


def test_two_episodes_are_no_contradiction() -> None:
    old = known("The deploy failed twice", type="episodic")
    assert judged("The deploy failed 3 times", old, type="episodic").outcome != Outcome.CONTRADICTION


def test_a_memory_may_replace_what_it_says_it_supersedes() -> None:
    old = known("use port 8080")
    assert judged("use port 9090", old, supersedes=(old.id,)).outcome == Outcome.CREATED


def test_a_fact_with_the_same_conflict_key_supersedes_if_it_is_trusted() -> None:
    old = known("The user lives in Berlin", conflict_key="user/home", source="agent")
    new: dict[str, Any] = {
        "statement": "The user lives in Munich",
        "conflict_key": "user/home",
        "learned_by": "harvest",
    }
    assert judge(proposed(**new), Stored(old), GateSettings()).outcome == Outcome.SUPERSEDED
    untrusted = proposed(**new, autonomous=True, source="harness:claude:x")
    assert judge(untrusted, Stored(old), GateSettings()).outcome == Outcome.CONTRADICTION


# -- paraphrases


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("On Fridays, never deploy", "Never deploy on Fridays"),
        ("Install pandas and numpy", "Install numpy and pandas"),
        ("Trailing commas are used in every Python list", "In every Python list, use trailing commas"),
    ],
)
def test_a_rewording_is_a_duplicate_or_names_what_it_could_be_merged_with(new: str, old: str) -> None:
    verdict = judged(new, old, cosine=0.9)
    assert (verdict.outcome, verdict.gate) in ((Outcome.DUPLICATE, "near"), (Outcome.CREATED, "paraphrase"))
    assert verdict.other is not None and verdict.other.id in verdict.reason


def test_a_paraphrase_that_adds_something_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    choose(monkeypatch, lambda older, newer: SAME)
    verdict = judged("The Oslo office opens at 9:00", "The office opens at nine in the morning", cosine=0.9)
    assert (verdict.outcome, verdict.gate, verdict.status) == (Outcome.CREATED, "paraphrase", "active")


def test_a_captured_text_that_adds_nothing_is_redundant() -> None:
    old = known("Use pnpm. Never deploy on Fridays because nobody is on call.")
    verdict = judged("Never deploy on Fridays, because nobody is on call", old, autonomous=True, source="harvest")
    assert (verdict.outcome, verdict.gate, verdict.other) == (Outcome.DUPLICATE, "redundancy", old)


# -- trust


@table(
    ("source", "type_name", "autonomous", "expected"),
    [
        ("human", "preference", False, Outcome.CREATED),
        ("human", "fiscal", False, Outcome.CREATED),
        ("human:alice", "identity", False, Outcome.CREATED),
        ("agent", "preference", False, Outcome.CREATED),
        ("manual", "factual", False, Outcome.CREATED),
        ("tool:remember", "preference", False, Outcome.CREATED),
        ("tool:remember", "people", False, Outcome.PENDING),
        ("tool:remember", "fiscal", False, Outcome.PENDING),
        ("agent", "infra", False, Outcome.CREATED),
        ("agent", "constraint", False, Outcome.PENDING),
        ("agent", "relationship", False, Outcome.CREATED),
        ("agent", "health", False, Outcome.PENDING),
        ("agent", "preference", True, Outcome.PENDING),
        ("harness:claude:acme", "preference", False, Outcome.PENDING),
        ("import:notes.md", "preference", False, Outcome.PENDING),
    ],
)
def test_who_said_it_and_what_it_is_decide_whether_it_is_active(
    source: str, type_name: str, autonomous: bool, expected: Outcome
) -> None:
    text = "The user prefers short answers because long ones are skimmed"
    verdict = judged(text, source=source, type=type_name, autonomous=autonomous)
    assert verdict.outcome == expected
    assert verdict.status == ("active" if expected == Outcome.CREATED else "candidate")
    assert verdict.gate == "trust" and verdict.reason


def test_autopromotion_is_a_setting_and_never_reaches_tier_three() -> None:
    strict = GateSettings(autopromote_remember=False)
    open_ = GateSettings(autopromote_harvest=True)
    text = "Prefer pnpm over npm because of the shared store"
    assert judge(proposed(text), Stored(), strict).outcome == Outcome.PENDING
    harvested = proposed(text, autonomous=True, source="harness:claude:x")
    assert judge(harvested, Stored(), open_).outcome == Outcome.CREATED
    salary = proposed("Prefer to pay the salary of 100 before Friday", autonomous=True, source="harvest", type="fiscal")
    assert judge(salary, Stored(), open_).outcome == Outcome.PENDING


# -- the pipeline


def test_a_verdict_tells_the_gates_passed_in_order() -> None:
    passed = judged("Use tabs").passed
    assert passed == (
        "shape", "secrets", "instructions", "rejected", "exact", "relation", "near", "policy", "contradiction", "paraphrase",
    )  # fmt: skip
    captured = judged("Prefer pnpm over npm because of the shared store", autonomous=True, source="harvest").passed
    assert captured == GATES[:-1]


def test_the_store_is_asked_for_neighbours_once() -> None:
    store = Stored(known("Never deploy on Fridays, because nobody is on call"))
    judge(proposed("Prefer pnpm because it is fast", autonomous=True, source="harvest"), store, GateSettings())
    assert store.asked_near == 1


def test_an_exact_duplicate_costs_no_search() -> None:
    store = Stored(known("Use tabs"))
    assert judge(proposed("use tabs!"), store, GateSettings()).outcome == Outcome.DUPLICATE
    assert store.asked_near == 0


def test_a_trusted_program_passes_only_shape_and_secrets() -> None:
    assert admit(memory := proposed("use port 9090", type="fiscal").memory) is memory
    with pytest.raises(SecretRefused):
        admit(proposed("the password is hunter2").memory)
    with pytest.raises(Refused):
        admit(proposed("\x00").memory)


def test_a_store_with_both_c_and_c_plus_plus_still_finds_the_copy() -> None:
    store = Stored(known("Use C"), known("Use C++", id="ENG-2026-0101-002"))
    verdict = judge(proposed("use C++"), store, GateSettings())
    assert verdict.outcome == Outcome.DUPLICATE
    assert verdict.other is not None and verdict.other.id == "ENG-2026-0101-002"


def test_the_first_example_of_the_public_contract_is_created() -> None:
    verdict = judged("Use tabs, not spaces", type="preference", scope="project:acme", source="agent")
    assert (verdict.outcome, verdict.status) == (Outcome.CREATED, "active")


@given(st.text(max_size=120), st.sampled_from([0.99, -1.0]))
def test_a_text_that_is_stored_is_a_duplicate_of_itself(text: str, cosine: float) -> None:
    verdict = judge(proposed(text), Stored(known(text), cosine=cosine), GateSettings())
    assert verdict.outcome in (Outcome.DUPLICATE, Outcome.REJECTED)
    assert verdict.reason


@given(st.text(max_size=120), st.text(max_size=120))
def test_any_two_texts_get_an_answer_with_a_gate_and_a_reason(new: str, old: str) -> None:
    verdict = judge(proposed(new, autonomous=True, source="harvest"), Stored(known(old)), GateSettings())
    assert verdict.gate in GATES and verdict.reason


def test_a_question_contradicts_nothing() -> None:
    assert judged("Should we use port 9090?", "Use port 8080").outcome != Outcome.CONTRADICTION
