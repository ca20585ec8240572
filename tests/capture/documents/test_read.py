"""Documents: what is read, what is refused with which advice, what a folder gives."""

import os
from pathlib import Path

import pytest

from engram.capture.documents import source
from engram.capture.documents.source import SkippedFiles, SourceDocument, documents_in, kind_of, read_document
from engram.model.errors import InvalidInput
from tests.tables import table

WORDS = "Grüße, 日本 🙂\r\nsecond line\n"


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_text_is_read_in_the_encoding_its_mark_names(tmp_path: Path, encoding: str) -> None:
    path = written(tmp_path, "note.txt", WORDS.encode(encoding))
    assert read_document(path) == SourceDocument("note.txt", WORDS, "text")


def test_utf_16_of_the_other_byte_order_is_read_too(tmp_path: Path) -> None:
    assert read_document(written(tmp_path, "n.txt", b"\xfe\xff" + WORDS.encode("utf-16-be"))).text == WORDS


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (b"", "is empty"),
        (b"\xef\xbb\xbf \n\t", "is empty"),
        (b"\x7fELF\x02\x01\x00\x00" * 9, "binary data"),
        (b"text" * 5_000 + b"\0", "binary data"),
        (bytes(range(1, 9)) * 50, "binary data"),
        ("Grüße".encode("latin-1"), r"not valid UTF-8 \(byte 2\).*iconv"),
        (b"\xff\xfea", "not valid UTF-16"),
    ],
)
def test_what_is_not_a_text_is_refused_with_advice(tmp_path: Path, content: bytes, advice: str) -> None:
    with pytest.raises(InvalidInput, match=advice):
        read_document(written(tmp_path, "x.md", content))


def test_a_folder_a_missing_file_and_a_pipe_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidInput, match="is a folder"):
        read_document(tmp_path)
    with pytest.raises(InvalidInput, match="does not exist"):
        read_document(tmp_path / "none.md")
    with pytest.raises(InvalidInput, match="not a regular file"):
        read_document(tmp_path / "pipe")


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MAX_FILE_BYTES", 1024 * 1024)
    with pytest.raises(InvalidInput, match="larger than 1 MB"):
        read_document(written(tmp_path, "big.txt", b"a" * (1024 * 1024 + 1)))


def test_a_kind_may_be_given_and_must_be_known(tmp_path: Path) -> None:
    path = written(tmp_path, "note.txt", b"words")
    assert read_document(path, kind="markdown").kind == "markdown"
    with pytest.raises(InvalidInput, match="markdown, text, code, diff"):
        read_document(path, kind="poem")


@table(
    ("name", "text", "kind"),
    [
        ("a.md", "plain words", "markdown"),
        ("a.rs", "words", "code"),
        ("Makefile", "all: x", "code"),
        ("fix.patch", "words", "diff"),
        ("a.rst", "# x\n\n# y\n", "text"),
        ("a.txt", "# Title\n\nSee [this](http://example.org).\n", "markdown"),
        ("", "# One\n\nwords\n\n## Two\n\nwords\n", "markdown"),
        ("", "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", "diff"),
        ("", "#!/bin/sh\necho hi\n", "code"),
        ("", "import os\n\n\ndef load(path):\n    size = os.stat(path)\n    return size\n", "code"),
        ("", "int main(void)\n{\n  int x = 1;\n  return x;\n}\n", "code"),
        ("", "ARTICLE I\n\nThe Buyer shall pay for the goods; and\nfor the use of them.\n\nNo. #5 is void.\n", "text"),
        ("", "For a long time I went to bed early.\nIf only my candle were out,\nreturn would be late.\n", "text"),
    ],
)
def test_the_kind_is_told_by_name_and_by_look(name: str, text: str, kind: str) -> None:
    assert kind_of(text, name) == kind


def test_a_folder_gives_its_texts_in_order_and_leaves_out_the_rest(tmp_path: Path) -> None:
    for name in ("b.md", "a/z.txt", "a/deep/y.py", ".hidden.md", ".git/config", "node_modules/p/readme.md"):
        written(tmp_path, name, b"words")
    written(tmp_path, "image.png", b"\x89PNG\r\n\x1a\n\0\0")
    written(tmp_path, "empty.md", b"")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    (tmp_path / "link.md").symlink_to(tmp_path / "b.md")
    skipped = SkippedFiles()
    found = list(documents_in(tmp_path, skipped))
    assert [path.relative_to(tmp_path).as_posix() for path in found] == ["a/deep/y.py", "a/z.txt", "b.md"]
    assert {Path(path).name for path, _ in skipped.left_out} == {
        ".git", ".hidden.md", "node_modules", "image.png", "empty.md", "loop", "link.md",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("*.log\nbuild/\n", ["keep.md", "src/a.py", "src/build.md"]),
        ("/keep.md\n*.log", ["build/out.md", "src/a.py", "src/build.md"]),
        ("*.md\n!keep.md\n# note\n*.log", ["keep.md", "src/a.py"]),
        ("src/**\n**/out.md", ["keep.md", "x.log"]),
        ("**/a.?y\n[kx]*\nbuild", ["src/build.md"]),
        ("[\n\\#x", ["build/out.md", "keep.md", "src/a.py", "src/build.md", "x.log"]),
    ],
)
def test_what_gitignore_names_is_left_out(tmp_path: Path, patterns: str, left: list[str]) -> None:
    for name in ("keep.md", "x.log", "build/out.md", "src/a.py", "src/build.md"):
        written(tmp_path, name, b"words")
    (tmp_path / ".gitignore").write_text(patterns)
    assert [path.relative_to(tmp_path).as_posix() for path in documents_in(tmp_path, SkippedFiles())] == left


def test_a_gitignore_further_down_counts_for_its_own_folder(tmp_path: Path) -> None:
    for name in ("a/x.md", "b/x.md"):
        written(tmp_path, name, b"words")
    (tmp_path / "a" / ".gitignore").write_text("x.md")
    assert list(documents_in(tmp_path, SkippedFiles())) == [tmp_path / "b" / "x.md"]


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="is not a folder"):
        list(documents_in(written(tmp_path, "a.md", b"words"), SkippedFiles()))
