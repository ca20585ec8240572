"""Tier 3 is decided by what is said, not by the type a caller passes (DESIGN §12)."""

import json
from pathlib import Path

import pytest

from engram import Engram
from engram.gates.proposal import GateSettings
from engram.gates.trust import kind_of, tier_of, trust
from engram.model.decision import Outcome
from engram.model.errors import Refused
from engram.model.memory import Memory, render_form
from engram.models.statement_kinds import subject_of
from tests.backends import Backend
from tests.cli.conftest import Console, cli, person  # noqa: F401
from tests.client.conftest import files  # noqa: F401

SENSITIVE = [
    ("health", "I have type 1 diabetes"),
    ("health", "The user takes 20 mg of lisinopril every morning"),
    ("health", "Jonas is severely allergic to peanuts and carries an EpiPen"),
    ("health", "My mother was diagnosed with breast cancer in spring"),
    ("health", "User cannot eat gluten because of coeliac disease"),
    ("health", "She is in her third month of pregnancy"),
    ("health", "Ich habe Diabetes und spritze Insulin"),
    ("health", "Der Nutzer ist wegen Depressionen in Behandlung"),
    ("health", "Je suis allergique à la pénicilline"),
    ("health", "Mi hijo tiene asma"),
    ("health", "Mia madre ha l'Alzheimer"),
    ("health", "Tenho pressão alta e tomo remédios"),
    ("health", "Ik slik elke dag bloedverdunners"),
    ("identity", "My passport number is X1234567"),
    ("identity", "The user was born on 4 July 1986 in Leeds"),
    ("identity", "Her social security number is 219-09-9999"),
    ("identity", "Mein Sohn ist schwul"),
    ("identity", "Mi DNI es 12345678Z"),
    ("fiscal", "I earn 62,000 euros a year"),
    ("fiscal", "The user owes 12,000 dollars on three credit cards"),
    ("fiscal", "My wife's salary is 4,100 a month"),
    ("fiscal", "Meine IBAN ist DE89 3704 0044 0532 0130 00"),
    ("fiscal", "J'ai 12 000 euros de dettes"),
    ("location", "Lina lives at Rosenweg 5"),
    ("location", "My sister is a doctor in Toronto"),
    ("location", "The user moved to Lisbon in March"),
    ("location", "Der Nutzer wohnt in Leipzig"),
    ("location", "L'utilisatrice habite à Nantes"),
    ("people", "The user's wife is called Amara"),
    ("people", "Jonas and Clara broke up in spring"),
    ("people", "The user has two daughters"),
    ("people", "Mijn man heet Bram"),
]
HARMLESS = [
    "The billing service has a health check at /healthz",
    "Keycloak is our identity provider",
    "The tax service rounds half to even",
    "Never log card numbers or passport numbers",
    "The Pro plan costs 49 euros a month",
    "Revenue grew 12 % in the second quarter",
    "The user is vegetarian and likes spicy food",
    "I'm allergic to meetings",
    "I work at a hospital as a receptionist",
    "The user prefers short answers and dark mode",
    "Use tabs, not spaces",
    "The payroll job runs on the 25th of each month",
    "Patients can upload files up to 10 MB in the portal",
    "My son has football on Thursdays",
    "I run ten kilometres every Sunday",
    "Der Nutzer bevorzugt kurze Antworten",
    "Die Mehrwertsteuer beträgt 19 Prozent",
    "Je préfère le thé au café",
    "El proveedor de identidad es Keycloak",
    "L'ufficio di Bari chiude il lunedì",
    "O utilizador quer respostas em português",
    "De gebruiker werkt bij Philips",
    "Ravi reviews database migrations",
    "Ask Dana before you touch billing",
    "Mei owns the checkout service",
    "Our staging cluster is in Frankfurt",
    "The config lives in etc/app",
    "The parent process waits for its child",
    "The user's team freezes deploys on Fridays",
    "Timestamps are stored in UTC",
]


