"""Simulates Claude Code as Engram sees it: sessions with growing transcripts, and the hooks run along the way."""

import json
import shlex
import subprocess
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.traffic import texts
from benchmarks.traffic.place import HOOK, TrafficPlace, said
from benchmarks.traffic.register import Register
from engram.store import hook_files

LONGEST_ANSWER = 10_000
TURNS = 3
"""The user's inputs in one session, before and after it is compacted."""
EVENTS = {
    "session-start": "SessionStart", "drain": "SessionStart", "prompt": "UserPromptSubmit", "post-tool": "PostToolBatch", "stop": "Stop",
    "pre-compact": "PreCompact", "session-end": "SessionEnd",
}  # fmt: skip


def time_limits() -> dict[str, float]:
    """The seconds after which Claude Code ends each hook, from the plugin's own file."""
    groups = json.loads((HOOK.parent / "hooks.json").read_bytes())["hooks"].values()
    hooks = [hook for group in groups for matcher in group for hook in matcher["hooks"]]
    return {shlex.split(hook["command"])[2]: float(hook["timeout"]) for hook in hooks}


class Harness:
    """One user of Claude Code, in one session after another."""

    def __init__(
        self, name: str, place: TrafficPlace, register: Register, numbers: Iterator[int], slowness: float
    ) -> None:
        self.name, self._place, self._register, self._numbers = name, place, register, numbers
        self._limits = {event: slowness * seconds for event, seconds in time_limits().items()}
        self._session, self._transcript = "", Path()
        self._draining: subprocess.Popen[bytes] | None = None
        self._steps = self._endless()

    def start(self) -> None:
        """Do nothing, because every hook is a separate process."""

    def turn(self) -> None:
        """Run the next hook."""
        next(self._steps)()

    def stop(self) -> None:
        """Wait for the processes that run in parallel with the session."""
        if self._draining is not None:
            self._ended("drain", self._draining)
            self._draining = None

    def _endless(self) -> Iterator[Callable[[], None]]:
        while True:
            yield self._begin
            for _ in range(TURNS):
                yield from (self._prompt, self._tools, lambda: self._hook("stop"))
            yield lambda: self._hook("pre-compact", trigger="auto")
            yield lambda: self._hook("session-start", source="compact")
            for _ in range(TURNS):
                yield from (self._prompt, self._tools, lambda: self._hook("stop"))
            yield lambda: self._hook("session-end", reason="other")

    def _begin(self) -> None:
        self.stop()
        self._session = str(uuid.uuid4())
        self._transcript = self._place.transcripts / f"{self._session}.jsonl"
        self._append({"type": "mode", "mode": "normal", "sessionId": self._session})
        self._draining = self._started("drain", source="startup")
        self._hook("session-start", source="startup")

    def _prompt(self) -> None:
        text = texts.rule(next(self._numbers))
        self._hook("prompt", prompt=text)
        self._say("user", text)
        self._register.typed.append(text)

    def _tools(self) -> None:
        call = {
            "type": "tool_use",
            "id": f"toolu_{uuid.uuid4().hex}",
            "name": "Bash",
            "input": {"command": "make test"},
        }
        self._say("assistant", [call])
        self._hook("post-tool", tool_calls=[{"tool_name": "Bash", "tool_input": call["input"], "tool_response": "ok"}])
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "12 passed"}
        self._say("user", [result], toolUseResult={"stdout": "12 passed"})
        self._say("assistant", [{"type": "text", "text": "Done. The tests pass."}])

    def _say(self, role: str, content: Any, **more: Any) -> None:
        self._append({
            "parentUuid": None, "isSidechain": False, "type": role, "message": {"role": role, "content": content},
            "uuid": str(uuid.uuid4()), "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z", "cwd": str(self._place.project),
            "sessionId": self._session, "version": "2.1.197", "userType": "external", "gitBranch": "main", **more,
        })  # fmt: skip

    def _append(self, record: dict[str, Any]) -> None:
        """Write a record in two pieces, so that concurrent readers see half a line."""
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
        with self._transcript.open("ab", buffering=0) as file:
            file.write(line[: len(line) // 2])
            file.write(line[len(line) // 2 :])

    def _hook(self, event: str, **fields: Any) -> None:
        with self._register.timed(f"hook {event}"):
            self._ended(event, self._started(event, **fields))

    def _started(self, event: str, **fields: Any) -> "subprocess.Popen[bytes]":
        payload = {
            "session_id": self._session, "transcript_path": str(self._transcript), "cwd": str(self._place.project),
            "hook_event_name": EVENTS[event], **fields,
        }  # fmt: skip
        pipe = subprocess.PIPE
        running = subprocess.Popen(
            ["sh", str(HOOK), event], stdin=pipe, stdout=pipe, stderr=pipe, env=self._place.env, cwd=self._place.project
        )
        assert running.stdin is not None
        running.stdin.write(json.dumps(payload).encode())
        running.stdin.close()
        running.stdin = None
        return running

    def _ended(self, event: str, running: "subprocess.Popen[bytes]") -> None:
        try:
            out, errors = running.communicate(timeout=self._limits[event])
        except subprocess.TimeoutExpired:
            out, errors = running.communicate()
            self._register.late.append(
                f"hook {event}: Claude Code waits {self._limits[event]:g} s for it, and it took longer"
            )
        done = subprocess.CompletedProcess(running.args, running.returncode, out, errors)
        if done.returncode or errors or not _is_answer(out):
            self._register.fail(f"hook {event}", f"exit {done.returncode}: {said(done)}")
        self._failures()

    def _failures(self) -> None:
        """Record the problems that hooks reported to the doctor."""
        for failure in hook_files.read_failures(*hook_files.failure_logs(self._place.home, self._place.cache)):
            self._register.hook_failed(failure.event, failure.at, failure.message)


def _is_answer(out: bytes) -> bool:
    """Whether a hook printed nothing, or JSON that Claude Code accepts."""
    if not out:
        return True
    try:
        found = json.loads(out)
    except ValueError:
        return False
    return len(out.decode()) <= LONGEST_ANSWER and set(found) <= {"hookSpecificOutput", "systemMessage"}
