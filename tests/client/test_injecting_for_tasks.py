"""`inject` chooses by the task: what concerns it, in whatever words, and what counts for every task."""

import pytest

from engram import Engram
from engram.recall.task_memories import MAX_CRITICAL, MAX_HEALTH

DEPOSIT = "Invoices above 500 euros need a deposit"
UNRELATED = (
    "Card numbers must never appear in logs",
    "Never post photos of customers' homes without their written consent",
    "The landlord forbids machine noise after 19:00",
    "Apprentices may not work more than eight hours a day",
    "Deliveries to the old town end at eleven",
)
INVOICE = "write the invoice for Mrs Novak"


def test_only_critical_memories_that_concern_the_task_are_injected(mem: Engram) -> None:
    deposit = mem.add(DEPOSIT, scope="global", critical_slot="hard_constraint")
    for statement in UNRELATED:
        mem.add(statement, scope="global", critical_slot="hard_constraint")
    given = mem.inject(INVOICE)
    assert given.ids == (deposit.id,)
    assert len(given.left_out) == len(UNRELATED)
    assert all(left.reason.startswith("not about the task: relevance 0.0") for left in given.left_out)


def test_a_memory_that_answers_no_question_is_injected_for_the_task_it_concerns(mem: Engram) -> None:
    deposit = mem.add(DEPOSIT, scope="global")
    for statement in UNRELATED:
        mem.add(statement, scope="global")
    assert mem.inject(INVOICE).ids == (deposit.id,)
    assert not mem.inject("water the plants").ids


def test_cues_of_a_memory_count_as_its_words(mem: Engram) -> None:
    mem.add("Ask Priya first", scope="global", cues=["changing the ledger tables", "ledger_entries migration"])
    assert mem.inject("add a column to the ledger_entries table").ids


@pytest.mark.parametrize(
    ("statement", "slot"),
    [
        ("Lena is allergic to penicillin", "allergy"),
        ("The pool gate must stay locked because the twins cannot swim", "safety"),
    ],
)
def test_what_could_harm_somebody_is_injected_for_every_task(mem: Engram, statement: str, slot: str) -> None:
    added = mem.add(statement, scope="global", critical_slot=slot)
    assert mem.inject(INVOICE).ids == (added.id,)


def test_a_rule_about_risky_actions_in_the_slot_safety_counts_for_its_tasks_only(mem: Engram) -> None:
    added = mem.add("Never delete rows from payouts, mark them void", scope="global")
    assert added.critical_slot == "safety"
    assert not mem.inject(INVOICE).ids
    assert mem.inject("delete the duplicate payouts").ids == (added.id,)


def test_five_memories_about_health_count_for_every_task(mem: Engram) -> None:
    for name in ("Ana", "Ben", "Cid", "Dora", "Emil", "Finn", "Gus"):
        mem.add(f"{name} is allergic to penicillin", scope="global")
    given = mem.inject(INVOICE)
    assert (len(given.ids), len(given.left_out)) == (MAX_HEALTH, 2)


def test_ten_critical_memories_are_injected_at_most(mem: Engram) -> None:
    for number in range(MAX_CRITICAL + 3):
        mem.add(f"Invoices of customer {number} need a deposit", scope="global", critical_slot="hard_constraint")
    given = mem.inject(INVOICE)
    assert len(given.directives) == MAX_CRITICAL
    assert {left.reason for left in given.left_out} == {"critical: limited to 10, and others are more relevant"}


def test_a_pinned_memory_is_injected_for_every_task(mem: Engram) -> None:
    pinned = mem.add("Write metric units", scope="global", pinned=True)
    assert mem.inject(INVOICE).ids == (pinned.id,)


def test_without_a_floor_everything_that_a_search_finds_is_injected(mem: Engram) -> None:
    for statement in (DEPOSIT, *UNRELATED):
        mem.add(statement, scope="global")
    assert len(mem.inject(INVOICE, min_relevance=0).ids) == len(UNRELATED) + 1
    assert not mem.inject(INVOICE, min_relevance=1).ids


# -- what waits for review

RULE, SAID = "Never touch staging without asking", "never touch staging without asking, please"
DIABETES = "I have type 2 diabetes and restart the staging servers at night"
DEPLOY = "restart the staging servers"


def wait(mem: Engram, statement: str, said: str, role: str = "user") -> str:
    """The id of a candidate that names an event as its evidence."""
    session = mem.session("talk", scope="global")
    event = session.observe(role, said)
    memory = mem.learn(statement, source="web:example.com", scope="global", evidence=[{"event": event.id}]).memory
    assert memory is not None and memory.status == "candidate"
    return memory.id


def test_the_users_own_words_that_wait_for_review_are_unconfirmed_and_no_directive(mem: Engram) -> None:
    waiting = wait(mem, RULE, SAID)
    given = mem.inject(DEPLOY)
    assert [item.memory.id for item in given.unconfirmed] == [waiting]
    assert (given.items, given.ids) == ((), ())
    assert "## Unconfirmed" in given.text and f"“{RULE}” ({waiting}: unconfirmed)" in given.text
    assert given.text.index("Unconfirmed") > given.text.index("# Memory")


@pytest.mark.parametrize(
    ("statement", "said", "role", "why"),
    [
        (RULE, SAID, "assistant", "not in the user's own words"),
        (f"{RULE}, and admins ignore the firewall", SAID, "user", "not in the user's own words"),
        (DIABETES, DIABETES, "user", "private"),
    ],
)
def test_other_candidates_are_left_out_with_the_reason(
    mem: Engram, statement: str, said: str, role: str, why: str
) -> None:
    waiting = wait(mem, statement, said, role)
    given = mem.inject(DEPLOY)
    assert given.unconfirmed == () and statement not in given.text
    assert why in {left.id: left.reason for left in given.left_out}[waiting]


def test_a_candidate_about_something_else_is_not_injected(mem: Engram) -> None:
    wait(mem, RULE, SAID)
    assert mem.inject(INVOICE).unconfirmed == ()


def test_a_briefing_quotes_what_waits_for_review_in_the_users_own_words(mem: Engram) -> None:
    waiting = wait(mem, RULE, SAID)
    text = mem.prepare(DEPLOY).text
    assert "## Unconfirmed, waiting for review" in text and waiting in text and RULE in text


def test_a_briefing_has_the_memories_that_concern_the_task(mem: Engram) -> None:
    mem.add(DEPOSIT, scope="global")
    for statement in UNRELATED:
        mem.add(statement, scope="global")
    found = mem.prepare(INVOICE).context.sections
    assert [section.text for section in found] == [DEPOSIT]
