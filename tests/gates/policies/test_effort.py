"""The guard before patterns of one's own: none that can hang is let through, and what people write is."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.gates.policies.effort import effort
from engram.gates.policies.rules import MAX_EFFORT, READ_CHARS

HOSTILE = [
    r"(a|a)*b",
    r"\w*\w*\w*!",
    r"(\w+\s*)+$",
    r"(a+)+",
    r"(a*)*b",
    r"(?:\w+ ?)+x",
    r"(?:\w+ ?){0,2}!",
    r"(x+x+)+y",
    r".*a.*b.*c",
    r"(?:a|ab)*c",
    r"(a|aa)+$",
    r"(?:(?:\w)+)+!",
    r"([a-z]+)*\d",
    r"(a?){30}a{30}",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(?=(a+)+$)b",
    r"(?!(a|a)*b)c",
    r"(?:a{0,50}){0,50}b",
    r"(é|é)*b",
    r"((k)|(\u212a))*b",
    r"(?:\s|\S)*(?:\s|\S)*x",
    r"(?:\w+[ ,]*)*;",
    r"\w+\d+\w+\d+x",
    r"a.{0,200}b.{0,200}c.{0,200}d",
    r"((a)|(a))*b",
    r"(?P<q>a*)(?P=q)*b",
    r"(?:a*){2,}b",
    r"^(?:\w+\W?)+$",
    r"(?>(a|a)*b)c",
    r"(a)?(?(1)(b|b)*|(c|c)*)d",
    r"(?:|a|a)*b",
    r"(?:(?=.*b)[ab])+$",
    r"(?:[^b][^b](?=\b))*?((?=(?=.*b) ))b!!",
    r"(?:(?>\w+x|\w) )*y",
]


@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_pattern_that_can_take_for_ever_is_known(pattern: str) -> None:
    assert effort(pattern, READ_CHARS) > MAX_EFFORT


USUAL = [
    r"the price of (?P<what>[\w ]+) is",
    r"\bprice list\b",
    r"\bno (?:\w+ ){0,3}allerg(?:y|ies)\b",
    r"^(?P<who>\w+)'s ward is (?P<ward>\w+)",
    r"\bfirst\b.{2,200}\bthen\b",
    r"release.*postponed",
    r"foo.{0,80}bar.{0,80}baz",
    r"(?:a|b)*c",
    r"(?:\w+ )*x",
    r"^.*\bdeadline\b",
    r"\w+@\w+\.\w+",
    r"\d+(?:\.\d+)*",
    r"^\s*(?:\w+\s+)*is\b",
    r"[^.;]{0,80}\b(?:must|never)\b",
    r"\b(?:npm|pnpm|yarn|bun)\b|\b(?:uv|pip|pipenv|poetry)\b",
    r"\?|\b(?:if|when|maybe)\b",
]
LETTERS = ["a", "ab", "a ", "a, ", "foo", "foobar", "first then ", "the price of ", "no a ", "1.", "a@a.", "npm ", "x!"]


@pytest.mark.parametrize("pattern", USUAL)
def test_what_people_write_is_let_through_and_takes_no_long(pattern: str) -> None:
    assert effort(pattern, READ_CHARS) <= MAX_EFFORT
    started = time.thread_time()
    for letters in LETTERS:
        re.search(pattern, (letters * READ_CHARS)[:READ_CHARS], re.IGNORECASE)
    assert time.thread_time() - started < 5.0


PIECES = st.recursive(
    st.sampled_from(["a", "b", "ab", r"\w", r"\d", ".", "[ab]", "[^a]", "x?", "A", r"\b", "$"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("(?:{0[0]}|{0[1]})".format),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,3}", "{2,}", "*?"])).map("(?:{0[0]}){0[1]}".format),
        inner.map("(?={})".format),
    ),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(PIECES, st.sampled_from(["a", "b", "ab", "aab"]))
def test_no_pattern_takes_more_than_is_foretold(pattern: str, letters: str) -> None:
    text = (letters * 120)[:120] + "!"
    foretold = effort(f"{pattern}!!", len(text))
    if foretold > 2_000_000:
        return
    started = time.thread_time()
    re.search(f"{pattern}!!", text, re.IGNORECASE)
    assert time.thread_time() - started < 0.5


@pytest.mark.parametrize("opening", ["(?:", "(?=", "(?!a)(?:", "(?>", "(?:a|", "(?=a|(?:"])
@pytest.mark.parametrize("closing", [")", ")*", "){0,3}"])
def test_the_guard_itself_is_quick_on_what_is_nested_deep(opening: str, closing: str) -> None:
    depth = 60 // opening.count("(")
    pattern = opening * depth + "a" + (closing + ")" * (opening.count("(") - opening.count(")") - 1)) * depth
    started = time.thread_time()
    assert effort(pattern, READ_CHARS) > 0
    assert time.thread_time() - started < 1.0
