"""Every session has a file of its own, whatever its id, and any number of threads may save at once."""

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.model.errors import StoreCorrupt
from engram.model.records import Session
from engram.store.files.log.ledger import Ledger, ledger_name
from engram.store.files.states.work import all_sessions, load_session, save_session, session_path
from engram.store.home import Home, open_home
from tests.backends import Backend

NOW = datetime(2026, 11, 16, tzinfo=UTC)
ALIKE = ["chat/1", "chat1", "chat_1", "chat 1", "Chat1", "CHAT1", "chat1.", ".chat1", "..chat1", "chät1", "", "_", "🙂", "/",
         "S-1", "s-1", "s-1~x", "x" * 300, "x" * 301]  # fmt: skip


def _session(session_id: str, task: str = "") -> Session:
    return Session(session_id, task or f"the task of {session_id}", ("global",), NOW)


def test_ids_that_look_alike_keep_their_own_sessions(backend: Backend) -> None:
    store = backend.store(keyword_only=True)
    for session_id in ALIKE[:10]:
        store.save_record(_session(session_id))
    assert {i: found.task for i in ALIKE[:10] if (found := store.load_record(Session, i))} == {
        i: f"the task of {i}" for i in ALIKE[:10]
    }
    assert sorted(session.id for session in store.list_records(Session)) == sorted(ALIKE[:10])


@given(st.lists(st.one_of(st.sampled_from(ALIKE), st.text(max_size=12)), max_size=12, unique=True))
def test_no_two_ids_share_a_file_even_where_case_does_not_count(ids: list[str]) -> None:
    home = Home(Path("/home"), "id", Path("/cache"))
    names = {session_path(home, session_id).name.lower() for session_id in ids}
    assert len(names) == len(ids)
    assert all(len(name) < 120 and "/" not in name and not name.startswith(".") for name in names)


def test_ids_that_engram_gives_out_are_the_names_of_their_files() -> None:
    home = Home(Path("/home"), "id", Path("/cache"))
    assert session_path(home, "S-20261116-101500-a1b2c3").name == "S-20261116-101500-a1b2c3.json"


def _yesterdays(home: Home, name: str, session: Session) -> Path:
    fields = {"id": session.id, "task": session.task, "scopes": list(session.scopes), "started": NOW.isoformat(),
              "ended": None, "summary": ""}  # fmt: skip
    path = home.state / "sessions" / f"{name}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(fields), "utf-8")
    return path


def test_a_session_that_yesterdays_engram_saved_is_found_and_moves_to_its_own_file(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", tmp_path / "cache")
    former = _yesterdays(home, "chat1", _session("chat/1"))
    _yesterdays(home, "Ana", _session("Ana"))
    found = load_session(home, "chat/1")
    assert found is not None and load_session(home, "chat1") is None
    save_session(home, Session("chat/1", "changed", ("global",), NOW, NOW + timedelta(hours=1)))
    assert not former.exists()
    assert {session.id: session.task for session in all_sessions(home)} == {
        "chat/1": "changed",
        "Ana": "the task of Ana",
    }


def test_saving_a_session_leaves_the_one_alone_that_had_its_former_name(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", tmp_path / "cache")
    save_session(home, _session("chat1"))
    save_session(home, _session("chat/1"))
    assert {session.id for session in all_sessions(home)} == {"chat1", "chat/1"}


def test_threads_may_save_the_same_session_at_once(tmp_path: Path) -> None:
    home = open_home(tmp_path / "home", tmp_path / "cache")
    wrong: list[Exception] = []
    ready = threading.Barrier(3)

    def save(number: int) -> None:
        ready.wait()
        try:
            for count in range(30):
                save_session(home, _session("talk", f"{number} {count}"))
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert [path.name for path in (home.state / "sessions").iterdir()] == ["talk.json"]


def test_a_ledger_that_is_anothers_is_not_written_to(tmp_path: Path) -> None:
    """Where the file system does not tell capitals from small letters, `Talk` finds the file of `talk`."""
    from engram.store.files.store.backend import FilesStore
    from engram.store.intake import NewEvent

    store = FilesStore(open_home(tmp_path / "home", tmp_path / "cache"))
    try:
        store.append_events("talk", [NewEvent("user", "hello", NOW)])
        folder = store.context.home.ledger
        (folder / ledger_name("talk")).rename(folder / ledger_name("Talk"))
        with pytest.raises(StoreCorrupt, match="contains the ledger of 'talk'"):
            Ledger(folder, store.context.home.quarantine).head("Talk")
    finally:
        store.close()
