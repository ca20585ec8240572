"""A file, or every text file of a folder, read into a task's ledger."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from engram.capture.longinput.documents import Document, documents_in, read_document
from engram.capture.longinput.recording import (
    MAX_CHUNK_TOKENS,
    MAX_FACTS_PER_CHUNK,
    Ingested,
    Progress,
    Recorder,
    check_document,
)
from engram.model.errors import InvalidInput

SHOWN = 5
"""Files an error names; there may be thousands."""


@dataclass(frozen=True, slots=True)
class Ingesting:
    """How files are read."""

    recorder: Recorder
    kind: str = ""
    max_chunk_tokens: int = MAX_CHUNK_TOKENS
    max_facts_per_chunk: int = MAX_FACTS_PER_CHUNK
    extract_with_llm: bool = False
    progress: Progress = lambda *_: None

    def ingest(self, place: Path, task: str, begin: Callable[[], str]) -> Ingested:
        """Read a file or a folder into a task; `begin` starts one where none is named, once there is something to read.

        What of a folder cannot be read, and what is left out, is named in the answer. `InvalidInput` where nothing can be.
        """
        self.recorder.check_model(self.extract_with_llm)
        taken = Ingested()
        for file in self._files(place, taken):
            document = self._read(file, taken, single=file == place)
            if document is None:
                continue
            task = task or begin()
            taken.append(
                self.recorder.record(
                    task,
                    document,
                    path=str(file),
                    max_chunk_tokens=self.max_chunk_tokens,
                    max_facts_per_chunk=self.max_facts_per_chunk,
                    extract_with_llm=self.extract_with_llm,
                    progress=self.progress,
                )
            )
        if not taken:
            raise InvalidInput(_nothing_read(place, taken))
        return taken

    def _files(self, place: Path, taken: Ingested) -> Iterable[Path]:
        return documents_in(place, skipped=taken.skipped) if place.is_dir() else [place]

    def _read(self, file: Path, taken: Ingested, *, single: bool) -> Document | None:
        try:
            document = read_document(file, kind=self.kind)
            check_document(document, self.max_chunk_tokens, self.max_facts_per_chunk)
        except InvalidInput as error:
            if single:
                raise
            taken.refused.append((str(file), str(error)))
            return None
        return document


def _nothing_read(place: Path, taken: Ingested) -> str:
    """Why there is nothing: every file with its reason, or the first of many."""
    found = [*taken.refused, *taken.left_out]
    if not found:
        return f"{place} holds no text file that can be read: it is empty"
    told = "; ".join(reason if path in reason else f"{path}: {reason}" for path, reason in found[:SHOWN])
    more = f"; and {len(found) - SHOWN:,} more" if len(found) > SHOWN else ""
    return f"{place} holds no text file that can be read: {told}{more}"