def test_what_is_sensitive_is_told_from_what_only_looks_like_it() -> None:
    wanted = [*SENSITIVE, *(("", text) for text in HARMLESS)]
    assert [(text, subject_of(text)) for subject, text in wanted if subject_of(text) != subject] == []


def test_a_sensitive_sentence_counts_among_harmless_ones() -> None:
    told = "The user prefers short answers. She uses Linux. She has epilepsy. The team meets on Tuesdays."
    assert subject_of(told) == "health"


@pytest.mark.parametrize("type_", ["fact", "preference", "convention", "procedural"])
def test_no_type_makes_a_sensitive_statement_active_from_an_agent(backend: Backend, type_: str) -> None:
    decided = backend.client().learn("I have type 1 diabetes", type=type_, source="agent")
    assert decided.outcome == Outcome.PENDING and decided.memory is not None
    assert (decided.memory.status, decided.memory.type) == ("candidate", type_)
    assert "is about somebody's health" in decided.reason


@pytest.mark.parametrize(
    ("statement", "kind", "reason"),
    [
        ("Lina lives at Rosenweg 5", "location", "says where somebody lives or stays"),
        ("The user's wife is called Amara", "people", "is about somebody's private life"),
    ],
)
def test_an_agents_word_on_places_and_people_waits(backend: Backend, statement: str, kind: str, reason: str) -> None:
    decided = backend.client().learn(statement, source="agent")
    assert decided.outcome == Outcome.PENDING and decided.memory is not None
    assert (decided.memory.status, kind_of(decided.memory)) == ("candidate", kind)
    assert reason in decided.reason


def test_who_does_what_at_work_is_active_from_an_agent(files: Engram) -> None:  # noqa: F811
    for statement in ("Ravi reviews database migrations", "Our staging cluster is in Frankfurt"):
        assert files.learn(statement).outcome == Outcome.CREATED


def test_a_harmless_statement_of_an_agent_is_active_still(files: Engram) -> None:  # noqa: F811
    assert files.learn("The billing service has a health check at /healthz").outcome == Outcome.CREATED


def test_a_situation_and_the_parts_of_a_form_speak_too() -> None:
    assert tier_of(Memory("", "Avoid long flights", situation="because the user has had a thrombosis")) == 3
    assert tier_of(Memory("", "See the form", form={"object": "the user has epilepsy"})) == 3
    assert tier_of(Memory("", "Avoid long functions", situation="when writing Python")) == 1


LESSONS = [
    {"behavior": "used t.Fatal in goroutine", "impact": "test hung", "action": "use t.Error and return"},
    {
        "behavior": "left orphan children",
        "impact": "the parent died",
        "action": "kill the process group and reap children",
    },
    {"behavior": "ignored SIGCHLD", "impact": "children survive the parent's crash", "action": "wait for each child"},
    {"subject": "a2", "predicate": "owns", "object": "b2 zebra"},
]


def test_lessons_about_processes_and_code_are_harmless() -> None:
    kinds = {"subject": "fact", "behavior": "feedback"}
    made = [Memory("ENG-1", render_form(form), type=kinds[next(iter(form))], form=form) for form in LESSONS]
    assert [memory.statement for memory in made if tier_of(memory) > 1] == []


def test_the_types_tier_holds_where_the_words_are_harmless() -> None:
    assert tier_of(Memory("", "Use tabs, not spaces", type="identity")) == 3
    assert tier_of(Memory("", "Use tabs, not spaces", type="relationship")) == 2


def test_a_persons_own_word_is_active(files: Engram) -> None:  # noqa: F811
    assert files.remember("I have type 1 diabetes").outcome == Outcome.CREATED


def test_a_trusted_program_decides_for_itself(files: Engram) -> None:  # noqa: F811
    assert files.add("The user has type 1 diabetes").status == "active"


@pytest.mark.parametrize("statement", ["I live at Rosenweg 5", "My wife is called Amara"])
def test_a_persons_own_word_on_places_and_people_is_active(files: Engram, statement: str) -> None:  # noqa: F811
    assert files.remember(statement).outcome == Outcome.CREATED


