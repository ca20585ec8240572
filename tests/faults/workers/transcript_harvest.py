"""The forking program with a harvest of the transcripts that lie beside the home."""

import tempfile
from pathlib import Path

from engram import Engram
from tests.agents.transcripts.written import claude_file
from tests.faults.workers import zygote
from tests.faults.workers.operations import Ack
from tests.homes import home_of


def harvest(mem: Engram, n: int) -> Ack:
    """All of them; the first is the zygote's rehearsal, of one made for it."""
    if n:
        mem.harvest(home_of(mem).root.parent / "projects")
    else:
        with tempfile.TemporaryDirectory() as folder:
            claude_file(Path(folder), "All our services must log with slog, never with zap.")
            mem.harvest(Path(folder))
    return {}


if __name__ == "__main__":
    setattr(zygote, "OPERATIONS", {"harvest": harvest})  # noqa: B010
    zygote.main()
