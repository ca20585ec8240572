"""One program of many verbs whose clock, tokens and choices are seeded: wherever it runs, it takes the same steps.

`steps(url, tenant)` runs it in an empty tenant and returns a line for each step: what was asked, and all of the answer (ids, hits,
scores, texts, times) but what is random and the numbers that a server gives out to all tenants together. Two places that
behave alike give the same lines: a server, the same one behind a pooler, and one that is spread over several.
"""

import dataclasses
import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from engram import Engram
from engram.model.errors import InvalidInput, NotFound, Refused
from engram.model.hit import Hit
from engram.model.memory import Activation
from engram.model.records import Checkpoint, Event, Job
from engram.store.defaults import Server as Place
from engram.store.migration.transfer import Endpoint, transfer
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Image
from engram.store.reports import Purged
from tests.faults.workers.operations import sentence

SEED = 11
ROUNDS = 160
MOVED = "-moved"
DIGITS = 6
"""Of a score: servers may add up in another order."""
SCOPES = ("global", "project:acme", "project:acme/api", "user:ann")
SUBJECTS = ("The api", "The web shop", "The billing job", "Klaus", "The staging cluster", "The data lake", "Ann")
VERBS = ("deploys to", "waits for", "depends on", "was moved to", "reports to", "is owned by", "replaces")
OBJECTS = ("the red button", "Frankfurt", "the payment gateway", "a nightly cron", "port 8080", "the queue", "Lisbon")
QUESTIONS = (
    "What does the api depend on?", "Where was the billing job moved to?", "Who owns the web shop?", "port", "nightly",
    "What happened in the staging cluster?", "How do we deploy?", "What did Ann say about Lisbon?", "otter heron lynx",
)  # fmt: skip
FROM_THE_SERVER: Mapping[type, frozenset[str]] = {
    Activation: frozenset({"seq"}),
    Event: frozenset({"salt", "body", "prev", "digest"}),
    Image: frozenset({"seq"}),
    Hit: frozenset({"trace"}),
    Job: frozenset({"owner"}),
    Purged: frozenset({"out_of_reach"}),
}
"""What two runs cannot share: numbers given to all tenants of a server, salted digests (their chain is verified), the process; and
places among documents whose scores are equal but for the order in which a server adds up."""


class StepClock:
    """Moves with each step to a moment of its own, and within one a millisecond with every look, from whichever thread."""

    def __init__(self) -> None:
        self._now = self._step = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
        self._turn = threading.Lock()

    def __call__(self) -> datetime:
        with self._turn:
            self._now += timedelta(milliseconds=1)
            return self._now

    def step(self, minutes: int) -> None:
        """On to the next step, however often the last one looked."""
        self._step += timedelta(minutes=minutes)
        self._now = self._step


