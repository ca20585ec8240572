"""What a comparison of the two ends finds: each kind of difference, by name."""

import secrets
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from engram.store.defaults import Server as Place
from engram.store.migration.transfer import Endpoint, open_source, transfer, verify
from tests.migration.conftest import Original, Originals, Stand, Stands, fill
from tests.migration.copies import copy
from tests.postgres.server import Server, at_database

TAMPERED = {
    "memory": (
        "UPDATE engram.agent_memory SET record = (record::text::jsonb || '{{\"situation\": \"changed\"}}')::json"
        " WHERE tenant = %s AND id = '{port}'",
        "memory {port}: differs",
    ),
    "lost memory": ("DELETE FROM engram.agent_memory WHERE tenant = %s AND id = '{port}'", "memory {port}: missing at the target"),
    "image": (
        "UPDATE engram.journal_images SET after = NULL WHERE tenant = %s AND id = '{port}'",
        "history of {port}: differs",
    ),
    "lost image": (
        "DELETE FROM engram.journal_images WHERE tenant = %s AND id = '{odd}'", "history of {odd}: missing at the target"
    ),
    "decision": ("UPDATE engram.journal SET actor = 'somebody else' WHERE tenant = %s", "decision of "),
    "use": ("UPDATE engram.memory_uses SET kind = 'recalled' WHERE tenant = %s AND kind = 'rated'", "use "),
    "lost use": ("DELETE FROM engram.memory_uses WHERE tenant = %s", "uses: "),
    "event": (
        "UPDATE engram.agent_events SET record = replace(record::text, 'rocket', 'racket')::json WHERE tenant = %s",
        "ledger of a name of its own: differs",
    ),
    "lost event": ("DELETE FROM engram.agent_events WHERE tenant = %s AND seq = 2", "events: 11 at the source, 9 at the target"),
    "event of a task": (
        "UPDATE engram.agent_events SET record = replace(record::text, 'begin', 'began')::json WHERE tenant = %s",
        "ledger of TASK-running: differs",
    ),
    "session": ("UPDATE engram.agent_sessions SET summary = 'other' WHERE tenant = %s", "session S-"),
    "rolling summary": (
        "UPDATE engram.agent_sessions SET summary_through = 1 WHERE tenant = %s AND summary_through > 0",
        "session S-20260410-090000-rolling: differs",
    ),
    "summary's maker": (
        "UPDATE engram.agent_sessions SET summary_by = 'a model' WHERE tenant = %s AND summary_through > 0",
        "session S-20260410-090000-rolling: differs",
    ),
    "task": (
        "UPDATE engram.agent_task_runs SET record = replace(record::text, 'paused', 'failed')::json WHERE tenant = %s",
        "task TASK-paused: ",
    ),
    "lost task": ("DELETE FROM engram.agent_task_runs WHERE tenant = %s AND id = 'TASK-deleted'", "task TASK-deleted: "),
    "checkpoint": (
        "UPDATE engram.agent_checkpoints SET record = replace(record::text, 'half', 'all the')::json WHERE tenant = %s",
        "checkpoint CKP-1: differs",
    ),
    "lost checkpoint": ("DELETE FROM engram.agent_checkpoints WHERE tenant = %s AND number = 2", "checkpoint CKP-2: "),
    "job": (
        "UPDATE engram.memory_jobs SET record = replace(record::text, 'gave up', 'all is well')::json WHERE tenant = %s",
        "job derive:TASK-",
    ),
    "lost job": ("DELETE FROM engram.memory_jobs WHERE tenant = %s AND status = 'dead'", "job derive:TASK-"),
    "state": (
        "UPDATE engram.named_states SET value = replace(value::text, '[1,2]', '[1]')::json WHERE tenant = %s",
        "state buffer/S-20260410-090000-rolling: differs",
    ),
    "lost state": ("DELETE FROM engram.named_states WHERE tenant = %s AND name LIKE 'harvest/%%'", "state harvest/"),
    "lineage": (
        "UPDATE engram.agent_memory SET record = replace(record::text, 'LIN-deploy', 'LIN-other')::json WHERE tenant = %s",
        "memory ENG-",
    ),
    "graph": (
        "UPDATE engram.agent_memory SET record = replace(record::text, '\"causal\"', '\"supports\"')::json WHERE tenant = %s",
        "memory ENG-",
    ),
    "witness of a ledger": (
        "UPDATE engram.journal SET reason = '1 x' WHERE tenant = %s AND op = 'ledger'", "decision "
    ),
    "lost witness": ("DELETE FROM engram.journal WHERE tenant = %s AND op = 'ledger'", "decisions: "),
    "verdict": ("UPDATE engram.gate_verdicts SET outcome = 'other' WHERE tenant = %s", "gate verdicts: differ"),
    "tombstone": ("DELETE FROM engram.tombstones WHERE tenant = %s", "tombstone of {gone}: missing at the target"),
    "number": ("UPDATE engram.id_numbers SET last = 1 WHERE tenant = %s", "highest number of ENG-2026-0301: "),
    "pause": ("DELETE FROM engram.store_facts WHERE tenant = %s AND key = 'paused'", "pause: differs"),
    "document": ("DELETE FROM engram.documents WHERE tenant = %s AND id = '{port}'", "documents: "),
}  # fmt: skip


