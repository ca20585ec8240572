"""The facts that questions name by what they are."""

from engram.recall.answer.history import SlotQuery, slot_query
from tests.tables import table


@table(
    ("question", "key"),
    [
        ("What was my previous employer?", "employer:user"),
        ("What was the name of my previous employer?", "employer:user"),
        ("What were my previous homes?", "residence:user"),
        ("What is Anna's home address?", "address:anna"),
        ("What was my job title?", "job_title:user"),
        ("Where do I live?", "residence:user"),
        ("Where did I use to live?", "residence:user"),
        ("Where does Maria Garcia live now?", "residence:maria_garcia"),
        ("Where does my sister work?", "employer:sister"),
        ("Which companies have I worked for?", "employer:user"),
        ("Who did I work for?", "employer:user"),
    ],
)
def test_a_thing_or_a_doing_with_its_owner_is_a_key(question: str, key: str) -> None:
    assert slot_query(question).conflict_keys[0] == key


@table(
    "question",
    [
        "What was my home wifi password?",
        "What is the address?",
        "Where did I work on the report?",
        "Where did we live?",
        "What does the company sell?",
        "Who lives in Lisbon?",
        "",
    ],
)
def test_what_has_no_owner_or_only_tells_which_is_none(question: str) -> None:
    assert slot_query(question) == SlotQuery()


def test_keys_that_someone_gave_by_hand_are_read_by_their_words() -> None:
    home = slot_query("Where did I live before?")
    assert home.has("residence:user")
    assert home.has("user:home")
    assert not home.has("user:home:wifi")
    assert not home.has("employer:user")
    assert not home.has("")


def test_the_users_fact_is_not_anothers() -> None:
    assert slot_query("Where does Anna live?").is_anothers("residence:user")
    assert slot_query("Where do I live?").is_anothers("residence:anna")
    assert not slot_query("Where does my sister live?").is_anothers("residence:anna")
    assert not slot_query("Where do I live?").is_anothers("employer:anna")