@pytest.mark.parametrize(("source", "harmless"), [("agent", "active"), ("assistant", "candidate")])
def test_what_others_add_waits_as_if_they_had_learned_it(files: Engram, source: str, harmless: str) -> None:  # noqa: F811
    assert files.add("The user has type 1 diabetes", source=source).status == "candidate"
    assert files.add("The billing service has a health check", source=source).status == harmless


def test_what_a_conversation_tells_waits(files: Engram) -> None:  # noqa: F811
    told = files.add_conversation("I have type 2 diabetes. I live in Rome.")
    assert [(memory.statement, memory.status) for memory in told] == [
        ("The user has type 2 diabetes.", "candidate"),
        ("The user lives in Rome.", "active"),
    ]


def test_what_a_user_says_of_home_and_family_is_active_and_may_end(files: Engram) -> None:  # noqa: F811
    (home, wife) = files.add_conversation("I live in Rome. My wife is called Amara.")
    assert (home.status, wife.status) == ("active", "active")
    (moved,) = files.add_conversation("I moved to Oslo last month.")
    assert (moved.status, files.get(home.id).superseded_by) == ("active", moved.id)


def test_a_transcript_on_places_and_people_waits_even_if_harvests_are_promoted() -> None:
    told = Memory("", "The user lives in Rome.", source="harness:codex:acme", learned_by="harvest")
    plain = told.replace(statement="The build uses Bazel.")
    settings = GateSettings(autopromote_harvest=True)
    assert [trust(one, True, settings).status for one in (told, plain)] == ["candidate", "active"]


@pytest.mark.usefixtures("person")
def test_what_a_file_brings_waits(cli: Console, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "memories.json"
    told = [{"statement": "The user has type 1 diabetes"}, {"statement": "Deploys happen on Tuesdays"}]
    path.write_text(json.dumps(told), "utf-8")
    cli("import", str(path))
    assert [item["memory"]["statement"] for item in cli.json("review")] == ["The user has type 1 diabetes"]
    assert "Deploys happen on Tuesdays" in cli("list").stdout


@pytest.mark.parametrize("change", ["update", "revise"])
def test_an_agent_does_not_turn_a_harmless_memory_into_a_sensitive_one(backend: Backend, change: str) -> None:
    mem = backend.client()
    known = mem.learn("The user prefers short answers").memory
    assert known is not None
    with pytest.raises(Refused, match="is about somebody's health"):
        getattr(mem, change)(known.id, statement="The user has type 1 diabetes", actor="agent")
    assert mem.get(known.id).statement == "The user prefers short answers"
    changed = getattr(mem, change)(known.id, statement="The user prefers long answers", actor="agent")
    assert changed.status == "active"


@pytest.mark.parametrize("actor", ["human", "manual"])
def test_a_person_and_their_program_may(files: Engram, actor: str) -> None:  # noqa: F811
    known = files.add("The user prefers short answers")
    assert files.revise(known.id, statement="The user has type 1 diabetes", actor=actor).status == "active"


def test_an_agent_may_tag_what_is_sensitive_and_in_force(files: Engram) -> None:  # noqa: F811
    known = files.add("The user has type 1 diabetes")
    assert files.update(known.id, tags=["care"], actor="agent").tags == ("care",)


def test_approving_it_takes_a_person(cli: Console) -> None:  # noqa: F811
    waiting = cli.json("learn", "The patient has epilepsy")["memory"]["id"]
    refused = cli("review", waiting, "--approve")
    assert refused.exit_code != 0 and "is about somebody's health" in refused.stderr


def test_the_queue_says_what_makes_it_wait(files: Engram) -> None:  # noqa: F811
    files.learn("My salary is 4,100 euros a month")
    (item,) = files.review.queue()
    assert item.reason == "from agent; it is about somebody's money, which is tier 3"
