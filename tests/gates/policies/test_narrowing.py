"""Statements that hold somewhere only: they stand beside the general one, and take the place of their like."""

import pytest

from engram import Engram
from engram.gates.policies import MemoryPolicy, SlotRule, policy_named
from engram.model.memory import Memory
from tests.tables import table


def key(preset: str, statement: str) -> str:
    return policy_named(preset).apply(Memory("", statement), typed=False).conflict_key


APART = [
    ("legal", "The liability cap is $1M", "The liability cap for data breaches is $5M"),
    ("legal", "The liability cap is $1M", "Liability is capped at $5M for data breaches"),
    ("legal", "The liability cap is $1M", "For data breaches, the liability cap is $5M"),
    ("legal", "The liability cap is $1M", "The liability cap in respect of IP claims is $2M"),
    ("legal", "The liability cap for data breaches is $5M", "The liability cap for IP claims is $2M"),
    ("legal", "The notice period is 30 days", "The notice period is 60 days after the first year"),
    ("legal", "The notice period is 30 days", "The notice period during the trial period is 7 days"),
    ("legal", "The notice period before renewal is 30 days", "The notice period after renewal is 60 days"),
    ("legal", "The governing law is Delaware", "The governing law for employment claims is California"),
    ("legal", "The governing law is Delaware", "The governing law outside the US is England"),
    ("legal", "Payment terms are net 30", "Payment terms for hardware are net 60"),
    ("legal", "The interest rate is 5%", "The interest rate is 9% after default"),
    ("legal", "The monthly rent is $900", "The monthly rent is $1,100 in summer"),
    ("legal", "The term is two years", "The term for pilot customers is six months"),
    ("legal", "The hourly rate is $300", "The hourly rate on weekends is $450"),
    ("coding_agent", "We run tests with pytest", "Run tests with tox before a release"),
    ("coding_agent", "Run tests with pytest", "Before a release, run tests with tox"),
    ("coding_agent", "Run tests with tox before a release", "Run tests with make smoke after a release"),
    ("coding_agent", "The test command is make test", "The test command in CI is tox"),
    ("coding_agent", "The test command is make test", "The test command is tox on Windows"),
    ("coding_agent", "The log level is INFO", "The log level is DEBUG in staging"),
    ("coding_agent", "The log level is INFO", "In staging, the log level is DEBUG"),
    ("coding_agent", "The log level in staging is DEBUG", "The log level in production is WARN"),
    ("coding_agent", "The line length is 100", "The line length is 72 in commit messages"),
    ("coding_agent", "Use npm", "Use npm in the docs folder"),
    ("coding_agent", "Use pnpm", "Use npm for the legacy client"),
    ("coding_agent", "Use Python 3.12", "Use Python 3.9 for the lambda"),
    ("coding_agent", "Use tabs", "Use tabs in Makefiles"),
    ("coding_agent", "PRs go to develop", "PRs go to main during a freeze"),
    ("coding_agent", "Deploy to AWS", "Deploy to Fly.io outside Europe"),
    ("coding_agent", "The GitHub API rate limit is 5000 per hour", "The GitHub API rate limit for guests is 60 per hour"),
    ("coding_agent", "The rate limit of the GitHub API is 60", "The rate limit of the GitHub API is 5000 with a token"),
    ("coding_agent", "Use single quotes", "Use double quotes in JSX"),
    ("coding_agent", "Squash merge PRs", "Rebase merge PRs on release branches"),
    ("legal", "Liability is capped at $1M", "Liability is capped at $2M per claim"),
    ("legal", "The late fee is 2%", "After 60 days the late fee is 5%"),
    ("legal", "The royalty rate is 5%", "The royalty rate is 7% on sales above $1M"),
    ("default", "My boss is Karen", "My boss on the Apollo project is Tom"),
    ("default", "The launch date is May 5", "The launch date in Japan is July 1"),
    ("default", "I'm in UTC+2", "I'm in UTC+1 in winter"),
    ("default", "I live in Berlin", "I live in Rome during the summer"),
    ("default", "I live in Berlin", "In summer I live in Rome"),
    ("default", "I live in Berlin", "During the week, I live in Munich"),
    ("default", "I work at Acme", "I work at Globex on Mondays"),
    ("default", "My favourite drink is tea", "My favourite drink is beer in summer"),
    ("default", "My favourite drink is tea", "My favourite drink before bed is milk"),
    ("default", "The marketing budget is 50k", "The marketing budget is 80k in Q3"),
    ("default", "The marketing budget for Spain is 5k", "The marketing budget for Italy is 8k"),
    ("default", "My timezone is CET", "My timezone is PST when I travel"),
    ("default", "My phone number is 555-0101 555", "My phone number is 555-0199 555 after 6pm"),
    ("default", "Always answer in German", "Always answer in English in emails"),
    ("default", "Use metric units", "Use imperial units in recipes"),
    ("default", "The launch is on May 5", "The launch for beta users is on April 2"),
    ("default", "I'm vegan", "I'm vegetarian on Sundays"),
    ("default", "I have no allergies", "I have no drug allergies"),
    ("default", "I have no food allergies", "I have no drug allergies"),
    ("default", "No known drug allergies", "Allergic to penicillin"),
    ("default", "No known drug allergies", "I'm allergic to nuts"),
    ("default", "No known drug allergies", "I'm not allergic to nuts"),
]  # fmt: skip


