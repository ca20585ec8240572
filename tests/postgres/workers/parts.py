"""What one thread of a crowd does; it tells whatever it was answered, so that a test can add it up."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engram import Engram
from engram.model.errors import ChangedMeanwhile, InvalidInput, NotFound, StoreError
from engram.model.records import Use
from engram.store.defaults import utc_now
from tests.faults.workers.operations import sentence

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

PATIENCE = 120.0
SHARED = "project:shared"
PLACES = ("project:shared", "project:apart")
MANY = 100_000


@dataclass(frozen=True, slots=True)
class Turn:
    """One thread's part: its store, its number, and how it talks to the others."""

    mem: Engram
    who: int
    request: dict[str, Any]
    tell: Callable[[dict[str, Any]], None]
    stopped: Callable[[], bool]
    meet: "Barrier"

    def text(self, i: int) -> str:
        """A sentence nobody else says."""
        return sentence(self.who * MANY + i)


def learning(turn: Turn) -> None:
    """Learn and add what nobody else says, in a scope of everyone's and in one of one's own; all want the same name."""
    for i in range(turn.request["rounds"]):
        scope = SHARED if i % 2 else f"project:of-{turn.who}"
        decision = turn.mem.learn(turn.text(i), scope=scope, situation=f"round {i}")
        assert decision.memory is not None, decision
        batch = [{"statement": turn.text(1000 + 2 * i + j), "scope": PLACES[(turn.who + j) % 2]} for j in (0, 1)]
        made = [decision.memory, *turn.mem.add_batch([{**item, "name": "same"} for item in batch])]
        turn.tell({"made": {memory.id: memory.statement for memory in made}})


def agreeing(turn: Turn) -> None:
    """Everyone learns the same sentence at the same moment."""
    for i in range(turn.request["rounds"]):
        turn.meet.wait(PATIENCE)
        session = f"S-{turn.who % 3}"
        decision = turn.mem.learn(sentence(i), scope=SHARED, session=session)
        assert decision.memory is not None, decision
        turn.tell({"round": i, "id": decision.memory.id, "outcome": decision.outcome.name, "session": session})


def disagreeing(turn: Turn) -> None:
    """Everyone says at the same moment that the port is another one: by a fact with a key, and by one without."""
    for i in range(turn.request["rounds"]):
        port = 2000 + turn.who * 100 + i
        turn.meet.wait(PATIENCE)
        keyed = turn.mem.learn(f"The api listens on port {port} in production", scope=SHARED, conflict_key="api/port")
        loose = turn.mem.learn(f"The worker listens on port {port} in production", scope=SHARED)
        assert keyed.memory is not None, keyed
        assert loose.memory is not None, loose
        turn.tell({"keyed": keyed.memory.id, "outcome": keyed.outcome.name, "loose": loose.memory.id})


def writing(turn: Turn) -> None:
    """Write until asked to stop, through whatever happens to the server: what was acknowledged, what was not."""
    for i in range(MANY):
        if turn.stopped():
            return
        work = WRITES[i % len(WRITES)]
        turn.tell({"tried": turn.text(i)})
        try:
            work(turn, i)
        except StoreError as error:
            turn.tell({"failed": type(error).__name__, "why": str(error)})


def _learn(turn: Turn, i: int) -> None:
    decision = turn.mem.learn(turn.text(i), scope=PLACES[i % 2])
    assert decision.memory is not None, decision
    turn.tell({"made": {decision.memory.id: turn.text(i)}})


def _add_batch(turn: Turn, i: int) -> None:
    items = [{"statement": f"{turn.text(i)} part {j}", "scope": PLACES[j % 2]} for j in range(4)]
    turn.tell({"made": {memory.id: memory.statement for memory in turn.mem.add_batch(items)}})


def _observe(turn: Turn, i: int) -> None:
    event = turn.mem.observe(f"talk-{turn.who % 3}", "user", turn.text(i), key=f"{turn.who}-{i}")
    turn.tell({"observed": {event.id: event.content}})


def _rate(turn: Turn, i: int) -> None:
    shared = turn.request["shared"]
    turn.mem.feedback(shared, "positive")
    turn.tell({"rated": shared})


WRITES = (_learn, _add_batch, _observe, _rate)


