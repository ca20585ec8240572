"""Destroys memories and events, every row and word of them, in one transaction, with proof; also removes old history.

Postgres keeps the bytes of a deleted row until it reuses their space; a VACUUM at the end makes that soon. The
write-ahead log, replicas and backups are out of reach, as the result states.
"""

import contextlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.model.records import Event
from engram.store.documents import event_document
from engram.store.ledger import PRUNED, Head, blank_event, decode_event, to_fields
from engram.store.postgres.database import TenantContext
from engram.store.postgres.transaction import DocumentRow, known_documents, to_json, write_documents
from engram.store.postgres.work import checkpoint_entry, redaction_entries, session_of, session_scope
from engram.store.protocol import Image, Store
from engram.store.purge import (
    QuotingRecord,
    contains_words,
    is_foreign,
    is_removed_with,
    is_sentence,
    map_strings,
    quoted_spellings,
    quoting_lines,
    remove_texts,
    strings_in,
    texts_of,
    texts_of_event,
    texts_to_remove,
    words_of,
)
from engram.store.records import ENDED_STATUSES, first_kept_seq
from engram.store.reports import Pruned, Purged

_RECORDS_PER_STATEMENT = 500
"""Memories whose histories are read together."""
Histories = Callable[[Sequence[str]], Mapping[str, Sequence[Image]]]

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors


OUT_OF_REACH = (
    "the server's write-ahead log and replicas, until they are overwritten",
    "backups and copies made earlier",
    "space of deleted rows that the server has not reused yet (VACUUM FULL rewrites it at once)",
)
Spares = Callable[[str], bool]
"""Whether the words stay in records of a scope."""
_TABLES = (
    "documents",
    "postings",
    "terms",
    "memory_vectors",
    "agent_memory",
    "agent_events",
    "journal_images",
    "memory_names",
    "memory_relations",
    "memory_uses",
    "journal",
    "agent_sessions",
    "agent_task_runs",
    "agent_checkpoints",
    "memory_jobs",
    "named_states",
)


def purge(context: TenantContext, store: Store, ids: Sequence[str], actor: str, drawn: Collection[str] = ()) -> Purged:
    """Remove memories and events from every table; leave tombstones; prove absence."""
    wanted = sorted(set(ids))
    with context.database.transaction():
        # One purge at a time: two that blank the same events or uncount the same terms could deadlock.
        for name in ("begin_statistics", "await_statistics"):
            context.database.run(name)
        context.database.run("lock_memories", ids=wanted)
        memory_ids = [i for i in wanted if i not in drawn and store.event(i) is None]
        owners = _owners(context, wanted)
        everywhere = _all_texts(store, memory_ids)
        own = [text for text in _all_texts(store, sorted({*wanted} - {*memory_ids})) if text not in everywhere]
        spares: Spares = partial(is_foreign, own=owners)
        evidence = _events_to_blank(context, store, wanted, memory_ids, everywhere, spares)
        quoting = (event for event in _quoting(context, own) if event.id not in evidence)
        texts = [*everywhere, *texts_to_remove(quoting, own, evidence.values())]
        _blank_sessions(context, texts, spares)
        _blank_tasks(context, texts, spares)
        _blank_reasons(context, texts, spares)
        _blank_journal(context, wanted, actor)
        _remove(context, [*wanted, *evidence])
        _blank_events(context, evidence, actor)
    _vacuum(context)
    return Purged(tuple(sorted({*wanted, *evidence})), _remaining(context, texts, owners), OUT_OF_REACH)


def _owners(context: TenantContext, ids: Sequence[str]) -> set[str]:
    """The scopes that own these records."""
    rows = [row for i in ids for row in context.database.run("owner_of", id=i)]
    return {str(scope) for (scope,) in rows}


def _all_texts(store: Store, wanted: Sequence[str]) -> list[str]:
    """Every text of the memories' versions and of the events."""
    texts: list[str] = []
    for wanted_id in wanted:
        for image in store.history(wanted_id):
            texts += texts_of(image.memory) if image.memory is not None else []
        event = store.event(wanted_id)
        texts += texts_of_event(event) if event is not None else []
    return list(dict.fromkeys(texts))


