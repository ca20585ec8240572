"""`engram demo`: the whole life of a memory in a few seconds, on a temporary store.

Every line printed is a real answer.
"""

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.cli import display, views
from engram.cli.records import decision_data, hit_data, injection_data, memory_data, plain
from engram.model.lazy import dataclass, field
from engram.rules.lifecycle import eligibility, strength

if TYPE_CHECKING:
    from engram.cli.surface import Surface
    from engram.client import Engram
    from engram.sessions.sessions import SessionHandle

SCOPE = "project:shop"
PAUSE_SECONDS = 0.9
LESSONS = (
    ("correction", "Never run the migrations by hand on production; the deploy job runs them after its health check."),
    (
        "convention",
        "Tests of the payment service need the sandbox key from the vault, and run with `make test-payments`.",
    ),
    (
        "preference",
        "The team prefers small pull requests: one change each, under 300 lines, with the reason in the first line.",
    ),
    ("factual", "The nightly export to the data warehouse starts at 02:00 UTC and takes about 40 minutes."),
)
NEXT_COMMANDS = (
    ('engram learn "…"', "teach it something of your own"),
    ('engram recall "…"', "ask; add --explain to see why"),
    ('engram inject "…"', "what an agent should know before a task"),
    ("engram status", "what it contains, and what was injected last"),
    ("engram import ~/.plur", "import what another tool remembers"),
    ("engram --help", "everything else"),
)


