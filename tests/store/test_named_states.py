"""Files of small states: one that is damaged is reported, and never taken for an empty one."""

from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import StoreCorrupt, StoreReadOnly
from engram.store.files.states import named as named_states
from engram.store.migration.transfer import Endpoint, transfer
from tests.homes import home_of

DAMAGED = [b"", b"{", b"[]\n", b'{"name": "buffer/talk", "value": 7}', b'{"value": {}}', b"\xff\xfe"]


@pytest.fixture
def mem(tmp_path: Path) -> Engram:
    opened = Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path)
    opened.store.change_state("buffer/talk", lambda _: {"turns": [1]})
    opened.store.change_state("rate/x", lambda _: {"n": 1})
    return opened


def file_of(mem: Engram) -> Path:
    [path] = named_states.states_folder(home_of(mem)).glob("buffer_talk~*.json")
    return path


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_state_is_an_error_that_names_its_file(mem: Engram, content: bytes) -> None:
    path = file_of(mem)
    path.write_bytes(content)
    wanted = f"{path.name}.*restore the file from a backup, or remove it"
    with pytest.raises(StoreCorrupt, match=wanted):
        mem.store.state("buffer/talk")
    with pytest.raises(StoreCorrupt, match=wanted):
        mem.store.change_state("buffer/talk", lambda _: {})
    assert path.read_bytes() == content
    mem.close()


def test_the_other_states_are_listed_and_the_damaged_one_is_reported(mem: Engram) -> None:
    path = file_of(mem)
    path.write_bytes(b"{")
    assert mem.store.states("") == ["rate/x"]
    assert any(path.name in warning for warning in mem.store.warnings)
    assert any(path.name in check.detail for check in mem.store.examine() if not check.ok)
    mem.close()


def test_a_link_in_place_of_a_state_is_not_followed(mem: Engram, tmp_path: Path) -> None:
    path, elsewhere = file_of(mem), tmp_path / "elsewhere.json"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(StoreCorrupt, match="symbolic link"):
        mem.store.state("buffer/talk")
    mem.close()


def test_a_migration_refuses_a_state_it_cannot_read(mem: Engram, tmp_path: Path) -> None:
    file_of(mem).write_bytes(b"{")
    mem.close()
    with pytest.raises(StoreCorrupt, match="buffer_talk"):
        transfer(Endpoint(directory=tmp_path / "home"), Endpoint(directory=tmp_path / "there"))


def test_a_full_or_read_only_disk_is_named_and_the_value_stays(mem: Engram, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(named_states, "replace_file", full)
        with pytest.raises(StoreReadOnly, match="No space left"):
            mem.store.change_state("buffer/talk", lambda _: {"turns": [2]})
    assert mem.store.state("buffer/talk") == {"turns": [1]}
    mem.close()
