"""PostgreSQL's own programs: psql, pg_dump and the like, as an administrator runs them."""

import shutil
import subprocess
from pathlib import Path

from tests.postgres.server import Server

PATIENCE = 120.0


def program_at(server: Server, name: str) -> str:
    """Where a program is: beside the server that was started for the tests, else wherever the machine has it."""
    return str(Path(server.kept.binaries, name)) if server.kept else shutil.which(name) or name


def run_program(server: Server, name: str, *arguments: str) -> str:
    """Run one of the server's programs and return what it printed; one that fails is the test's failure."""
    command = [program_at(server, name), *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
