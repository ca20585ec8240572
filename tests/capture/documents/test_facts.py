"""Facts of a chunk and quotes: verbatim, at their place, and few."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.capture.documents.chunk import Chunk, chunks_of
from engram.capture.documents.facts import FactSpan, fact_spans
from engram.capture.documents.source import KINDS
from engram.text.content_hash import quote_hash
from tests.capture.documents.contract import CONTRACT, MARKDOWN
from tests.properties import examples
from tests.tables import table


def whole(text: str) -> Chunk:
    return Chunk(0, 0, len(text), "")


def facts_in(text: str, chunk: Chunk, most: int = 6, *, kind: str) -> list[FactSpan]:
    return sorted(fact_spans(text, chunk, kind)[:most], key=lambda fact: fact.start)


def said(text: str, kind: str = "text", most: int = 50) -> list[str]:
    return [fact.statement for fact in facts_in(text, whole(text), most, kind=kind)]


def test_the_contracts_facts_are_its_definitions_duties_amounts_and_dates() -> None:
    chunks = chunks_of(CONTRACT, kind="text", max_tokens=60)
    facts = [fact.statement for chunk in chunks for fact in facts_in(CONTRACT, chunk, kind="text")]
    assert [fact[:48] for fact in facts] == [
        'This Master Services Agreement (the "Agreement")',
        '"Affiliate" means any entity that controls, is c',
        '"Confidential Information" means all information',
        "Provider shall perform the services set out in e",
        "Customer shall pay each undisputed invoice withi",
        "Late amounts bear interest at 1.5 % per month.",
        "This Agreement commences on the Effective Date a",
        "Provider warrants that the services conform to t",
        "The daily rate of an engineer is EUR 1,200.",
    ]


def test_every_fact_stands_verbatim_at_its_place_within_its_chunk() -> None:
    for chunk in chunks_of(CONTRACT, kind="text", max_tokens=60):
        for fact in facts_in(CONTRACT, chunk, kind="text"):
            assert chunk.start <= fact.start < fact.end <= chunk.end
            assert " ".join(CONTRACT[fact.start : fact.end].split()) == fact.statement


SENTENCES = st.sampled_from(
    ["The Buyer shall pay USD 5. ", '"Goods" means any thing. ', "It is due by 2026-01-05.\n", "- Must be kept for 3 days\n",
     "Nice weather.\r\n", "\n\n", "# TODO: must never be run twice\n", '"""Loads the box. More."""\n', "+", "```\n", "| must | 5 days |\n", "e.g. ", "日本語。"]
)  # fmt: skip


@examples(60)
@given(
    st.lists(st.one_of(SENTENCES, st.text(max_size=8)), max_size=25).map("".join),
    st.sampled_from(KINDS),
    st.integers(0, 7),
)
def test_facts_of_any_text_are_verbatim_in_order_and_no_more_than_asked(text: str, kind: str, most: int) -> None:
    for chunk in chunks_of(text, kind=kind, max_tokens=40):
        facts = facts_in(text, chunk, most, kind=kind)
        assert len(facts) <= most
        assert [fact.start for fact in facts] == sorted(fact.start for fact in facts)
        for fact in facts:
            assert chunk.start <= fact.start < fact.end <= chunk.end
            assert " ".join(text[fact.start : fact.end].split()) == fact.statement


def test_the_most_telling_facts_are_kept_and_told_in_the_order_of_the_text() -> None:
    text = (
        "It should be noted twice here. Fees rise by 3 % then. The Buyer shall pay USD 500 within 30 days of receipt."
    )
    assert said(text, most=2) == [
        "Fees rise by 3 % then.",
        "The Buyer shall pay USD 500 within 30 days of receipt.",
    ]


@table(
    "text",
    [
        "The weather was nice on that day.",
        "Who shall pay for all of this?",
        "| The Buyer | shall pay 5 days |",
        "THE BUYER SHALL PAY ALL OF IT",
        "The Buyer shall do the following:",
        "```\nThe Buyer shall pay USD 5 here.\n```",
        "must pay",
    ],
)
def test_small_talk_questions_tables_and_shouting_are_no_facts(text: str) -> None:
    assert said(text, "markdown") == []


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Acme Inc. shall pay No. 7 within 5 days. Fine.", "Acme Inc. shall pay No. 7 within 5 days."),
        ("- (a) Tenants must leave by noon\n- other", "Tenants must leave by noon"),
        ("4.2 The seller must\n  deliver it in time. So it is.", "The seller must deliver it in time."),
        ("He said no. Dr. J. Doe must sign the form first.", "Dr. J. Doe must sign the form first."),
    ],
)
def test_sentences_end_where_they_end(text: str, fact: str) -> None:
    assert said(text) == [fact]


def test_markdown_gives_its_facts_without_the_code_in_it() -> None:
    assert said(MARKDOWN, "markdown") == ["It must never run twice.", "Ask Dana Petrov before 2026-04-01."]


CODE = '''\
def load(path):
    """Load the box from its file. Slow."""
    x = 1  # increments x by one step
    # TODO: close the file when done
    return x  # callers must hold the lock
'''


def test_code_gives_docstrings_and_comments_that_oblige() -> None:
    expected = ["Load the box from its file.", "TODO: close the file when done", "callers must hold the lock"]
    assert said(CODE, "code") == expected


def test_a_diff_gives_what_it_adds() -> None:
    text = "@@ -1,2 +1,2 @@\n-# TODO: the old thing to do\n+# TODO: the new thing to do\n # must stay as it was\n"
    assert said(text, "diff") == ["TODO: the new thing to do"]


def test_a_quote_is_known_by_its_exact_text() -> None:
    assert quote_hash("abc") == "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert quote_hash("abc ") != quote_hash("abc")
    assert quote_hash("\ud83d").startswith("sha256:")
