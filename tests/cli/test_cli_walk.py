"""The walk through the queue on a real terminal: one key per decision, a typed code for what is sensitive, the terminal put back."""

import os
import pty
import re
import select
import signal
import sys
import termios
from collections.abc import Iterator, Sequence

import pytest

from engram import Engram
from engram.model.memory import Evidence, Memory
from engram.review.amendment import store_retelling

from .conftest import Console
from .terminal import on_terminal

ENGRAM = [sys.executable, "-m", "engram.cli"]
PATIENCE = 120.0
"""Seconds after which a program counts as hung."""
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
HARNESS = "harness:codex:acme"
KNOWN = Memory("ENG-2026-0301-001", "")
FACTS = ("The deploy script lives in tools/deploy.sh", "Screenshots are compared with pixelmatch")
PROMPT = r"  > $"
CODE = r"Type (\d{4}): $"


class Person:
    """Somebody at a terminal of their own, running a verb."""

    def __init__(
        self, *words: str, environment: dict[str, str] | None = None, program: list[str] | None = None
    ) -> None:
        if program:
            self.child, self.terminal = pty.fork()
            if self.child == 0:
                os.environ["TERM"] = "xterm-256color"
                os.execv(program[0], program)
        else:
            self.child, self.terminal = on_terminal(words, environment)
        self.printed = ""
        self.read_to = 0

    def sees(self, pattern: str) -> re.Match[str]:
        """Wait until the terminal shows something new; what matched."""
        while (found := re.search(pattern, self.printed[self.read_to :])) is None:
            if not self._read():
                raise AssertionError(f"no {pattern!r} in:\n{self.printed}")
        self.read_to += found.end()
        return found

    def types(self, keys: str) -> None:
        """Press keys."""
        os.write(self.terminal, keys.encode())

    def leaves(self) -> int:
        """Wait for the end; the exit code."""
        while self._read():
            pass
        _, status = os.waitpid(self.child, 0)
        return os.waitstatus_to_exitcode(status)

    def _read(self) -> bool:
        ready, _, _ = select.select([self.terminal], [], [], PATIENCE)
        if not ready:
            os.kill(self.child, signal.SIGKILL)
        try:
            chunk = os.read(self.terminal, 65536)
        except OSError:
            chunk = b""
        self.printed += ESCAPE.sub("", chunk.decode("utf-8", "replace")).replace("\r\n", "\n")
        return bool(chunk)

    def modes(self) -> tuple[bool, bool]:
        """Whether the terminal echoes, and whether it reads whole lines."""
        local = termios.tcgetattr(self.terminal)[3]
        return bool(local & termios.ECHO), bool(local & termios.ICANON)


@pytest.fixture
def waiting(cli: Console) -> Iterator[list[str]]:
    with Engram.open(cli.folder / "home") as mem:
        decisions = [mem.learn(fact, source=HARNESS, type="tooling") for fact in FACTS]
    yield [str(decision.memory.id) for decision in decisions if decision.memory is not None]


def statuses(cli: Console, ids: Sequence[str]) -> list[str]:
    return [cli.json("show", ref)["status"] for ref in ids]


