"""How soon a turn should be read, by its words."""

import itertools
import re
import tomllib
from pathlib import Path

import pytest

from engram import Engram
from engram.capture import signals
from engram.capture.signals import LEVELS, Signal, custom_signals, scan
from engram.model.errors import InvalidInput

TURNS = [
    # the kinds of reference 5, §1: corrections, preferences, instructions, facts about oneself, decisions
    ("Actually, I moved to Lisbon last month.", "high"),
    ("no, that's not the branch I meant", "high"),
    ("That’s not right.", "high"),
    ("Why did you say that?", "high"),
    ("I prefer tea.", "high"),
    ("I never deploy on Fridays", "high"),
    ("I need my coffee decaf", "high"),
    ("Don't use semicolons here", "high"),
    ("Please remember to water the plants", "high"),
    ("Correction: the port is 5434", "high"),
    ("Important: rotate the keys", "high"),
    ("FYI the office is closed", "high"),
    ("For the record, it was Tuesday", "high"),
    ("My email is ann@example.com", "high"),
    ("I work at Acme", "high"),
    ("I’m a nurse", "high"),
    ("We decided on Postgres", "high"),
    ("The decision was unanimous", "high"),
    ("Going forward we deploy on Mondays", "high"),
    ("From now on, short answers", "high"),
    ("I PREFER TEA", "high"),
    ("Let's go with SQLite", "high"),
    ("forget what I said about coffee", "high"),
    # two signs of the middle kind, or one
    ("I think my team usually agrees", "medium"),
    ("I like the new layout, and my setup runs it", "medium"),
    ("I think so", "low"),
    ("Usually it works", "low"),
    ("we use uv for that", "low"),
    # nothing about anyone
    ("ok thanks", "none"),
    ("Can you fix the bug in parser.py?", "none"),
    ("I want you to run the tests", "none"),
    ("run the linter again", "none"),
    ("unimportant details, predecision work, remembering things", "none"),
    ("", "none"),
    ("数据库备份", "none"),
]
"""A turn and its level."""


def test_each_turn_has_its_level() -> None:
    assert [(turn, scan(turn).level) for turn, _ in TURNS] == TURNS


def test_a_signal_names_what_was_found() -> None:
    assert scan("I think we decided on Postgres") == Signal("high", ("high:decision", "medium:opinion"))


def test_a_word_inside_another_or_across_sentences_of_a_long_text_is_found_where_it_is_a_word() -> None:
    filler = "the quick brown fox jumps over lazy dogs " * 2500
    assert scan(filler).level == "none"
    assert scan(f"{filler} I prefer tea {filler}").level == "high"
    assert scan(f"{filler} my name is Ann").level == "high"


HOSTILE = [
    "i " * 50_000, "no i'm " * 15_000, "my full " * 12_000, "i really " * 11_000, "(" * 100_000, "a" * 100_000, "'" * 100_000,
    "i work now " * 9_000, "\n" * 100_000, "ﬃ" * 50_000, "that is not " * 8_000, "\ud800" * 1_000,
]  # fmt: skip


def test_no_text_is_too_long_or_too_odd_for_a_scan() -> None:
    for text in HOSTILE:
        assert scan(text).level in LEVELS


def test_every_row_of_the_table_is_found_by_a_turn_of_its_own_words() -> None:
    written = (Path(signals.__file__).with_name("signals.txt")).read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in written if line.strip() and not line.startswith("#")]
    for level, name, phrase in rows:
        parts = [part.split("|") for part in re.findall(r"\(([^)]*)\)|(\S+)", re.sub(r"\[[^]]*\]| / .*", "", phrase)) for part in [part[0] or part[1]]]  # fmt: skip
        for words in itertools.islice(itertools.product(*parts), 40):
            assert f"{level}:{name}" in scan(f"well {' '.join(words)} things").patterns, (level, name, words)


# -- the owner's patterns


def configured(tmp_path: Path, text: str) -> Path:
    (tmp_path / "home").mkdir()
    config = tmp_path / "home" / "config.toml"
    config.write_text(text, "utf-8")
    return config


GERMAN = """budget = 500

[signals.de]
high = ['\\bich bevorzuge\\b', "\\\\bab sofort\\\\b"]
medium = ['\\bich glaube\\b', '\\bmeistens\\b']
low = ['\\bwir nutzen\\b']
"""


def test_patterns_of_another_language_count_like_those_of_english(tmp_path: Path) -> None:
    german = custom_signals(tomllib.loads(GERMAN)["signals"])
    levels = {turn: scan(turn, german).level for turn in (
        "Ich bevorzuge Tee.", "Ab sofort bitte kurz", "Ich glaube, meistens stimmt es", "Meistens stimmt es",
        "Wir nutzen uv", "Danke", "I prefer tea",
    )}  # fmt: skip
    assert list(levels.values()) == ["high", "high", "medium", "low", "low", "none", "high"]
    assert scan("Ich bevorzuge Tee.", german).patterns == (r"high:de:\bich bevorzuge\b",)


def test_a_store_opens_with_signals_of_its_owner(tmp_path: Path) -> None:
    configured(tmp_path, GERMAN)
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        assert mem.settings.signals["de"]["low"] == [r"\bwir nutzen\b"]


BROKEN = [
    ("[signals.de]\nlow = ['a']\nhigh = ['fine', '(']\n", 3, "not a regular expression"),
    ("budget = 500\n\n[signals.de]\nhigh = [\n  'fine',\n  'a**b(',\n]\n", 6, "not a regular expression"),
    ('[signals.de]\nhigh = ["\\\\d("]\n', 2, "not a regular expression"),
    ("[signals.de]\nurgent = ['a']\n", 2, "unknown level 'urgent'; choose high, medium or low"),
    ("[signals.de]\nhigh = 'a'\n", 2, "must be a list of patterns"),
    ("[signals.de]\nhigh = [7]\n", 2, "must be a list of patterns"),
    ("[signals.de]\nmedium = ['x*']\n", 2, "would fit every turn"),
    (f"[signals.de]\nhigh = ['{'a' * 3001}']\n", 2, "maximum 3000"),
    ("[signals]\nde = 7\n", 2, "must be a table, [signals.de]"),
]


@pytest.mark.parametrize(("text", "line", "problem"), BROKEN)
def test_a_pattern_that_cannot_be_used_is_named_with_its_file_and_line(
    tmp_path: Path, text: str, line: int, problem: str
) -> None:
    config = configured(tmp_path, text)
    with pytest.raises(InvalidInput) as raised:
        Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)
    assert str(raised.value).startswith(f"{config}:{line}: ") and problem in str(raised.value)


def test_a_pattern_that_takes_too_long_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough for the other pattern on any machine; the slow one would take years.
    monkeypatch.setattr(signals, "PATTERN_SECONDS", 1.0)
    monkeypatch.setattr(signals, "SCAN_SECONDS", 60.0)
    slow = custom_signals({"de": {"high": [r"(a+)+$", r"\bjetzt\b"]}})
    found = scan("a" * 5_000 + "! jetzt", slow)
    assert found.level == "high" and found.patterns == (r"high:de:\bjetzt\b",)
    assert found.skipped == ("(a+)+$",)
