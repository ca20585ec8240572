"""A home with sources of every kind, made for one test."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engram.agents.known.claude_code.finders import slug
from engram.agents.sources.documents import Source
from engram.agents.sources.places import SourcePlaces
from engram.recall.sources.catalog import SourceCatalog
from tests.repositories import make_repository

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


@dataclass
class SourceHome:
    """The files of a user: a project in a repository, and the folders of agents."""

    folder: Path

    def __post_init__(self) -> None:
        make_repository(self.project)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def project(self) -> Path:
        return self.home / "code" / "acme"

    @property
    def config(self) -> Path:
        return self.home / ".claude"

    @property
    def transcripts(self) -> Path:
        """The folder of Claude Code for the project."""
        return self.config / "projects" / slug(str(self.project))

    def write(self, path: str | Path, text: str = "") -> Path:
        """A file below the home."""
        made = self.home / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_text(text, "utf-8")
        return made

    def in_project(self, path: str, text: str = "") -> Path:
        return self.write(self.project / path, text)

    def session(
        self,
        name: str,
        turns: Sequence[tuple[str, str]],
        *,
        directory: Path | None = None,
        folder: Path | None = None,
        hours_ago: float = 1,
    ) -> Path:
        """A session of Claude Code, in the project unless another folder is given."""
        at = NOW - timedelta(hours=hours_ago)
        lines = []
        for number, (role, text) in enumerate(turns):
            content: object = text if role == "user" else [{"type": "text", "text": text}]
            record = {
                "type": role, "uuid": f"{name}-{number}", "sessionId": name, "cwd": str(directory or self.project),
                "timestamp": (at + timedelta(seconds=number)).isoformat(), "message": {"role": role, "content": content},
            }  # fmt: skip
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        path = self.write((folder or self.transcripts) / f"{name}.jsonl", "".join(lines))
        os.utime(path, (at.timestamp(), at.timestamp()))
        return path

    def places(self, directory: Path | None = None, **environment: str) -> SourcePlaces:
        return SourcePlaces(
            directory or self.project,
            {"HOME": str(self.home), **environment},
            managed={"claude-code": self.folder / "managed"},
        )

    def catalog(self, directory: Path | None = None, **environment: str) -> SourceCatalog:
        return SourceCatalog(self.places(directory, **environment), self.folder / "cache", lambda: NOW)

    def documents(self, kind: str, directory: Path | None = None, **environment: str) -> list[str]:
        """The files of a kind that are found, relative to the home where they are below it."""
        found = [one for one in self.catalog(directory, **environment).documents if one.kind == kind]
        return [_relative(one, self.home) for one in found]

    def fingerprints(self) -> dict[str, tuple[str, int, int, int]]:
        """What every file and folder of the home looks like: content, times, mode."""
        return dict(_fingerprints(self.home))


def _relative(source: Source, home: Path) -> str:
    path = Path(source.name)
    return str(path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _fingerprints(home: Path) -> Iterator[tuple[str, tuple[str, int, int, int]]]:
    for path in sorted([home, *home.rglob("*")]):
        seen = path.lstat()
        content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        yield str(path), (content, seen.st_mtime_ns, seen.st_mode, seen.st_ctime_ns)
