"""The fields of a record in a file: readers and writers of single values, and blocks made of them.

Readers accept what a person may have typed, never guess, and raise `FieldError` otherwise. Writers refuse values that
could not be read back. A block is a table of fields; keys missing from the table are kept separately.
"""

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from operator import attrgetter
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass
from engram.rules.labels import normalize_cues

_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off"})
LARGEST_COUNT = 2**63 - 1
"""The largest whole number that every index can store."""
_DEEPEST = 150
"""Maximum levels of free data that are parsed; the limit for writing is lower."""
_MIDNIGHT = "T00:00:00+00:00"


class FieldError(Exception):
    """A value that does not fit its field; `path` grows on the way up to the record."""

    def __init__(self, what: str, path: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.path = path

    def under(self, name: str) -> "FieldError":
        """The same error, one level further out."""
        joint = "" if not self.path or self.path.startswith("[") else "."
        return FieldError(self.what, f"{name}{joint}{self.path}")


def quote_value(value: object) -> str:
    """A value as an error message quotes it: short, on one line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def read_text(value: Any) -> str:
    """Text. If YAML read it as a number, a date or a truth value, the result is the text as written."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, date):
        return value.isoformat()
    raise FieldError(f"must be text, is {quote_value(value)}")


def read_texts(value: Any) -> tuple[str, ...]:
    """A list of texts; a single text is a list of one."""
    if isinstance(value, list | tuple):
        return tuple([item if type(item) is str else read_text(item) for item in value])
    return (read_text(value),)


def read_tags(value: Any) -> tuple[str, ...]:
    """A list of tags, or one line with commas between them."""
    if isinstance(value, str):
        return tuple(part for part in (piece.strip() for piece in value.split(",")) if part)
    return read_texts(value)


def read_cues(value: Any) -> tuple[str, ...]:
    """A list of cues; a single text is one cue, whatever its punctuation."""
    return normalize_cues(read_texts(value))


def read_text_map(value: Any) -> dict[str, str]:
    """A block whose values are all text."""
    if not isinstance(value, Mapping):
        raise FieldError(f"must be a block of fields, is {quote_value(value)}")
    return {str(key): read_text(item) for key, item in value.items()}


def read_map(value: Any) -> dict[str, Any]:
    """A block of anything."""
    if not isinstance(value, Mapping):
        raise FieldError(f"must be a block of fields, is {quote_value(value)}")
    return dict(value)


def read_flag(value: Any) -> bool:
    """True or false, in any spelling of YAML 1.1 or 1.2."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.lower()
        if word in _YES:
            return True
        if word in _NO:
            return False
    raise FieldError(f"must be true or false, is {quote_value(value)}")


def read_count(value: Any) -> int:
    """A whole number."""
    if type(value) is int and abs(value) <= LARGEST_COUNT:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= LARGEST_COUNT:
        return int(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) > LARGEST_COUNT:
        raise FieldError(f"must not be beyond {LARGEST_COUNT}, is {quote_value(value)}")
    raise FieldError(f"must be a whole number, is {quote_value(value)}")


def read_number(value: Any) -> float:
    """A finite number."""
    if type(value) is float or type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise FieldError(f"must be a number, is {quote_value(value)}")


def number_between(low: float, high: float) -> Callable[[Any], float]:
    """A reader of numbers between two bounds, both included."""

    def read(value: Any) -> float:
        if type(value) is float and low <= value <= high:
            return value
        number = read_number(value)
        if not low <= number <= high:
            raise FieldError(f"must be between {low:g} and {high:g}, is {quote_value(value)}")
        return number

    return read


def writer_between(low: float, high: float) -> Callable[[float], float]:
    """The writer for `number_between`. It refuses numbers out of bounds, because they could not be read back."""
    check = number_between(low, high)
    return lambda value: write_number(check(value))


def write_number(value: float) -> float:
    """A number as written to a file: whole numbers without a fraction."""
    number = read_number(value)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def write_text(value: Any) -> str:
    """Text. Refuses anything else."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str(value)
    raise FieldError(f"must be text, is {quote_value(value)}")


def write_texts(values: Any) -> list[str]:
    """A list of texts."""
    return [write_text(value) for value in values]


def read_time(value: Any) -> datetime:
    """A time in UTC. A bare date is its midnight; a time without a zone is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise FieldError(
                f"must be a date such as 2026-01-31 or a time such as 2026-01-31T09:30:00Z, is {quote_value(value)}"
            ) from None
    if isinstance(value, datetime):
        return _in_utc(value)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    raise FieldError(f"must be a date or a time, is {quote_value(value)}")


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    if value.tzinfo is UTC:
        return value
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise FieldError(f"is outside the calendar: {value}") from None


def write_time(value: datetime) -> str:
    """A time as ISO text in UTC; midnight as a plain date, as spec 1 writes days."""
    if value.tzinfo is None:
        raise FieldError(f"has no time zone: {value.isoformat()}")
    text = _in_utc(value).isoformat()
    return text[:10] if text.endswith(_MIDNIGHT) else text[:-6] + "Z"


@lru_cache(maxsize=4096, typed=True)
def _shift_point(value: float, places: int) -> float:
    return float(Decimal(repr(value)).scaleb(places))


def read_confidence(value: Any) -> float:
    """Spec 1's 1–10 as 0–1. Only the decimal point moves, so 9.1 is .91 and not .9099999999999999."""
    if isinstance(value, str):
        return _confidence_from_text(value)
    number = read_number(value)
    if not 0 <= number <= 10:
        raise FieldError(f"must be between 1 and 10, is {quote_value(value)}")
    return _shift_point(number, -1)


def _confidence_from_text(value: str) -> float:
    try:
        number = float(Decimal(value).scaleb(-1))
    except ArithmeticError:
        number = math.nan
    if not 0 <= number <= 1:
        raise FieldError(f"must be between 1 and 10, is {quote_value(value)}")
    return number


@lru_cache(maxsize=4096, typed=True)
def write_confidence(value: float) -> float | str:
    """0–1 as 1–10.

    There are fewer doubles between 8 and 10 than between .8 and 1, so a value of 16 or 17 digits may have no exact
    counterpart. Only then is it written as text, which is read back digit for digit.
    """
    if not 0 <= read_number(value) <= 1:
        raise FieldError(f"must be between 0 and 1, is {quote_value(value)}")
    number = _shift_point(float(value), 1)
    if _shift_point(number, -1) == value:
        return write_number(number)
    return str(Decimal(repr(value)).scaleb(1))


def unit_number(key: str, value: Any) -> float:
    """A number from 0 to 1, or its text. Raises `InvalidInput` naming the key."""
    try:
        number = float(value) if not isinstance(value, bool) else -1.0
    except (OverflowError, TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise InvalidInput(f"{key} must be a number from 0 to 1, is {value!r:.60}")
    return number


def plain_mapping(value: Mapping[str, Any]) -> dict[str, Any]:
    """Unknown keys as `plain_data`. Raises `InvalidInput` naming the key."""
    try:
        found: dict[str, Any] = plain_data(value)
    except FieldError as error:
        raise InvalidInput(f"{error.path}: {error.what}") from None
    return found


def plain_data(value: Any, depth: int = 0) -> Any:
    """Free data as both JSON and YAML can represent it; anything else is refused."""
    if depth > _DEEPEST:
        raise FieldError(f"is nested deeper than {_DEEPEST} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {_plain_key(key): _plain_under(key, item, depth) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain_under(f"[{index}]", item, depth) for index, item in enumerate(value)]
    raise FieldError(f"cannot be stored: {quote_value(value)} is no text, number, true, false, null, list or mapping")


def _plain_key(key: Any) -> str:
    if isinstance(key, str):
        return str(key)
    raise FieldError(f"has a key that is not text: {quote_value(key)}")


def _plain_under(name: Any, item: Any, depth: int) -> Any:
    try:
        return plain_data(item, depth + 1)
    except FieldError as error:
        raise error.under(str(name)) from None


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a file: its attribute, how to read and write it, and when it may be left out."""

    key: str
    attribute: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    default: Any = None
    always: bool = False


class Block:
    """A block of fields and the record it describes: reads a mapping, writes it back, keeps unknown keys separate."""

    def __init__(self, record: Callable[..., Any], *fields: Field) -> None:
        self._record = record
        self._fields = fields
        self._by_key = {field.key: field for field in fields}
        self._readers = {field.key: (field.attribute, field.read) for field in fields}
        self.keys = frozenset(self._by_key)
        self._writers = [(field.key, field.write, field.default, field.always) for field in fields]
        self._values = attrgetter(*(field.attribute for field in fields))

    def read(self, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The attributes set by a mapping, and the unknown keys."""
        if type(value) is not dict and not isinstance(value, Mapping):
            raise FieldError(f"must be a block of fields, is {quote_value(value)}")
        known: dict[str, Any] = {}
        unknown: dict[str, Any] = {}
        readers = self._readers
        key = ""
        try:
            for key, item in value.items():
                field = readers.get(key)
                if field is None:
                    unknown[key] = item
                elif item is not None:
                    known[field[0]] = field[1](item)
        except FieldError as error:
            raise error.under(key) from None
        return known, unknown

    def keys_read_by(self, *readers: Callable[[Any], Any]) -> frozenset[str]:
        """The keys whose values one of these readers reads."""
        return frozenset(field.key for field in self._fields if field.read in readers)

    def read_at(self, name: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Like `read`, with the block's own name in every error."""
        try:
            return self.read(value)
        except FieldError as error:
            raise error.under(name) from None

    def attribute(self, key: str) -> str:
        """The attribute that a key fills."""
        return self._by_key[key].attribute

    def read_pair(self, value: Any) -> tuple[Any, dict[str, Any]]:
        """The record described by a mapping, and the unknown keys."""
        known, unknown = self.read(value)
        return self._record(**known), unknown

    def write_key(self, key: str, record: Any) -> Any:
        """A single key, even if it has the default value."""
        field = self._by_key[key]
        value = attrgetter(field.attribute)(record)
        if value is None:
            raise FieldError("has no value, but extra has a key of that name", key)
        return field.write(value)

    def write(self, record: Any, unknown: Any = None) -> dict[str, Any]:
        """The mapping for a record, without defaults, with unknown keys after the known ones."""
        out: dict[str, Any] = {}
        key = ""
        try:
            for (key, write, default, always), value in zip(self._writers, self._values(record), strict=True):
                if always or (value is not default and value != default):
                    out[key] = write(value)
        except FieldError as error:
            raise error.under(key) from None
        if unknown:
            add_unknown(out, unknown, self.keys)
        return out

    def read_item(self, value: Any) -> Any:
        """One item of a list, with its unknown keys in its own `extra`."""
        known, unknown = self.read(value)
        try:
            return self._record(**known, extra=unknown)
        except TypeError:
            missing = next(field.key for field in self._fields if field.attribute not in known)
            raise FieldError("is missing", missing) from None

    def read_list(self, value: Any) -> tuple[Any, ...]:
        """A list of such blocks."""
        if not isinstance(value, list | tuple):
            raise FieldError(f"must be a list, is {quote_value(value)}")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(self.read_item(item))
            except FieldError as error:
                raise error.under(f"[{index}]") from None
        return tuple(items)

    def write_list(self, records: Any) -> list[dict[str, Any]]:
        """The list of mappings for a list of records."""
        return [self.write_item(record) for record in records]

    def write_item(self, record: Any) -> dict[str, Any]:
        """The mapping for one record, with its own unknown keys."""
        return self.write(record, record.extra)


def add_unknown(out: dict[str, Any], unknown: Any, known: frozenset[str]) -> None:
    """Write unknown keys into a block.

    A key that is a field of the block is refused, because the two could not be told apart.
    """
    extra = plain_data(unknown)
    if not isinstance(extra, dict):
        raise FieldError(f"extra must be a mapping here, is {quote_value(unknown)}")
    for key in extra:
        if key in known:
            raise FieldError("extra has a key that is a field of its own; set the field instead", key)
    out.update(extra)
