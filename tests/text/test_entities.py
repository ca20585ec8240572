"""What a text names."""

from hypothesis import given
from hypothesis import strategies as st

from engram.text import entities as entities_module
from engram.text.entities import entities
from tests.tables import table


@table(
    ("text", "expected"),
    [
        ("call getUserById with user_id", ("getUserById", "user_id")),
        ("os.path.join and Foo::Bar differ", ("os.path.join", "Foo::Bar")),
        ("see src/engram/text/entities.py", ("src/engram/text/entities.py",)),
        ("edit ~/.config/engram/config.toml now", ("~/.config/engram/config.toml",)),
        ("fails on 3.11.4 and v2.0", ("3.11.4", "v2.0")),
        ("read https://example.com/a/b?c=1.", ("https://example.com/a/b?c=1",)),
        ("ask bob.ross@example.com about it", ("bob.ross@example.com",)),
        ('he calls it "blue moon" or `make demo`', ("blue moon", "make demo")),
        ("set $DATABASE_URL first", ("DATABASE_URL",)),
        ("pass --no-verify or -q", ("--no-verify", "-q")),
        ("closed by #123 and ENG-42", ("#123", "ENG-42")),
        ("ping 10.0.0.1:8080 twice", ("10.0.0.1:8080",)),
    ],
)
def test_technical_terms_are_found(text: str, expected: tuple[str, ...]) -> None:
    assert entities(text) == expected


@table(
    ("text", "expected"),
    [
        ("yesterday Maria de la Cruz joined", ("Maria de la Cruz",)),
        ("The University of Oxford hired her", ("University of Oxford",)),
        ("Alice Smith prefers tea", ("Alice Smith",)),
        ("Alice prefers tea", ("Alice",)),
        ("John's laptop is new", ("John",)),
        ("On Friday Bob visited New York City", ("Bob", "New York City")),
        ("wir nutzen Kubernetes in München", ("Kubernetes", "München")),
        ("она живёт в Москве", ("Москве",)),
        ("数据库叫「星辰」", ("星辰",)),
        ("KUBECONFIG must be set", ("KUBECONFIG",)),
    ],
)
def test_names_are_found_in_many_languages(text: str, expected: tuple[str, ...]) -> None:
    assert entities(text) == expected


@table(
    "text",
    [
        "Deploying takes long",
        "Always run the tests before pushing",
        "Use it and/or leave it, e.g. today",
        "We should do this. They should not.",
        "",
        "   ",
    ],
)
def test_a_capital_at_the_start_of_a_sentence_names_nothing(text: str) -> None:
    assert entities(text) == ()


def test_a_word_that_recurs_with_a_capital_is_a_name_even_at_the_start() -> None:
    assert entities("Prometheus scrapes metrics. People love Prometheus.") == ("Prometheus",)


def test_each_entity_is_given_once_in_order_of_appearance() -> None:
    assert entities("use foo_bar, then baz_qux, then foo_bar") == ("foo_bar", "baz_qux")


@table(
    "unit",
    ["a", "a.", "a_", "A1b2", "a/", '"a ', "--a", "(", "1.", "Alice ", "a@", "a://b:", "1:", "端口", "e\u0301", "-"],
)
def test_five_megabytes_of_anything_are_bounded(unit: str) -> None:
    found = entities(unit * (5_000_000 // len(unit)))
    assert len(found) <= entities_module._MOST_ENTITIES
    assert all(len(entity) <= entities_module._MAX_ENTITY_CHARACTERS for entity in found)


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert all(entity.strip() for entity in entities(text))
