"""Which memories a file that nobody vouches for may speak of: those it brings, and those that came from it before."""

from collections.abc import Callable, Mapping

from engram.capture.import_identity import OWN_ID, RecordIdentities, referenced_ids
from engram.capture.import_trust import CLAIMING
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.rules.sources import IMPORTED
from engram.store.protocol import Store


@dataclass(slots=True)
class RecordOrigin:
    """Tells what one import brought from what was here, and notes what a record says of the latter."""

    store: Store
    ids: RecordIdentities
    source: str
    added: Mapping[str, Memory]
    """What this import has added so far, by the id it has here."""
    settled: set[str] = field(default_factory=set)
    """The ids of records whose turn is over."""
    reported: set[str] = field(default_factory=set)
    """The memories whose links to others were reported."""
    _notices: list[str] = field(default_factory=list)

    def take_notices(self) -> tuple[str, ...]:
        """What was left out of records since this was asked last."""
        notices, self._notices = tuple(self._notices), []
        return notices

    def own_names(
        self, memory: Memory, record: Memory, others: dict[str, str], postpone: Callable[[], None]
    ) -> dict[str, str]:
        """The ids a record may make claims about, as they are here; all that it may not name at all is taken out of `others`.

        A record that says what a memory here says is that memory: it may be linked to, and nothing is claimed about it.
        """
        known = self.store.get(memory.id) if others else None
        stated = set() if known is None else referenced_ids(known)
        own: dict[str, str] = {}
        foreign = []
        for name, new in list(others.items()):
            if new in stated or self.is_from_here(new):
                own[name] = new
            elif name in self.ids.wanted and name not in self.settled and self.store.get(new) is None:
                if name in _claimed_ids(record):
                    postpone()  # it may come yet
            elif name not in self.ids.wanted:
                foreign.append(name)
                del others[name]
        if foreign and memory.id not in self.reported:
            self.reported.add(memory.id)
            listed = ", ".join(sorted(foreign))
            self._notices.append(f"names {listed}, which did not come from {self._name}; imported without that")
        return own

    def without_foreign_key(self, memory: Memory, other: Memory) -> Memory:
        """A record without the conflict key that it shares with a memory from elsewhere."""
        self._notices.append(
            f"has the conflict key of {other.id}, which did not come from {self._name}; imported without it"
        )
        return memory.replace(conflict_key="")

    def is_from_here(self, memory_id: str) -> bool:
        """Whether an id is that of a memory which came from this place, or of a record there that never came."""
        place = f"{self.ids.reading.origin}/" if self.ids.reading.origin else ""
        if memory_id in self.added or (place and memory_id.startswith(place)):
            return True
        known = self.store.get(memory_id)
        if known is None or known.learned_by != IMPORTED:
            return False
        return known.source == self.source or (bool(place) and any(one.startswith(place) for one in known.aliases))

    def is_own_lineage(self, lineage: str, memory: Memory, others: Mapping[str, str], own: Mapping[str, str]) -> bool:
        """Whether no version in a record's lineage came from elsewhere."""
        if not lineage or self.ids.id_here(lineage) == memory.id or lineage in own:
            return True
        if lineage in others or OWN_ID.fullmatch(lineage):
            return False
        versions = self.store.lineage(lineage)
        return all(version.id == memory.id or self.is_from_here(version.id) for version in versions)

    @property
    def _name(self) -> str:
        return self.source.removeprefix(f"{IMPORTED}:")


def _claimed_ids(memory: Memory) -> set[str]:
    """The ids that a memory claims something about."""
    links = {link.target for link in memory.associations if link.type in CLAIMING}
    return {*links, *memory.supersedes, memory.superseded_by, memory.lineage}
