"""What a walk over links follows; the same on every backend."""

from dataclasses import dataclass
from datetime import datetime

from engram.model.memory import CO_ACCESSED
from engram.store.protocol import Filters

PLAIN = Filters()
"""What a plain search sees."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Which links are followed, which way, and which memories they may lead to."""

    direction: str
    """outbound, inbound or any."""
    types: tuple[str, ...] | None
    min_weight: float
    filters: Filters
    at: datetime
    """The moment for which learned links are weighed: they fade."""

    @property
    def prefers_given(self) -> bool:
        """Whether a given relation may take a learned link's place: it tells more of why two memories belong together."""
        return self.types is None or (CO_ACCESSED in self.types and len(self.types) > 1)

    @property
    def outbound(self) -> bool:
        """Whether links are followed the way they point."""
        return self.direction != "inbound"

    @property
    def inbound(self) -> bool:
        """Whether links are followed against the way they point."""
        return self.direction != "outbound"
