"""Reads sources into the passages that the index stores: Markdown by its headings, sessions by their exchanges.

If many sources are new, a second process reads half of them.
"""

import os
import pickle
import re
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from engram.agents.sources.documents import Source, SourceContent, SourcePassage, read_text
from engram.agents.sources.frontmatter import body_of, header_of, text_field
from engram.agents.sources.places import SourcePlaces
from engram.agents.transcripts.session import Problems, directory_of
from engram.gates.secrets.scan import redact
from engram.model.errors import Refused
from engram.recall.sources.sessions import SpokenLine, is_here, spoken_lines
from engram.text.display import strip_comments

if TYPE_CHECKING:
    from queue import SimpleQueue

MAX_EMBEDDED_CHARACTERS = 500
"""Characters of a passage that are embedded. Its subject is at its beginning, and the keyword search covers the
rest.
"""
MIN_SHARED_SOURCES = 64
"""The number of sources from which a second process is worth starting; starting it takes as long as reading five
sources.
"""
MAX_SENT_AHEAD = 3
"""The number of sources queued for the second process, so that it never waits."""
MAX_READ_AHEAD = 64
"""The number of sources read ahead of one that is still being read; they are stored in order."""
POLL_SECONDS = 0.1
"""How long to wait for an answer before checking for cancellation."""
SILENT_S, ENDED_S = 5.0, 2.0
"""Seconds without an answer, while nothing else is left to do, before the second process is given up; and seconds to
wait for its end.
"""
_START = (
    "import sys; sys.path[:] = {path!r}; from engram.recall.sources.reader import answer_requests; answer_requests()"
)


class PassageRow(NamedTuple):
    """A passage as the index stores it."""

    section: str
    text: str
    moment: float | None
    vector: bytes | None
    """Half precision; None if no word is known."""
    statement: str
    """The index terms of its text and of its section."""
    about: str


class ReadSource(NamedTuple):
    """A source as the index stores it."""

    source: Source
    title: str
    directory: str
    is_loaded: bool
    """False for a session of another project, of which only the directory is known."""
    rows: tuple[PassageRow, ...]
    problems: tuple[str, ...] = ()
    """Why it could not be read."""


def read_source(source: Source, places: SourcePlaces) -> ReadSource:
    """A source in the form the index stores. One that cannot be read has no passages until it changes."""
    content, is_loaded, problems = SourceContent(()), True, Problems()
    try:
        content, is_loaded = _content(source, places)
    except Exception as error:
        problems.add(source.path, error)
    rows = tuple(_rows(content.passages))
    return ReadSource(source, content.title, content.directory, is_loaded, rows, tuple(problems.found))


def _content(source: Source, places: SourcePlaces) -> tuple[SourceContent, bool]:

    if source.session is None:
        return file_content(source), True
    directory = directory_of(source.session)
    if not is_here(source, directory, places):
        return SourceContent((), directory=directory), False
    return session_content(*spoken_lines(source)), True


def _rows(passages: Sequence[SourcePassage]) -> Iterator[PassageRow]:
    from engram.embedding.static import StaticEmbedder
    from engram.store.sqlite.writer import to_blob
    from engram.text.tokens import marked_terms, tokens

    vectors = StaticEmbedder().embed(
        [f"{passage.section}\n{passage.text}"[:MAX_EMBEDDED_CHARACTERS] for passage in passages]
    )
    for passage, vector in zip(passages, vectors, strict=True):
        yield PassageRow(
            passage.section,
            passage.text,
            passage.time.timestamp() if passage.time is not None else None,
            to_blob(vector) if vector.any() else None,
            marked_terms(f"{passage.section}. {passage.text}" if passage.section else passage.text),
            " ".join(tokens(passage.about)) if passage.about else "",
        )


def read_in_order(
    sources: Sequence[Source], places: SourcePlaces, stopped: Callable[[], bool]
) -> Generator[ReadSource, None, None]:
    """The sources in the form the index stores, in order, until `stopped` returns true."""
    second = SecondReader.start(places) if len(sources) >= MIN_SHARED_SOURCES else None
    try:
        yield from (
            _read_alone(sources, places, stopped)
            if second is None
            else _read_with_second(sources, places, stopped, second)
        )
    finally:
        if second is not None:
            second.close()


def _read_alone(sources: Sequence[Source], places: SourcePlaces, stopped: Callable[[], bool]) -> Iterator[ReadSource]:
    for source in sources:
        if stopped():
            return
        yield read_source(source, places)


def _read_with_second(
    sources: Sequence[Source], places: SourcePlaces, stopped: Callable[[], bool], second: "SecondReader"
) -> Iterator[ReadSource]:
    """Read with two processes: each takes the next source, and the second one has some queued."""
    waiting, ready, turn = deque(range(len(sources))), dict[int, ReadSource](), 0
    while turn < len(sources) and not stopped():
        while waiting and len(second.pending) < MAX_SENT_AHEAD and second.send(waiting[0], sources[waiting[0]]):
            waiting.popleft()
        idle = not waiting or waiting[0] - turn >= MAX_READ_AHEAD
        if not idle:
            number = waiting.popleft()
            ready[number] = read_source(sources[number], places)
        ready.update(second.collect_answers(POLL_SECONDS if idle and turn not in ready else 0))
        # The queue of a failed process is read here.
        waiting.extendleft(sorted(second.take_back_pending(), reverse=True))
        while turn in ready:
            yield ready.pop(turn)
            turn += 1


