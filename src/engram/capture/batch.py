"""Finds the items of a batch that are refused, and raises with the first of them or skips them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

from engram.model.batch import SkippedItem
from engram.model.errors import EngramError, InvalidInput, NotFound, Refused, SecretRefused
from engram.model.memory import Memory
from engram.text.display import cut, quote_text

OnError = Literal["raise", "skip"]
REFUSALS = (InvalidInput, NotFound, Refused)
"""Errors that concern an item; any other one concerns the store, and ends the batch."""
_EXCERPT = 60
_READ = 2_000
"""Characters of a statement that are searched for secrets before its beginning is shown."""
_STATEMENTS = ("statement", "content", "fact")
A = TypeVar("A")
B = TypeVar("B")


class BatchRefusals:
    """The refused items of one batch."""

    def __init__(self, items: Sequence[Any], on_error: str) -> None:
        if on_error not in get_args(OnError):
            raise InvalidInput(f"unknown on_error {on_error!r:.40}; choose {' or '.join(get_args(OnError))}")
        self._items = items
        self.skips = on_error == "skip"
        self.skipped: list[SkippedItem] = []

    def map(self, change: Callable[[A], B], values: Mapping[int, A]) -> dict[int, B]:
        """The changed values by item, without those that are refused."""
        changed: dict[int, B] = {}
        for index, value in values.items():
            try:
                changed[index] = change(value)
            except REFUSALS as error:
                self.refuse(index, error)
        return changed

    def check(self, check: Callable[[Sequence[A]], Sequence[A]], values: Mapping[int, A]) -> dict[int, A]:
        """The same for a check of all values at once; only if it fails, each is checked alone to find those it refuses."""
        try:
            return dict(zip(values, check(list(values.values())), strict=True))
        except REFUSALS:
            kept = self.map(lambda value: check([value])[0], values)
            if len(kept) == len(values):
                raise  # it concerns several items together
            return kept

    def refuse(self, index: int, error: EngramError, stored: int = 0) -> None:
        """Note that an item was refused, or raise the error with the item's place. `stored` memories were written before."""
        if self.skips:
            self.skipped.append(SkippedItem(index, self._excerpt(index, error), error))
            return
        excerpt = self._excerpt(index, error)
        place = f"items[{index}] ({quote_text(excerpt)})" if excerpt else f"items[{index}]"
        written = f"; {stored} memories before it were stored" if stored else ""
        raise type(error)(f"{place}: {error}{written}") from error

    def _excerpt(self, index: int, error: EngramError) -> str:
        from engram.gates.secrets.scan import redact, secrets_problem

        item = self._items[index]
        if not isinstance(item, Mapping):
            return ""
        text = next((item[name] for name in _STATEMENTS if isinstance(item.get(name), str)), "")[:_READ]
        if isinstance(error, SecretRefused) and secrets_problem(Memory("", text)):
            return ""
        return cut(" ".join(redact(text)[0].split()), _EXCERPT)


class ItemRefused(Exception):
    """An item of a slice was refused inside its transaction, which wrote nothing."""

    def __init__(self, position: int, error: EngramError) -> None:
        super().__init__(position, error)
        self.position, self.error = position, error


class SingleItem(BatchRefusals):
    """A batch of one, whose error needs no place."""

    def refuse(self, index: int, error: EngramError, stored: int = 0) -> None:
        """Raise the error."""
        raise error
