"""Moves stores in processes that may be killed on the way: a warm process that forks one child per request.

One JSON request per line on stdin, one JSON answer per line on stdout: what arrived, or nothing where the kill came first.
"""

import importlib
import json
import os
import pkgutil
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import engram.store.postgres
from engram.store.defaults import Server
from engram.store.migration import records
from engram.store.migration.transfer import Endpoint, transfer
from engram.store.postgres.database import Database
from tests.faults.consistency import warm_embedder
from tests.faults.workers.steps import Steps, really_write

BATCH = 3


def end(fields: dict[str, Any]) -> Endpoint:
    """The end a request names."""
    if "url" in fields:
        return Endpoint(server=Server(fields["url"], fields["tenant"]))
    return Endpoint(directory=Path(fields["directory"]))


def move(request: dict[str, Any]) -> dict[str, Any]:
    """Move, unless the fatal step comes first; what arrived."""
    os.environ.update(request["environment"])
    records.ROWS_PER_BATCH = BATCH
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
    steps.counting = False
    return {"differences": done.differences}


def _child(request: dict[str, Any], descriptor: int) -> None:
    try:
        answer = move(request)
    except BaseException as error:
        answer = {"error": "".join(traceback.format_exception(error))}
    really_write(descriptor, json.dumps(answer).encode())
    os._exit(0)


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """One move in a child of its own."""
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _child(request, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(process, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, "answer": None if killed else json.loads(said)}


def main() -> None:
    """What a move loads is loaded once, and not in every child."""
    warm_embedder()
    for module in pkgutil.iter_modules(engram.store.postgres.__path__, "engram.store.postgres."):
        importlib.import_module(module.name)
    for line in sys.stdin:
        sys.stdout.write(json.dumps(serve(json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
