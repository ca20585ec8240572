"""A script at the command line: one verb after another, each in its own process."""

import json
import subprocess
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from benchmarks.traffic import texts
from benchmarks.traffic.agents import BY_CONTRACT, STORED
from benchmarks.traffic.checks import doctor
from benchmarks.traffic.place import TrafficPlace, said
from benchmarks.traffic.register import Register, Write

BUSY = "recent hand edits were not checked"
"""The doctor's report that another process was writing."""


class Commands:
    """One script. Every verb must succeed."""

    def __init__(self, name: str, place: TrafficPlace, register: Register, numbers: Iterator[int], first: int) -> None:
        self.name, self._place, self._register, self._numbers = name, place, register, numbers
        self._random = Random(name)
        self._own: list[Write] = []
        self._steps = self._endless(first)

    def start(self) -> None:
        """Do nothing, because every verb is a separate process."""

    def turn(self) -> None:
        """Run the next verb."""
        next(self._steps)()

    def stop(self) -> None:
        """Do nothing, because every verb has ended."""

    def _endless(self, first: int) -> Iterator[Callable[[], None]]:
        everything = [
            self._add, self._recall, self._purge, self._look("queue"), self._look("harvest"), self._learn_fact, self._update,
            self._doctor, self._add, self._export, self._look("status"), self._learn,
            self._add, self._look("worker", "--once"), self._purge, self._rate, self._look("list"), self._learn, self._prepare, self._forget,
            self._look("sync"), self._search, self._backup, self._look("session", "list"), self._look("ledger", "verify"),
        ]  # fmt: skip
        turned = everything[first % len(everything) :] + everything[: first % len(everything)]
        while True:
            yield from turned

    def _run(self, *words: str) -> Any:
        """The answer of a verb as data; None if it failed."""
        verb = " ".join(word for word in words[:2] if word.isalpha() and word.islower() and len(word) < 10)
        try:
            with self._register.timed(f"cli {verb}"):
                done = self._place.run("engram", *words, "--json")
        except subprocess.TimeoutExpired as error:
            self._register.fail(f"{self.name} {verb}", str(error))
            return None
        if done.returncode and not (verb == "update" and BY_CONTRACT in said(done)):
            self._register.fail(f"{self.name} {verb}", f"exit {done.returncode}: {said(done)}")
        return None if done.returncode else json.loads(done.stdout)

    def _doctor(self) -> None:
        with self._register.timed("cli doctor"):
            wrong = doctor(self._place)
        # The doctor reports what it could not check because of a writer; that is not a problem of the store.
        if wrong := [one for one in wrong if BUSY not in one]:
            self._register.fail(f"{self.name} doctor", "; ".join(wrong))

    def _look(self, *words: str) -> Callable[[], None]:
        return lambda: self._run(*words)

    def _add(self) -> None:
        if (found := self._run("add", texts.statement(next(self._numbers)))) is not None:
            self._own.append(self._register.wrote(found["id"], found["statement"], found["status"]))

    def _learn(self) -> None:
        self._learned(self._run("learn", texts.statement(next(self._numbers))))

    def _learn_fact(self) -> None:
        number = next(self._numbers)
        one, other = texts.name(2 * number), texts.name(2 * number + 1)
        self._run(
            "learn", "fact", "--situation", f"Writing a dashboard for {one}", "--subject", one, "--predicate", "exports its figures to",
            "--object", f"the {other} collector", "--on-conflict", "keep-both",
        )  # fmt: skip

    def _learned(self, found: Any) -> None:
        if found is not None and found["outcome"] in STORED:
            memory = found["memory"]
            self._own.append(self._register.wrote(memory["id"], memory["statement"], memory["status"]))

    def _update(self) -> None:
        if self._own:
            write, statement = self._random.choice(self._own), texts.statement(next(self._numbers))
            if (found := self._run("update", write.id, "--statement", statement)) is not None:
                write.now(statement, found["status"])

    def _rate(self) -> None:
        if self._own:
            write = self._random.choice(self._own)
            if self._run("feedback", write.id, "positive") is not None:
                write.positive += 1

    def _forget(self) -> None:
        if len(self._own) > 1:
            write = self._own.pop(0)
            if (found := self._run("forget", write.id)) is not None:
                write.statuses = {found["status"]}

    def _purge(self) -> None:
        """Store something with a unique word, and purge it."""
        number = next(self._numbers)
        word = texts.name(2 * number)
        if (found := self._run("add", f"{word} is an example that nobody needs for long")) is None:
            return
        memory_id = found["id"]
        if self._run("forget", memory_id, "--purge", "--yes") is not None:
            self._register.purged[memory_id] = word

    def _recall(self) -> None:
        self._run("recall", self._question())

    def _search(self) -> None:
        self._run("search", self._question())

    def _prepare(self) -> None:
        self._run("prepare", self._question())

    def _export(self) -> None:
        self._run("export", str(self._place.folder / f"{self.name}.json"), "--format", "json", "--force")

    def _backup(self) -> None:
        self._run("backup", str(self._place.folder / f"{self.name}.tar.gz"), "--force")

    def _question(self) -> str:
        return texts.statement(self._random.randrange(12 * 20))
