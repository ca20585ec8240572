"""Source documents: found in a folder and decoded, then known by their text without secrets and by their versions.
The encoding is never guessed: with a wrong guess every quote would differ from its source."""

import codecs
import errno
import hashlib
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, BinaryIO

from engram.capture.documents.chunk import Chunk
from engram.gates.secrets.scan import Secret, find_secrets
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import Evidence, Memory
from engram.model.records import DOCUMENT_ROLE, Event, TaskRun
from engram.store.intake import NewEvent
from engram.store.protocol import Filters, Store
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

SOURCE = DOCUMENT = "document:"
"""The prefix of the source of memories that come from a document, and of a document's ledger."""
FACT_TYPE = "semantic"
"""The type of facts from documents."""
PAGE = 5_000
"""Memories listed at a time."""
_LONGEST_TITLE = 100

MAX_SECRETS = 500
"""Secrets of a document whose spans are stored one by one."""
DENSE_CHARS = 100
"""Characters between two secrets of a document with more of them that are redacted as well."""
Chunks = Sequence[tuple[Chunk, Event]]
"""The chunks of a document, each with the event that stores it."""


@dataclass(frozen=True, slots=True)
class SourceText:
    """A document to be ingested into a task's ledger."""

    task: TaskRun
    text: str
    title: str
    kind: str
    path: str
    secrets: tuple[Secret, ...]
    digest: str
    """The digest of the text without its secrets."""
    key: str
    """Identifies the document, its file and its chunk size; the prefix of its events' keys."""

    @classmethod
    def of(cls, task: TaskRun, text: str, title: str, kind: str, path: str, max_chunk_tokens: int) -> "SourceText":
        """Find the secrets in the whole text, because a chunk boundary may run through one."""
        secrets = tuple(_join_dense(find_secrets(text)))
        digest = quote_hash(without(text, 0, len(text), secrets)[0])
        identity = "\0".join((digest, title, kind, path, str(max_chunk_tokens)))
        return cls(task, text, title, kind, path, secrets, digest, hashlib.sha256(identity.encode()).hexdigest()[:24])

    @property
    def source(self) -> str:
        """The source of the memories that come from it."""
        return f"{SOURCE}{self.title[:_LONGEST_TITLE] or self.task.id}"

    def evidence(self, chunk: Chunk, event: Event, start: int, end: int) -> Evidence | None:
        """The evidence for a span of the text within its chunk; None if the span contains a secret."""
        if without(self.text, start, end, self.secrets)[1]:
            return None
        # Redaction before the span has moved it.
        first = len(without(self.text, chunk.start, start, self.secrets)[0])
        return Evidence(event.id, (first, first + end - start), quote_hash(self.text[start:end]))


def _join_dense(secrets: Sequence[Secret]) -> Iterator[Secret]:
    """The secrets; of a text with more than `MAX_SECRETS`, those close to each other are one."""
    last: Secret | None = None
    for secret in secrets:
        if last is not None and (len(secrets) <= MAX_SECRETS or secret.start - last.end > DENSE_CHARS):
            yield last
            last = None
        last = secret if last is None else Secret(last.kind, last.start, secret.end)
    if last is not None:
        yield last


def without(text: str, start: int, end: int, secrets: Sequence[Secret]) -> tuple[str, list[Secret]]:
    """A span of a text with the secrets in it replaced by `[redacted:kind]`, and the spans that were replaced."""
    first = bisect_right(secrets, start, key=lambda secret: secret.end)
    pieces, cuts, position = [], [], start
    for secret in islice(secrets, first, None):
        if secret.start >= end:
            break
        cuts.append(Secret(secret.kind, max(start, secret.start), min(end, secret.end)))
        pieces += [text[position : cuts[-1].start], redaction(secret.kind)]
        position = cuts[-1].end
    return "".join([*pieces, text[position:end]]), cuts


def redaction(kind: str) -> str:
    """The replacement for a secret."""
    return f"[redacted:{kind}]"


# -- versions