class SecondReader:
    """A process that reads sources. `pending` has the numbers of those it was sent and has not answered.

    The second process is this program again. It reads requests from its standard input, answers on its standard output,
    and ends when either is closed, which includes the end of the process that started it. It writes nothing. If it
    cannot be started, or fails, its sources are read here.
    """

    def __init__(self, places: SourcePlaces) -> None:
        """Start the process. Raises `OSError` if that is not possible."""
        import subprocess
        import threading
        from queue import SimpleQueue

        self.pending: deque[int] = deque()
        self._answers: SimpleQueue[ReadSource | None] = SimpleQueue()
        self._failed, self._waited = False, 0.0
        # Isolated, so that a folder of the project named `engram` is not run instead.
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-c", _START.format(path=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests = self._process.stdin
        # A pipe is smaller than one answer, and the process should not wait until its answer is read.
        self._receiver = threading.Thread(target=_receive, args=(self._process.stdout, self._answers), daemon=True)
        self._receiver.start()
        self._send(places)

    @classmethod
    def start(cls, places: SourcePlaces) -> "SecondReader | None":
        """The process; None if there is no spare processor, or no Python to run it with."""
        if _processors() < 2 or not Path(sys.executable or "").name.lower().startswith("python"):
            return None
        with suppress(OSError):
            return cls(places)
        return None

    def send(self, number: int, source: Source) -> bool:
        """Send a source to be read; False if the process has failed."""
        if self._failed or not self._send(source):
            return False
        self.pending.append(number)
        return True

    def _send(self, message: object) -> bool:
        try:
            pickle.dump(message, self._requests)
            self._requests.flush()
        except OSError:
            self._failed = True
        return not self._failed

    def collect_answers(self, wait: float) -> dict[int, ReadSource]:
        """The sources read since the last call, by number; waits up to this many seconds for the first one."""
        from queue import Empty

        found: dict[int, ReadSource] = {}
        with suppress(Empty):
            while self.pending and not self._failed:
                answer = self._answers.get(timeout=wait) if wait and not found else self._answers.get_nowait()
                if answer is None:
                    self._failed = True
                else:
                    found[self.pending.popleft()] = answer
        self._waited = 0.0 if found else self._waited + wait
        self._failed = self._failed or self._waited >= SILENT_S
        return found

    def take_back_pending(self) -> list[int]:
        """The numbers of the sources that it will no longer answer; empty on later calls."""
        lost = list(self.pending) if self._failed else []
        if lost:
            self.pending.clear()
        return lost

    def close(self) -> None:
        """End the process, whatever its state."""
        # It ends when its input does, even if a wrapper of Python is the process that is killed.
        with suppress(OSError):
            self._requests.close()
        self._process.kill()
        self._process.wait()
        self._receiver.join(ENDED_S)


def _receive(stream: BinaryIO, answers: "SimpleQueue[ReadSource | None]") -> None:
    """Forward the answers of the process, and None when it has ended."""
    with suppress(Exception), stream:
        while True:
            answers.put(pickle.load(stream))
    answers.put(None)


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def answer_requests() -> None:
    """The second process's main loop: read each source it is sent until its input ends or nobody reads its answers."""
    import gc
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started it decides
    gc.set_threshold(100_000)
    # Other output must not disturb the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with suppress(EOFError, BrokenPipeError), open(0, "rb") as requests:
        places: SourcePlaces = pickle.load(requests)
        while True:
            pickle.dump(read_source(pickle.load(requests), places), answers)
            answers.flush()
    os._exit(0)  # an answer that nobody reads must not be flushed


MAX_PASSAGE_CHARACTERS = 1_000
"""The maximum number of characters of a passage; a longer paragraph is cut at a line or a sentence."""
MAX_PASSAGES = 400
"""The maximum number of passages of one file."""
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
    """The exchanges of a session: each request with its answer, as far as they fit into one passage."""
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
    """The text without Engram's own block, whose memories are found as memories."""
    from engram.recall.prompt.context_block import without_block

    if "engram:begin" not in text:
        return text
    try:
        return without_block(text, name)
    except Refused:
        return text


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """The parts of a text between its headings, each with the headings above it. Headings inside code do not count."""
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
    """The text of a heading without a closing `#`."""
    text = text.rstrip(" \t")
    return (text.rstrip("#").rstrip(" \t") or text)[:_LONGEST_HEADING]


def _pieces(text: str) -> Iterator[str]:
    """A section in pieces of as many whole paragraphs as fit; a long paragraph is cut."""
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
