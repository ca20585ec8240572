"""Reading sources with a second process: the same rows in the same order, and nothing is left of it."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest

from engram.agents.sources.documents import Source
from engram.recall.sources import reader
from engram.recall.sources.reader import ReadSource, SecondReader, read_in_order, read_source
from tests.recall.sources.home import SourceHome

FILES = 12


@pytest.fixture
def sources(user: SourceHome) -> list[Source]:
    for number in range(FILES):
        user.session(
            f"s{number}", [("user", f"Question {number}?"), ("assistant", f"Deploys go through host {number}.")]
        )
    user.in_project("CLAUDE.md", "# Acme\n\n## Build\nRun make all.")
    catalog = user.catalog()
    return [*catalog.documents, *catalog.sessions]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[SecondReader]:
    """The second processes that a test starts, however few sources and processors there are."""
    made: list[SecondReader] = []
    start = SecondReader.__init__

    def noted(self: SecondReader, *given: object) -> None:
        start(self, *given)  # type: ignore[arg-type]
        made.append(self)

    monkeypatch.setattr(SecondReader, "__init__", noted)
    monkeypatch.setattr(reader, "MIN_SHARED_SOURCES", 2)
    monkeypatch.setattr(reader, "_processors", lambda: 2)
    return made


def alone(sources: Sequence[Source], user: SourceHome) -> list[ReadSource]:
    return [read_source(source, user.catalog().places) for source in sources]


def is_over(second: SecondReader) -> bool:
    return second._process.poll() is not None


def test_two_processes_read_the_same_in_the_same_order(
    user: SourceHome, sources: list[Source], started: list[SecondReader]
) -> None:
    found = list(read_in_order(sources, user.catalog().places, lambda: False))
    assert found == alone(sources, user)
    assert any("host 3" in row.text for read in found for row in read.rows)
    [second] = started
    assert is_over(second)


def test_the_second_process_answers_by_itself(user: SourceHome, sources: list[Source]) -> None:
    second = SecondReader(user.catalog().places)
    try:
        assert second.send(7, sources[0])
        found: dict[int, ReadSource] = {}
        while not found and not second.take_back_pending():
            found = second.collect_answers(1)
        assert found == {7: read_source(sources[0], user.catalog().places)}
    finally:
        second.close()


def test_what_a_failed_process_was_sent_is_read_here(
    user: SourceHome, sources: list[Source], started: list[SecondReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_START", "import sys; sys.stdin.buffer.read(10)")
    assert list(read_in_order(sources, user.catalog().places, lambda: False)) == alone(sources, user)
    assert is_over(started[0])


def test_a_process_that_stays_silent_is_given_up(
    user: SourceHome, sources: list[Source], started: list[SecondReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_START", "import sys; sys.stdin.buffer.read()")
    monkeypatch.setattr(reader, "SILENT_S", 2 * reader.POLL_SECONDS)
    found = list(read_in_order(sources, user.catalog().places, lambda: False))
    assert found == alone(sources, user)
    [second] = started
    # It was there until the end, or until its input ended, and had never answered.
    assert second._process.returncode in (-signal.SIGKILL, 0)
    assert second._answers.get() is None


def test_without_a_second_process_all_is_read_here(
    user: SourceHome, sources: list[Source], started: list[SecondReader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(user.folder / "python-that-is-not-there"))
    assert list(read_in_order(sources, user.catalog().places, lambda: False)) == alone(sources, user)
    monkeypatch.setattr(sys, "executable", "/usr/sbin/some-server")
    assert list(read_in_order(sources, user.catalog().places, lambda: False)) == alone(sources, user)
    assert started == []


def test_an_interruption_keeps_what_was_read_and_ends_the_process(
    user: SourceHome, sources: list[Source], started: list[SecondReader]
) -> None:
    reading = read_in_order(sources, user.catalog().places, lambda: False)
    assert [next(reading) for _ in range(3)] == alone(sources[:3], user)
    reading.close()
    assert list(read_in_order(sources, user.catalog().places, lambda: True)) == []
    assert [is_over(second) for second in started] == [True, True]


def test_a_source_that_cannot_be_read_is_reported_by_either_process(
    user: SourceHome, sources: list[Source], started: list[SecondReader]
) -> None:
    gone = [source for source in sources if source.session is not None]
    for source in gone:
        source.path.unlink()
    found = list(read_in_order(sources, user.catalog().places, lambda: False))
    assert sum("No such file" in problem for read in found for problem in read.problems) == len(gone)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process that is no child")
def test_the_second_process_ends_with_the_one_that_started_it() -> None:
    program = (
        "import sys; from pathlib import Path; from engram.agents.sources.places import SourcePlaces\n"
        "from engram.recall.sources.reader import SecondReader\n"
        "print(SecondReader(SourcePlaces(Path.cwd()))._process.pid, flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        second = os.pidfd_open(int(first.stdout.readline()))
        try:
            first.send_signal(signal.SIGKILL)
            first.wait()
            ended, _, _ = select.select([second], [], [], 60)
            assert ended
        finally:
            os.close(second)
