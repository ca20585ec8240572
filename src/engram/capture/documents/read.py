"""Source documents: what is text, in which encoding, and of what kind.

An encoding is taken from the file's own mark or is UTF-8; it is never guessed, because a wrong guess would make every
quote differ from its source.
"""

import codecs
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from engram.model.errors import InvalidInput

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["KINDS", "LARGEST", "Report", "Skipped", "SourceDocument", "documents_in", "kind_of", "read_document"]

LARGEST = 64 * 1024 * 1024
"""Bytes: a longer file is an archive or a dump, and is better split by who knows its parts."""

Report = Callable[[str, int, int], None]
"""Told which file was looked at, how many were, and 0 because the total is not known."""

LOOKED_AT = 8_192
# A longer .gitignore is not a list of patterns; the rest of it is not read.
LARGEST_GITIGNORE = 256 * 1024
# Text has a control character here and there (form feeds, escapes of a terminal's log); data is full of them.
MOST_CONTROLS = 0.05

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\f\b\x1b")
# Folders that hold what programs made or fetched; hidden ones (.git, .venv) are left out anyway.
_FOREIGN_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "CVS"})

_CHECK = "Check its permissions"
_ADVICE = {
    errno.ELOOP: "The link leads back to itself: name the file it should lead to",
    errno.ENAMETOOLONG: "Check the path",
    errno.ENOTDIR: "Check the path",
}


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A text to be split: its title, its characters exactly as decoded (line ends kept), its kind.

    The kind is "markdown", "text", "code" or "diff".
    """

    title: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """What of a folder was not read: paths, each with the reason."""

    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Nothing to read: hidden, ignored, empty, binary."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Meant to be read, and it cannot be."""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The `.gitignore` rules of a folder and of those above it; the innermost that matches decides."""

    specs: "tuple[tuple[Path, GitIgnoreSpec], ...]" = ()

    def within(self, folder: Path) -> "IgnoreRules":
        """These rules and those of the folder's own `.gitignore`."""
        named = folder / ".gitignore"
        if not named.is_file():  # opening a pipe of that name would block
            return self
        try:
            with named.open(encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST_GITIGNORE).splitlines()
        except OSError:
            return self
        return IgnoreRules(((folder, _spec(lines)), *self.specs))

    def ignore(self, path: Path, is_folder: bool) -> bool:
        """Whether the rules leave this file or folder out."""
        for base, spec in self.specs:
            ignored = spec.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
            if ignored is not None:
                return ignored
        return False


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    """The rules of some lines; like git, it passes over a line that is not a pattern."""
    from pathspec import GitIgnoreSpec

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec([pattern for line in lines for pattern in _patterns(line)])


def _patterns(line: str) -> "list[Any]":
    from pathspec import GitIgnoreSpec

    try:
        return list(GitIgnoreSpec.from_lines([line]).patterns)
    except ValueError:
        return []


def read_document(path: Path, *, kind: str = "") -> SourceDocument:
    """The document in a file; its kind by name and look unless given.

    A file that is empty, binary, too large, not UTF-8 or not readable is refused with what to do about it.
    """
    if kind and kind not in KINDS:
        raise InvalidInput(f"There is no kind of document called {kind!r}; known are {', '.join(KINDS)}")
    text = _decoded(_bytes_of(path), path)
    if not text.strip():
        raise InvalidInput(f"{path} is empty: there is nothing to remember in it")
    return SourceDocument(path.name, text, kind or kind_of(text, path.name))


def documents_in(folder: Path, *, progress: Report | None = None, skipped: Skipped | None = None) -> Iterator[Path]:
    """The text files below a folder, in order of their paths.

    Left out are hidden files and folders, what `.gitignore` files below the folder name, installed packages, links (a linked
    folder may lead back here), pipes and the like, binary and empty files; `skipped` lists each. A folder left out is
    named, not what it holds. A file that nobody may look into is given all the same: reading it tells why.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder. Give the path of a folder, or of one file")
    yield from _walk(folder, IgnoreRules(), progress or (lambda *_: None), [0], skipped or Skipped())


def _walk(folder: Path, ignored: IgnoreRules, progress: Report, looked: list[int], skipped: Skipped) -> Iterator[Path]:
    ignored = ignored.within(folder)
    try:
        entries = _entries(folder)
    except OSError as error:
        skipped.refused.append((str(folder), f"the folder cannot be read: {error.strerror}. {_CHECK}"))
        return
    for entry in entries:
        path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
        reason = _by_name(entry, ignored, is_folder)
        if is_folder and not reason:
            yield from _walk(path, ignored, progress, looked, skipped)
            continue
        if not reason:
            looked[0] += 1
            progress(entry.name, looked[0], 0)
            reason = _by_look(path)
        if reason:
            skipped.left_out.append((str(path), reason))
        else:
            yield path


def _by_name(entry: os.DirEntry[str], ignored: IgnoreRules, is_folder: bool) -> str:
    """Why a file or folder is not looked into; "" where it is."""
    if entry.name.startswith("."):
        return "hidden"
    if entry.is_symlink():
        return "a link; what it leads to is read where it lies"
    if ignored.ignore(Path(entry.path), is_folder):
        return "named in a .gitignore"
    if is_folder:
        return "installed or made by programs" if entry.name in _FOREIGN_FOLDERS else ""
    return "" if entry.is_file(follow_symlinks=False) else "no file: a pipe, a socket or a device"


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What a folder holds, by name."""
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _by_look(path: Path) -> str:
    """Why the beginning of a file shows that there is nothing to read; "" where there is, or nobody may look."""
    try:
        with _opened(path) as file:
            start = file.read(LOOKED_AT)
            whole = len(start) < LOOKED_AT
    except OSError:
        return ""
    if not start:
        return "empty"
    if _is_binary(start):
        return "binary"
    return "blank" if whole and not start.strip() else ""


