"""An agent on an MCP server: every tool in turn, on its own memories, with an occasional interrupted call."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from random import Random
from typing import Any

from benchmarks.traffic import texts
from benchmarks.traffic.register import Register, Write
from benchmarks.traffic.servers import ServedAgent, ServerGone, ToolAnswer

LONGEST_DELAY = 0.15
"""Seconds within which a sent call is interrupted."""
STORED = ("CREATED", "PENDING", "CONTRADICTION")
"""Outcomes that create a new memory."""

BY_CONTRACT = "agent may not"
"""The refusal of a change that an agent may only propose, such as one that contradicts another memory."""


class Agent:
    """One client. Every call it makes must succeed; anything else is an error."""

    def __init__(
        self, name: str, server: ServedAgent, register: Register, numbers: Iterator[int], cut_off: str = ""
    ) -> None:
        self.name, self._server, self._register, self._numbers = name, server, register, numbers
        self._cut_off = cut_off
        """How calls are interrupted: the server is "killed", or the client "leaves"."""
        self._random = Random(name)
        self._own: list[Write] = []
        self._session = ""
        self._steps = self._endless()

    def start(self) -> None:
        """Start the server."""
        with self._register.timed("mcp start"):
            self._server.start()

    def turn(self) -> None:
        """Make the next call."""
        next(self._steps)()

    def stop(self) -> None:
        """End the server."""
        self._register.notices += (f"{self.name}: {notice.get('params', notice)}" for notice in self._server.notices)
        if wrong := self._server.stop():
            self._register.fail(f"{self.name} stop", wrong)

    def _endless(self) -> Iterator[Callable[[], None]]:
        for cycle in count():
            yield from (self._learn, self._recall, self._remember, self._begin, self._learn_form)
            yield from (self._list, self._learn, self._update, self._show, self._rate, self._prepare, self._end)
            yield from (self._learn, self._timeline, self._forget, self._recall_sources, self._ask_nonsense)
            if self._cut_off and cycle % 2 == 0:
                yield self._interrupted_learn
            elif self._cut_off:
                yield self._interrupted_change

    def _ask(self, tool: str, **arguments: Any) -> ToolAnswer | None:
        """The answer to a call that must succeed; None if it did not."""
        try:
            with self._register.timed(f"mcp {tool}"):
                found = self._server.call(tool, arguments)
        except ServerGone as error:
            self._register.fail(f"{self.name} {tool}", str(error))
            self._server.kill()
            self._server.start()
            return None
        if found.is_error and not (tool == "update" and BY_CONTRACT in found.text):
            self._register.fail(f"{self.name} {tool}", found.text)
        return None if found.is_error else found

    def _store(self, tool: str, **arguments: Any) -> None:
        found = self._ask(tool, **arguments)
        if found is None:
            return
        memory, outcome = found.data["memory"], found.data["outcome"]
        if outcome in STORED:
            self._own.append(self._register.wrote(memory["id"], memory["statement"], memory["status"]))
        elif outcome != "DUPLICATE":
            self._register.fail(f"{self.name} {tool}", found.text)

    def _learn(self) -> None:
        self._store("learn", statement=texts.statement(next(self._numbers)), session_id=self._session)

    def _learn_form(self) -> None:
        number = next(self._numbers)
        one, other = texts.name(2 * number), texts.name(2 * number + 1)
        self._store(
            "learn",
            situation=f"Connecting {one} to a new message broker",
            subject=one,
            predicate="delivers its events through",
            object=f"the {other} gateway",
        )

    def _remember(self) -> None:
        self._store("remember", fact=texts.statement(next(self._numbers)), kind="tooling")

    def _recall(self) -> None:
        self._ask("recall", question=self._question())

    def _recall_sources(self) -> None:
        self._ask("recall", question=self._question(), sources=True)

    def _prepare(self) -> None:
        self._ask("prepare", task=self._question())

    def _list(self) -> None:
        self._ask("list", status="any", limit=30)

    def _timeline(self) -> None:
        self._ask("timeline", limit=20)

    def _begin(self) -> None:
        found = self._ask("session_start", task=self._question())
        if found is not None:
            self._session = str(found.data["session_id"])
            self._register.sessions[self._session] = False

    def _end(self) -> None:
        if not self._session:
            return
        found = self._ask("session_end", session_id=self._session, summary=f"{self.name} worked on its own memories.")
        if found is not None:
            self._register.sessions[self._session] = True
        self._session = ""

    def _update(self) -> None:
        if (write := self._chosen()) is None:
            return
        statement = texts.statement(next(self._numbers))
        found = self._ask("update", id=write.id, statement=statement, reason="It says something else now.")
        if found is not None:
            write.now(statement, found.data["memory"]["status"])

    def _show(self) -> None:
        if (write := self._chosen()) is None:
            return
        found = self._ask("show", id=write.id)
        if found is not None and found.data["memory"]["statement"] not in write.statements:
            self._register.fail(f"{self.name} show", f"{write.id} says {found.data['memory']['statement']!r}")

    def _rate(self) -> None:
        if (write := self._chosen()) is None:
            return
        found = self._ask("feedback", id=write.id, signal="positive")
        if found is not None:
            write.positive += 1

    def _forget(self) -> None:
        if len(self._own) < 2:
            return
        write = self._own.pop(self._random.randrange(len(self._own)))
        found = self._ask("forget", id=write.id, reason="It was only an example.")
        if found is not None:
            write.statuses = {found.data["memory"]["status"]}

    def _ask_nonsense(self) -> None:
        """Make impossible calls, which must be refused with a message while the server keeps running."""
        for tool, arguments, expected in (
            ("show", {"id": "ENG-1999-0101-001"}, "ENG-1999-0101-001"),
            ("recall", {"question": "x", "colour": "red"}, "unknown argument"),
            ("fly", {}, "fly"),
        ):
            found = self._server.call(tool, arguments)
            if not found.is_error or expected not in found.text or "Traceback" in found.text:
                self._register.fail(f"{self.name} {tool}", f"not refused as it should be: {found.text}")

    def _interrupted_learn(self) -> None:
        statement = texts.statement(next(self._numbers))
        self._register.unanswered.add(statement)
        self._interrupt("learn", statement=statement)

    def _interrupted_change(self) -> None:
        if (write := self._chosen()) is None:
            return
        if self._random.random() < 0.5:
            write.unanswered_ratings += 1
            self._interrupt("feedback", id=write.id, signal="positive")
        else:
            self._own.remove(write)
            write.statuses |= {"retired"}
            self._interrupt("forget", id=write.id)

    def _interrupt(self, tool: str, **arguments: Any) -> None:
        """Interrupt a call, so that nobody learns whether it was carried out."""
        self._server.send(tool, arguments)
        time.sleep(self._random.uniform(0, LONGEST_DELAY))
        killed = self._cut_off == "killed"
        self._register.interrupted(killed=killed)
        if killed:
            self._server.kill()
            self.start()
        elif wrong := self._server.reconnect():
            self._register.fail(f"{self.name} reconnect", wrong)

    def _chosen(self) -> Write | None:
        return self._random.choice(self._own) if self._own else None

    def _question(self) -> str:
        return texts.statement(self._random.randrange(12 * 20))