@dataclass(frozen=True, slots=True)
class Version:
    """One ingestion: its source event, the digest of its text, and its facts, each with the id of its chunk."""

    source: str
    task: str
    digest: str
    facts: tuple[tuple[str, str], ...] | None = None
    """None if the ingestion was interrupted."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The earlier ingestions of a document.

    A document is identified by its scope and its file, or its text if it has no file. Its small ledger has two events
    per version: one when ingestion starts, one with the facts when it ends. A version without the second was
    interrupted.
    """

    store: Store
    ledger: str
    scope: str

    @classmethod
    def of(cls, store: Store, scope: str, path: str, digest: str) -> "Versions":
        """The versions of a file, or of a text without a file."""
        name = hashlib.sha256("\0".join((scope, path or digest)).encode()).hexdigest()[:24]
        return cls(store, f"{DOCUMENT}{name}", scope)

    def all(self) -> list[Version]:
        """Every version, oldest first; one that was interrupted and repeated counts once."""
        found = [_version(event) for event in self.store.events(self.ledger)]
        complete = {version.source for version in found if version.facts is not None}
        return [version for version in found if version.facts is not None or version.source not in complete]

    def latest(self) -> Version | None:
        """The last complete version."""
        newest = [_version(event) for event in self.store.events(self.ledger, last=1)]
        if all(version.facts is not None for version in newest):  # no interrupted ingestion since
            return newest[0] if newest else None
        return next((version for version in reversed(self.all()) if version.facts is not None), None)

    def append(self, version: Version, now: datetime) -> None:
        """Record that the ingestion of a version has started, or with its facts that it has ended."""
        payload: dict[str, Any] = {"source": version.source, "task": version.task, "digest": version.digest}
        content = "A version of a document is read"
        if version.facts is not None:
            content = f"A version of a document was read: {len(version.facts)} facts"
            payload["facts"] = [list(pair) for pair in version.facts]
        event = NewEvent(DOCUMENT_ROLE, content, now, "observation", payload=payload)
        self.store.append_events(self.ledger, [event], scope=self.scope)

    def facts(self, version: Version) -> Sequence[tuple[str, str]]:
        """The facts of a version with their chunks; for an interrupted one they are searched in its scope."""
        if version.facts is not None:
            return version.facts
        chunks = {e.id for e in self.store.events(version.task) if e.payload.get("source") == version.source}
        return [
            (memory.id, evidence.event)
            for memory in facts_from_documents(self.store, self.scope, None)
            for evidence in memory.evidence
            if evidence.event in chunks
        ]


def facts_from_documents(store: Store, scope: str, statuses: tuple[str, ...] | None) -> list[Memory]:
    """The facts from documents in a scope, with these statuses."""
    filters = Filters(scopes=(scope,), statuses=statuses, types=(FACT_TYPE,))
    found: list[Memory] = []
    for start in range(0, store.count(filters), PAGE):
        found += [m for m in store.listing(filters, PAGE, start) if m.source.startswith(SOURCE)]
    return found


def _version(event: Event) -> Version:
    source, task, digest = (str(event.payload.get(name, "")) for name in ("source", "task", "digest"))
    facts = event.payload.get("facts")
    pairs = None if facts is None else tuple((str(fact), str(chunk)) for fact, chunk in facts)
    return Version(source, task, digest, pairs)


MAX_FILE_BYTES = 64 * 1024 * 1024
"""Bytes; a larger file is an archive or a dump and should be split."""

MAX_STARS = 3
"""`*` and `**` in a rule of a `.gitignore`, the latter once less: a path is tried in all the ways in which they can share it."""
_STARS = re.compile(r"\*+")
SAMPLE_BYTES = 8_192
# A longer .gitignore is not a list of patterns; the rest is not read.
MAX_GITIGNORE_BYTES = 256 * 1024
# Text may contain some control characters (form feeds, terminal escapes); binary data is full of them.
MAX_CONTROL_SHARE = 0.05

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROLS = bytes(code for code in (*range(32), 127) if code not in b"\t\n\r\f\b\x1b")
# Generated or downloaded folders; hidden ones (.git, .venv) are skipped anyway.
_FOREIGN_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages", "CVS"})

_CHECK_PERMISSIONS = "Check its permissions"
_ADVICE = {
    errno.ELOOP: "The link points to itself; name the target file",
    errno.ENAMETOOLONG: "Check the path",
    errno.ENOTDIR: "Check the path",
}


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A text to be ingested: its title, its characters exactly as decoded (line ends kept), its kind.

    The kind is "markdown", "text", "code" or "diff".
    """

    title: str
    text: str
    kind: str


@dataclass(frozen=True, slots=True)
class SkippedFiles:
    """The files of a folder that were not read: paths, each with the reason."""

    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Skipped: hidden, ignored, empty, binary."""
    refused: list[tuple[str, str]] = field(default_factory=list)
    """Could not be read."""


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The `.gitignore` rules of a folder and its parents; the innermost match decides."""

    specs: "tuple[tuple[Path, GitIgnoreSpec], ...]" = ()

    def within(self, folder: Path) -> "IgnoreRules":
        """These rules plus those of the folder's own `.gitignore`."""
        named = folder / ".gitignore"
        if not named.is_file():  # opening a pipe of that name would block
            return self
        try:
            with named.open(encoding="utf-8", errors="replace") as file:
                lines = file.read(MAX_GITIGNORE_BYTES).splitlines()
        except OSError:
            return self
        return IgnoreRules(((folder, _spec(lines)), *self.specs))

    def ignore(self, path: Path, is_folder: bool) -> bool:
        """Whether the rules ignore this file or folder."""
        for base, spec in self.specs:
            ignored = spec.check_file(path.relative_to(base).as_posix() + "/" * is_folder).include
            if ignored is not None:
                return ignored
        return False


