"""The roles that `roles.sql` makes: the application does its whole day with them, and nothing beyond."""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import errors, sql

from engram import Engram
from engram.model.errors import EngramError, StoreDenied
from engram.model.records import Checkpoint, Job, transition_task
from engram.store.postgres import neighbours
from engram.store.postgres.schema import LATEST_SCHEMA, migrations
from engram.store.postgres.setup import open_store
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep, listed, said
from tests.conformance.test_reembedding import Letters
from tests.postgres.programs import run_program
from tests.postgres.server import Role, Server, at_database

SCRIPT = str(resources.files("engram.store.postgres.sql") / "roles.sql")
DDL = (
    "CREATE TABLE engram.mine (tenant text)",
    "ALTER TABLE engram.agent_memory DISABLE ROW LEVEL SECURITY",
    "ALTER TABLE engram.agent_memory NO FORCE ROW LEVEL SECURITY",
    "DROP POLICY own_tenant ON engram.agent_memory",
    "DROP TABLE engram.agent_memory",
    "DROP INDEX engram.documents_scope",
    "TRUNCATE engram.agent_memory",
    "INSERT INTO engram.schema_versions (version) VALUES (99)",
    "DELETE FROM engram.schema_versions",
    "CREATE SCHEMA mine",
    "SELECT setval('engram.document_numbers', 1)",
)
NIGHTSHIFT = "The staging server is called nightshift"


@dataclass(frozen=True, slots=True)
class Roles:
    """The three roles, and how to run the script again."""

    owner: str
    app: str
    reader: str
    names: dict[str, str]
    apply: Callable[[], str]


@pytest.fixture
def roles(empty_database: str, postgres_server: Server) -> Iterator[Roles]:
    """The script, run on an empty database; the roles have a password here."""
    dbname = urlsplit(empty_database).path.lstrip("/")
    admin = at_database(postgres_server.admin_url, dbname)
    names = {kind: f"engram_{kind}_{secrets.token_hex(4)}" for kind in ("owner", "app", "reader")}
    given = [word for kind, name in names.items() for word in ("-v", f"{kind}={name}")]

    def apply() -> str:
        return run_program(postgres_server, "psql", "-q", "-d", admin, *given, "-f", SCRIPT)

    try:
        apply()
        yield Roles(
            **{kind: login(postgres_server, name, dbname) for kind, name in names.items()}, names=names, apply=apply
        )
    finally:
        with postgres_server.admin(dbname) as connection:
            for name in names.values():
                connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(sql.Identifier(name)))
                connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


def login(server: Server, name: str, dbname: str) -> str:
    """Give a role a password; its URL."""
    password = secrets.token_hex(8)
    with server.admin() as admin:
        admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(name), sql.Literal(password)))
    return Role(server, name, password).url(dbname)


@pytest.fixture
def made(roles: Roles) -> Roles:
    """The owner has made the schema."""
    open_store(roles.owner, "owner", None).close()
    return roles


def test_the_owner_migrates_without_any_other_right(made: Roles) -> None:
    with psycopg.connect(made.owner) as connection:
        assert connection.execute("SELECT max(version) FROM engram.schema_versions").fetchone() == (LATEST_SCHEMA,)
        power = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
    assert power == (False, False, False, False)


def test_the_application_cannot_make_the_schema(roles: Roles) -> None:
    with pytest.raises(StoreDenied, match=r"docs/postgres\.md"):
        open_store(roles.app, "acme", None)


