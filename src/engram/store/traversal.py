"""Which links a graph walk follows; the same on every backend."""

from dataclasses import dataclass
from datetime import datetime

from engram.model.memory import CO_ACCESSED
from engram.store.protocol import Filters

PLAIN = Filters()
"""The default filters of a search."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Which links are followed, in which direction, and to which memories."""

    direction: str
    """outbound, inbound or any."""
    types: tuple[str, ...] | None
    min_weight: float
    filters: Filters
    at: datetime
    """The moment at which learned links are weighted: they decay."""

    @property
    def prefers_given(self) -> bool:
        """Whether an explicit relation may replace a learned link: it says more about why two memories belong together."""
        return self.types is None or (CO_ACCESSED in self.types and len(self.types) > 1)

    @property
    def outbound(self) -> bool:
        """Whether links are followed forwards."""
        return self.direction != "inbound"

    @property
    def inbound(self) -> bool:
        """Whether links are followed backwards."""
        return self.direction != "outbound"
