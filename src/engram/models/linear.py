"""A linear model over hashed features, the basis of every small trained model in Engram.

One signed byte per bucket and class, so a file has a few hundred kB at most; it is loaded on first use. The training scripts in
`training/` use `bucket_of` and `SCALE` too, so that training and prediction hash alike.
"""

from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

from engram.model.lazy import dataclass, field

__all__ = ["SCALE", "Linear"]

SCALE = 64
"""A stored weight is the trained weight times this, rounded."""


@dataclass(slots=True)
class Linear:
    """One model: the file of its weights beside this module, its classes, and the number of hash buckets."""

    file: str
    classes: tuple[str, ...]
    buckets: int
    _weights: memoryview | None = field(default=None, repr=False)

    def bucket_of(self, feature: str) -> int:
        """The bucket that a feature hashes to."""
        return crc32(feature.encode("utf-8", "surrogatepass")) % self.buckets

    def sums(self, found: Iterable[str]) -> list[int]:
        """The score of each class for these features, in stored weights."""
        weights, wide = self._read(), len(self.classes)
        # `bucket_of`, without a call for each of some fifty features.
        starts = [crc32(feature.encode("utf-8", "surrogatepass")) % self.buckets * wide for feature in found]
        return [sum([weights[start + place] for start in starts]) for place in range(wide)]

    def _read(self) -> memoryview:
        if self._weights is None:
            self._weights = memoryview(Path(__file__).with_name(self.file).read_bytes()).cast("b")
        return self._weights