def mingling(turn: Turn) -> None:
    """Every verb over the same few memories, half of the threads from the last to the first, until asked to stop."""
    chosen = random.Random(turn.who)
    while not turn.stopped():
        verb = VERBS[chosen.randrange(len(VERBS))]
        try:
            verb(turn, chosen.randrange(MANY))
        except (NotFound, InvalidInput):
            # Purged, forgotten or resolved by another thread a moment ago.
            turn.tell({"late": verb.__name__})
        turn.tell({"did": verb.__name__})


def _targets(turn: Turn) -> list[str]:
    ids: list[str] = turn.request["counted"]
    return ids if turn.who % 2 else ids[::-1]


def rate(turn: Turn, n: int) -> None:
    for target in _targets(turn):
        turn.mem.feedback(target, "positive", session=f"S-{n % 4}")
        turn.tell({"rated": target})


def pin(turn: Turn, n: int) -> None:
    for target in _targets(turn):
        turn.mem.pin(target, bool(n % 2))


def update(turn: Turn, n: int) -> None:
    for target in _targets(turn):
        turn.mem.update(target, rationale=sentence(n), situation=f"case {n % 5}")


def use(turn: Turn, n: int) -> None:
    turn.mem.store.note_use(Use("recalled", tuple(_targets(turn)), utc_now(), f"U-{turn.who}-{n % 40}"))
    turn.tell({"used": f"U-{turn.who}-{n % 40}"})


def session(turn: Turn, n: int) -> None:
    handle = turn.mem.session(turn.request["texts"][n % len(turn.request["texts"])], scope=PLACES)
    handle.observe("user", sentence(n))
    handle.end()
    turn.tell({"used": handle.id})


def recall(turn: Turn, n: int) -> None:
    turn.mem.recall(turn.request["texts"][n % len(turn.request["texts"])], scope=PLACES, session=f"R-{n % 9}")


def fold(turn: Turn, _: int) -> None:
    turn.mem.upkeep.fold()


def derive(turn: Turn, n: int) -> None:
    place = n % len(turn.request["texts"])
    key = f"D-{n % 7}"
    decision = turn.mem.learn(turn.request["texts"][place], scope=turn.request["scopes"][place], session=key)
    assert decision.memory is not None, decision
    turn.tell({"derived": decision.memory.id, "session": key, "outcome": decision.outcome.name})


def batch(turn: Turn, n: int) -> None:
    scopes = PLACES if turn.who % 2 else PLACES[::-1]
    items = [{"statement": f"{sentence(n)} part {i}", "scope": scopes[i % 2], "tags": ["doomed"]} for i in range(4)]
    turn.mem.add_batch(items)


def contradict(turn: Turn, n: int) -> None:
    turn.mem.learn(f"The worker listens on port {2000 + n % 500} in production", scope=SHARED, tags=["doomed"])


def resolve(turn: Turn, n: int) -> None:
    for item in turn.mem.review.queue(4):
        if item.waits_as == "contradiction":
            turn.mem.review.resolve(item.memory.id, ("new", "old", "both")[n % 3], situations=(f"a {n}", f"b {n}"))


def _doomed(turn: Turn, n: int) -> list[str]:
    ids = sorted(memory.id for memory in turn.mem.list(status="any", tags=["doomed"], limit=6))
    return ids if turn.who % 2 else ids[::-1]


def purge(turn: Turn, n: int) -> None:
    turn.mem.upkeep.purge(_doomed(turn, n)[:3])


def forget(turn: Turn, n: int) -> None:
    for target in _doomed(turn, n):
        turn.mem.forget(target)


def reword(turn: Turn, n: int) -> None:
    for target in _doomed(turn, n):
        turn.mem.update(target, statement=f"{sentence(n)} reworded")
        turn.mem.feedback(target, "negative")


def reject(turn: Turn, n: int) -> None:
    for target in _doomed(turn, n):
        turn.mem.review.retire(target)
        with suppress(ChangedMeanwhile):  # another process was faster, and says what became of it
            turn.mem.undo(target)


def rebuild(turn: Turn, _: int) -> None:
    turn.mem.rebuild_index()


VERBS: tuple[Callable[[Turn, int], None], ...] = (
    rate, pin, update, use, session, recall, fold, derive, batch, contradict, resolve, purge, forget, reword, reject,
    rebuild,
)  # fmt: skip
PARTS: dict[str, Callable[[Turn], None]] = {
    part.__name__: part for part in (learning, agreeing, disagreeing, writing, mingling)
}
