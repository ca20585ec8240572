"""The watermark of folded uses (`activation.seq`), when uses get new positions: every store numbers them in its own way."""

from array import array
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from engram.model.errors import EngramError, StoreError
from engram.store.records import from_image, image

After = Mapping[str, Any] | None


class Watermarks:
    """Says where an image's watermark lies in the target's numbering: behind as many uses as it was in the source's."""

    def __init__(self, here: "array[int]", there: "array[int]", place: str) -> None:
        if len(here) != len(there):
            raise StoreError(
                f"{place} was pruned or purged while it was being moved: it holds {len(here)} uses, {len(there)} arrived. "
                "Begin anew with an empty target"
            )
        self._here, self._there = here, there

    def translated(self, after: After) -> After:
        """The image with the target's watermark."""
        seq = watermark(after)
        if after is None or not seq:
            return after
        folded = bisect_left(self._here, seq)
        if folded == 0:
            return with_watermark(after, 0)
        behind_all = folded == len(self._there)
        return with_watermark(after, self._there[-1] + 1 if behind_all else self._there[folded])


def watermark(after: After) -> int:
    """The position up to which an image's uses are folded in; 0 for none."""
    block = after.get("activation") if after is not None else None
    seq = block.get("seq") if isinstance(block, Mapping) else None
    return seq if isinstance(seq, int) else 0


def with_watermark(after: Mapping[str, Any], seq: int) -> Mapping[str, Any]:
    """The image with another watermark, as a store would write it."""
    block = {key: value for key, value in after["activation"].items() if key != "seq"}
    changed = {**after, "activation": {**block, "seq": seq} if seq else block}
    try:
        return image(from_image(changed))
    except EngramError:
        # A record of a newer Engram, of which this one knows only that block.
        return changed
