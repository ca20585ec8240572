"""The server the tests run on: what it is, who they are on it, and that it ends with the run."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import psycopg
import pytest

from tests.faults.processes import ending
from tests.postgres.server import Lease, Role, Server, fresh_database, ordinary_role, running_server

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
PATIENCE = 120.0
INTERRUPTED = 5.0
TINY_TEST = """
import time

def test_fails():
    assert False

def test_tells_its_server_and_waits(postgres_server):
    pid = (postgres_server.data / "postmaster.pid").read_text().split()[0]
    with open({seen!r}, "a") as seen:
        seen.write(f"{{pid}} {{postgres_server.data}}\\n")
    time.sleep(600)
"""
HOLDER = """
import json, sys, time
from pathlib import Path
from tests.postgres.keeper import Kept
from tests.faults.processes import ending
from tests.postgres.server import Lease, running_server

lease = Lease()
like = json.loads(sys.argv[1])
kept = running_server(lease.folder, like=like and Kept(**like))
pid = Path(kept.data, "postmaster.pid").read_text().split()[0]
print(pid, kept.data, lease.folder, flush=True)
time.sleep(600)
"""


def test_it_is_postgresql_18_with_pgvector(database: str) -> None:
    with psycopg.connect(database) as connection:
        assert connection.info.server_version >= 180000
        found = connection.execute("SELECT extversion FROM pg_extension WHERE extname = 'vector'").fetchone()
        assert found is not None
        assert tuple(map(int, found[0].split("."))) >= (0, 8)
        distance = connection.execute("SELECT '[1,2]'::vector <=> '[2,4]'::vector").fetchone()
        assert distance == (pytest.approx(0.0, abs=1e-6),)


def test_the_role_is_an_ordinary_one_that_owns_its_database(database: str) -> None:
    with psycopg.connect(database) as connection:
        rights = connection.execute(
            "SELECT rolsuper, rolbypassrls, rolcreatedb, rolcreaterole, rolreplication, rolcanlogin"
            " FROM pg_roles WHERE rolname = current_user"
        ).fetchone()
        assert rights == (False, False, False, False, False, True)
        owner = connection.execute(
            "SELECT pg_get_userbyid(datdba) = current_user FROM pg_database WHERE datname = current_database()"
        ).fetchone()
        assert owner == (True,)


def test_a_database_is_empty_at_first_and_gone_with_its_role_afterwards(postgres_server: Server) -> None:
    with ordinary_role(postgres_server) as role:
        with fresh_database(role) as url:
            still_there = psycopg.connect(url)
            tables = still_there.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone()
            assert tables == (0,)
        with pytest.raises(psycopg.OperationalError, match="does not exist"):
            psycopg.connect(url)
        still_there.close()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(role.url("postgres"))


def test_a_wrong_password_is_refused(postgres_role: Role) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(Role(postgres_role.server, postgres_role.name, "guessed").url("postgres"))


def test_a_server_of_ones_own_survives_a_crash_with_its_data(own_server: Server, postgres_server: Server) -> None:
    assert own_server.admin_url != postgres_server.admin_url
    with own_server.admin() as admin:
        assert admin.execute("SHOW fsync").fetchone() == ("on",)
        admin.execute("CREATE TABLE kept AS SELECT 1 AS n")
    own_server.restart("immediate")
    with own_server.admin() as admin:
        assert admin.execute("SELECT n FROM kept").fetchone() == (1,)


def test_two_workers_share_one_server_that_is_gone_when_the_run_is_interrupted(
    tmp_path: Path, postgres_server: Server
) -> None:
    run = tiny_run(tmp_path, postgres_server)
    with ending(run):
        lines = told(tmp_path / "seen", run, count=2)
        assert len(set(lines)) == 1
        os.killpg(run.pid, signal.SIGINT)
        # Now and then xdist itself waits for a worker that is gone; a person would press the keys again.
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.communicate(timeout=INTERRUPTED)
    assert run.returncode != 0
    assert_gone(lines[0])


def test_a_lease_that_ends_leaves_no_server(postgres_server: Server) -> None:
    lease = Lease()
    kept = running_server(lease.folder, like=postgres_server.kept)
    pid = Path(kept.data, "postmaster.pid").read_text().split()[0]
    with psycopg.connect(kept.admin_url):
        lease.end()
    assert_gone(f"{pid} {kept.data}")
    assert not lease.folder.exists()


def test_a_server_that_cannot_start_says_why_to_everyone_who_asks(postgres_server: Server) -> None:
    lease = Lease()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="unrecognized configuration parameter"):
            running_server(lease.folder, {"no_such_setting": "on"}, like=postgres_server.kept)
    lease.end()
    assert not lease.folder.exists()


def test_a_run_that_is_killed_leaves_no_server(postgres_server: Server) -> None:
    like = postgres_server.kept
    command = [sys.executable, "-c", HOLDER, json.dumps(like and asdict(like))]
    holder = subprocess.Popen(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, start_new_session=True)
    with ending(holder):
        assert holder.stdout is not None
        pid, data, folder = holder.stdout.readline().split()
    deadline = time.monotonic() + PATIENCE
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(folder).exists()
    assert_gone(f"{pid} {data}")


def tiny_run(folder: Path, like: Server) -> "subprocess.Popen[str]":
    """A test run of two workers beside this one: each tells which server it got, and then takes its time."""
    test = folder / "test_tiny.py"
    test.write_text(TINY_TEST.format(seen=str(folder / "seen")))
    command = [sys.executable, "-m", "pytest", str(test), "-c", str(ROOT / "pyproject.toml"), f"--rootdir={folder}"]
    apart = [
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        f"--basetemp={folder / 'base'}",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "ENGRAM_"))}
    if like.kept:
        environment["ENGRAM_TEST_LIKE"] = json.dumps(asdict(like.kept))
    return subprocess.Popen(
        [*command, *apart, "-n", "2", "--dist", "each"],
        cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip


def told(seen: Path, run: "subprocess.Popen[str]", count: int) -> list[str]:
    """The first lines a run wrote; it is still running then."""
    deadline = time.monotonic() + PATIENCE
    while not seen.exists() or seen.read_text().count("\n") < count:
        assert run.poll() is None, run.communicate(timeout=PATIENCE)[0]
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return seen.read_text().splitlines()


def assert_gone(line: str) -> None:
    """Neither the server nor anything of its data is left."""
    pid, data = line.split()
    # Whoever keeps the server notices that its run is gone, and then stops it and clears up.
    deadline = time.monotonic() + PATIENCE
    while (Path(data).parent.exists() or runs(int(pid))) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(data).parent.exists()
    assert not runs(int(pid))


def runs(pid: int) -> bool:
    """Whether a process runs; one that ended and was not fetched yet by its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