def test_one_key_decides_without_enter(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("p")
    person.sees("✓ promoted ENG-")
    person.sees(PROMPT)
    person.types("r")
    person.sees(r"Why\?")
    person.types("not ours\n")
    person.sees("✓ rejected ENG-")
    person.sees("2 decided, 0 still waiting")
    assert person.leaves() == 0
    assert sorted(statuses(cli, waiting)) == ["active", "rejected"]
    rejected = next(ref for ref in waiting if cli.json("show", ref)["status"] == "rejected")
    assert cli.json("history", rejected)[-1]["reason"] == "not ours"
    promoted = next(ref for ref in waiting if ref != rejected)
    assert cli.json("show", promoted)["verification"] == "user_confirmed"


def test_the_walk_shows_where_each_came_from_and_why_it_got_this_far(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        mem.add_conversation("I always deploy on Fridays from the office", session="S-7", source=HARNESS)
    person = Person("review")
    person.sees(f"from {HARNESS}")
    person.sees("“I always deploy on Fridays from the office”  user in S-7")
    person.sees("gates: every gate before “trust” let it pass")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0


def test_later_leaves_an_item_and_quit_the_rest(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("l")
    person.sees("2 of 2")
    person.sees(PROMPT)
    person.types("q")
    person.sees("0 decided, 2 still waiting")
    assert person.leaves() == 0
    assert statuses(cli, waiting) == ["candidate", "candidate"]


def test_undo_returns_to_the_item_that_was_decided(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("p")
    person.sees("2 of 2")
    person.sees(PROMPT)
    person.types("u")
    person.sees("undone")
    person.sees("1 of 2")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0
    assert statuses(cli, waiting) == ["candidate", "candidate"]


def edit_in_walk(person: Person, statement: str) -> None:
    person.sees(PROMPT)
    person.types("e")
    person.sees("Instead: ")
    person.types(f"{statement}\n")
    person.sees("✓ edited ENG-")


def statements(cli: Console, ids: Sequence[str]) -> list[str]:
    return [cli.json("show", ref)["statement"] for ref in ids]


PLAIN = {"EDITOR": "", "VISUAL": ""}


def test_undo_after_an_edit_undoes_the_edit_and_not_the_decision_before(cli: Console, waiting: list[str]) -> None:
    person = Person("review", environment=PLAIN)
    person.sees(PROMPT)
    person.types("p")
    person.sees("2 of 2")
    edit_in_walk(person, "Lint runs before the tests")
    person.sees(PROMPT)
    person.types("u")
    person.sees("undone")
    person.sees("2 of 2")
    person.sees(PROMPT)
    person.types("q")
    person.sees("1 decided, 1 still waiting")
    assert person.leaves() == 0
    assert sorted(statuses(cli, waiting)) == ["active", "candidate"]
    assert statements(cli, waiting) == list(FACTS)


def test_undo_goes_back_through_a_promotion_and_the_edit_before_it(cli: Console, waiting: list[str]) -> None:
    person = Person("review", environment=PLAIN)
    edit_in_walk(person, "Lint runs before the tests")
    person.sees(PROMPT)
    person.types("p")
    for _ in range(2):
        person.sees(PROMPT)
        person.types("u")
        person.sees("undone")
        person.sees("1 of 2")
    person.sees(PROMPT)
    person.types("q")
    person.sees("0 decided, 2 still waiting")
    assert person.leaves() == 0
    assert (statuses(cli, waiting), statements(cli, waiting)) == (["candidate"] * 2, list(FACTS))


def test_an_edit_that_changes_nothing_is_no_step_to_undo(cli: Console, waiting: list[str]) -> None:
    person = Person("review", environment=PLAIN)
    shown = person.sees(rf"({FACTS[0]}|{FACTS[1]})").group(1)
    person.sees(PROMPT)
    person.types("e")
    person.sees("Instead: ")
    person.types(f"{shown}\n")
    person.sees("nothing edited")
    person.sees(PROMPT)
    person.types("u")
    person.sees("nothing was decided yet")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0
    assert statuses(cli, waiting) == ["candidate", "candidate"]


@pytest.mark.usefixtures("waiting")
def test_a_merge_with_nothing_is_said_to_have_merged_nothing() -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("m")
    person.sees("Merge with which memories")
    person.types("\n")
    person.sees("nothing merged")
    person.sees("1 of 2")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0


def test_a_key_that_means_nothing_is_ignored(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("x")
    person.sees(PROMPT)
    person.types("\x1b[A")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0
    assert statuses(cli, waiting) == ["candidate", "candidate"]


def test_keys_typed_before_an_item_was_shown_decide_nothing(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    person.sees(PROMPT)
    person.types("ppp")
    person.sees("2 of 2")
    person.sees(PROMPT)
    person.types("q")
    person.sees("1 decided, 1 still waiting")
    assert person.leaves() == 0
    assert sorted(statuses(cli, waiting)) == ["active", "candidate"]


@pytest.mark.usefixtures("waiting")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_the_terminal_is_put_back_however_the_walk_ends(ending: signal.Signals) -> None:
    person = Person("review")
    before = person.modes()
    person.sees(PROMPT)
    assert person.modes() == (False, False)
    os.kill(person.child, ending)
    # The master side still knows the modes when the program has gone.
    _, status = os.waitpid(person.child, 0)
    assert (before, person.modes()) == ((True, True), (True, True))
    assert os.waitstatus_to_exitcode(status) == 128 + ending


def test_tier_3_asks_for_its_code_in_the_walk(cli: Console) -> None:
    held = cli.json("learn", "The patient is allergic to penicillin", "--type", "health")["memory"]["id"]
    person = Person("review")
    person.sees(PROMPT)
    person.types("p")
    person.sees(CODE)
    person.types("0000\n")
    person.sees(f"Wrong code. {held} still waits; nothing was changed.")
    person.sees(PROMPT)
    assert statuses(cli, [held]) == ["candidate"]
    person.types("p")
    person.types(person.sees(CODE).group(1) + "\n")
    person.sees("1 decided")
    assert person.leaves() == 0
    assert cli.json("show", held)["verification"] == "user_confirmed"


def test_promote_takes_a_typed_code_for_tier_3_and_shows_what_it_is_about(cli: Console) -> None:
    held = cli.json("learn", "The patient is allergic to penicillin", "--type", "health")["memory"]["id"]
    person = Person("promote", held, "--confirm")
    person.sees("The patient is allergic to penicillin")
    person.types(person.sees(CODE).group(1) + "\n")
    person.sees("promoted 1")
    assert person.leaves() == 0
    assert statuses(cli, [held]) == ["active"]


def test_one_code_promotes_several_of_tier_3(cli: Console) -> None:
    texts = ("The patient is allergic to penicillin", "The patient takes insulin twice a day")
    held = [cli.json("learn", text, "--type", "health")["memory"]["id"] for text in texts]
    person = Person("promote", *held, "--confirm")
    for text in texts:
        person.sees(text)
    person.types(person.sees(CODE).group(1) + "\n")
    person.sees("promoted 2")
    assert person.leaves() == 0
    assert statuses(cli, held) == ["active", "active"]


def test_edit_opens_the_record_in_the_editor_and_it_waits_on(cli: Console, waiting: list[str]) -> None:
    editor = cli.folder / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/deploy script/release script/" "$1"\n')
    editor.chmod(0o755)
    person = Person("edit", waiting[0], environment={"EDITOR": str(editor), "TMPDIR": str(cli.folder)})
    person.sees("release script")
    assert person.leaves() == 0
    edited = cli.json("show", waiting[0])
    assert edited["statement"] == "The release script lives in tools/deploy.sh"
    assert (edited["status"], edited["source"], edited["learned_by"]) == ("candidate", HARNESS, "manual")
    assert not list(cli.folder.glob("engram-edit-*"))


def test_an_edited_record_that_cannot_be_read_is_kept_and_named(cli: Console, waiting: list[str]) -> None:
    editor = cli.folder / "editor.sh"
    editor.write_text('#!/bin/sh\necho "- id: [unclosed" > "$1"\n')
    editor.chmod(0o755)
    person = Person("edit", waiting[0], environment={"EDITOR": str(editor), "TMPDIR": str(cli.folder)})
    person.sees("cannot be read")
    assert person.leaves() == 2
    (kept,) = cli.folder.glob("engram-edit-*/memory.yaml")
    assert "unclosed" in kept.read_text("utf-8")
    assert cli.json("show", waiting[0])["statement"] == FACTS[0]


def test_the_walk_says_of_what_is_only_probable_that_it_may_repeat(cli: Console) -> None:
    current = cli.json("remember", "Screenshots are compared with pixelmatch")["memory"]["id"]
    with Engram.open(cli.folder / "home", cache=cli.folder / "cache") as mem:
        added = mem.add("Visual tests fail above two percent", status="candidate", source=HARNESS)
        mem.relate(added.id, current, "may_repeat")
    person = Person("review")
    person.sees(f"may repeat {current}")
    person.sees(PROMPT)
    person.types("q")
    assert person.leaves() == 0
    found = cli.json("show", added.id)["provenance"]
    assert (found["same"], [one["id"] for one in found["may_repeat"]]) == ([], [current])


def test_the_walk_merges_a_candidate_into_what_it_resembles(cli: Console) -> None:
    current = cli.json("remember", "Screenshots are compared with pixelmatch")["memory"]["id"]
    with Engram.open(cli.folder / "home") as mem:
        added = mem.add("The screenshots are compared with pixelmatch", status="candidate", source=HARNESS)
    person = Person("review")
    person.sees(f"same as {current}")
    person.sees(PROMPT)
    person.types("m")
    person.sees(re.escape(f"[{current}] "))
    person.types("\n")
    person.sees("merged statement: ")
    person.types("pixelmatch compares all screenshots\n")
    person.sees("1 decided")
    assert person.leaves() == 0
    assert cli.json("show", current)["statement"] == "pixelmatch compares all screenshots"
    assert statuses(cli, [added.id]) == ["superseded"]


def test_what_an_agent_rewords_while_the_person_reads_is_shown_again(cli: Console, waiting: list[str]) -> None:
    person = Person("review")
    ref = person.sees(r"(ENG-[\w-]+) · tooling").group(1)
    person.sees(PROMPT)
    assert cli("edit", ref, "--statement", "The deploy script lives in evil/deploy.sh").exit_code == 0
    person.types("p")
    person.sees("was changed while you read it; nothing was decided: look again")
    person.sees("The deploy script lives in evil/deploy.sh")
    person.sees(PROMPT)
    assert statuses(cli, [ref]) == ["candidate"]
    person.types("q")
    assert person.leaves() == 0


def test_the_typed_code_approves_only_the_text_above_it(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        ref = mem.learn("Ada is allergic to penicillin", source="agent", type="health").memory
        assert ref is not None
    person = Person("promote", ref.id, "--confirm")
    code = person.sees(CODE).group(1)
    assert cli("edit", ref.id, "--statement", "Ada is allergic to nothing").exit_code == 0
    person.types(f"{code}\n")
    person.sees("was changed while you read it")
    assert person.leaves() == 1
    assert statuses(cli, [ref.id]) == ["candidate"]


def test_the_code_for_a_merge_stands_below_the_merged_words(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        one = mem.learn("Ada is allergic to penicillin", source="agent", type="health").memory
        other = mem.learn("Bo is allergic to nuts", source="agent", type="health").memory
        assert one is not None and other is not None
    person = Person("merge", one.id, other.id, "--statement", "Ada and Bo are allergic to nuts")
    person.sees("Ada and Bo are allergic to nuts\n")
    person.types(person.sees(CODE).group(1) + "\n")
    assert person.leaves() == 0


def test_a_code_typed_for_an_agent_stands_below_everything_it_promotes(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        one = mem.learn("Ada is allergic to penicillin", source="agent", type="health").memory
        other = mem.add(FACTS[0], source="agent", status="candidate", type="tooling")
        assert one is not None
    run = f"{' '.join(ENGRAM)} promote {one.id} {other.id} --confirm < /dev/null"
    person = Person(program=["/bin/sh", "-c", run])
    person.sees(FACTS[0])
    person.types(person.sees(CODE).group(1) + "\n")
    assert person.leaves() == 0
    assert statuses(cli, [one.id, other.id]) == ["active", "active"]


def test_one_key_takes_out_what_was_wrongly_taken_for_the_same(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        (event,) = mem.sessions.observe_batch("S-1", [{"role": "user", "content": "the pager rotates on Mondays"}])
        told = store_retelling(mem.store, KNOWN, Memory("", event.content, source=HARNESS), Evidence(event.id))
        first = mem.add(FACTS[0], status="candidate", source=HARNESS, evidence=[told])
    person = Person("review")
    person.sees("1 also told as “the pager rotates on Mondays”")
    person.sees("t take out a retelling")
    person.sees(PROMPT)
    person.types("t")
    taken = person.sees("✓ taken out as (ENG-[0-9-]+)").group(1)
    person.sees(re.escape(first.id))
    person.sees(PROMPT)
    person.types("p")
    person.sees("the pager rotates on Mondays")
    person.sees(PROMPT)
    person.types("p")
    person.sees("2 decided, 0 still waiting")
    assert person.leaves() == 0
    assert statuses(cli, [first.id, taken]) == ["active", "active"]


def test_undo_in_the_walk_puts_a_retelling_back(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        (event,) = mem.sessions.observe_batch("S-1", [{"role": "user", "content": "the pager rotates on Mondays"}])
        told = store_retelling(mem.store, KNOWN, Memory("", event.content, source=HARNESS), Evidence(event.id))
        first = mem.add(FACTS[0], status="candidate", source=HARNESS, evidence=[told])
    person = Person("review")
    person.sees(PROMPT)
    person.types("t")
    taken = person.sees("✓ taken out as (ENG-[0-9-]+)").group(1)
    person.sees(PROMPT)
    person.types("u")
    person.sees("undone: ")
    person.sees("1 also told as")
    person.sees(PROMPT)
    person.types("p")
    person.sees("1 decided, 0 still waiting")
    assert person.leaves() == 0
    assert statuses(cli, [first.id, taken]) == ["active", "retired"]
