"""Moves a store in a process of its own, which may be killed on the way: `worker.py REQUEST`, a JSON object."""

import json
import sys
from pathlib import Path
from typing import Any

from engram.store import moving
from engram.store.ends import End, transfer
from engram.store.opening import Server
from engram.store.postgres.database import Database
from tests.faults.workers.steps import Steps

SLICE = 3


def end(fields: dict[str, Any]) -> End:
    """The end a request names."""
    if "url" in fields:
        return End(server=Server(fields["url"], fields["tenant"]))
    return End(directory=Path(fields["directory"]))


def main() -> None:
    """Move, unless the fatal step comes first; print what arrived."""
    request = json.loads(sys.argv[1])
    moving.SLICE = SLICE
    steps = Steps(request["fatal"])
    steps.install()
    commit = Database._commit
    if request["after_commit"]:

        def committed(database: Database, connection: Any) -> None:
            commit(database, connection)
            if steps.take():
                steps.die()

        Database._commit = committed  # type: ignore[method-assign,assignment]
    else:
        Database._commit = steps._before(commit)  # type: ignore[method-assign]
    steps.begin()
    done = transfer(end(request["here"]), end(request["there"]))
    sys.stdout.write(json.dumps({"differences": done.differences}))


if __name__ == "__main__":
    main()
