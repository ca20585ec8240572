"""Creates `fixtures/store-format-1`: a small store as this version writes it, for later versions to open.

Run it only when the store's format number changes, into a new folder: `python -m tests.store.make_fixture FOLDER`.
"""

import shutil
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from engram import Engram
from tests.homes import home_of

BEGAN = datetime(2026, 1, 5, 9, 30, tzinfo=UTC)


def make(home: Path) -> None:
    """One of everything a store can contain."""
    now = BEGAN

    def clock() -> datetime:
        return now

    with (
        tempfile.TemporaryDirectory() as cache,
        Engram.open(home, cache=cache, directory=home, clock=clock) as mem,
    ):
        mem.add("Use tabs, never spaces, in Makefiles", type="convention", scope="project:acme/api", tags=["make"])
        port = mem.add(
            "The staging database listens on port 5433", type="factual", metadata={"ticket": "OPS-1", "n": 1}
        )
        mem.remember("I prefer short answers", scope="user")
        mem.add("生产数据库每晚两点备份", type="factual", confidence=0.9)
        mem.update(port.id, statement="The staging database listens on port 5434", reason="moved")
        now += timedelta(days=2)
        mem.feedback(port.id, "positive")
        with mem.session("connect to the staging database", scope="project:acme/api") as session:
            session.observe("user", "Which port does staging use?", key="1", metadata={"channel": "cli"})
            session.observe("assistant", "Port 5434.")
            session.end("Told them the port")
        mem.forget(mem.add("A rule nobody follows").id, reason="outdated")
        now += timedelta(days=30)
        mem.upkeep.purge([mem.add("Something that had to go").id])
        (home_of(mem).engrams / "by-hand.yaml").write_text(
            "# written by a person\n- id: ENG-2025-1231-001\n  statement: Rotate the logs on Fridays\n  colour: blue\n"
            "- id: ENG-2025-1231-002\n  statement: Name branches after their ticket\n", "utf-8"
        )  # fmt: skip
        mem.upkeep.sync()
    (home / "lock").unlink(missing_ok=True)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    shutil.rmtree(target, ignore_errors=True)
    make(target)