@dataclass(slots=True)
class Clock:
    """A clock that the demo moves forward."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC).replace(microsecond=0))

    def __call__(self) -> datetime:
        """The current time. Each call adds a second, so that no two decisions have the same time."""
        self.now += timedelta(seconds=1)
        return self.now


@dataclass(slots=True)
class Demo:
    """The scenes, in order, on one store."""

    mem: "Engram"
    clock: Clock
    surface: "Surface"
    pause: bool
    ids: dict[str, str] = field(default_factory=dict)
    account: list[dict[str, Any]] = field(default_factory=list)

    def scene(self, title: str, words: str) -> None:
        """Print the heading of a scene."""
        self.account.append({"scene": title, "steps": []})
        if self.surface.as_json:
            return
        if self.pause and display.on_terminal() and len(self.account) > 1:
            time.sleep(PAUSE_SECONDS)
        display.write()
        display.rule(f"{len(self.account)} · {title}")
        display.lines([(words, "italic bright_black")], [""])

    def step(self, command: str, data: Any, draw: Callable[[], None]) -> None:
        """Print one call as it is typed, and its answer."""
        self.account[-1]["steps"].append({"command": command, "answer": plain(data)})
        if not self.surface.as_json:
            display.lines([("$ ", "bright_black"), (command, "bold")])
            draw()

    def note(self, text: str) -> None:
        """Print a remark."""
        if not self.surface.as_json:
            display.lines([(text, "italic bright_black")])

    # -- the scenes

    def show_learning(self) -> None:
        """Show learning, with the gates at work."""
        self.scene("taught", "An agent learns from its work. Gates look at every proposal and give their reason.")
        for kind, text in LESSONS:
            found = self.learn(text, kind)
            assert found.memory is not None
            self.ids[kind] = found.memory.id
        self.learn(LESSONS[0][1].replace("; the", ": the"), "correction")
        self.learn("The vault answers to the token ghp_" + "4kQz9Lw2Xr7Vn1Tb8Jc5Md3Hs6Fg0Py2Aw9E", "factual")

    def learn(self, text: str, kind: str) -> Any:
        """Learn one statement."""
        found = self.mem.learn(text, type=kind, scope=SCOPE)
        self.step(
            f'engram learn "{text[:44]}…" --type {kind}',
            decision_data(found, self.clock.now),
            lambda: views.decision(found),
        )
        return found

    def show_recall(self) -> None:
        """Show a question, and the explanation of a score."""
        self.scene(
            "recalled",
            "A question finds them again, and every score can be taken apart. What only comes close is marked so.",
        )
        question = "what do I need to test the payments?"
        hits = self.mem.recall(question, scope=SCOPE, limit=2, explain=True).hits
        self.step(
            f'engram recall "{question}" --explain',
            [hit_data(hit, self.clock.now, explain=True) for hit in hits],
            lambda: views.hits(hits, self.clock.now, explain=True),
        )
        unknown = "who is on call for the payments?"
        found = self.mem.recall(unknown, scope=SCOPE)
        self.step(
            f'engram recall "{unknown}"',
            [hit_data(hit, self.clock.now) for hit in found.hits],
            lambda: views.answer(found, self.clock.now),
        )

    def show_injection(self) -> None:
        """Show a session: injection, ledger, rating."""
        self.scene("injected and rated", "A session begins with what the agent should know, inside a token budget.")
        task = "deploy the payment service to production"
        with self.mem.session(task, scope=SCOPE, budget=400) as session:
            found = session.injection
            self.step(
                f'engram session start "{task}" --budget 400',
                injection_data(found, self.clock.now),
                lambda: views.injection(found),
            )
            self.note(f"{found.tokens} of {found.budget} tokens")
            session.observe("user", "Please deploy the payment service.")
            self.rate(session, "correction", "positive")
            self.rate(session, "factual", "negative")

    def rate(self, session: "SessionHandle", kind: str, signal: str) -> None:
        """Rate a memory, and print the effect."""
        before = self.mem.get(self.ids[kind])
        after = session.feedback(before.id, signal)
        changes = views.changed_fields(before, after)
        self.step(
            f"engram feedback {before.id} {signal}",
            memory_data(after, self.clock.now),
            lambda: views.draw_changes(changes),
        )

    def show_fading(self) -> None:
        """Show how memories fade over time."""
        self.scene("fading", "Time is the only thing that moves here. What is not used fades; nobody has to run a job.")
        memories = [self.mem.get(self.ids[kind]) for kind, _ in LESSONS]
        start = self.clock.now
        rows: list[list[display.Cell]] = []
        for memory in memories:
            row: list[display.Cell] = [(memory.id, "cyan"), memory.type]
            for days in (0, 30, 90, 180):
                state = eligibility(memory, start + timedelta(days=days))
                row.append((f"{display.bar(state.strength)} {state.state}", display.state_style(state.state)))
            rows.append(row)
        columns = [
            display.Column(name) for name in ("memory", "type", "today", "in 30 days", "in 90 days", "in 180 days")
        ]
        data = {
            m.id: {days: round(strength(m, start + timedelta(days=days)), 4) for days in (0, 30, 90, 180)}
            for m in memories
        }
        self.step("engram list   (and the clock moved forward)", data, lambda: display.table(columns, rows))
        self.clock.now += timedelta(days=30)
        self.note(
            "A month goes by. Corrections, conventions and preferences never sink below fading; the fact is dormant now:"
        )
        self.show_dormant_recall()

    def show_dormant_recall(self) -> None:
        """Show that a dormant memory is not injected but can still be recalled."""
        task = "check when the nightly export runs"
        injected = self.mem.inject(task, scope=SCOPE)
        passed_over = [(item.id, item.reason) for item in injected.left_out]
        rows: list[list[display.Cell]] = [[("  not injected  ", "yellow"), f"{who}: {why}"] for who, why in passed_over]
        self.step(f'engram inject "{task}"', passed_over, lambda: display.lines(*rows))
        hits = self.mem.recall(
            "at what hour does the nightly export to the warehouse start?", scope=SCOPE, limit=1
        ).hits
        self.step(
            'engram recall "at what hour does the nightly export to the warehouse start?"',
            [hit_data(hit, self.clock.now) for hit in hits],
            lambda: views.hits(hits, self.clock.now),
        )

    def show_conflict(self) -> None:
        """Show a conflict, and a person's decision."""
        self.scene(
            "contradicted and reviewed", "What contradicts is never overwritten: both are kept until someone decides."
        )
        text = LESSONS[3][1].replace("02:00", "04:30")
        found = self.learn(text, "factual")
        waiting = self.mem.review.queue()
        rows: list[list[display.Cell]] = [[(item.memory.id, "cyan"), item.waits_as, item.reason] for item in waiting]
        columns = ["id", "what", "why"]
        self.step("engram review", [item.reason for item in waiting], lambda: display.table(columns, rows))
        if found.outcome.value == "CONTRADICTION":
            kept = self.mem.review.resolve(found.memory.id, "new")
            self.ids["factual"] = kept.id
            both = [kept, self.mem.get(kept.supersedes[-1])]
            self.step(
                f"engram review {kept.id} --keep new",
                memory_data(kept, self.clock.now),
                lambda: views.listing(both, self.clock.now),
            )

    def show_edit_and_undo(self) -> None:
        """Show that editing the file changes the memory, and how to undo it."""
        self.scene(
            "edited by hand, and undone",
            "A memory is a file. Edit it with anything; what you write wins, and is journaled.",
        )
        memory = self.mem.get(self.ids["convention"])
        path = Path(self.mem.store.file_of(memory.id))
        text = path.read_text("utf-8")
        self.step(
            f"cat …/{path.parent.name}/{path.name}",
            text,
            lambda: display.lines(*[[row] for row in text.rstrip().splitlines()]),
        )
        path.write_text(text.replace("test-payments", "test-pay"), "utf-8")
        self.mem.upkeep.sync()
        steps = views.history_steps(self.mem.history(memory.id))[-1:]
        self.step(
            f"sed -i s/test-payments/test-pay/ {path.name}; engram history {memory.id}",
            [views.step_data(s) for s in steps],
            lambda: views.draw_history(steps),
        )
        before, after = self.mem.get(memory.id), self.mem.undo(memory.id)
        self.step(
            f"engram undo {memory.id}",
            memory_data(after, self.clock.now),
            lambda: views.draw_changes(views.changed_fields(before, after)),
        )

    def show_purge(self) -> None:
        """Show a purge, and the proof of it."""
        self.scene(
            "forgotten for good",
            "`forget` retires and can be undone. `--purge` destroys every byte, then looks for what is left.",
        )
        target = self.ids["factual"]
        proof = self.mem.upkeep.purge([target])
        from engram.cli.verbs.change import draw_proof

        self.step(f"engram forget {target} --purge", proof, lambda: draw_proof(proof))

    def end(self) -> None:
        """Print what to type next."""
        if self.surface.as_json:
            self.surface.json(self.account)
            return
        display.write()
        display.rule("now you")
        display.fields([(command, (words, "bright_black")) for command, words in NEXT_COMMANDS])


def play(surface: "Surface", *, pause: bool = True) -> None:
    """Play all scenes on a store in a temporary directory."""
    from engram.client import Engram

    clock = Clock()
    with (
        tempfile.TemporaryDirectory(prefix="engram-demo-") as folder,
        Engram.open(ephemeral=True, directory=folder, clock=clock) as mem,
    ):
        demo = Demo(mem, clock, surface, pause)
        demo.show_learning()
        demo.show_recall()
        demo.show_injection()
        demo.show_fading()
        demo.show_conflict()
        demo.show_edit_and_undo()
        demo.show_purge()
        demo.end()