@table(("preset", "one", "other"), APART)
def test_what_holds_somewhere_only_shares_no_key_with_what_holds_elsewhere(preset: str, one: str, other: str) -> None:
    first, second = key(preset, one), key(preset, other)
    assert first or second
    assert first != second


SHARED = [
    ("legal", "The liability cap for data breaches is $5M", "Liability is capped at $6M for data breaches"),
    ("legal", "The liability cap for data breaches is $5M", "For data breaches, the liability cap is $7M"),
    ("legal", "The liability cap is $1M", "The liability cap under this Agreement is $2M"),
    ("legal", "The confidentiality obligations survive for 3 years after termination",
     "Non-disclosure obligations survive termination for 2 years"),
    ("legal", "Invoices are due within 45 days of receipt", "Payment terms are net 30"),
    ("legal", "The notice period is 30 days", "The notice period was extended to 60 days in March"),
    ("legal", "The interest rate after default is 9%", "The interest rate is 8% after default"),
    ("coding_agent", "Run tests with tox before a release", "Before a release, run tests with nox"),
    ("coding_agent", "We run tests with pytest", "Run tests with tox"),
    ("coding_agent", "Use black for formatting", "Format with yapf"),
    ("coding_agent", "Use npm", "Use pnpm in this repo"),
    ("coding_agent", "The log level in staging is DEBUG", "In staging, the log level is TRACE"),
    ("coding_agent", "Use npm", "We switched to pnpm in March"),
    ("coding_agent", "Use npm", "Use pnpm because it is faster in CI"),
    ("coding_agent", "The log level is INFO for jobs in staging", "The log level is WARN in staging for jobs"),
    ("default", "I live in Berlin", "I moved to Lisbon in March"),
    ("default", "I live in Rome in summer", "In summer I live in Naples"),
    ("default", "I live in Berlin", "I live in Lisbon for now"),
    ("default", "I live in Berlin", "I live in Lisbon with my wife"),
    ("legal", "The late fee is 2%", "The late fee is 1.5% per month"),
    ("default", "The meeting with Sam is on Tuesday at 3pm", "The meeting with Sam is on Thursday at the office"),
    ("default", "The marketing budget is 80k in Q3", "The marketing budget for Q3 is 90k"),
    ("default", "I have no drug allergies", "No known drug allergies"),
    ("default", "My favourite drink is beer in summer", "My favourite drink is cider in summer"),
]  # fmt: skip


@table(("preset", "older", "newer"), SHARED)
def test_news_of_the_same_thing_shares_its_key_however_it_is_put(preset: str, older: str, newer: str) -> None:
    assert key(preset, older) == key(preset, newer) != ""


@pytest.mark.parametrize(
    ("preset", "statement", "wanted"),
    [
        ("legal", "The liability cap for data breaches is $5M", "liability_cap:data_breach"),
        ("coding_agent", "Run tests with tox before a release", "test_command:before_release"),
        ("coding_agent", "The log level is INFO in staging for jobs", "log_level:job:staging"),
        ("default", "I live in Rome during the summer", "residence:user:summer"),
    ],
)
def test_the_key_says_where_it_holds(preset: str, statement: str, wanted: str) -> None:
    assert key(preset, statement) == wanted


def test_a_critical_fact_stays_critical_where_it_holds_somewhere_only() -> None:
    cap = policy_named("legal").apply(Memory("", "The liability cap for data breaches is $5M"), typed=False)
    assert cap.critical_slot == "liability_cap"


@pytest.mark.parametrize(
    "said",
    [
        "The liability cap for data breaches and IP claims is $5M",
        "Is the liability cap for data breaches $5M?",
        "For data breaches, the proposed liability cap is $5M",
        "If we sign, the liability cap for data breaches is $5M",
    ],
)
def test_in_doubt_there_is_no_key_however_narrow(said: str) -> None:
    assert key("legal", said) == ""


def test_a_rule_of_ones_own_is_narrowed_too_and_may_name_what_does_not_narrow() -> None:
    price = SlotRule(r"price of (?P<what>\w+) is \S+(?P<aside> in euros)?", conflict_key="price:{what}")
    shop = MemoryPolicy("shop", slots=(price,))
    keys = [
        shop.apply(Memory("", f"The price of shoes is 5{where}"), typed=False).conflict_key
        for where in ("", " in winter", " in euros", " for members")
    ]
    assert keys == ["price:shoe", "price:shoe:winter", "price:shoe", "price:shoe:member"]


@pytest.mark.parametrize(("preset", "one", "other"), [APART[0], APART[15], APART[40], APART[-4], APART[-3]])
@pytest.mark.parametrize("turned", [False, True])
def test_both_stay_in_force_whichever_comes_first(preset: str, one: str, other: str, turned: bool) -> None:
    with Engram.open(ephemeral=True, embedder="none", policy=preset) as mem:
        kept = [mem.add(said).id for said in ((other, one) if turned else (one, other))]
        assert [mem.get(each).status for each in kept] == ["active", "active"]


def test_news_of_the_narrow_one_takes_its_place_and_leaves_the_general() -> None:
    with Engram.open(ephemeral=True, embedder="none", policy="legal") as mem:
        said = ("The liability cap is $1M", "The liability cap for data breaches is $5M")
        general, narrow = (mem.add(each) for each in said)
        newer = mem.add("The liability cap for data breaches is $6M")
        assert mem.get(newer.id).supersedes == (narrow.id,)
        assert (mem.get(general.id).status, mem.get(narrow.id).status) == ("active", "superseded")
