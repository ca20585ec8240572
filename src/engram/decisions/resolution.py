"""What becomes of two memories that contradict each other, or of several that say the same."""

from collections.abc import Sequence
from datetime import datetime

from engram.decisions.versions import place_version
from engram.gates.pipeline import check_shape
from engram.gates.trust import is_human
from engram.model.errors import InvalidInput
from engram.model.lazy import replace
from engram.model.memory import CONTRADICTS, MAY_SUPERSEDE, Association, Memory
from engram.rules.cues import add_cues
from engram.rules.eligibility import has_begun
from engram.rules.sources import CONFIRMED
from engram.rules.strength import consolidate
from engram.store.protocol import Transaction
from engram.store.records import CURRENT_STATUSES, start_of

VALID_ELSEWHERE = "valid_elsewhere"
"""The type of link between two memories that are both right, each in its situation."""


def mark_confirmed(memory: Memory, actor: str) -> Memory:
    """The memory, marked as confirmed where a person decided."""
    return memory.replace(verification=CONFIRMED) if is_human(actor) else memory


def keep_one(deciding: Transaction, winner: Memory, loser: Memory, now: datetime) -> Memory:
    """The winner as the loser's next version; its own earlier versions become part of that fact's history."""
    winner = consolidate(_remove_links(winner, loser.id), now).replace(status="active", updated=now)
    lineage = loser.lineage or loser.id
    if winner.lineage and winner.lineage != lineage:
        for version in deciding.lineage(winner.lineage):
            if version.id != winner.id:
                deciding.put(version.replace(lineage=lineage, updated=now))
    loser = loser.replace(lineage=lineage, updated=now)
    deciding.put(loser)
    begins = max(winner.valid_from or now, min(start_of(loser), now) if has_begun(loser, now) else start_of(loser))
    winner = place_version(deciding, winner.replace(lineage="", valid_from=begins), [loser], now)
    deciding.put(winner)
    return winner


def keep_old(deciding: Transaction, new: Memory, old: Memory, now: datetime) -> Memory:
    """The old memory; a candidate is rejected, and a current one retired."""
    status = "rejected" if new.status == "candidate" else "retired"
    deciding.put(new.replace(status=status, updated=now))
    old = consolidate(old, now).replace(status="active", updated=now)
    deciding.put(old)
    return old


def keep_both(deciding: Transaction, new: Memory, old: Memory, situations: tuple[str, str], now: datetime) -> Memory:
    """The new memory, active next to the old one, each in its situation."""
    kept_new = consolidate(_remove_links(new, old.id), now)
    link = Association(old.id, VALID_ELSEWHERE, 0.5, last_reinforced=now)
    kept_new = kept_new.replace(status="active", updated=now, associations=(*kept_new.associations, link))
    kept_old = consolidate(old, now)
    if situations[0]:
        kept_new = kept_new.replace(situation=situations[0])
    if situations[1]:
        kept_old = kept_old.replace(situation=situations[1])
    deciding.put(check_shape(kept_old.replace(updated=now)))
    deciding.put(check_shape(kept_new))
    return kept_new


def merge_into(
    deciding: Transaction, survivor: Memory, others: Sequence[Memory], statement: str, now: datetime
) -> Memory:
    """The survivor with the merged statement and everybody's tags, cues and evidence; the others are superseded by it and stay readable."""
    if not statement.strip():
        raise InvalidInput("merge needs a merged statement")
    tags = tuple(dict.fromkeys(tag for memory in (survivor, *others) for tag in memory.tags))
    cues = add_cues(survivor.cues, (cue for other in others for cue in other.cues))
    evidence = survivor.evidence
    for other in others:
        evidence += tuple(one for one in other.evidence if one not in evidence)
    merged = consolidate(survivor, now).replace(
        statement=statement.strip(), form={}, tags=tags, cues=cues, evidence=evidence, updated=now, entities=()
    )
    for other in others:
        merged = _remove_links(merged, other.id)
    check_shape(merged)
    for other in others:
        if other.status in CURRENT_STATUSES and other.lineage:
            # Both were true before: the survivor begins where the later of the two did, not now.
            merged = keep_one(deciding, merged.replace(valid_from=start_of(merged)), other, now)
        else:
            deciding.put(other.replace(status="superseded", superseded_by=merged.id, updated=now))
            merged = merged.replace(supersedes=tuple(dict.fromkeys((*merged.supersedes, other.id))))
    deciding.put(merged)
    return merged


def _remove_links(memory: Memory, other: str) -> Memory:
    kinds = (CONTRADICTS, MAY_SUPERSEDE)
    links = tuple(link for link in memory.associations if not (link.type in kinds and link.target == other))
    return replace(memory, associations=links)
