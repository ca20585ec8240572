"""Words that many memories of a store share."""

import pytest

from engram import Engram
from engram.recall.query import SearchQuery
from engram.recall.shared_terms import MIN_DOCUMENTS, drop_shared_terms
from engram.store.protocol import Candidates
from tests.backends import Backend

SUBJECTS = (
    "linting is done with Biome", "the queue is RabbitMQ", "sessions are cached in Valkey", "logs are kept for 21 days",
    "the gateway listens on port 8443", "the database is PostgreSQL", "the screens are built with Svelte",
    "secrets are in Vault", "flags are managed in Unleash", "backups run at night", "email goes through Postmark",
    "the region is eu-north-1", "tracing uses Tempo", "builds run on Buildkite", "the designer is Imani",
    "the budget is 4,200 euros", "branches are named after tickets", "the standup is on Tuesdays", "charts are in Helm",
    "the optimizer is written in Python", "labels are printed in Gothenburg", "the tablets run Android",
)  # fmt: skip


@pytest.fixture
def mem(backend: Backend) -> Engram:
    client = backend.client()
    for subject in SUBJECTS:
        client.add(f"In marlin {subject}", scope="global")
    return client


def counted(**frequency: int) -> Candidates:
    return Candidates(total=2 * MIN_DOCUMENTS, frequency=frequency)


def test_a_shared_word_is_dropped() -> None:
    query = drop_shared_terms(
        SearchQuery("marlin cloud region", terms=("marlin", "cloud", "region")), counted(marlin=30, region=1)
    )
    assert (query.text, query.terms) == ("cloud region", ("cloud", "region"))


def test_a_question_of_shared_words_alone_keeps_them() -> None:
    query = SearchQuery("marlin", terms=("marlin",))
    assert drop_shared_terms(query, counted(marlin=30)) is query


def test_few_documents_share_nothing() -> None:
    query = SearchQuery("marlin region", terms=("marlin", "region"))
    assert drop_shared_terms(query, Candidates(total=3, frequency={"marlin": 3})) is query


def test_the_name_of_the_project_makes_nothing_known(mem: Engram) -> None:
    assert not mem.recall("which video conference tool does marlin use?", scope="global").hits


def test_what_is_asked_about_the_project_is_found(mem: Engram) -> None:
    assert "eu-north-1" in mem.search("marlin cloud region hosting")[0].text
