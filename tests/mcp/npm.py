"""Programs from npm that the tests run, at fixed versions: the protocol's inspector and its conformance suite, Claude Code.

They are installed once per machine, in `$ENGRAM_TEST_CACHE` or `~/.cache/engram-tests`, with the Node they need: Debian's may be
older.
"""

import fcntl
import json
import os
import shutil
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import pytest

NODE = "node@22.23.3"
PROGRAMS = ("@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.1.16")
INSTALL_SECONDS = 600
ATTEMPTS = 3


def programs(wanted: tuple[str, ...] = PROGRAMS) -> Path:
    """The folder of these installed programs; fails the test where there is no npm, or where installing fails."""
    if shutil.which("npm") is None:
        pytest.fail("this test needs npm: `apt install nodejs npm`")
    base = Path(os.environ.get("ENGRAM_TEST_CACHE") or Path.home() / ".cache" / "engram-tests")
    folder = base / f"npm-{sha256(json.dumps([NODE, *wanted]).encode()).hexdigest()[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not (folder / "ready").exists():
            _install(folder, wanted)
            (folder / "ready").touch()
    return folder / "node_modules" / ".bin"


def _install(folder: Path, programs: tuple[str, ...]) -> None:
    (folder / "package.json").write_text('{"private": true}')
    # Node first, so that the others are installed by it.
    for wanted in ([NODE], list(programs)):
        for attempt in range(ATTEMPTS):
            command = ["npm", "install", "--no-fund", "--no-audit", "--no-progress", *wanted]
            done = subprocess.run(
                command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=INSTALL_SECONDS
            )
            if done.returncode == 0:
                break
            time.sleep(2**attempt)
        else:
            pytest.fail(f"npm install {' '.join(wanted)} failed:\n{done.stderr[-2000:]}")


def environment(folder: Path) -> dict[str, str]:
    """The environment with the programs of a folder first."""
    own = folder if folder.name == ".bin" else folder / "node_modules" / ".bin"
    return {**os.environ, "PATH": os.pathsep.join([str(own), os.environ["PATH"]]), "NO_COLOR": "1"}
