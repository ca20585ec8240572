"""Checks that journal, files and index of a store agree, and that a rebuilt index would be equal."""

import hashlib
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from engram import Engram
from engram.dialects import engram_yaml
from engram.embedding import load_embedder
from engram.store.documents import memory_document
from engram.store.files import memories
from engram.store.files.store.backend import FilesStore
from engram.store.files.store.purge_plan import MARKER_FILE, has_unfinished_purge
from engram.store.records import decode_record
from engram.store.sqlite.writer import from_blob, to_blob

Snapshot = dict[str, Any]
Image = Mapping[str, Any]

_BY_NUMBER = {
    "docs": "SELECT d.* FROM docs d",
    "records": "SELECT d.id, t.record FROM records t LEFT JOIN docs d ON d.n = t.n",
    "texts": "SELECT d.id, t.statement, t.about, t.support, t.meaning FROM texts t LEFT JOIN docs d ON d.n = t.n",
    "tags": "SELECT d.id, t.tag FROM tags t LEFT JOIN docs d ON d.n = t.n",
    "vectors": "SELECT d.id, t.vector FROM vectors t LEFT JOIN docs d ON d.n = t.n",
}
_BY_KEY = ("names", "links", "anchors", "files", "places", "ledgers", "images", "numbers", "tombstones", "uses", "keys")
_OF_THIS_INDEX = ("n", "change")
"""Columns that number rows and changes: equal indexes may differ in them."""


def store_of(mem: Engram) -> FilesStore:
    """The files backend under a client."""
    assert isinstance(mem.store, FilesStore)
    return mem.store


def snapshot(store: FilesStore) -> Snapshot:
    """Everything the index derived, by table and id."""
    store.used_since(0)
    database = store.context.index.db
    found: Snapshot = {}
    for table, query in {**_BY_NUMBER, **{name: f"SELECT * FROM {name}" for name in _BY_KEY}}.items():
        cursor = database.execute(query)
        kept = [i for i, column in enumerate(cursor.description) if column[0] not in _OF_THIS_INDEX]
        found[table] = sorted([tuple(row[i] for i in kept) for row in cursor], key=repr)
    return found


def assert_same_index(left: Snapshot, right: Snapshot) -> None:
    """Two indexes are equal, table by table."""
    for table in left:
        only_left = [row for row in left[table] if row not in right[table]]
        only_right = [row for row in right[table] if row not in left[table]]
        assert left[table] == right[table], f"{table}: incremental {only_left[:3]} rebuilt {only_right[:3]}"


def journal_lines(home: Path) -> list[dict[str, Any]]:
    """Every decision, in order; a torn or unreadable line is an error here."""
    lines = []
    for path in sorted((home / "journal").glob("*.jsonl")):
        data = path.read_bytes()
        assert data.endswith(b"\n") or not data, f"torn line in {path}"
        lines += [json.loads(line) for line in data.splitlines()]
    return lines


def last_images(home: Path) -> dict[str, tuple[Image | None, str]]:
    """Each memory's last image and its file, by id."""
    last: dict[str, tuple[Image | None, str]] = {}
    for line in journal_lines(home):
        for change in line["changes"]:
            last[change["id"]] = change["after"], change.get("file", "")
    return last


def files_of(home: Path) -> dict[str, tuple[str, Image]]:
    """The content of the memory files: file and image, by id. Two files with one id are an error here."""
    found: dict[str, tuple[str, Image]] = {}
    for path in sorted((home / "engrams").rglob("*")):
        if path.is_file() and memories.is_memory_file(path.name):
            for memory in memories.read(path):
                assert memory.id not in found, f"{memory.id} in {path} and {found[memory.id][0]}"
                found[memory.id] = path.relative_to(home).as_posix(), engram_yaml.to_mapping(memory)
    return found


def assert_journal_and_files_agree(home: Path) -> None:
    """Decisions are numbered without a gap; every live image is in its file and nothing else is."""
    sequence = [line["seq"] for line in journal_lines(home)]
    assert sequence == sorted(set(sequence)), "decisions out of order"
    expected = {i: (file, after) for i, (after, file) in last_images(home).items() if after is not None and file}
    assert files_of(home) == expected


