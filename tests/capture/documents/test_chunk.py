"""Chunks: the properties that hold for every text, and the headings of real ones."""

import re
import subprocess
import sys

import pytest
import regex
from hypothesis import example, given
from hypothesis import strategies as st

from engram.capture.documents.chunk import Chunk, chunks_of
from engram.capture.documents.source import KINDS
from engram.embedding.word_pieces import count_tokens
from engram.model.errors import InvalidInput
from tests.capture.documents.contract import CONTRACT, MARKDOWN
from tests.properties import examples
from tests.tables import table

BUILDING = [
    "# Title\n", "## Part\n\n", "### Sub\n", "Title\n=====\n", "ARTICLE IV\n", "3.2 Payment terms\n", "LIABILITY\n\n", "```\n# no\n```\n",
    "def load(a):\n    return a\n\n", "class Box:\n", "    def open(self): ...\n", "int main(void) {\n", "}\n",
    "diff --git a/x.py b/x.py\n", "--- a/x.py\n+++ b/x.py\n", "@@ -1,2 +1,2 @@ def f\n", "-old\n", "+new\n", " same\n",
    "A sentence here. ", "Another one? ", "word ", "\n\n", "\r\n", "\r\n\r\n", "\r", " ", "\t", "\x0c", "\u00a0", "\u2028",
    "e\u0301", "\u0301", "👨\u200d👩\u200d👧", "🇩🇪🇫🇷", "👍🏽", "日本語。", "한국", "\u1112\u1161\u11ab", "\ud83d", "\udc00", "x" * 90, "0123456789abcdef" * 20, "-- ", "#",
]  # fmt: skip
TEXTS = st.lists(st.one_of(st.sampled_from(BUILDING), st.text(max_size=12)), max_size=60).map("".join)


def check(text: str, chunks: list[Chunk], max_tokens: int) -> None:
    at = 0
    for index, chunk in enumerate(chunks):
        assert chunk.index == index
        assert not text[at : chunk.start].strip()
        assert at <= chunk.start < chunk.end <= len(text)
        quote = text[chunk.start : chunk.end]
        assert quote.strip()
        assert count_tokens(quote) <= max_tokens
        at = chunk.end
    assert not text[at:].strip()


@examples(100)
@given(TEXTS, st.sampled_from(KINDS), st.integers(12, 80))
def test_chunks_cover_the_text_in_order_without_overlap_and_within_the_limit(
    text: str, kind: str, max_tokens: int
) -> None:
    chunks = chunks_of(text, kind=kind, max_tokens=max_tokens)
    check(text, chunks, max_tokens)
    assert chunks == chunks_of(text, kind=kind, max_tokens=max_tokens)


@examples(60)
@given(TEXTS, st.sampled_from(KINDS))
@example("\r\n\udc00", "text")
@example("a\r\n\r\n\u0301b", "text")
def test_no_chunk_begins_within_a_character_a_reader_sees(text: str, kind: str) -> None:
    starts = {cluster.start() for cluster in regex.finditer(r"\X", text)}
    assert {chunk.start for chunk in chunks_of(text, kind=kind, max_tokens=20)} <= starts


@table("cluster", ["e\u0301", "👨\u200d👩\u200d👧", "🇩🇪", "👍🏽", "\u1112\u1161\u11ab", "\r\n."])
def test_a_line_without_any_space_is_cut_between_whole_characters(cluster: str) -> None:
    text = cluster * 400
    chunks = chunks_of(text, kind="text", max_tokens=20)
    check(text, chunks, 20)
    assert len(chunks) > 1
    starts = {match.start() for match in re.finditer(re.escape(cluster), text)}
    assert all(chunk.start in starts or text[chunk.start] == "." for chunk in chunks)


def test_a_single_huge_token_is_cut_by_characters() -> None:
    text = "a" * 100_000
    chunks = chunks_of(text, kind="text", max_tokens=700)
    check(text, chunks, 700)
    assert "".join(text[chunk.start : chunk.end] for chunk in chunks) == text


