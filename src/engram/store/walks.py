"""What a walk over links follows; the same on every backend."""

from dataclasses import dataclass

from engram.store.protocol import Filters

PLAIN = Filters()
"""What a plain search sees."""


@dataclass(frozen=True, slots=True)
class Hops:
    """Which links are followed, which way, and which memories they may lead to."""

    direction: str = "outbound"
    """outbound, inbound or any."""
    types: tuple[str, ...] | None = None
    min_weight: float = 0.0
    filters: Filters = PLAIN

    @property
    def outbound(self) -> bool:
        """Whether links are followed the way they point."""
        return self.direction != "inbound"

    @property
    def inbound(self) -> bool:
        """Whether links are followed against the way they point."""
        return self.direction != "outbound"
