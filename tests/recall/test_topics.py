"""Several topics in one question, each answered by itself."""

from collections.abc import Mapping

import pytest

from engram import Engram
from engram.recall.questions import split_topics
from tests.backends import Backend
from tests.tables import table

SPLIT: Mapping[str, tuple[str, ...]] = {
    "what do we use for CI and who owns the domain?": ("what do we use for CI", "who owns the domain"),
    "which port does the gateway use; where are secrets stored?": (
        "which port does the gateway use",
        "where are secrets stored",
    ),
    "linting tool and unit test framework": ("linting tool", "unit test framework"),
    "what is the rate limit of the API and the monthly cloud budget?": (
        "what is the rate limit of the API",
        "the monthly cloud budget",
    ),
    "where do the logs go and how long are backups kept, when do they run?": (
        "where do the logs go",
        "how long are backups kept, when do they run",
    ),
}
WHOLE = (
    "when and where do we meet?",
    "what did Anna and Bob decide?",
    "research and development budget",
    "what is the router called and how do I reset it?",
    "I'm in Berlin and it's late. Is Ana awake?",
    "what is the difference between the old printer and the new printer?",
)
CI, DOMAIN = "The CI builds run on Buildkite", "Petra Lindqvist owns the domain harbour.example"
OTHERS = ("The gateway listens on port 8443", "Secrets are kept in Vault", "The standup is at 9:15 on Tuesdays")
QUESTION = "where do the CI builds run and who owns the domain?"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    client = backend.client()
    for statement in (CI, DOMAIN, *OTHERS):
        client.learn(statement, source="user", scope="global")
    return client


@table("question, topics", SPLIT.items())
def test_each_topic_is_a_question(question: str, topics: tuple[str, ...]) -> None:
    assert split_topics(question) == topics


@table("question", WHOLE)
def test_one_question_is_not_split(question: str) -> None:
    assert split_topics(question) == ()


def test_every_topic_is_answered(mem: Engram) -> None:
    assert {hit.text for hit in mem.recall(QUESTION, scope="global").hits} == {CI, DOMAIN}


def test_the_limit_counts_all_topics(mem: Engram) -> None:
    assert len(mem.recall(QUESTION, scope="global", limit=1).hits) == 1


def test_a_topic_of_which_nothing_is_known_adds_nothing(mem: Engram) -> None:
    found = mem.recall("where do the CI builds run and who paints the fence?", scope="global")
    assert [hit.text for hit in found.hits] == [CI]


def test_a_hit_is_not_possible_as_well(mem: Engram) -> None:
    found = mem.recall(QUESTION, scope="global")
    assert not {hit.id for hit in found.hits} & {hit.id for hit in found.possible}