def test_a_long_section_is_filled_up_rather_than_crumbled() -> None:
    text = "# Log\n\n" + "\n\n".join(f"Entry {n} says that all went well on day {n}." for n in range(3_000))
    chunks = chunks_of(text, kind="markdown", max_tokens=200)
    check(text, chunks, 200)
    sizes = [count_tokens(text[chunk.start : chunk.end]) for chunk in chunks]
    assert sum(size > 150 for size in sizes) >= len(sizes) - 2
    assert {chunk.heading for chunk in chunks} == {"Log"}


def test_long_paragraphs_are_cut_at_the_ends_of_sentences() -> None:
    text = " ".join(f"Sentence number {n} tells of a different matter altogether." for n in range(200))
    chunks = chunks_of(text, kind="text", max_tokens=60)
    assert all(text[chunk.start : chunk.end].endswith(".") for chunk in chunks)


def test_the_contracts_headings_follow_its_numbering() -> None:
    headings = [chunk.heading for chunk in chunks_of(CONTRACT, kind="text", max_tokens=60)]
    title = "MASTER SERVICES AGREEMENT"
    fees = f"{title} > ARTICLE II SERVICES AND FEES"
    assert list(dict.fromkeys(headings)) == [
        title,
        f"{title} > TABLE OF CONTENTS",
        f"{title} > ARTICLE I DEFINITIONS > 1.1",
        f"{title} > ARTICLE I DEFINITIONS > 1.2 Confidential Information",
        f"{fees} > 2.1 Statements of Work",
        f"{fees} > 2.2 Payment terms",
        f"{fees} > Section 3 Term",
        f"{fees} > 4. Warranties",
        f"{title} > LIMITATION OF LIABILITY",
        f"{title} > EXHIBIT A Rates",
    ]


def heading_at(text: str, words: str, kind: str, max_tokens: int = 40) -> str:
    place = text.index(words)
    chunks = chunks_of(text, kind=kind, max_tokens=max_tokens)
    return next(chunk.heading for chunk in chunks if chunk.start <= place < chunk.end)


@table(
    ("words", "heading"),
    [
        ("How the service", "Runbook"),
        ("It must never", "Runbook > Deploying"),
        ("# not a heading", "Runbook > Deploying"),
        ("make back", "Runbook > Deploying > Rolling back"),
        ("# hidden", "Runbook > Deploying > Rolling back"),
        ("- one", "Runbook > On-call"),
        ("Dana", "Runbook > Contacts and keys"),
    ],
)
def test_markdown_headings_are_read_as_markdown_reads_them(words: str, heading: str) -> None:
    assert heading_at(MARKDOWN, words, "markdown", 30) == heading
    assert heading_at(MARKDOWN.replace("\n", "\r\n"), words, "markdown", 30) == heading


@table(
    "line",
    [
        "Section 9 of this Agreement.",
        "1. Scope",
        "3. Acceptance criteria",
        "3.5 years unless",
        "IN NO EVENT SHALL EITHER PARTY",
        "2. Services ....",
    ],
)
def test_lists_sentences_and_contents_are_no_headings(line: str) -> None:
    place = CONTRACT.index(line)
    assert all(chunk.start != place for chunk in chunks_of(CONTRACT, kind="text", max_tokens=90))


def test_major_sections_are_not_mixed() -> None:
    parts = [f"## Part {n}\n\n" + f"Fact {n} is told in this sentence of some length. " * 8 for n in range(20)]
    text = "# Book\n\n" + "\n\n".join(parts)
    chunks = chunks_of(text, kind="markdown")
    assert [chunk.heading for chunk in chunks] == [f"Book > Part {n}" for n in range(20)]


def test_tiny_neighbours_share_a_chunk_that_names_the_first_and_the_last() -> None:
    text = "# Glossary\n\n" + "".join(f"## Term {n}\n\nIt is {n}.\n\n" for n in range(1, 6)) + "# Other\n\nMore.\n"
    chunks = chunks_of(text, kind="markdown")
    assert [chunk.heading for chunk in chunks] == ["Glossary > Term 1 – Term 5", "Other"]


