"""The names of the queue's topics: nouns that a person recognizes, and always the same ones."""

from engram.model.memory import Memory
from engram.review.topics import topics_of
from tests.tables import table

OTHERS = ("The fox logo is orange", "Lunch is at noon", "Marta approves invoices", "Kestrel is in Oslo")


def named(*statements: str) -> list[str]:
    """The topics of these statements among others of their source."""
    memories = [Memory(f"M{number}", text) for number, text in enumerate((*statements, *OTHERS))]
    found = topics_of(memories)
    return [found[memory.id] for memory in memories[: len(statements)]]


@table(
    ("topic", "one", "other"),
    [
        ("parser", "Ada wrote the parser in Rust", "Bob wrote tests for the parser"),
        ("redis", "Redis runs on port 6380", "The scheduler runs next to Redis"),
        ("choir", "The user has sung in a choir for years", "The user's choir rehearses on Tuesdays"),
        ("invoices", "Invoices always go out quickly", "Taxes on invoices are always rounded quickly"),
        ("build", "The build fails on warnings", "Nobody skips the build"),
        ("tests", "Pass a fixed time in tests", "Tests that need Docker live in slow"),
    ],
)
def test_a_topic_is_a_thing_and_not_what_is_done_to_it(topic: str, one: str, other: str) -> None:
    assert named(one, other) == [topic, topic]


def test_two_words_that_belong_together_are_one_topic() -> None:
    found = named(
        "Every pull request needs two approvals",
        "Link the ticket in the pull request",
        "A draft pull request stays open",
    )
    assert found == ["pull request"] * 3


def test_words_across_the_end_of_a_phrase_are_no_pair() -> None:
    assert named("In staging, redis is off", "Outside staging, redis caches") == ["staging", "staging"]


def test_forms_of_a_word_are_one_topic_by_its_commonest_form() -> None:
    assert (
        named("Migrations are reversible", "Each migration is reviewed", "Migrations run in order")
        == ["migrations"] * 3
    )


def test_what_shares_only_words_that_say_nothing_is_named_by_its_kind() -> None:
    assert set(named("The user always wants new things", "The user never wants old things")) == {"preference"}


def test_a_topic_that_is_left_with_one_memory_is_no_topic() -> None:
    found = named("Redis needs Docker", "The api needs Docker", "Redis and the api share a host", "The api is in Go")
    assert all(found.count(topic) > 1 or topic == "preference" for topic in found)


def test_the_order_of_the_memories_changes_no_topic() -> None:
    texts = ("Redis caches sessions", "Sessions end after an hour", "Redis runs in Docker", "Docker needs a login")
    memories = [Memory(text, text) for text in (*texts, *OTHERS)]
    assert topics_of(memories) == topics_of(memories[::-1])