def _events_to_blank(
    context: TenantContext,
    store: Store,
    wanted: Sequence[str],
    memory_ids: Sequence[str],
    everywhere: Sequence[str],
    spares: Spares,
) -> dict[str, Event]:
    """The given events, those cited by the given memories, and those that quote them, except other people's."""
    named = list(wanted)
    for memory_id in memory_ids:
        cited = [(e.event, m.scope) for m in _versions(store, memory_id) for e in m.evidence]
        named += [i for i, scope in cited if is_removed_with(next(iter(_owners(context, [i])), ""), scope)]
    found = {event.id: event for i in dict.fromkeys(named) if (event := store.event(i)) is not None}
    quoting = _quoting(context, [*filter(is_sentence, everywhere)])
    return found | {one.id: one for one in quoting if not any(map(spares, _owners(context, [one.id])))}


def _quoting(context: TenantContext, texts: Sequence[str]) -> list[Event]:
    """The events that contain any of the texts."""
    if not texts:
        return []
    rows = context.database.run("quoting_events", needles=quoted_spellings(texts))
    found = [decode_event(record) for (record,) in rows]
    return [event for event in found if any(contains_words(words_of(event), text) for text in texts)]


def _versions(store: Store, memory_id: str) -> list[Memory]:
    return [image.memory for image in store.history(memory_id) if image.memory is not None]


def _blank_sessions(context: TenantContext, texts: Sequence[str], spares: Spares) -> None:
    """Blank quotations in the tasks and summaries of sessions."""
    if not texts:
        return
    for row in context.database.run("quoting_sessions", texts=list(texts)):
        session = session_of(row)
        if session.scopes and spares(session.scopes[0]):
            continue
        blank = {
            "id": session.id,
            "task": remove_texts(session.task, texts),
            "summary": remove_texts(session.summary, texts),
        }
        context.database.run("blank_session", **blank)


def _blank_tasks(context: TenantContext, texts: Sequence[str], spares: Spares) -> None:
    """Blank quotations in tasks, checkpoints and jobs."""
    needles = quoted_spellings(texts)
    found = context.database.run("quoting_tasks", needles=needles) if texts else []
    for kind, task_id, number, scope, record in found:
        if spares(scope):
            continue
        fields = map_strings(json.loads(record), lambda text: remove_texts(text, texts))
        blank = {"id": task_id, "number": number, "record": to_json(fields)}
        context.database.run(f"blank_{kind}", **blank)


def _blank_reasons(context: TenantContext, texts: Sequence[str], spares: Spares) -> None:
    """Blank quotations in the reasons of decisions."""
    rows = context.database.run("quoting_reasons", texts=list(texts)) if texts else []
    for seq, reason, scopes in rows:
        if scopes and all(map(spares, scopes)):
            continue
        context.database.run("blank_reason", seq=seq, reason=remove_texts(reason, texts))


def _blank_journal(context: TenantContext, wanted: Sequence[str], actor: str) -> None:
    """Remove the images from every entry and record the purge; the entries stay for order and audit."""
    context.database.run("blank_reasons", ids=list(wanted))
    blank = context.database.run("blank_images", ids=list(wanted))
    known = sorted({memory_id for (memory_id,) in blank})
    if not known:
        return
    ((seq,),) = context.database.run("next_decision")
    entry = {"seq": seq, "at": context.clock(), "op": "purge", "ids": known}
    made_by = {"actor": actor, "reason": "", "session": ""}
    context.database.run_all(
        [
            ("put_decision", {**entry, **made_by}),
            ("put_images", {**entry, "images": [None] * len(known)}),
            ("put_tombstones", {"ids": known}),
        ]
    )


def _remove(context: TenantContext, ids: Sequence[str]) -> None:
    known = known_documents(context.database, ids)
    numbers = [document.n for document in known.values()]
    terms = [term for document in known.values() for term in set(" ".join(document.texts).split())]
    context.database.run_all(
        [
            ("drop_postings", {"numbers": numbers}),
            ("uncount_terms", {"terms": terms}),
            ("drop_gone_terms", {"terms": terms}),
            ("drop_vectors", {"numbers": numbers}),
            ("drop_documents", {"numbers": numbers}),
            ("drop_names", {"ids": list(ids)}),
            ("drop_relations", {"ids": list(ids)}),
            ("drop_uses", {"ids": list(ids)}),
            ("drop_memories", {"ids": list(ids)}),
        ]
    )


def _blank_events(context: TenantContext, evidence: dict[str, Event], actor: str) -> None:
    """Blank events; their positions in the chains stay, because later events refer to them."""
    if not evidence:
        return
    context.database.run_all(redaction_entries(context, evidence.values(), actor))
    empty = [blank_event(event) for event in evidence.values()]
    records = {"ids": [event.id for event in empty], "records": [to_json(to_fields(event)) for event in empty]}
    context.database.run("blank_events", **records)
    none = _empty_vector(context)
    rows = [DocumentRow(event_document(event, session_scope(context, event.session)), none) for event in empty]
    write_documents(context.database, rows, context.settings.generation)