def _opened(path: Path) -> BinaryIO:
    """A file to read. Something else that has taken its place, a pipe say, is opened without a wait for its writer."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _bytes_of(path: Path) -> bytes:
    try:
        # Looked at by name first: to open a device can be more than to look at it.
        _refuse_no_file(path, path.stat().st_mode)
        with _opened(path) as file:
            _refuse_no_file(path, os.fstat(file.fileno()).st_mode)
            content = file.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise InvalidInput(f"There is no file {path}. Check the path") from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. {_ADVICE.get(error.errno or 0, _CHECK)}"
        ) from error
    if len(content) > LARGEST:
        raise InvalidInput(
            f"{path} is larger than {LARGEST // 1024**2} MB. Split it into parts (split -C 32m) and ingest those"
        )
    return content


def _refuse_no_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is a folder. Give one file, or ingest the folder as a whole")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is not a file that can be read to its end. Copy what it gives into a file")


def _decoded(content: bytes, path: Path) -> str:
    if _is_binary(content[:LOOKED_AT]) or (_encoding(content) == "utf-8" and b"\0" in content):
        raise InvalidInput(f"{path} is not a text: it holds binary data. Export it as text or Markdown first")
    encoding = _encoding(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid {encoding.removesuffix('-sig').upper()} (byte {error.start}). Convert it first, for "
            "example: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from error


def _encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")


def _is_binary(start: bytes) -> bool:
    """Whether the beginning of a file looks like data: NULs, or many control characters."""
    if _encoding(start) not in ("utf-8", "utf-8-sig"):
        return False
    controls = len(start) - len(start.translate(None, _CONTROLS))
    return b"\0" in start or controls > MOST_CONTROLS * len(start)


# -- the kind of a document

KINDS = ("markdown", "text", "code", "diff")

KIND_CHARACTERS = 20_000

_ENDINGS = {
    "markdown": "md markdown mdown mkd mdx mdc qmd rmd",
    "diff": "diff patch",
    "code": """
        py pyi pyx js jsx mjs cjs ts tsx mts cts java kt kts scala groovy gradle c h cc cpp cxx hpp hh hxx m mm cs fs vb go rs
        swift rb erb php pl pm lua r jl ex exs erl hrl hs ml mli clj cljs el lisp scm sh bash zsh fish ps1 bat cmd sql
        proto thrift graphql tf hcl nix cmake mk zig nim d dart v sv vhd vhdl sol asm s css scss sass less vue svelte html htm
        xml xsl svg json jsonc json5 jsonl ndjson yaml yml toml ini cfg conf properties
    """,
    "text": "rst adoc asciidoc org tex csv tsv log srt vtt eml",
}
_KIND_OF = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_CODE_NAMES = frozenset({"makefile", "dockerfile", "rakefile", "gemfile", "justfile", "jenkinsfile", "vagrantfile"})

_DIFF = re.compile(r"^(?:diff --git a/|Index: \S|--- \S.*\n\+\+\+ \S.*\n@@ -\d)", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_MARKDOWN = (
    re.compile(r"^ {0,3}#{1,6} \S", re.MULTILINE),
    re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE),
    re.compile(r"\[[^\]\n]{1,200}\]\([^)\s]{1,500}\)"),
    re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    re.compile(r"^\|.{1,500}\|[ \t]*\r?$", re.MULTILINE),
    re.compile(r"^[^\n]{1,200}\n(?:={3,}|-{3,})[ \t\r]*$", re.MULTILINE),
)
_CODE_LINE = re.compile(
    r"^[ \t]*+(?:(?:def|class|if|for|while|function|func|fn|public|private|struct|interface|elif|else|with|try|except)\b.*[:{)]"
    r"[ \t\r]*$|(?:import|package|use|\#include|const|let|var)[ \t]+\S+[ \t\r;]*$|from[ \t]+\S+[ \t]+import\b|return\b|"
    r"[\w.$\[\]\"' :]{1,60}?[-+:]?=[ \t]*\S|.*[;{}][ \t\r]*$|[)\]}]+[,;]?[ \t\r]*$|@\w+|//|\#!|[\w.]+\(.*\)[ \t\r]*$)",
    re.MULTILINE,
)
_MOSTLY_CODE = 0.4


def kind_of(text: str, name: str = "") -> str:
    """The kind of a text: "markdown", "text", "code" or "diff".

    A name's ending decides where it is known; `.txt`, unknown endings and no name leave it to the look.
    """
    by_name = _kind_by_name(name)
    return by_name or _kind_by_look(text[:KIND_CHARACTERS])


def _kind_by_name(name: str) -> str:
    path = PurePath(name.lower())
    if path.name in _CODE_NAMES:
        return "code"
    return _KIND_OF.get(path.suffix[1:], "")


def _kind_by_look(text: str) -> str:
    if _DIFF.search(text) and _HUNK.search(text):
        return "diff"
    if text.startswith("#!") or _share_of_code(text) > _MOSTLY_CODE:
        return "code"
    signs = [len(sign.findall(text)) for sign in _MARKDOWN]
    # A lone `#` may be a comment or a number; with another sign, or several of them, it is a heading.
    is_markdown = sum(found > 0 for found in signs) >= 2 or signs[0] >= 2 or signs[-1] >= 2
    return "markdown" if is_markdown else "text"


def _share_of_code(text: str) -> float:
    lines = sum(1 for line in text.split("\n") if line.strip())
    return len(_CODE_LINE.findall(text)) / lines if lines > 2 else 0.0
