"""Texts of six languages in English words, and English texts left as they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.text.translation import LANGUAGES, MAX_CHARS, dictionary, language_of, translate, translation
from engram.text.words import DATA

SENTENCES = {
    "de": ("Wann läuft die Versicherung für unser Auto ab?", {"when", "insurance", "for", "our", "car"}),
    "es": ("¿Dónde guardamos las llaves de la oficina?", {"where", "key", "of", "the", "office"}),
    "fr": ("Quel jour les enfants vont-ils à la piscine ?", {"day", "child", "go", "swimming", "pool"}),
    "it": ("Perché abbiamo cambiato il fornitore del pane?", {"why", "have", "change", "supplier", "bread"}),
    "pt": ("Quando é que o meu irmão se casou?", {"when", "my", "brother", "marry"}),
    "nl": ("Wie heeft de sleutel van de kelder?", {"who", "has", "key", "cellar"}),
}
ENGLISH = (
    "The dice die was cast in an art class",
    "I do as he told me, no more and no less",
    "We met on the Rue de la Paix in Paris",
    "pnpm e2e",
    "Postgres 15.6 on birch:5433",
    "rg --files -g '*.py' | xargs wc -l",
    "Who runs the migrations at Casa Verde?",
    "",
    "?",
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_becomes_its_english_words(language: str) -> None:
    text, expected = SENTENCES[language]
    assert language_of(text) == language
    assert expected <= set(translate(text).rstrip(" ?").lower().split()), translate(text)


@pytest.mark.parametrize("text", ENGLISH)
def test_english_text_stays(text: str) -> None:
    assert translate(text) == text
    assert translation(text) == ""


def test_names_identifiers_and_numbers_stay() -> None:
    english = translate("Warum läuft der Build von svc/billing auf hazel:8080 nicht, wenn Ottilie im Urlaub ist?")
    assert all(word in english for word in ("svc/billing", "hazel:8080", "Ottilie", "build")), english


def test_a_name_within_a_sentence_is_no_word() -> None:
    assert "Rosa" in translate("¿Cuándo llega Rosa a casa de mi madre?")


def test_a_few_words_without_grammar_are_recognised() -> None:
    assert translate("Waschmaschine Garantie") == "washing machine guarantee"
    assert translate("contraseña wifi") == "password wifi"


def test_a_compound_is_read_by_its_parts() -> None:
    assert translate("Wo ist der Kellerschlüssel?") == "where is the cellar key?"


def test_umlauts_may_be_spelled_out() -> None:
    assert translate("Wo ist der Schluessel fuer die Kueche?") == "where is the key for the kitchen?"


def test_words_without_their_accents_are_known() -> None:
    assert "password" in translate("donde esta la contrasena de la oficina")


@pytest.mark.parametrize(
    ("language", "inflected", "english"),
    [
        ("de", "geschickten", "send"),
        ("de", "angemeldeten", "sign in"),
        ("es", "facturas", "invoice"),
        ("es", "cancelaron", "cancel"),
        ("fr", "livraisons", "delivery"),
        ("fr", "travaillaient", "work"),
        ("it", "amiche", "friend"),
        ("it", "lavoravano", "work"),
        ("pt", "reuniões", "meeting"),
        ("pt", "compraram", "buy"),
        ("nl", "brieven", "letter"),
        ("nl", "gewerkt", "work"),
        ("es", "jurisdicciones", "jurisdiction"),
        ("de", "Kapitalismus", "capitalism"),
        ("it", "fotografico", "photographic"),
    ],
)
def test_an_inflected_word_is_known(language: str, inflected: str, english: str) -> None:
    assert f" {english} " in f" {dictionary(language).translate(inflected)} "


def test_the_tables_stay_below_a_megabyte() -> None:
    assert sum(path.stat().st_size for path in (DATA / "translations").iterdir()) < 1_000_000


def test_the_end_of_a_long_text_is_left() -> None:
    text = "Der Schlüssel ist im Keller. " * (MAX_CHARS // 20)
    assert translate(text).endswith("Der Schlüssel ist im Keller. ")
    assert len(translate(text)) > MAX_CHARS // 2


@given(st.text(max_size=200))
def test_any_text_can_be_translated(text: str) -> None:
    assert len(translate(text)) <= 20 * len(text) + 20


@given(st.text(alphabet="abcdeäößéñçãt '-’", max_size=60), st.sampled_from(LANGUAGES))
def test_any_words_can_be_looked_up(text: str, language: str) -> None:
    translated = dictionary(language).translate(text)
    assert isinstance(translated, str)