def _empty_vector(context: TenantContext) -> "Vectors | None":
    """The vector of a text without words; None if this process does not make the store's vectors."""
    import numpy as np

    if context.embedder is None or not context.settings.can_embed():
        return None
    return np.zeros(context.embedder.dim, dtype=np.float32)


def _vacuum(context: TenantContext) -> None:
    """Make the deleted rows' space reusable; only the tables' owner may."""
    with contextlib.suppress(EngramError):
        context.database.vacuum(_TABLES)


def _remaining(context: TenantContext, texts: Sequence[str], owners: Collection[str]) -> tuple[str, ...]:
    """Lines for records that still contain a whole text; those of other owners are only counted."""
    if not texts:
        return ()
    try:
        rows = context.database.run("still_quoted", needles=quoted_spellings(texts))
    except EngramError as error:
        return (f"unknown: the search for remaining text failed ({error}); purge again to prove it",)
    return quoting_lines(
        [QuotingRecord(row_id, scope) for row_id, scope, words in rows if _contains_any(words, texts)], owners
    )


def _contains_any(record: str, texts: Sequence[str]) -> bool:
    return any(contains_words(words, text) for words in strings_in(json.loads(record)) for text in texts)


def prune(
    context: TenantContext, now: datetime, journal: int, usage: int, ledger: int, histories: Histories, *, dry_run: bool
) -> Pruned:
    """Remove history beyond these ages in days, or report what would be removed; 0 keeps everything of that kind.

    For a memory no longer in use, the decision that retired it stays. Uses must be folded in first.
    """
    kept = _deciding(context, now - timedelta(days=journal), histories) if journal else {}
    planned = _plan(context, now, journal, usage, ledger, kept)
    if dry_run:
        return planned
    if planned.images:
        _drop_images(context, now - timedelta(days=journal), kept)
    if planned.usage_months:
        context.database.run("drop_old_uses", cutoff=_month_of(now - timedelta(days=usage)))
    if planned.ledgers:
        _drop_ledgers(context, planned.ledgers)
    return planned


def _deciding(context: TenantContext, cutoff: datetime, histories: Histories) -> dict[str, int]:
    """For each memory no longer in use, the number of the decision that retired it."""
    ids = [
        memory_id for (memory_id,) in context.database.run("taken_out", statuses=list(ENDED_STATUSES), cutoff=cutoff)
    ]
    found: dict[str, int] = {}
    for start in range(0, len(ids), _RECORDS_PER_STATEMENT):
        found |= {i: first_kept_seq(one) for i, one in histories(ids[start : start + _RECORDS_PER_STATEMENT]).items()}
    return found


def _plan(
    context: TenantContext, now: datetime, journal: int, usage: int, ledger: int, kept: Mapping[str, int]
) -> Pruned:
    run = context.database.run
    stays = {"ids": list(kept), "since": list(kept.values())}
    images = run("old_images", cutoff=now - timedelta(days=journal), **stays)[0][0] if journal else 0
    months = run("old_uses", cutoff=_month_of(now - timedelta(days=usage))) if usage else []
    ledgers = run("old_ledgers", cutoff=now - timedelta(days=ledger)) if ledger else []
    return Pruned(int(images), tuple(month for (month,) in months), tuple(session for (session,) in ledgers))


def _month_of(moment: datetime) -> datetime:
    """The start of the month: usage is removed by whole months, as in files."""
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _drop_images(context: TenantContext, cutoff: datetime, kept: Mapping[str, int]) -> None:
    with context.database.transaction():
        context.database.run("drop_old_images", cutoff=cutoff, ids=list(kept), since=list(kept.values()))
        context.database.run("drop_empty_decisions", cutoff=cutoff)


def _drop_ledgers(context: TenantContext, sessions: tuple[str, ...]) -> None:
    with context.database.transaction():
        rows = context.database.run("ledger_documents", sessions=list(sessions))
        numbers = [n for n, _ in rows]
        ended = {"sessions": list(sessions)}
        context.database.run_all(
            [
                ("drop_postings", {"numbers": numbers}),
                ("drop_vectors", {"numbers": numbers}),
                ("drop_documents", {"numbers": numbers}),
                ("drop_ledgers", ended),
                ("drop_heads", ended),
            ]
        )
        # Without a checkpoint they would count as lost. Each one is linked to the one before it.
        for session in sessions:
            entry = checkpoint_entry(context, session, Head(0, PRUNED))
            context.database.run_all([entry])
