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
