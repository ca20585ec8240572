"""What every test may ask for: a clock it moves, and a real PostgreSQL that the whole run shares."""

import gc
import json
import os
import secrets
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from tests import properties
from tests.citus import cluster
from tests.clock import Clock
from tests.postgres.keeper import Kept
from tests.postgres.server import Lease, Role, Server, fresh_database, ordinary_role, running_server

if TYPE_CHECKING:
    from tests.backends import Backend

# How long an example takes says more about the machine than about the code; timings are in `engram bench`.
hypothesis.settings.register_profile("all", deadline=None, max_examples=properties.ALL)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=properties.QUICK)

LEASE = pytest.StashKey[Lease]()
RUN_FOLDER = pytest.StashKey[Path]()
OF_THE_DEVELOPER = ("ENGRAM_URL", "ENGRAM_TENANT", "ENGRAM_TIME_ZONE", "PYTHONDONTWRITEBYTECODE")
"""What a shell may hold and a run must not: other stores, and a ban on bytecode, without which each of the hundreds of
processes the tests start compiles the whole package again."""
MEMORY = Path("/dev/shm")
MEMORY_BYTES = 4 * 1024**3
"""What a run may need at its peak: the server's databases, and the stores of the tests under way."""


def use_memory() -> None:
    """Let temporary files lie in memory where the system has room for them, and programs may run from there.

    The tests make thousands of stores, and each write of a store waits for the disk. None of them tests a disk.
    """
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK | os.X_OK):
        return
    memory = os.statvfs(MEMORY)
    if memory.f_bavail * memory.f_frsize >= MEMORY_BYTES and not memory.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def pytest_configure(config: pytest.Config) -> None:
    """The process that controls the run holds the lease; the others are told its folder."""
    use_memory()
    for name in OF_THE_DEVELOPER:
        os.environ.pop(name, None)
    sys.dont_write_bytecode = False
    # Phrases are read in the system's zone; what a test expects must not depend on where it runs.
    os.environ["TZ"] = "UTC"
    time.tzset()
    # An error nobody foresaw fails the test that meets it, instead of becoming a line on stderr.
    os.environ["ENGRAM_DEBUG"] = "1"
    hypothesis.settings.load_profile("quick" if config.option.markexpr == "not heavy" else "all")
    told = getattr(config, "workerinput", None)
    if told is None:
        config.stash[LEASE] = Lease()
        config.stash[RUN_FOLDER] = config.stash[LEASE].folder
    else:
        config.stash[RUN_FOLDER] = Path(told["run_folder"])
    # A test that names no cache, or a process it starts, leaves no index in the developer's own.
    os.environ["XDG_CACHE_HOME"] = str(config.stash[RUN_FOLDER] / "cache")
    os.environ["XDG_DATA_HOME"] = str(config.stash[RUN_FOLDER] / "data")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than there are processors: many tests wait for a process, a server or a disk."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the run's shared folder is."""
    node.workerinput["run_folder"] = str(node.config.stash[RUN_FOLDER])


def pytest_unconfigure(config: pytest.Config) -> None:
    """However the run ended, its server ends here."""
    lease = config.stash.get(LEASE, None)
    if lease is not None:
        lease.end()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays for the whole run: the garbage collector looks at none of it, now or later."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On a cluster only what asks the server, in the one database there is."""
    if cluster.GIVEN:
        elsewhere = [item for item in items if not cluster.runs_here(item)]
        items[:] = [item for item in items if cluster.runs_here(item)]
        config.hook.pytest_deselected(items=elsewhere)


@pytest.fixture(scope="session")
def stride() -> int:
    """From one step at which a write is killed to the next: `make test-all` tries every step."""
    return 1 if hypothesis.settings().max_examples == properties.ALL else 5


@pytest.fixture(scope="session")
def run_folder(pytestconfig: pytest.Config) -> Path:
    """A folder that all workers share."""
    return pytestconfig.stash[RUN_FOLDER]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def postgres_server(run_folder: Path) -> Server:
    """The server all workers share, or the one `ENGRAM_TEST_URL` names (the URL of a superuser), or a cluster's coordinator.

    `ENGRAM_TEST_LIKE` describes one whose programs are used; without it they are unpacked.
    """
    given, like = cluster.GIVEN or os.environ.get("ENGRAM_TEST_URL"), os.environ.get("ENGRAM_TEST_LIKE")
    if given:
        return Server(given)
    kept = running_server(run_folder, like=Kept(**json.loads(like)) if like else None)
    return Server(kept.admin_url, kept)


@pytest.fixture
def own_server(postgres_server: Server) -> Iterator[Server]:
    """A server of the test's own, to be stopped, restarted and killed; it writes through to disk as in production."""
    lease = Lease()
    durable = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
    try:
        kept = running_server(lease.folder, durable, like=postgres_server.kept)
        yield Server(kept.admin_url, kept)
    finally:
        lease.end()


@pytest.fixture(scope="session")
def postgres_role(postgres_server: Server) -> Iterator[Role]:
    """An ordinary role of this worker: no superuser, bound by row-level security."""
    with cluster.owner(postgres_server) if cluster.GIVEN else ordinary_role(postgres_server) as role:
        yield role


@pytest.fixture
def empty_database(postgres_role: Role) -> Iterator[str]:
    """The URL of a database without any tables that belongs to an ordinary role."""
    with fresh_database(postgres_role) as url:
        yield url


@pytest.fixture(scope="session")
def migrated_template(postgres_role: Role) -> Iterator[str]:
    """The URL of a database with the current schema and no rows. Nobody connects to it: it is copied."""
    from engram.store.postgres.connections import connect
    from engram.store.postgres.schema import migrate

    with fresh_database(postgres_role) as url:
        with connect(url) as connection:
            migrate(connection, "the server")
        yield url


@pytest.fixture
def database(postgres_role: Role, migrated_template: str) -> Iterator[str]:
    """The URL of a database of the test's own with the current schema and no rows; an ordinary role owns it."""
    with fresh_database(postgres_role, migrated_template) as url:
        yield url


@pytest.fixture(scope="session")
def shared_database(request: pytest.FixtureRequest, postgres_role: Role) -> Iterator[str]:
    """The URL of a migrated database for all tests of this worker: each keeps to a tenant of its own."""
    if cluster.GIVEN:
        with cluster.database(postgres_role) as url:
            yield url
        return
    with fresh_database(postgres_role, request.getfixturevalue("migrated_template")) as url:
        yield url


@pytest.fixture(params=["files", "postgres"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> "Iterator[Backend]":
    """An empty store on each backend; PostgreSQL is started only where it is asked for."""
    from tests.backends import backend_of

    with backend_of(request, tmp_path, clock) as opened:
        yield opened


@pytest.fixture
def tenant() -> str:
    """A tenant nobody else uses."""
    return f"tenant-{secrets.token_hex(6)}"


@pytest.fixture
def system_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the time zone of this process, as `TZ` does for a user."""

    def choose(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield choose
    monkeypatch.undo()
    time.tzset()
