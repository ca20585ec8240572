"""A purge that the system does not let finish says which file is the matter, and the next one finishes it."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from engram import Engram, EngramError, Purged
from engram.store.files.store import purge as purging
from tests.homes import home_of

WORDS = "The harbour master keeps the tide table in the green drawer"
PROGRAM = """
import json, resource, sys
from pathlib import Path
from engram import Engram, EngramError

home, cache, limit = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
with Engram.open(home, cache=cache, embedder="none") as mem:
    memory = mem.list()[0]
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        mem.forget(memory.id, purge=True, actor="human")
        print(json.dumps("done"))
    except EngramError as error:
        print(json.dumps(str(error)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
"""


@pytest.mark.parametrize("limit", [0, 2000, 200_000])
def test_a_limit_on_the_size_of_files_is_named_with_the_file(tmp_path: Path, limit: int) -> None:
    with Engram.open(tmp_path / "store", cache=tmp_path / "cache", embedder="none") as mem:
        memory = mem.add(WORDS)
        for number in range(120):
            mem.update(memory.id, rationale=f"{number} " + "The tide decides. " * 300)
    words = [sys.executable, "-c", PROGRAM, str(tmp_path / "store"), str(tmp_path / "cache"), str(limit)]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"{tmp_path}/" in json.loads(ended.stdout)


@pytest.mark.parametrize("code", [errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EACCES, errno.EMFILE])
def test_any_failure_of_the_system_is_explained_and_the_next_purge_finishes(
    tmp_path: Path, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engram.open(tmp_path / "store", cache=tmp_path / "cache", embedder="none") as mem:
        memory = mem.add(WORDS)
        journal = str(home_of(mem).journal)

        def fail(path: Path, *_: object, **__: object) -> None:
            raise OSError(code, os.strerror(code), str(path))

        with monkeypatch.context() as failing:
            failing.setattr(purging, "replace_file", fail)
            with pytest.raises(EngramError, match="purge again") as raised:
                mem.forget(memory.id, purge=True, actor="human")
        assert journal in str(raised.value)
        purged = mem.forget(memory.id, purge=True, actor="human")
        assert isinstance(purged, Purged) and memory.id in purged.ids
    everything = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert WORDS.encode() not in everything
