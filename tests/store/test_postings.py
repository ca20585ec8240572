"""The postings that a process keeps rank as FTS5 does, whatever is added, changed or removed meanwhile."""

import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram import Engram
from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.sqlite import search
from engram.store.sqlite.search import Postings

WORDS = [
    "harbour",
    "lantern",
    "cobalt",
    "meadow",
    "engine",
    "violin",
    "saffron",
    "glacier",
    "compass",
    "orchard",
    "is",
    "the",
    "naïve",
    "東京",
    "a_b",
]


class Indexed:
    """A store, its index as another process sees it, and that process's postings."""

    def __init__(self, folder: Path) -> None:
        self.mem = Engram.open(folder / "home", cache=folder / "cache", directory=folder)
        chance = random.Random(3)
        self.ids = [
            self.mem.add(
                " ".join(chance.choices(WORDS, k=chance.randint(3, 20))) + chance.choice((".", "?", "")),
                scope="global",
                tags=chance.sample(("violin", "glacier", "blue"), chance.randint(0, 2)),
                rationale=chance.choice(("", "Because of the compass.")),
                cues=chance.choice(((), ("where is the violin", "meadow"), ("glacier",))),
            ).id
            for _ in range(60)
        ]
        (path,) = folder.rglob("index.db")
        self.db = sqlite3.connect(path)
        self.postings = Postings()

    def by_fts5(self, terms: list[str], limit: int) -> list[tuple[int, float]]:
        """What FTS5 ranks first."""
        weights = ", ".join(map(str, FIELD_WEIGHTS))
        sql = f"SELECT rowid, -bm25(words, {weights}) FROM words WHERE words MATCH ? ORDER BY 2 DESC, 1 LIMIT ?"
        return self.db.execute(sql, (" OR ".join(f'"{term}"' for term in terms), limit)).fetchall()

    def assert_same(self, limit: int = 25) -> None:
        """That both rank alike, by each word and by several."""
        for terms in (*([word] for word in ("harbour", "violin", "compass", "nowhere")), ["cobalt", "meadow", "blue"]):
            found = self.postings.rank(self.db, terms, limit)
            expected = self.by_fts5(terms, limit)
            assert found is not None
            assert [n for n, _ in found] == [n for n, _ in expected], terms
            assert [score for _, score in found] == pytest.approx([score for _, score in expected]), terms


@pytest.fixture
def indexed(tmp_path: Path) -> Iterator[Indexed]:
    opened = Indexed(tmp_path)
    yield opened
    opened.db.close()
    opened.mem.close()


def test_they_rank_as_fts5_does(indexed: Indexed) -> None:
    indexed.assert_same()


def test_what_is_added_later_is_found(indexed: Indexed) -> None:
    indexed.assert_same()
    indexed.mem.add("A violin of cobalt in the harbour", scope="global")
    indexed.assert_same()


def test_what_is_changed_later_is_found_by_its_new_words(indexed: Indexed) -> None:
    indexed.assert_same()
    indexed.mem.update(indexed.ids[5], statement="A violin of cobalt in the harbour")
    indexed.assert_same()


def test_what_is_purged_is_gone(indexed: Indexed) -> None:
    indexed.assert_same()
    indexed.mem.forget(indexed.ids[7], purge=True)
    indexed.assert_same()


def test_what_is_added_after_a_purge_is_found(indexed: Indexed) -> None:
    indexed.assert_same()
    indexed.mem.forget(indexed.ids[7], purge=True)
    indexed.mem.update(indexed.ids[9], statement="A violin of cobalt in the harbour")
    indexed.mem.add("A meadow of cobalt beside the violin", scope="global")
    indexed.assert_same()


def test_many_changes_are_read_from_the_beginning(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed.assert_same()
    monkeypatch.setattr(search, "_MAX_CHANGED_DOCUMENTS", 1)
    for place in (3, 4, 5):
        indexed.mem.update(indexed.ids[place], statement=f"A violin of cobalt in harbour {place}")
    indexed.assert_same()


def test_a_rebuilt_index_is_read_again(indexed: Indexed) -> None:
    indexed.mem.forget(indexed.ids[0], purge=True)
    indexed.assert_same()
    indexed.mem.rebuild_index()
    indexed.assert_same()


def test_nothing_is_ranked_before_all_is_read(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CHARACTERS_PER_SEARCH", 1_000)
    found = [indexed.postings.rank(indexed.db, ["violin"], 10) for _ in range(60)]
    assert found[0] is None
    indexed.assert_same()


def test_a_large_index_is_left_to_fts5(indexed: Indexed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "MAX_DOCUMENTS", 50)
    assert [indexed.postings.rank(indexed.db, ["violin"], 10) for _ in range(5)] == [None] * 5


def test_how_common_a_word_is_follows_what_other_processes_change(tmp_path: Path) -> None:
    words = ["harbour"] * 36 + ["violin"] * 4
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as lasting:
        made = lasting.add_batch([{"statement": f"The {word} of place {i}"} for i, word in enumerate(words)])
        assert lasting.store.frequencies(["harbour", "violin"]) == {"harbour": 36, "violin": 4}
        with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as other:
            for i, memory in enumerate(made):
                swapped = "violin" if words[i] == "harbour" else "harbour"
                other.update(memory.id, statement=f"The {swapped} of place {i}")
        lasting.search("harbour")
        assert lasting.store.frequencies(["harbour", "violin"]) == {"harbour": 4, "violin": 36}


def test_documents_without_cues_rank_as_in_an_index_of_three_fields(tmp_path: Path) -> None:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        chance = random.Random(5)
        for _ in range(40):
            mem.add(" ".join(chance.choices(WORDS, k=chance.randint(3, 20))), rationale="Because of the compass.")
        (path,) = tmp_path.rglob("index.db")
        db = sqlite3.connect(path)
        tokenizer = "ascii tokenchars '_'"
        db.execute(f'CREATE VIRTUAL TABLE temp.three USING fts5 (statement, about, support, tokenize = "{tokenizer}")')
        db.execute(
            "INSERT INTO three (rowid, statement, about, support) SELECT n, statement, about, support FROM texts"
        )
        weights = ", ".join(map(str, FIELD_WEIGHTS))
        four = f"SELECT rowid, bm25(words, {weights}) FROM words WHERE words MATCH ? ORDER BY 2, 1"
        three = "SELECT rowid, bm25(three, 1.0, 0.8, 0.4) FROM three WHERE three MATCH ? ORDER BY 2, 1"
        found = [
            (db.execute(four, (w,)).fetchall(), db.execute(three, (w,)).fetchall()) for w in ("harbour", "compass")
        ]
        db.close()
    assert all(with_cues == without and without for with_cues, without in found)


def test_among_allowed_documents_they_keep_their_order(indexed: Indexed) -> None:
    indexed.assert_same()
    every = indexed.postings.rank(indexed.db, ["violin"], 60) or []
    allowed = sorted(n for n, _ in every[::2])
    assert indexed.postings.rank(indexed.db, ["violin"], 60, [*allowed, 10_000]) == every[::2]
