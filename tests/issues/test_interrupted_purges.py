"""An interrupted purge could not be repeated: the second call answered "no memory" while the text was still on disk."""

import json
from pathlib import Path

import pytest

from engram import Engram
from engram.model.errors import NotFound
from engram.model.records import Session
from engram.store.files.store import purge as files_purge
from engram.store.reports import Purged
from engram.upkeep.purge import Purger
from tests.backends import Backend, OnFiles
from tests.cli.conftest import Console, cli  # noqa: F401
from tests.clock import Clock

WORDS = "The stairs of the lighthouse have nineteen wide turns"
HEARD = "We decided to paint the pier dark violet"


class InterruptedPurge(Exception):
    """Stands for the end of the process."""


def _interrupt(*_: object) -> None:
    raise InterruptedPurge


def _purge_problems(mem: Engram) -> list[str]:
    return [finding.message for finding in mem.doctor().findings if finding.code == "purge" and not finding.ok]


def test_a_purge_interrupted_after_the_record_is_gone_is_finished_by_the_second_call(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem = backend.client()
    session = mem.session("paint the pier")
    heard = session.observe("user", HEARD)
    session.summarise()
    session.end()
    memory = mem.add("The pier is dark violet", name="pier", evidence=[{"event": heard.id}])
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Purger, "_forget_quotes", _interrupt)
        with pytest.raises(InterruptedPurge):
            mem.forget("pier", purge=True)
    assert HEARD in mem.store.list_records(Session)[0].summary
    assert len(_purge_problems(mem)) == 1
    with pytest.raises(NotFound):
        mem.get(memory.id)
    purged = backend.client().forget("pier", purge=True)
    assert isinstance(purged, Purged)
    assert memory.id in purged.ids
    assert purged.remaining == ()
    assert HEARD not in mem.store.list_records(Session)[0].summary
    assert _purge_problems(mem) == []
    assert mem.store.states("purge/") == []
    with pytest.raises(NotFound):
        mem.forget("pier", purge=True)


def test_a_purge_of_a_scope_is_finished_by_the_second_call(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = backend.client()
    doomed = mem.add(WORDS, scope="agent:bot/ana")
    mem.observe_batch("talk", [{"role": "user", "content": HEARD}], scope="agent:bot/ana")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Purger, "_destroy", _interrupt)
        with pytest.raises(InterruptedPurge):
            mem.purge(agent_id="bot", user_id="ana", actor="human")
    assert len(_purge_problems(mem)) == 1
    purged = mem.forget(doomed.id, purge=True)
    assert isinstance(purged, Purged)
    assert doomed.id in purged.ids
    assert _purge_problems(mem) == []
    everything = backend.everything()
    assert (WORDS in everything, HEARD in everything) == (False, False)


def test_a_name_given_to_another_memory_since_means_that_one(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    mem = backend.client()
    first = mem.add(WORDS, name="vault")
    with monkeypatch.context() as interrupted:
        interrupted.setattr(Purger, "_forget_quotes", _interrupt)
        with pytest.raises(InterruptedPurge):
            mem.forget("vault", purge=True)
    second = mem.add(HEARD, name="vault")
    purged = mem.forget("vault", purge=True)
    assert isinstance(purged, Purged)
    assert second.id in purged.ids
    assert first.id not in purged.ids
    assert first.id in getattr(mem.forget(first.id, purge=True), "ids", ())


def test_the_command_line_finishes_and_reports_an_interrupted_purge(
    cli: Console,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    doomed = cli.learned(WORDS)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(files_purge, "_remove_files", _interrupt)
        with pytest.raises(InterruptedPurge):
            cli("forget", doomed, "--purge", "--yes")
    assert any(check["name"] == "purge" for check in json.loads(cli("doctor", "--json").stdout)["checks"])
    answer = cli.json("forget", doomed, "--purge")
    assert doomed in answer["purged"]
    assert answer["remaining"] == []
    assert cli("forget", doomed, "--purge", "--yes").exit_code == 3


def test_the_doctors_repair_finishes_an_interrupted_purge(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    doomed = cli.learned(WORDS)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(files_purge, "_remove_files", _interrupt)
        with pytest.raises(InterruptedPurge):
            cli("forget", doomed, "--purge", "--yes")
    repaired = cli.json("doctor", "--repair")
    assert [check for check in repaired["checks"] if check["name"] == "purge"] == []


def test_a_purge_that_an_older_version_left_is_finished_by_its_id(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = OnFiles(clock, tmp_path)
    mem = backend.client()
    doomed = mem.add(WORDS)
    with monkeypatch.context() as interrupted:
        interrupted.setattr(files_purge, "_remove_files", _interrupt)
        with pytest.raises(InterruptedPurge):
            mem.forget(doomed.id, purge=True)
    for name in mem.store.states("purge/"):
        mem.store.change_state(name, lambda _: {})
    purged = backend.client().forget(doomed.id, purge=True)
    assert isinstance(purged, Purged)
    assert (purged.ids, purged.remaining) == ((doomed.id,), ())
    assert WORDS not in backend.everything()
    backend.close()
