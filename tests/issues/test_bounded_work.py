"""Whatever a text repeats, reading it costs about as much as reading any other of its length (issue 9, item 18)."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.hostile import Workbench, measure
from engram import Engram
from engram.capture.documents.chunk import Chunk
from engram.capture.documents.facts import fact_spans
from engram.capture.documents.source import SkippedFiles, documents_in
from engram.model.errors import EngramError, InvalidInput, Refused
from engram.rules.limits import MAX_LISTED
from tests.hostile import PIECES, RULES
from tests.properties import examples
from tests.repositories import make_repository

SIZE = 12_000
SECONDS = 6.0
"""Of processor time: ten times what the slowest rule takes, and a third of what one that goes back and forth took."""
DEAR = {"question": 6, "time phrase": 6}
"""Rules that read only the beginning of a text, and that slowly: they are tried on one piece in so many, the others on half."""


class _TooLong(BaseException):
    """Not an Exception: no rule may swallow it."""


@contextmanager
def bounded(what: str) -> Iterator[None]:
    """Fail where the processor works longer than any sane reading takes, instead of waiting for its end."""

    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    began = time.process_time()
    try:
        yield
    except _TooLong:
        pytest.fail(f"{what} worked for {time.process_time() - began:.0f} s and was not done")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def repeated(first: str, second: str = "") -> str:
    piece = first + second
    return ("Start here. " + piece * (SIZE // len(piece) + 1))[:SIZE]


@pytest.mark.heavy
@pytest.mark.parametrize("name", RULES)
def test_no_rule_goes_back_and_forth_over_one_piece_repeated(name: str) -> None:
    step = DEAR.get(name, 2)
    for piece in PIECES[list(RULES).index(name) % step :: step]:
        with bounded(f"{name} on {piece!r} repeated"):
            RULES[name](repeated(piece))


@examples(30)
@given(name=st.sampled_from(sorted(RULES)), pieces=st.tuples(st.sampled_from(PIECES), st.sampled_from(PIECES)))
def test_nor_over_two_in_turn(name: str, pieces: tuple[str, str]) -> None:
    with bounded(f"{name} on {pieces!r} in turn"):
        RULES[name](repeated(*pieces))


def test_a_comment_is_found_behind_an_address_and_at_its_place() -> None:
    text = 'url = "http://example.org"  # must never be called without a token\n'
    found = fact_spans(text, Chunk(0, 0, len(text), ""), "code")
    assert [text[fact.start : fact.end] for fact in found] == ["must never be called without a token"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tags", [f"t{n}" for n in range(MAX_LISTED + 1)]),
        ("entities", [f"E{n}" for n in range(MAX_LISTED + 1)]),
        ("aliases", [f"a{n}" for n in range(MAX_LISTED + 1)]),
    ],
)
def test_one_memory_cannot_carry_so_much_that_every_recall_is_slow(field: str, value: Any) -> None:
    with Engram.open(ephemeral=True) as mem:
        with pytest.raises((InvalidInput, Refused), match=field):
            mem.add("The deploy runs on Thursdays", **{field: value})
        kept = mem.add("The deploy runs on Thursdays")
        with pytest.raises((InvalidInput, Refused), match=field):
            mem.update(kept.id, **{field: value})


def _ask(mem: Engram, text: str) -> None:
    mem.search(text)
    mem.recall(text)
    mem.inject(text)


VERBS: dict[str, Callable[[Engram, str], Any]] = {
    "learn": lambda mem, text: mem.learn(text),
    "autonomous learn": lambda mem, text: mem.learn(text, autonomous=True),
    "add with context": lambda mem, text: mem.add("A fact with its source", context=text),
    "conversation": lambda mem, text: mem.add_conversation(text, text, extract_assistant_response=True),
    "ask": _ask,
}


@pytest.mark.heavy
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_goes_back_and_forth_either(verb: str) -> None:
    with Engram.open(ephemeral=True) as mem:
        mem.add("The deploy of the billing service runs on Thursdays")
        for piece in ("/", "#", "a'", "10:", "2020-01-01 ", "sk-", "password: "):
            with bounded(f"{verb} on {piece!r} repeated"), suppress(EngramError):
                VERBS[verb](mem, repeated(piece))


HOSTILE_FILES = {
    "comments": ("CLAUDE.md", "<!--" * 60_000),
    "an import of dots": ("CLAUDE.md", "@" + "." * 250_000),
    "growing runs of backticks": ("CLAUDE.md", " ".join("`" * length for length in range(1, 700))),
    "begin markers": ("AGENTS.md", "<!-- engram:begin -->\n" * 11_000),
    "a heading of spaces": ("CLAUDE.md", "# a" + " " * 200_000 + "b"),
    "a glob of stars": (".claude/rules/a.md", f'---\npaths: "{"*a" * 40}b"\n---\nUse tabs'),
    "a list of commas": (".claude/rules/a.md", f"---\npaths: {',' * 200_000}\n---\nUse tabs"),
}


@pytest.mark.parametrize("name", HOSTILE_FILES)
def test_no_file_of_a_repository_stops_a_briefing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    project = tmp_path / "project"
    path, text = HOSTILE_FILES[name]
    make_repository(project)
    (project / path).parent.mkdir(parents=True, exist_ok=True)
    (project / path).write_text(text)
    (project / ("a" * 120)).write_text("matched against the globs")
    with Engram.open(ephemeral=True, directory=project) as mem, bounded(name):
        mem.prepare("deploy the billing service")
        with suppress(Refused):
            mem.gen_context(project / "AGENTS.md", dry_run=True)


@pytest.mark.parametrize("task", ["x" + " " * 60_000 + "y", "please " * 10_000, "and then " * 8_000, " \n" * 30_000])
def test_no_task_stops_a_briefing(task: str) -> None:
    with Engram.open(ephemeral=True) as mem, bounded(task[:20]), suppress(InvalidInput):
        mem.prepare(task)


@pytest.mark.parametrize(
    "piece", ["كلمة السر ", "pin 1234 ", "412773 do not share it ", "ENG-2026-0101-001 password: x1y2z3\n"]
)
def test_no_word_for_a_secret_makes_storing_slow(piece: str) -> None:
    with Engram.open(ephemeral=True) as mem, bounded(piece), suppress(Refused):
        mem.add((piece * 50_000)[:200_000])


def test_a_rule_of_a_gitignore_with_many_stars_is_skipped(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*a" * 20 + "b\n*.log\n")
    (tmp_path / ("a" * 200)).write_text("A note about the deploy\n")
    (tmp_path / "x.log").write_text("A log\n")
    with bounded("a folder with a .gitignore"):
        found = [path.name for path in documents_in(tmp_path, SkippedFiles())]
    assert found == ["a" * 200]


def test_the_benchmark_can_call_every_verb_with_every_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any error but one of Engram's own means that an example of an argument is missing."""
    monkeypatch.setenv("HOME", str(tmp_path))
    make_repository(tmp_path)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        verbs = Workbench(mem, tmp_path).verbs()
        assert len(verbs) > 800
        for verb in verbs.values():
            measure(verb, "The deploy runs on Thursdays")
