"""Tenants never see each other, as an ordinary role: whatever is forged, whatever text a field holds."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from engram.graph.graph import walk
from engram.model.errors import InvalidInput, NotFound
from engram.model.memory import Association, Memory
from engram.model.records import Checkpoint, Job, Session, TaskRun, Use
from engram.store.postgres.setup import open_store
from engram.store.protocol import Filters, Hops, PassageRange, Query, Store
from engram.store.states import is_paused, set_pause
from engram.text.content_hash import content_hash
from engram.text.tokens import query_terms
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import ANY, Keep, asked, listed, said, texts

START = datetime(2026, 2, 1, tzinfo=UTC)
SAME = "The staging server is called nightshift"


@pytest.fixture
def mine(shared_database: str, tenant: str, clock: Clock) -> Iterator[Store]:
    """The store of one tenant."""
    store = open_store(shared_database, tenant, static_embedder(), clock=clock)
    yield store
    store.close()


@pytest.fixture
def theirs(shared_database: str, tenant: str, clock: Clock) -> Iterator[Store]:
    """The store of another tenant, whose name begins alike."""
    store = open_store(shared_database, f"{tenant}-2", static_embedder(), clock=clock)
    yield store
    store.close()


def job_of(name: str) -> Job:
    """A job that is due."""
    return Job(name, "derive", START, START, {"events": [name]})


@pytest.fixture
def secret(theirs: Store, clock: Clock) -> Memory:
    """What the other tenant holds, in every table there is."""
    keep = Keep(theirs, clock)
    first = keep("Something else first")
    kept = keep(
        "The orchestra plays the xylophone",
        name="vault",
        aliases=("mem-0007",),
        scope="project:theirs",
        tags=("secret",),
        domain="vault/codes",
        metadata={"code": 7},
        associations=(Association(first.id, "semantic", 0.5),),
        lineage="LIN-vault",
        conflict_key="vault-code",
        critical_slot="vault",
    )
    kept = keep.again(kept, confidence=0.9)
    theirs.note_use(Use("injected", (kept.id,), START, "S-theirs"))
    theirs.save_record(Session("S-theirs", "open the vault", ("project:theirs",), START))
    theirs.append_events("S-theirs", [said("Ann", "the orchestra plays the xylophone", key="k1")])
    theirs.note_verdict("quality", "REJECTED", START)
    theirs.save_record(TaskRun("TASK-theirs", "open the vault", "project:theirs", START, START))
    theirs.append_events("TASK-theirs", [said("Ann", "turn the xylophone")], lambda made: [job_of(made[0].id)])
    theirs.add_checkpoint("TASK-theirs", lambda n: Checkpoint("CKP-theirs", "TASK-theirs", n, START, "half open"))
    set_pause(theirs, True)
    return kept


def test_two_tenants_with_the_same_texts_each_have_their_own(mine: Store, theirs: Store, clock: Clock) -> None:
    keeps = [Keep(store, clock) for store in (mine, theirs)]
    for keep in keeps:
        keep.many([{"statement": SAME, "name": "nightshift"}, {"statement": "Something else", "tags": ("x",)}])
    for store in (mine, theirs):
        assert sorted(listed(store)) == ["Something else", SAME]
        assert store.count(ANY) == 2
        found = asked(store, "nightshift server")
        assert (found.total, len(found.lexical), len(found.semantic)) == (2, 1, 2)
        assert found.frequency == {"nightshift": 1, "server": 1}
    one = mine.get("nightshift")
    assert one is not None
    assert theirs.get(one.id) == one.replace(created=theirs.listing(ANY)[0].created)
    keeps[0].again(one, statement="Changed on one side only")
    mine.purge([mine.listing(Filters(tags=("x",)))[0].id], actor="test")
    assert sorted(listed(theirs)) == ["Something else", SAME]
    assert [image.op for image in theirs.history(one.id)] == ["add"]


def test_nothing_of_another_tenant_answers_to_a_forged_reference(mine: Store, theirs: Store, secret: Memory) -> None:
    numbers = list(theirs.numbers([secret.id]).values())
    events = theirs.events("S-theirs")
    everything = Filters(kinds=("memory", "event"), statuses=None)
    assert numbers
    assert events
    for ref in (secret.id, "vault", "mem-0007"):
        assert mine.get(ref) is None
    assert mine.id_by_name("vault", "project:theirs") == ""
    assert mine.exact(content_hash(secret.statement), "project:theirs") is None
    assert mine.get_many(numbers) == []
    assert mine.numbers([secret.id]) == {}
    assert mine.document_positions(numbers) == {}
    assert mine.passages(numbers, [PassageRange("S-theirs", 0, 9)], everything)[0] == []
    assert mine.history(secret.id) == []
    assert mine.known_at(START) == {}
    assert mine.links_to([link.target for link in secret.associations]) == []
    assert mine.uses([secret.id]) == []
    assert mine.uses(session="S-theirs") == []
    assert mine.used_since(0) == []
    assert mine.last_use("injected") is None
    assert mine.event(events[0].id) is None
    assert mine.events("S-theirs") == []
    assert mine.load_record(Session, "S-theirs") is None
    assert mine.list_records(Session) == []
    assert mine.verdicts(START) == []
    assert not is_paused(mine)
    assert dict(mine.frequencies(["xylophon", "vault"])) == {}
    assert mine.facts()["statuses"] == {}
    assert mine.verify_ledgers() == []
    assert mine.heads("vault-code", "project:theirs") == [] and mine.lineage("LIN-vault") == []


@pytest.mark.parametrize("direction", ["outbound", "inbound", "any"])
def test_a_walk_from_a_forged_seed_leads_nowhere(
    mine: Store, theirs: Store, secret: Memory, clock: Clock, direction: str
) -> None:
    seeds = [secret.id, secret.associations[0].target]
    hops = Hops(clock(), direction)
    assert walk(theirs, seeds, hops, 3, 9)
    assert walk(mine, seeds, hops, 3, 9) == []
    # A link of one's own that names what another tenant has leads nowhere, whichever way it is gone.
    Keep(mine, clock)("Mine, with a forged link", associations=(Association(secret.id, "semantic", 0.9),))
    reached = {step.id for step in walk(mine, [*seeds, *(memory.id for memory in mine.listing(ANY))], hops, 3, 9)}
    assert {memory.statement for i in reached if (memory := mine.get(i)) is not None} <= {"Mine, with a forged link"}
    assert len(reached) == (direction != "outbound")


@pytest.mark.usefixtures("secret")
def test_no_task_checkpoint_or_job_of_another_tenant_answers(mine: Store, theirs: Store) -> None:
    now = START.replace(year=2027)
    assert mine.load_record(TaskRun, "TASK-theirs") is None
    assert mine.list_records(TaskRun) == mine.list_records(TaskRun, statuses=["running"]) == []
    assert mine.list_records(Checkpoint, of="TASK-theirs") == [] and mine.events("TASK-theirs") == []
    assert mine.list_records(Job) == mine.lease_jobs("me", now, now, limit=9) == []
    with pytest.raises(NotFound):
        mine.change_task("TASK-theirs", lambda held: held)
    [job] = theirs.lease_jobs("they", now, now)
    assert not mine.settle_job(job, None)
    assert theirs.settle_job(job, None)


@pytest.mark.usefixtures("secret")
def test_tasks_and_jobs_under_forged_ids_touch_only_ones_own(mine: Store, theirs: Store) -> None:
    before = (
        theirs.load_record(TaskRun, "TASK-theirs"),
        theirs.list_records(Checkpoint, of="TASK-theirs"),
        theirs.list_records(Job),
        theirs.events("TASK-theirs"),
    )
    mine.save_record(TaskRun("TASK-theirs", "mine", "global", START, START))
    mine.change_task("TASK-theirs", lambda held: replace(held, status="deleted"))
    assert (
        mine.add_checkpoint("TASK-theirs", lambda n: Checkpoint("CKP-theirs", "TASK-theirs", n, START, "mine")).number
        == 1
    )
    mine.enqueue([job_of(before[2][0].id)])
    [taken] = mine.lease_jobs("me", START, START.replace(year=2036), limit=9)
    assert mine.settle_job(taken, replace(taken, status="dead"))
    after = (
        theirs.load_record(TaskRun, "TASK-theirs"),
        theirs.list_records(Checkpoint, of="TASK-theirs"),
        theirs.list_records(Job),
        theirs.events("TASK-theirs"),
    )
    assert after == before
    assert theirs.append_events("TASK-theirs", [said("Ann", "still open")])[0].seq == 2


def test_the_vectors_of_another_tenant_are_no_ones(mine: Store, theirs: Store, secret: Memory) -> None:
    numbers = list(theirs.numbers([secret.id]).values())
    vectors = mine.vectors(numbers)
    assert vectors is None or not vectors.any()


@pytest.mark.parametrize(
    "filters",
    [
        Filters(scopes=("project:theirs",)),
        Filters(tags=("secret",)),
        Filters(domain="vault"),
        Filters(metadata={"code": 7}),
        Filters(kinds=("event",), parents=("S-theirs",)),
        Filters(kinds=("event",), parents=("TASK-theirs",)),
        Filters(kinds=("event",), roles=("Ann",)),
        Filters(critical=True),
        Filters(kinds=("memory", "event"), statuses=None),
        Filters(statuses=None, as_of=True, valid_at=datetime(2027, 1, 1, tzinfo=UTC)),
    ],
    ids=["scope", "tag", "domain", "metadata", "session", "task", "role", "critical", "everything", "as of"],
)
@pytest.mark.usefixtures("secret")
def test_no_filter_reaches_another_tenant(mine: Store, filters: Filters) -> None:
    found = asked(mine, "the orchestra plays the xylophone", filters)
    assert (found.lexical, found.semantic, found.total, found.frequency) == ([], [], 0, {})
    assert mine.listing(filters) == []
    assert mine.count(filters) == 0


def test_writing_under_a_forged_id_touches_only_ones_own(
    mine: Store, theirs: Store, secret: Memory, clock: Clock
) -> None:
    before = theirs.history(secret.id), theirs.events("S-theirs"), theirs.load_record(Session, "S-theirs")
    forged = Memory(secret.id, "Mine under their id", "project:theirs", name="vault", created=clock())
    with mine.deciding("add", actor="test", scopes=["project:theirs"], about=[secret.id]) as deciding:
        assert deciding.get(secret.id) is None
        assert list(deciding.changed_since("project:theirs", 0)) == []
        assert deciding.free_name("vault", "project:theirs") == "vault"
        deciding.put(forged)
    event = mine.append_events("S-theirs", [said("Eve", "mine", key="k1")])[0]
    mine.save_record(Session("S-theirs", "mine", ("user",), START))
    mine.note_use(Use("recalled", (secret.id,), START, "S-theirs"))
    mine.prune(datetime(2036, 1, 1, tzinfo=UTC), 1, 1, 1, dry_run=False)
    mine.purge([secret.id, before[1][0].id], actor="test")
    assert (event.seq, event.content) == (1, "mine")
    assert theirs.get("vault") == secret
    assert (theirs.history(secret.id), theirs.events("S-theirs"), theirs.load_record(Session, "S-theirs")) == before
    assert len(theirs.uses([secret.id])) == 1
    assert texts(theirs, asked(theirs, "xylophone").lexical) == [secret.statement]
    assert theirs.verify_ledgers() == []


def test_rebuilding_and_reembedding_stay_at_home(mine: Store, theirs: Store, secret: Memory) -> None:
    mine.rebuild()
    mine.reembed()
    assert mine.facts()["index"]["documents"] == {}
    assert theirs.get("vault") == secret
    assert len(asked(theirs, "xylophone").semantic) == 2


HOSTILE = [
    "'; DROP SCHEMA engram CASCADE; --",
    "x' OR '1'='1",
    "') OR tenant <> '' --",
    "'; SET engram.tenant = '{other}'; --",
    "'), ('{other}', 'x",
    "$$; SELECT set_config('engram.tenant', '{other}', false); $$",
    "%(tenant)s %s %% {tenant} $1 :tenant ?",
    "\\'; SELECT pg_sleep(60); --",
    'a"b.c[0]->>\'d\' @? "$.**"',
    "{other}",
    "*",
    "zebra:* | vault & !x <-> y",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_sql_in_every_text_field_is_text(
    mine: Store, theirs: Store, secret: Memory, tenant: str, clock: Clock, hostile: str
) -> None:
    text = hostile.replace("{other}", f"{tenant}-2")
    kept = Keep(mine, clock)(
        text,
        scope=text,
        type=text,
        name=text,
        aliases=(f"alias {text}",),
        tags=(text,),
        domain=text,
        situation=text,
        rationale=text,
        context=text,
        source=text,
        session=text,
        metadata={text: text, "list": [text]},
        associations=(Association(text, text),),
        extra={text: text},
        lineage=text,
        conflict_key=text,
        critical_slot=text,
    )
    mine.save_record(TaskRun(text, text, text, START, START, outcome=text, session=text, metadata={text: text}))
    mine.add_checkpoint(text, lambda n: Checkpoint(text, text, n, START, text, decisions=(text,), data={text: text}))
    mine.enqueue([Job(text, text, START, START, {text: text}, error=text)])
    mine.save_record(Session(text, text, (text,), START, None, text))
    mine.append_events(text, [said(text, text, key=text, task=text, payload={text: text}, metadata={text: text})])
    mine.note_use(Use(text, (text,), START, text, text))
    mine.note_verdict(text, text, START)
    for ref in (kept.id, text, f"alias {text}"):
        assert mine.get(ref) == kept
    assert mine.id_by_name(text, text) == kept.id
    for filters in (
        Filters(scopes=(text,)),
        Filters(types=(text,)),
        Filters(tags=(text,)),
        Filters(domain=text),
        Filters(metadata={text: text}),
        Filters(metadata={"list": text}),
    ):
        assert mine.listing(filters) == [kept], filters
        assert mine.count(filters) == 1
    assert [event.content for event in mine.events(text)] == [text]
    assert len(mine.uses(session=text)) == len(mine.uses([text])) == 1
    assert mine.verdicts(START) == [(text, text)]
    assert mine.heads(text, text) == mine.lineage(text) == mine.listing(Filters(critical=True)) == [kept]
    assert mine.count(Filters(kinds=("event",), roles=(text,))) == 1
    task, [point], [job] = (
        mine.load_record(TaskRun, text),
        mine.list_records(Checkpoint, of=text),
        mine.lease_jobs(text, START, START, kinds=(text,)),
    )
    assert task is not None and (task.goal, point.summary, job.payload, job.owner) == (text, text, {text: text}, text)
    assert [run.id for run in mine.list_records(TaskRun, statuses=["running"])] == [text] and mine.settle_job(job, None)
    assert walk(mine, [kept.id], Hops(START, "any", (text,)), 2, 9) == []
    assert mine.load_record(Session, text) == Session(text, text, (text,), START, None, text)
    mine.candidates(Query((text, *query_terms(text))), ANY)
    with mine.deciding(text, actor=text, reason=text, session=text, scopes=[text], about=[text, kept.id]) as deciding:
        deciding.put(kept.replace(confidence=0.1))
    assert [(image.op, image.reason) for image in mine.history(kept.id)] == [("add", ""), (text, text)]
    assert theirs.get("vault") == secret
    assert theirs.count(ANY) == 2
    assert mine.count(ANY) == 1


@pytest.mark.parametrize("name", ["", " ", "a'b", 'a"b', "a;b", "a\x00b", "a\nb", "a b", "x" * 201, "a%b", "\ud800"])
def test_a_tenant_by_a_hostile_name_is_refused(shared_database: str, name: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(shared_database, name, None)


def test_tenants_whose_names_are_almost_alike_are_apart(shared_database: str, tenant: str, clock: Clock) -> None:
    names = [tenant, tenant.upper(), f"{tenant}.", f"{tenant}/x", f"{tenant}é", f"{tenant}e\u0301"[:-1]]
    for name in names:
        store = open_store(shared_database, name, None, clock=clock)
        Keep(store, clock)(f"of {name}")
        assert listed(store) == [f"of {name}"]
        store.close()