def assert_index_agrees(store: FilesStore) -> None:
    """The index contains every last image, its words and its vectors, and nothing else."""
    home, database = store.context.home.root, store.context.index.db
    images = {i: after for i, (after, _) in last_images(home).items() if after is not None}
    rows = database.execute("SELECT d.id, r.record, t.statement, t.about, t.support, d.n FROM docs d "
                            "JOIN records r ON r.n = d.n JOIN texts t ON t.n = d.n WHERE d.kind = 'memory'")  # fmt: skip
    found = {}
    for memory_id, record, *words, _ in rows.fetchall():
        document = memory_document(decode_record(record))
        assert [document.statement, document.about, document.support] == words, memory_id
        found[memory_id] = json.loads(record)
    assert found == images
    database.execute("INSERT INTO words (words, rank) VALUES ('integrity-check', 1)")
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    _assert_vectors_agree(store)


def _assert_vectors_agree(store: FilesStore) -> None:
    index = store.context.index
    if store.context.embedder is None:
        return
    assert not index.without_vector(0, 10), "documents without a vector"
    blobs = index.db.execute("SELECT n, vector FROM vectors WHERE generation = ?", (index.generation,)).fetchall()
    assert {n for n, _ in blobs} == {n for (n,) in index.db.execute("SELECT n FROM docs")}
    rows = index.matrix_rows()
    held = {n for n, _ in blobs}
    for n, blob in blobs:
        assert np.array_equal(rows[n], from_blob(blob)), f"matrix row {n}"
    assert not any(rows[n].any() for n in range(index.count) if n not in held), "rows of documents that are gone"
    texts = index.db.execute("SELECT d.n, r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.kind = 'memory'")
    by_number = dict(blobs)
    rows_of = texts.fetchall()
    vectors = store.context.embedder.embed([memory_document(decode_record(record)).meaning for _, record in rows_of])
    for (n, _), vector in zip(rows_of, vectors, strict=True):
        assert to_blob(vector) == by_number[n], f"vector of row {n}"


def digest_of_tree(root: Path) -> str:
    """Whether anything below a folder changed."""
    told = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.name not in ("lock", "durable.json"):
            told.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return told.hexdigest()


def assert_consistent(
    home: Path, cache: Path, *, embedder: str | None = None, edited: bool = False, rebuilt: bool = True
) -> None:
    """Open the store without help; journal, files and index agree, and a fresh index is equal to the one in use.

    `edited`: a person may have changed files that nobody has looked at since. `rebuilt=False` leaves the fresh index out.
    """
    with Engram.open(home, cache=cache, directory=home, embedder=embedder) as mem:
        store = store_of(mem)
        _end_purge(mem)
        if edited:
            assert mem.upkeep.sync().problems == []
        assert_journal_and_files_agree(home)
        assert_index_agrees(store)
        assert store.verify_ledgers() == []
        assert list((home / "engrams").rglob("*.tmp")) == []
        in_use, before = snapshot(store), digest_of_tree(home)
    if not rebuilt:
        return
    with scratch() as other, Engram.open(home, cache=other, directory=home, embedder=embedder) as anew:
        assert_same_index(in_use, snapshot(store_of(anew)))
        assert digest_of_tree(home) == before, "making the index anew changed the store"


def _end_purge(mem: Engram) -> None:
    """Readers neither finish an interrupted purge nor see its records; a writer finishes it."""
    home = store_of(mem).context.home
    if not has_unfinished_purge(home):
        return
    begun = json.loads((home.state / MARKER_FILE).read_bytes())
    assert not {memory.id for memory in mem.list(status="any", scope="everywhere")} & set(begun["ids"])
    assert [mem.store.get(one) for one in begun["ids"]] == [None] * len(begun["ids"])
    assert not any(image.memory for one in begun["ids"] for image in mem.store.history(one))
    assert has_unfinished_purge(home)
    mem.upkeep.sync()
    assert not has_unfinished_purge(home)


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in memory, if the system has one: a kill is not a power failure, so no disk is needed."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None, prefix="engram-faults-") as folder:
        yield Path(folder)


def warm_embedder() -> None:
    """Load the bundled model once, so that forked children need not."""
    model = load_embedder("static")
    assert model is not None
    model.embed(["warm"])


def free_of(path: Path, needle: bytes) -> bool:
    """Whether no file below a folder contains some bytes."""
    return not any(needle in file.read_bytes() for file in path.rglob("*") if file.is_file())


def index_terms(cache: Path) -> set[str]:
    """Every term any index below a cache folder knows."""
    terms: set[str] = set()
    for path in cache.rglob("index.db"):
        with sqlite3.connect(path) as database:
            terms |= {term for (term,) in database.execute("SELECT term FROM vocabulary")}
        database.close()
    return terms


def ids_in(text: str) -> list[str]:
    """Every memory id a text names."""
    return re.findall(r"ENG-\d{4}-\d{4}-\d+", text)