def test_two_sections_of_the_same_name_stay_apart() -> None:
    body = "A sentence that is long enough not to be tiny at all, or so it is hoped by its author. " * 8
    text = f"# One\n\n## Notes\n\n{body}\n# Two\n\n## Notes\n\n{body}"
    assert [chunk.heading for chunk in chunks_of(text, kind="markdown")] == ["One > Notes", "Two > Notes"]


CODE = '''\
"""A module."""
import os


# Opens the box.
@cached
def open_box(path):
    """Open it."""
    return os.open(path)


class Box:
    """A box."""

    def close(self):
        return 1

    async def lock(self, key):
        return 2


LIMIT = 5
'''


def test_code_is_split_at_its_definitions_with_their_decorators_and_comments() -> None:
    chunks = chunks_of(CODE, kind="code", max_tokens=30)
    assert CODE[chunks[1].start :].startswith("# Opens the box.\n@cached\ndef open_box")
    headings = list(dict.fromkeys(chunk.heading for chunk in chunks))
    assert headings == ["", "def open_box", "class Box", "class Box > def close", "class Box > async def lock"]
    assert heading_at(CODE, "LIMIT", "code", 30) == ""


@table(
    ("line", "heading"),
    [
        ("export async function load(url) {\n  go();\n}", "export async function load"),
        ("export const save = async (x) => {\n  go();\n}", "export const save"),
        ("func (s *Server) Run(ctx context.Context) error {\n\tgo()\n}", "func (s *Server) Run"),
        ("pub fn parse(text: &str) -> Tree {\n    go()\n}", "pub fn parse"),
        ("impl Tree for Node {\n    x\n}", "impl Tree"),
        ("static int main(int argc, char **argv)\n{\n  go();\n}", "static int main"),
        ("public final class Box extends Base {\n  int x;\n}", "public final class Box"),
        ("CREATE TABLE orders (\n  id int\n)", "CREATE TABLE orders"),
    ],
)
def test_definitions_of_many_languages_are_seen(line: str, heading: str) -> None:
    filler = "// some words of comment to fill this file up to more than one chunk\n" * 3
    assert heading_at(f"{filler}\nx = 1\n\n{line}\n", line[:12], "code", 40) == heading


DIFF = """\
diff --git a/src/box.py b/src/box.py
index 1111111..2222222 100644
--- a/src/box.py
+++ b/src/box.py
@@ -1,3 +1,3 @@ def open_box
 keep
--- a/trap.py
+++ b/trap.py
 keep too
@@ -40,2 +40,3 @@ def shut
 last
+added
 end
diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1 +0,0 @@
-gone
"""


def test_a_diff_is_split_by_file_and_hunk_and_not_by_what_its_lines_say() -> None:
    assert heading_at(DIFF, "keep too", "diff", 60) == "src/box.py > @@ -1,3 +1,3 @@ def open_box"
    assert heading_at(DIFF, "added", "diff", 60) == "src/box.py > @@ -40,2 +40,3 @@ def shut"
    assert heading_at(DIFF, "gone", "diff", 60) == "old.txt > @@ -1 +0,0 @@"
    assert not any("trap" in chunk.heading for chunk in chunks_of(DIFF, kind="diff", max_tokens=60))


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidInput, match="markdown, text, code, diff"):
        chunks_of("x", kind="poem")


def test_blanks_of_any_length_do_not_swell_a_chunk() -> None:
    text = "first" + " " * 300_000 + "last"
    chunks = chunks_of(text, kind="text")
    check(text, chunks, 700)
    assert sum(chunk.end - chunk.start for chunk in chunks) < 100_000


def test_a_blank_text_has_no_chunks() -> None:
    assert chunks_of(" \n\t\r\n", kind="text") == []


def test_a_long_section_is_cut_without_any_optional_package() -> None:
    probe = (
        "import sys; from engram.capture.documents.chunk import chunks_of; "
        "print(len(chunks_of('A sentence of words. ' * 1000, kind='text', max_tokens=200)), 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, timeout=60, check=True)
    count, numpy = done.stdout.split()
    assert int(count) > 10 and numpy == "False"