Compared = Callable[[str, str], tuple[Endpoint, Stand, dict[str, str]]]


@pytest.fixture(scope="module")
def arrived(
    request: pytest.FixtureRequest, originals: Originals, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str, str], tuple[Original, Endpoint]]:
    """What was moved from one kind to another, once: the source, and a target that is only copied from."""
    made: dict[tuple[str, str], tuple[Original, Endpoint]] = {}

    def moved(here: str, there: str) -> tuple[Original, Endpoint]:
        if (here, there) not in made:
            folder = tmp_path_factory.mktemp("arrived")
            source, end, cache = originals(here, fill), Endpoint(directory=folder / "home"), folder / "cache"
            if there == "postgres":
                end = Endpoint(
                    server=Place(request.getfixturevalue("shared_database"), f"arrived-{secrets.token_hex(6)}")
                )
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("ENGRAM_CACHE", str(cache))
                assert transfer(source.end, end).differences == []
            made[here, there] = source, end
        return made[here, there]

    return moved


@pytest.fixture
def compared(
    arrived: Callable[[str, str], tuple[Original, Endpoint]], stands: Stands, postgres_server: Server
) -> Compared:
    """A source that is only read, and a target of the test's own that differs in nothing yet."""

    def ends(here: str, there: str) -> tuple[Endpoint, Stand, dict[str, str]]:
        source, end = arrived(here, there)
        stand = stands(there)
        copy(end, stand.end, postgres_server)
        return source.end, stand, dict(source.ids)

    return ends


def differences(here: Endpoint, there: Stand) -> list[str]:
    with open_source(here) as source, open_source(there.end) as target:
        return verify(source, target)


@pytest.mark.parametrize(("here", "there"), [("files", "postgres"), ("postgres", "files")])
def test_what_was_left_alone_differs_in_nothing(here: str, there: str, compared: Compared) -> None:
    source, target, _ = compared(here, there)
    assert differences(source, target) == []


@pytest.mark.parametrize("kind", TAMPERED)
def test_what_was_altered_on_the_server_is_named(kind: str, compared: Compared, postgres_server: Server) -> None:
    here, there, ids = compared("files", "postgres")
    place = there.end.server
    assert place is not None
    statement, expected = (text.format(**ids) for text in TAMPERED[kind])
    admin_url = at_database(postgres_server.admin_url, place.url.rpartition("/")[2])
    with psycopg.connect(admin_url, autocommit=True) as admin:
        assert admin.execute(statement.encode(), (place.tenant,)).rowcount
    found = differences(here, there)
    assert [one for one in found if one.startswith(expected)], found


def _rewrite(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text()
    assert change(before) != before
    path.write_text(change(before))


@pytest.mark.parametrize(
    ("pattern", "change", "expected"),
    [
        ("engrams/**/*.yaml", lambda text: text.replace("harbour", "airport"), "was changed"),
        ("journal/*.jsonl", lambda text: text.replace("harbour", "airport"), "differs"),
        ("ledger/*.jsonl", lambda text: text.replace("rocket", "racket"), "ledger of a name of its own: differs"),
        ("usage/*.jsonl", lambda text: text.replace("recalled", "injected"), "use "),
        ("tasks/*.json", lambda text: text.replace("Be paused", "Be bold"), "task TASK-paused: differs"),
        ("tasks/*.checkpoints.jsonl", lambda text: text.replace("half", "all the"), "checkpoint CKP-1: differs"),
        ("state/jobs/*.json", lambda text: text.replace("gave up", "all is well"), "job derive:TASK-"),
        (
            "state/sessions/*.json",
            lambda text: text.replace("of snow", "of rain"),
            "session S-20260410-090000-rolling: ",
        ),
        ("journal/*.jsonl", lambda text: text.replace('"op":"ledger"', '"op":"letter"'), "decision "),
    ],
)
def test_what_was_altered_in_the_files_is_named(
    pattern: str, change: Callable[[str], str], expected: str, compared: Compared
) -> None:
    here, there, _ = compared("postgres", "files")
    assert there.end.directory is not None
    path = next(p for p in sorted(there.end.directory.glob(pattern)) if change(p.read_text()) != p.read_text())
    _rewrite(path, change)
    assert [one for one in differences(here, there) if expected in one]


def test_a_memory_that_only_the_target_has_is_named(compared: Compared) -> None:
    here, there, _ = compared("files", "postgres")
    extra = there.backend.client().add("Only on the server")
    assert f"memory {extra.id}: only at the target" in differences(here, there)
