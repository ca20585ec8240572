"""A linear model over hashed features: what every small trained model here is made of.

A signed byte for each bucket of features and class, so a file of a few dozen kB, read when it is first asked. The same text always
comes to the same sums. The models are made by the scripts in `scripts/`, which use `bucket_of` and `SCALE` of this module too.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from zlib import crc32

__all__ = ["SCALE", "Linear"]

SCALE = 64
"""How many steps of a stored weight there are to one of the model's own."""


@dataclass(slots=True)
class Linear:
    """One model: where its weights lie, what it tells apart, how many buckets its features fall into."""

    package: str
    file: str
    classes: tuple[str, ...]
    buckets: int
    _weights: memoryview | None = field(default=None, repr=False)

    def bucket_of(self, feature: str) -> int:
        """Where a feature's weights stand."""
        return crc32(feature.encode("utf-8", "surrogatepass")) % self.buckets

    def sums(self, found: Iterable[str]) -> list[int]:
        """How much these features speak for each class, in steps of a weight."""
        weights, wide = self._read(), len(self.classes)
        starts = [self.bucket_of(feature) * wide for feature in found]
        return [sum([weights[start + place] for start in starts]) for place in range(wide)]

    def _read(self) -> memoryview:
        if self._weights is None:
            from importlib import resources

            data = resources.files(self.package).joinpath(self.file).read_bytes()
            self._weights = memoryview(data).cast("b")
        return self._weights
