"""Cuts sources into passages: Markdown by its headings, sessions by their exchanges, each short enough to be judged as one thing."""

import re
from collections.abc import Iterable, Iterator, Sequence

from engram.agents.sources.documents import read_text
from engram.agents.sources.frontmatter import body_of, header_of, text_field
from engram.agents.sources.source import Source, SourceContent, SourcePassage
from engram.gates.secrets.scan import redact
from engram.model.errors import Refused
from engram.recall.sources.sessions import SpokenLine
from engram.text.markup import strip_comments

MAX_PASSAGE_CHARACTERS = 1_000
"""Characters of a passage; a longer paragraph is cut at a line or a sentence."""
MAX_PASSAGES = 400
"""Passages of one file."""
HEADING_SEPARATOR = " › "
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]++(.+)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_LONGEST_HEADING = 120


def file_content(source: Source) -> SourceContent:
    """The passages of a Markdown file, its secrets redacted; a skill's description comes first."""
    text = redact(_without_own_block(read_text(source.path), source.name))[0]
    header = header_of(text) if text.startswith("---") else {}
    title, described = text_field(header, "name") or source.title, text_field(header, "description")
    about = f"{title} {described}" if source.kind == "skill" else title
    passages = [SourcePassage(described, "", source.modified, about)] if described else []
    for section, part in _sections(strip_comments(body_of(text), unclosed=False)):
        if len(passages) >= MAX_PASSAGES:
            break
        passages += [SourcePassage(piece, section, None, f"{about} {section}".strip()) for piece in _pieces(part)]
    return SourceContent(tuple(passages[:MAX_PASSAGES]), title if source.kind == "skill" else "")


def session_content(directory: str, lines: Iterable[SpokenLine]) -> SourceContent:
    """The exchanges of a session: what was asked with what was answered, as far as they fit into one passage."""
    passages: list[SourcePassage] = []
    gathered: list[SpokenLine] = []
    size = 0
    for line in lines:
        is_new = line.role == "user" and any(one.role != "tool" for one in gathered)
        if gathered and (is_new or size + len(line.text) > MAX_PASSAGE_CHARACTERS):
            passages.append(_exchange(gathered))
            gathered, size = [], 0
        gathered.append(line)
        size += len(line.text)
    if gathered:
        passages.append(_exchange(gathered))
    return SourceContent(tuple(passages), directory=directory)


def _exchange(lines: Sequence[SpokenLine]) -> SourcePassage:
    at = next((line.at for line in lines if line.at is not None), None)
    return SourcePassage("\n".join(f"{line.role}: {line.text}" for line in lines), "", at)


def _without_own_block(text: str, name: str) -> str:
    """The text without the block that Engram itself keeps there: its memories are found as memories."""
    from engram.recall.prompt.context_markers import without_block

    if "engram:begin" not in text:
        return text
    try:
        return without_block(text, name)
    except Refused:
        return text


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a text between its headings, each with the headings above it; those in code are none."""
    path: list[tuple[int, str]] = []
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if found := _FENCE.match(line):
            fence = "" if fence and found[1].startswith(fence) else fence or found[1]
        heading = None if fence else _HEADING.match(line)
        if heading is None:
            lines.append(line)
            continue
        yield HEADING_SEPARATOR.join(name for _, name in path), "\n".join(lines)
        depth, lines = len(heading[1]), []
        path = [*(one for one in path if one[0] < depth), (depth, _title(heading[2]))]
    yield HEADING_SEPARATOR.join(name for _, name in path), "\n".join(lines)


def _title(text: str) -> str:
    """The text of a heading without the `#` that may close it."""
    text = text.rstrip(" \t")
    return (text.rstrip("#").rstrip(" \t") or text)[:_LONGEST_HEADING]


def _pieces(text: str) -> Iterator[str]:
    """A section in pieces: whole paragraphs, as many as fit; a long one is cut."""
    gathered = ""
    for paragraph in re.split(r"\n[ \t]*\n", text):
        for part in _cut(paragraph.strip("\n").rstrip()):
            if gathered and len(gathered) + len(part) > MAX_PASSAGE_CHARACTERS:
                yield gathered
                gathered = ""
            gathered = f"{gathered}\n\n{part}" if gathered else part
    if gathered.strip():
        yield gathered


def _cut(paragraph: str) -> Iterator[str]:
    while len(paragraph) > MAX_PASSAGE_CHARACTERS:
        end = max(paragraph.rfind(mark, 0, MAX_PASSAGE_CHARACTERS) + 1 for mark in ("\n", ". ", "? ", "! ", "。"))
        end = (
            end
            if end > MAX_PASSAGE_CHARACTERS // 3
            else paragraph.rfind(" ", 0, MAX_PASSAGE_CHARACTERS) + 1 or MAX_PASSAGE_CHARACTERS
        )
        yield paragraph[:end].rstrip()
        paragraph = paragraph[end:].lstrip("\n")
    if paragraph.strip():
        yield paragraph