def steps(url: str, tenant: str, *, seed: int = SEED, rounds: int = ROUNDS) -> list[str]:
    """Run the program in this tenant and one beside it, both empty; a line for each step."""
    clock, chance = StepClock(), random.Random(seed)
    tokens = random.Random(seed + 1)

    def token(size: int) -> str:
        return tokens.randbytes(size).hex()

    def opened(name: str) -> Engram:
        mem = Engram.open(url=url, tenant=name, clock=clock, directory="/")
        assert isinstance(mem.store, PostgresStore)
        mem.store.context.token = token
        return mem

    with opened(tenant) as mem:
        found = list(Program(mem, chance, clock).run(rounds))
    moved = transfer(Endpoint(server=Place(url, tenant)), Endpoint(server=Place(url, tenant + MOVED)))
    found.append(_line("move", {"holds": moved.counts, "differences": moved.differences}))
    with opened(tenant + MOVED) as mem:
        found += Program(mem, chance, clock, "moved ").run(rounds // 4)
        found.append(_line("doctor", [(finding.code, finding.ok) for finding in mem.doctor().findings]))
    return found


@dataclass(slots=True)
class Program:
    """The steps in one tenant."""

    mem: Engram
    chance: random.Random
    clock: StepClock
    label: str = ""
    said: int = 0
    sessions: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def run(self, rounds: int) -> Iterator[str]:
        """The first so many verbs in order, then as chance has it; at the end all that is there."""
        verbs = list(PROGRAM)
        for name in [*verbs[:rounds], *self.chance.choices(verbs, k=max(0, rounds - len(verbs)))]:
            self.clock.step(self.chance.randint(1, 2000))
            try:
                answer = PROGRAM[name](self)
            except (InvalidInput, NotFound, Refused) as error:
                answer = {"refused": f"{type(error).__name__}: {error}"}
            yield _line(f"{self.label}{name}", answer)
        for memory in self.mem.list(limit=None, status="any"):
            yield _line(f"{self.label}held", {"memory": memory, "history": self.mem.history(memory.id)})
        for ledger in self.mem.store.ledgers():
            yield _line(f"{self.label}ledger {ledger}", self.mem.store.events(ledger))
        assert self.mem.store.verify_ledgers() == []

    def statement(self) -> str:
        """Something new, or near to what is there, or against it."""
        self.said += 1
        if self.chance.random() < 0.3:
            return sentence(self.said)
        parts = (self.chance.choice(words) for words in (SUBJECTS, VERBS, OBJECTS))
        return " ".join(parts) + self.chance.choice(("", "", f" since case {self.said}", " on Mondays"))

    def scope(self) -> str:
        """A place to write to."""
        return self.chance.choice(SCOPES)

    def memory(self) -> str:
        """The id of a memory that is there."""
        known = self.mem.list(limit=None, status=self.chance.choice(("any", "active", "active")))
        return self.chance.choice(known).id if known else self.mem.add(self.statement()).id

    def question(self) -> str:
        """Something to ask."""
        return self.chance.choice((*QUESTIONS, self.statement()))

    def session(self) -> str:
        """The id of a session that was begun."""
        return self.chance.choice(self.sessions) if self.sessions else _session(self)["id"]

    def task(self) -> str:
        """The id of a task that runs."""
        running = [task.id for task in self.mem.list_tasks("running")]
        return self.chance.choice(running) if running else _start_task(self).id


# -- writing


def _learn(own: Program) -> object:
    return own.mem.learn(own.statement(), scope=own.scope(), session=own.chance.choice(("", "talk")))


def _learn_autonomously(own: Program) -> object:
    return own.mem.learn(own.statement(), scope=own.scope(), autonomous=True)


def _remember(own: Program) -> object:
    return own.mem.remember(own.statement(), scope=own.scope())


def _add(own: Program) -> object:
    tags, metadata = own.chance.sample(("ops", "legal", "speed"), 2), {"case": own.said % 5, "where": {"floor": 2}}
    return own.mem.add(
        own.statement(), scope=own.scope(), tags=tags, metadata=metadata, rationale=own.statement(),
        name=own.chance.choice(("", "handbook")), importance=own.chance.randint(1, 9) / 10,
    )  # fmt: skip


def _add_batch(own: Program) -> object:
    drafts = [{"statement": own.statement(), "scope": own.scope()} for _ in range(own.chance.randint(1, 12))]
    return own.mem.add_batch(drafts)


def _add_large_batch(own: Program) -> object:
    drafts = [{"statement": sentence(own.said * 1000 + n), "scope": SCOPES[n % 4]} for n in range(120)]
    return [memory.id for memory in own.mem.add_batch(drafts)]


def _add_conversation(own: Program) -> object:
    said = f"My favourite city is {own.chance.choice(('Lisbon', 'Porto', 'Faro'))}, and {own.statement()}."
    return own.mem.add_conversation(said, "Understood.", scope="user:ann", key=str(own.said))


def _update(own: Program) -> object:
    return own.mem.update(own.memory(), statement=own.statement(), reason="seen again")


def _revise(own: Program) -> object:
    return own.mem.revise(own.memory(), statement=own.statement())


def _supersede(own: Program) -> object:
    return own.mem.add(own.statement(), supersedes=[own.memory()])


def _pin(own: Program) -> object:
    return own.mem.pin(own.memory(), bool(own.chance.getrandbits(1)))


def _verify(own: Program) -> object:
    return own.mem.verify(own.memory(), actor=own.chance.choice(("human", "manual")))


def _reinforce(own: Program) -> object:
    return own.mem.reinforce(own.memory())


def _feedback(own: Program) -> object:
    return own.mem.feedback(own.memory(), own.chance.choice(("positive", "negative", "neutral")), session="talk")


def _relate(own: Program) -> object:
    return own.mem.relate(own.memory(), own.memory(), own.chance.choice(("depends_on", "related_to")), 0.8)


def _forget(own: Program) -> object:
    return own.mem.forget(own.memory(), reason="out of date")


def _undo(own: Program) -> object:
    return own.mem.undo(own.memory())


def _purge(own: Program) -> object:
    return own.mem.forget(own.memory(), purge=True)


def _purge_scope(own: Program) -> object:
    own.mem.add(own.statement(), scope="project:doomed")
    own.mem.observe("doomed talk", "user", own.statement(), scope="project:doomed")
    return own.mem.purge("project:doomed")


def _review(own: Program) -> object:
    waiting = own.mem.review.queue(6)
    decided: list[object] = []
    for item in waiting[:2]:
        if item.waits_as == "contradiction":
            decided.append(own.mem.review.resolve(item.memory.id, own.chance.choice(("new", "old", "both"))))
        elif item.waits_as == "candidate":
            decide = own.chance.choice((own.mem.review.approve, own.mem.review.reject))
            decided.append(decide(item.memory.id, actor="human"))
        else:
            decided.append(own.mem.review.retire(item.memory.id))
    return [waiting, decided]


def _pause(own: Program) -> object:
    own.mem.upkeep.pause()
    refused = own.mem.learn(own.statement())
    own.mem.upkeep.resume()
    return refused


# -- reading


def _search(own: Program) -> object:
    mode = own.chance.choice(("hybrid", "keyword", "semantic"))
    return own.mem.search(own.question(), mode=mode, limit=own.chance.randint(1, 20))


def _search_narrowly(own: Program) -> object:
    narrowed: list[dict[str, Any]] = [
        {"scope": own.scope()}, {"tags": ["ops"]}, {"metadata": {"where.floor": 2}}, {"metadata": {"case": 3}},
        {"status": "any"}, {"since": datetime(2026, 4, 1).astimezone()}, {"kinds": ("event",)}, {"types": ["fact"]},
        {"kinds": ("memory", "event"), "session": "talk"},
    ]  # fmt: skip
    return own.mem.search(own.question(), **own.chance.choice(narrowed))


def _deep_search(own: Program) -> object:
    return own.mem.deep_search(own.question(), limit=5)


def _recall(own: Program) -> object:
    found = own.mem.recall(own.question(), scope=own.chance.choice((None, own.scope())), session="talk")
    return [found.text, found.hits, found.possible, found.intent, found.warnings]


def _recall_critical(own: Program) -> object:
    return own.mem.recall_critical(scope=own.scope())


def _inject(own: Program) -> object:
    found = own.mem.inject(own.question(), scope=own.scope(), budget=300, session="talk")
    return [found.text, found.ids, found.tokens, found.warnings]


def _context_block(own: Program) -> object:
    return own.mem.get_context_block(own.question(), max_tokens=300)


def _list(own: Program) -> object:
    return own.mem.list(limit=20, offset=own.chance.randint(0, 30), status=own.chance.choice(("any", "active")))


def _get(own: Program) -> object:
    found = own.memory()
    return [own.mem.get(found), own.mem.history(found), own.mem.lineage(found), own.mem.explain_memory(found)]


def _walk(own: Program) -> object:
    direction = own.chance.choice(("outbound", "inbound", "any"))
    reached = own.mem.traverse(own.memory(), direction=direction)
    return [reached, own.mem.render_graph_context(reached)]


def _status(own: Program) -> object:
    told = own.mem.upkeep.status()
    return sorted(key for key in told)


# -- sessions, tasks and jobs


def _session(own: Program) -> Any:
    running = own.mem.session(own.question(), scope=own.scope(), budget=200)
    own.sessions.append(running.id)
    return {"id": running.id, "text": running.injection.text, "events": [running.observe("user", own.statement())]}


def _end_session(own: Program) -> object:
    return own.mem.sessions.end(own.session())


def _observe(own: Program) -> object:
    items = [{"role": role, "content": own.statement(), "key": f"{own.said % 7}-{role}"} for role in ("user", "agent")]
    return own.mem.observe_batch(own.chance.choice(("talk", own.session())), items)


def _summarise(own: Program) -> object:
    return own.mem.sessions.summarise(own.session(), style=own.chance.choice(("plain", "structured")))


def _start_task(own: Program) -> Any:
    started = own.mem.start_task(own.statement(), scope=own.scope(), metadata={"case": own.said})
    own.tasks.append(started.id)
    return started


def _record_turn(own: Program) -> object:
    call = {"name": "look", "arguments": {"at": own.said}, "result": own.statement()}
    said = f"We decided that {own.statement()}. My manager is {own.chance.choice(('Ann', 'Klaus', 'Zoe'))}."
    return own.mem.record_turn(own.task(), said, "Noted.", tool_calls=[call], key=str(own.said))


def _record_event(own: Program) -> object:
    return own.mem.record_event(own.task(), "user", own.statement(), payload={"n": own.said})


def _search_events(own: Program) -> object:
    return own.mem.search_events(own.question(), task=own.chance.choice(("", own.task())))


def _checkpoint(own: Program) -> object:
    done, left = [own.statement()], [own.statement()]
    return own.mem.create_checkpoint(own.task(), own.statement(), completed_steps=done, pending_steps=left)


def _work(own: Program) -> object:
    waiting = own.mem.jobs.list()
    return [waiting, own.mem.process_memory_jobs(own.chance.choice((1, 100)))]


def _task_context(own: Program) -> object:
    return own.mem.build_context(own.task(), own.question(), max_tokens=500).text


def _end_task(own: Program) -> object:
    end = own.chance.choice((own.mem.complete_task, own.mem.fail_task, own.mem.pause_task, own.mem.cancel_task))
    return end(own.task(), own.statement())


def _tasks(own: Program) -> object:
    return [own.mem.list_tasks(), [own.mem.store.list_records(Checkpoint, of=task) for task in own.tasks]]


def _long_input(own: Program) -> object:
    task = own.task()
    text = "\n\n".join(f"# Part {n}\n\n{own.statement()}. {own.statement()}." for n in range(4))
    own.mem.record_long_input(task, text, title=f"Notes {own.said}", max_chunk_tokens=60)
    return own.mem.build_long_input_context(task, own.question(), max_tokens=300).text


# -- upkeep


def _fold(own: Program) -> object:
    return own.mem.upkeep.fold()


def _rebuild(own: Program) -> object:
    own.mem.rebuild_index()
    return own.mem.search(own.question())


def _reembed(own: Program) -> object:
    own.mem.upkeep.reembed()
    return own.mem.search(own.question(), mode="semantic")


def _prune(own: Program) -> object:
    return own.mem.upkeep.prune(dry_run=bool(own.chance.getrandbits(1)))


PROGRAM: dict[str, Callable[[Program], object]] = {
    verb.__name__.strip("_"): verb
    for verb in (
        _learn, _add_large_batch, _add, _add_batch, _remember, _add_conversation, _learn_autonomously, _search,
        _search_narrowly, _deep_search, _session, _observe, _summarise, _end_session, _recall, _recall_critical, _inject,
        _context_block, _start_task, _record_turn, _record_event, _checkpoint, _search_events, _work, _task_context,
        _long_input, _end_task, _tasks, _update, _revise, _supersede, _pin, _verify, _reinforce, _feedback, _relate,
        _walk, _review, _forget, _undo, _get, _list, _fold, _purge, _purge_scope, _pause, _rebuild, _reembed, _prune,
        _status,
    )
}  # fmt: skip


# -- as lines


def _line(step: str, answer: object) -> str:
    return f"{step}: {json.dumps(_plain(answer), ensure_ascii=False, sort_keys=True)}"


def _plain(value: object) -> object:
    """Everything a value holds that is not its default, in plain types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        left_out = FROM_THE_SERVER.get(type(value), frozenset())
        held = ((part, getattr(value, part.name)) for part in dataclasses.fields(value) if part.name not in left_out)
        return {part.name: _plain(of) for part, of in held if of != part.default}
    if isinstance(value, Mapping):
        return {str(key): _plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(of) for of in value]
    if isinstance(value, float):
        return round(value, DIGITS)
    return value if value is None or isinstance(value, str | int) else str(value)