def _spec(lines: list[str]) -> "GitIgnoreSpec":
    """The rules in these lines; like git, skips a line that is not a pattern. Skips one with too many stars, too."""
    from pathspec import GitIgnoreSpec

    lines = [line for line in lines if line.count("**") < MAX_STARS and len(_STARS.findall(line)) <= MAX_STARS]
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
    """The document in a file; its kind is determined by name and content unless given.

    Raises `InvalidInput`, with advice, for a file that is empty, binary, too large, not UTF-8 or not readable.
    """
    if kind and kind not in KINDS:
        raise InvalidInput(f"Unknown kind of document {kind!r}; choose from {', '.join(KINDS)}")
    text = _decode(_bytes_of(path), path)
    if not text.strip():
        raise InvalidInput(f"{path} is empty")
    return SourceDocument(path.name, text, kind or kind_of(text, path.name))


def documents_in(folder: Path, skipped: SkippedFiles) -> Iterator[Path]:
    """The text files below a folder, in order of their paths. Raises `InvalidInput` if it is not a folder.

    Left out are hidden and ignored (`.gitignore`) files and folders, installed packages, links (a linked folder may lead back
    here), pipes and the like, binary and empty files; `skipped` lists each, a folder without its files. A file without read
    permission is returned, and fails when it is read.
    """
    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder. Give the path of a folder, or of one file")
    yield from _walk(folder, IgnoreRules(), skipped)


def _walk(folder: Path, ignored: IgnoreRules, skipped: SkippedFiles) -> Iterator[Path]:
    ignored = ignored.within(folder)
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        skipped.refused.append((str(folder), f"the folder cannot be read: {error.strerror}. {_CHECK_PERMISSIONS}"))
        return
    for entry in entries:
        path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
        reason = _skip_reason_by_name(entry, ignored, is_folder)
        if is_folder and not reason:
            yield from _walk(path, ignored, skipped)
            continue
        reason = reason or _skip_reason_by_content(path)
        if reason:
            skipped.left_out.append((str(path), reason))
        else:
            yield path


def _skip_reason_by_name(entry: os.DirEntry[str], ignored: IgnoreRules, is_folder: bool) -> str:
    """Why a file or folder is skipped by its name or type; "" if it is not."""
    if entry.name.startswith("."):
        return "hidden"
    if entry.is_symlink():
        return "a link; its target is read where it is"
    if ignored.ignore(Path(entry.path), is_folder):
        return "ignored by a .gitignore"
    if is_folder:
        return "installed or generated files" if entry.name in _FOREIGN_FOLDERS else ""
    return "" if entry.is_file(follow_symlinks=False) else "not a regular file: a pipe, a socket or a device"


def _skip_reason_by_content(path: Path) -> str:
    """Why a file is skipped by its first bytes; "" if it is not, or cannot be opened."""
    try:
        with _open_file(path) as file:
            start = file.read(SAMPLE_BYTES)
            whole = len(start) < SAMPLE_BYTES
    except OSError:
        return ""
    if not start:
        return "empty"
    if _is_binary(start):
        return "binary"
    return "blank" if whole and not start.strip() else ""


def _open_file(path: Path) -> BinaryIO:
    """The opened file. Non-blocking, in case a pipe has taken its place."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")


def _bytes_of(path: Path) -> bytes:
    try:
        # Checked before opening: opening a device can have side effects.
        _require_file(path, path.stat().st_mode)
        with _open_file(path) as file:
            _require_file(path, os.fstat(file.fileno()).st_mode)
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError as error:
        raise InvalidInput(f"{path} does not exist. Check the path") from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror}. {_ADVICE.get(error.errno or 0, _CHECK_PERMISSIONS)}"
        ) from error
    if len(content) > MAX_FILE_BYTES:
        raise InvalidInput(
            f"{path} is larger than {MAX_FILE_BYTES // 1024**2} MB. Split it into parts (split -C 32m) and ingest those"
        )
    return content


def _require_file(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is a folder. Give one file, or ingest the folder as a whole")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is not a regular file. Copy its content into a file")


def _decode(content: bytes, path: Path) -> str:
    if _is_binary(content[:SAMPLE_BYTES]) or (_find_encoding(content) == "utf-8" and b"\0" in content):
        raise InvalidInput(f"{path} contains binary data. Export it as text or Markdown first")
    encoding = _find_encoding(content)
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not valid {encoding.removesuffix('-sig').upper()} (byte {error.start}). Convert it first, for "
            "example: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from error


def _find_encoding(content: bytes) -> str:
    return next((name for mark, name in _MARKS if content.startswith(mark)), "utf-8")


def _is_binary(start: bytes) -> bool:
    """Whether the first bytes of a file look binary: NULs, or many control characters."""
    if _find_encoding(start) not in ("utf-8", "utf-8-sig"):
        return False
    controls = len(start) - len(start.translate(None, _CONTROLS))
    return b"\0" in start or controls > MAX_CONTROL_SHARE * len(start)


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

    A known file extension decides; for `.txt`, unknown extensions and no name the content decides.
    """
    by_name = _kind_by_name(name)
    return by_name or _kind_by_content(text[:KIND_CHARACTERS])


def _kind_by_name(name: str) -> str:
    path = PurePath(name.lower())
    if path.name in _CODE_NAMES:
        return "code"
    return _KIND_OF.get(path.suffix[1:], "")


def _kind_by_content(text: str) -> str:
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
