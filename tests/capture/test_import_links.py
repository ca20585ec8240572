"""Links among imported records: complete after an import that was interrupted, and never in place of our own."""

import json
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.capture.import_known import ImportReport
from engram.capture.import_run import RecordLinks
from tests.backends import Backend
from tests.importing import imported_path, with_words

PAGES, EVENTS, BLOBS = "Redis caches pages", "Kafka keeps events", "S3 keeps blobs"
FIRST = {"id": "a", "statement": PAGES, "associations": [{"target": "b", "type": "semantic"}], "supersedes": ["c"]}
OTHERS = [
    {"id": "b", "statement": EVENTS},
    {"id": "c", "statement": BLOBS, "status": "superseded", "superseded_by": "a"},
]


def bring(mem: Engram, folder: Path, *records: dict[str, Any], **how: Any) -> ImportReport:
    (folder / "in.json").write_text(json.dumps(records))
    return imported_path(mem, folder / "in.json", **how)


def interrupted(mem: Engram, folder: Path, monkeypatch: pytest.MonkeyPatch, **how: Any) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RecordLinks, "complete", stop)
        with pytest.raises(KeyboardInterrupt):
            bring(mem, folder, FIRST, *OTHERS, **how)


@pytest.mark.parametrize("trusted", [False, True])
def test_an_import_after_one_that_was_interrupted_sets_the_links(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trusted: bool
) -> None:
    mem = backend.client()
    interrupted(mem, tmp_path, monkeypatch, trusted=trusted)
    assert with_words(mem, PAGES).associations == ()
    done = bring(mem, tmp_path, FIRST, *OTHERS, trusted=trusted)
    first, other, old = (with_words(mem, words) for words in (PAGES, EVENTS, BLOBS))
    assert ([link.target for link in first.associations], first.supersedes) == ([other.id], (old.id,))
    assert done.created == [] and first.id in done.updated
    assert bring(mem, tmp_path, FIRST, *OTHERS, trusted=trusted).updated == []


def test_a_link_that_was_removed_here_does_not_come_back(mem: Engram, tmp_path: Path) -> None:
    bring(mem, tmp_path, FIRST, *OTHERS)
    first = with_words(mem, PAGES)
    mem.update(first.id, associations=[])
    assert bring(mem, tmp_path, FIRST, *OTHERS).updated == []
    assert mem.get(first.id).associations == ()


@pytest.fixture
def mem(tmp_path: Path) -> Engram:
    return Engram.open(tmp_path / "home")
