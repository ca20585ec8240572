"""The place of the traffic: a folder with a home, a store, a project and the installed program, isolated from the machine's user."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
HOOK = ROOT / "plugin" / "hooks" / "engram.sh"
PATIENCE = 180.0
"""Seconds after which an unresponsive process counts as stuck."""
TOKEN = "0123456789abcdef" * 2
SETTINGS = "source_daily_limit = 0\n"
"""Settings without limits per source, because a minute of traffic equals that of months."""


@dataclass(frozen=True)
class TrafficPlace:
    """One store and everything that the processes on it share."""

    folder: Path
    server: Mapping[str, str] = field(default_factory=dict)
    """The variables that name a server; empty for a store in files."""

    @property
    def home(self) -> Path:
        """The store's home."""
        return self.folder / ".engram"

    @property
    def cache(self) -> Path:
        """The store's cache."""
        return self.folder / ".cache"

    @property
    def project(self) -> Path:
        """A repository in which everybody works."""
        return self.folder / "work" / "acme shop"

    @property
    def transcripts(self) -> Path:
        """The folder of Claude Code's sessions of the project."""
        return self.folder / ".claude" / "projects" / "-work-acme-shop"

    @property
    def token_file(self) -> Path:
        """The token of the server over HTTP."""
        return self.folder / "token"

    @property
    def env(self) -> dict[str, str]:
        """The environment variables of every process."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ENGRAM_", "CLAUDE"))}
        return {
            **kept,
            "HOME": str(self.folder),
            "ENGRAM_HOME": str(self.home),
            "ENGRAM_CACHE": str(self.cache),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            # Otherwise each process would use all processors for the smallest product.
            "OPENBLAS_NUM_THREADS": "1",
            **self.server,
        }

    def prepare(self) -> None:
        """Create the folders, the settings, the token, and the program as an installation would."""
        for made in (self.home, self.project / ".git", self.transcripts, self.folder / "bin"):
            made.mkdir(parents=True)
        (self.project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (self.project / "CLAUDE.md").write_text("# Acme shop\n\nRun `make check` before every push.\n")
        (self.home / "config.toml").write_text(SETTINGS)
        self.token_file.touch(0o600)
        self.token_file.write_text(TOKEN)
        program = self.folder / "bin" / "engram"
        program.write_text(f"#!{sys.executable}\nimport sys\nfrom engram.__main__ import run\nsys.exit(run())\n")
        program.chmod(0o755)

    def run(self, *command: str, given: bytes = b"", limit: float = PATIENCE) -> "subprocess.CompletedProcess[bytes]":
        """Run a program to completion. Raises `TimeoutExpired`."""
        return subprocess.run(
            command, input=given, env=self.env, cwd=self.project, capture_output=True, timeout=limit, check=False
        )

    def json(self, *arguments: str) -> Any:
        """The answer of a verb that must succeed, as data."""
        done = self.run("engram", *arguments, "--json")
        if done.returncode:
            raise RuntimeError(f"engram {' '.join(arguments)}: exit {done.returncode}: {said(done)}")
        return json.loads(done.stdout)

    def processes(self, without: Sequence[int] = ()) -> list[str]:
        """The running processes that were started here, as their command lines."""
        mark = f"HOME={self.folder}\0".encode()
        return [
            _command(entry)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and int(entry.name) not in without and mark in _read(entry / "environ")
        ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _command(entry: Path) -> str:
    words = _read(entry / "cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return f"{entry.name}: {words or 'a process that has ended and nobody waited for'}"


def said(done: "subprocess.CompletedProcess[bytes]") -> str:
    """A process's output, as one line."""
    return " ".join((done.stderr + done.stdout).decode("utf-8", "replace").split())[:600]