def test_the_application_does_its_whole_day(made: Roles, tmp_path: Path, clock: Clock) -> None:
    with Engram.open(url=made.app, tenant="acme", directory=tmp_path, clock=clock) as mem:
        known = mem.learn(NIGHTSHIFT, type="factual", scope="project:acme").memory
        assert known is not None
        assert mem.recall("what is staging called", scope="project:acme").hits[0].id == known.id
        with mem.session("deploy to staging", scope="project:acme") as session:
            session.observe("user", "to nightshift, please")
            session.feedback(known.id, "positive")
        task = mem.tasks.start("move staging", scope="project:acme")
        mem.store.append_events(task.id, [said("user", "begin")], lambda made: [Job("one", "derive", clock(), clock())])
        mem.store.add_checkpoint(task.id, lambda number: Checkpoint("CKP-1", task.id, number, clock(), "half way"))
        [job] = mem.store.lease_jobs("me", clock.forward(seconds=1), clock())
        assert mem.store.settle_job(job, None)
        mem.store.change_task(task.id, lambda held: transition_task(held, "completed", clock()))
        changed = mem.update(known.id, rationale="it runs at night")
        mem.undo(changed.id)
        mem.rebuild_index()
        gone = mem.add("This one goes again")
        mem.forget(gone.id, purge=True)
        mem.store.prune(clock.forward(days=400), 1, 1, 1, dry_run=False)
        mem.upkeep.pause()
        mem.upkeep.resume()
        assert mem.store.verify_ledgers() == []
        found = mem.doctor()
        assert found.ok, found
    environment = {**os.environ, "ENGRAM_URL": made.app, "ENGRAM_TENANT": "acme", "ENGRAM_HOME": str(tmp_path)}
    exported = [sys.executable, "-m", "engram", "export", str(tmp_path / "out")]
    subprocess.run(exported, env=environment, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert any(NIGHTSHIFT in file.read_text() for file in (tmp_path / "out").rglob("*.yaml"))


def test_the_application_changes_the_embedder_and_says_which_index_its_owner_must_drop(
    made: Roles, clock: Clock
) -> None:
    owned = open_store(made.owner, "acme", static_embedder(), clock=clock)
    Keep(owned, clock)(NIGHTSHIFT)
    name = owned.build_nearest()
    letters = open_store(made.app, "acme", Letters(), clock=clock)
    assert letters.reembed() == 1
    assert any(f"DROP INDEX engram.{name}" in warning for warning in letters.warnings)
    with pytest.raises(StoreDenied, match="must be owner"):
        letters.build_nearest()
    assert letters.context.settings.get("hnsw") is None
    neighbours.drop_all(owned.context.database)
    for store in (owned, letters):
        store.close()


def test_the_application_changes_rows_and_never_the_schema(made: Roles) -> None:
    with psycopg.connect(made.app, autocommit=True) as connection:
        for statement in DDL:
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_the_reader_answers_and_every_write_is_refused(made: Roles, tmp_path: Path, clock: Clock) -> None:
    with Engram.open(url=made.app, tenant="acme", directory=tmp_path, clock=clock) as mem:
        known = mem.add(NIGHTSHIFT)
    with Engram.open(url=made.reader, tenant="acme", directory=tmp_path, clock=clock) as mem:
        assert mem.search("what is staging called")[0].id == known.id
        recalled = mem.recall("what is staging called")
        assert (recalled.hits[0].id, "not recorded" in recalled.warnings[0]) == (known.id, True)
        assert any("not stored" in warning for warning in mem.session("deploy to staging").injection.warnings)
        assert mem.get(known.id) == known
        assert mem.doctor().ok
        for write in (
            lambda: mem.add("Another"),
            lambda: mem.learn("Another one, to be learned"),
            lambda: mem.update(known.id, rationale="other"),
            lambda: mem.feedback(known.id, "positive"),
            lambda: mem.observe("talk", "user", "hello"),
            lambda: mem.forget(known.id, purge=True),
            lambda: mem.upkeep.pause(),
        ):
            with pytest.raises(EngramError) as refused:
                write()
            assert type(refused.value) is StoreDenied
    with psycopg.connect(made.reader, autocommit=True) as connection:
        connection.execute("SELECT set_config('engram.tenant', 'acme', false)")
        for statement in ("DELETE FROM engram.agent_memory", "SELECT nextval('engram.document_numbers')"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(statement.encode())


def test_what_a_later_migration_makes_is_covered_too(made: Roles) -> None:
    with psycopg.connect(made.owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE engram.later (tenant text); CREATE SEQUENCE engram.later_numbers")
    with psycopg.connect(made.app, autocommit=True) as app:
        app.execute("INSERT INTO engram.later VALUES ('acme')")
        app.execute("SELECT nextval('engram.later_numbers')")
    with psycopg.connect(made.reader, autocommit=True) as reader:
        assert reader.execute("SELECT tenant FROM engram.later").fetchone() == ("acme",)
        with pytest.raises(errors.InsufficientPrivilege):
            reader.execute("DELETE FROM engram.later")


def test_running_the_script_again_changes_nothing(made: Roles, database: str) -> None:
    def granted() -> list[tuple[object, ...]]:
        with psycopg.connect(database) as connection:
            return connection.execute(
                "SELECT name, owner, (aclexplode(acl)).* FROM ("
                "SELECT relname, relowner, relacl FROM pg_class WHERE relnamespace = 'engram'::regnamespace "
                "UNION ALL SELECT nspname, nspowner, nspacl FROM pg_namespace WHERE nspname = 'engram' "
                "UNION ALL SELECT defaclobjtype::text, defaclrole, defaclacl FROM pg_default_acl"
                ") AS held(name, owner, acl) ORDER BY 1, 2, 3, 4, 5"
            ).fetchall()

    before = granted()
    assert made.apply() == ""
    assert granted() == before


def test_a_store_made_by_another_role_is_taken_over(
    empty_database: str, request: pytest.FixtureRequest, clock: Clock
) -> None:
    store = open_store(empty_database, "acme", None, clock=clock)
    Keep(store, clock)(NIGHTSHIFT)
    store.close()
    roles: Roles = request.getfixturevalue("roles")
    app = open_store(roles.app, "acme", None, clock=clock)
    assert listed(app) == [NIGHTSHIFT]
    app.close()
    with psycopg.connect(empty_database) as former, pytest.raises(errors.InsufficientPrivilege):
        former.execute("SELECT 1 FROM engram.agent_memory")


def test_the_script_and_the_first_migration_agree_on_the_table_of_versions(roles: Roles) -> None:
    columns = (
        "SELECT column_name, data_type, is_nullable, column_default FROM information_schema.columns "
        "WHERE table_schema = 'engram' AND table_name = 'schema_versions' ORDER BY ordinal_position"
    )
    assert len(migrations()) == LATEST_SCHEMA
    with psycopg.connect(roles.owner) as connection:
        by_script = connection.execute(columns).fetchall()
        connection.execute("DROP TABLE engram.schema_versions")
        connection.commit()
    open_store(roles.owner, "acme", None).close()
    with psycopg.connect(roles.owner) as connection:
        assert connection.execute(columns).fetchall() == by_script
