"""`engram worker --all-tenants` in a process of its own, with a clock of the test's and jobs in which something happens."""

import json
import os
import signal
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from engram.capture import jobs
from engram.capture.buffer import CaptureBuffer
from engram.capture.conversation import Conversations
from engram.cli.main import main
from engram.client import tenant_worker
from engram.model.records import Job
from engram.sessions.jobs import Handler
from engram.store.defaults import utc_now
from engram.store.protocol import Store

_handlers = jobs.handlers


class Happening:
    """What becomes of the process in one of its jobs: it is killed before or after the work, or waits to be let go on."""

    def __init__(self, asked: Mapping[str, Any]) -> None:
        self._killed_in, self._when = asked.get("killed_in", 0), asked.get("when", "")
        self._waits, self._begun = asked.get("waits", False), 0

    def __call__(self, store: Store, conversations: Conversations, buffer: CaptureBuffer) -> dict[str, Handler]:
        """The handlers as they are, with what happens around them."""
        return {kind: self._around(handler) for kind, handler in _handlers(store, conversations, buffer).items()}

    def _around(self, handler: Handler) -> Handler:
        def handle(job: Job) -> None:
            self._begun += 1
            if self._waits and self._begun == 1:
                sys.stdout.write(json.dumps({"begun": job.id}) + "\n")
                sys.stdout.flush()
                sys.stdin.readline()
            self._kill("before")
            handler(job)
            self._kill("after")

        return handle

    def _kill(self, when: str) -> None:
        if self._begun == self._killed_in and self._when == when:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    asked: dict[str, Any] = json.loads(sys.argv[1])
    jobs.handlers = Happening(asked)
    tenant_worker.utc_now = lambda: utc_now() + timedelta(seconds=asked.get("later", 0))  # type: ignore[attr-defined]
    main(["worker", "--all-tenants", "--json", *asked.get("options", ())])
