"""A block of fields in a file and the record it makes: one table each, and what the table does not know is kept apart."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from engram.dialects import values
from engram.dialects.values import FieldError, shown


@dataclass(frozen=True, slots=True)
class Field:
    """One key of a file: the attribute it fills, how to read it, how to write it, what may be left out."""

    key: str
    attribute: str
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    default: Any = None
    always: bool = False


class Block:
    """A block of fields with the record it makes: reads a mapping into it, writes it back, keeps unknown keys apart."""

    def __init__(self, record: Callable[..., Any], *fields: Field) -> None:
        self._record = record
        self._fields = fields
        self._by_key = {field.key: field for field in fields}
        self._readers = {field.key: (field.attribute, field.read) for field in fields}
        self.keys = frozenset(self._by_key)
        self._writers = [(field.key, field.write, field.default, field.always) for field in fields]
        self._values = attrgetter(*(field.attribute for field in fields))

    def read(self, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The attributes a mapping sets, and the keys nobody knows."""
        if type(value) is not dict and not isinstance(value, Mapping):
            raise FieldError(f"must be a block of fields, is {shown(value)}")
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

    def read_key(self, key: str, item: Any) -> tuple[str, Any]:
        """One key alone: the attribute it fills and its value."""
        field = self._by_key[key]
        try:
            return field.attribute, field.read(item)
        except FieldError as error:
            raise error.under(key) from None

    def keys_read_by(self, *readers: Callable[[Any], Any]) -> frozenset[str]:
        """The keys whose values one of these readers reads."""
        return frozenset(field.key for field in self._fields if field.read in readers)

    def read_at(self, name: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Like `read`, with the block's own name in every complaint."""
        try:
            return self.read(value)
        except FieldError as error:
            raise error.under(name) from None

    def attribute(self, key: str) -> str:
        """The attribute a key fills."""
        return self._by_key[key].attribute

    def read_pair(self, value: Any) -> tuple[Any, dict[str, Any]]:
        """The record a mapping makes, and the keys nobody knows."""
        known, unknown = self.read(value)
        return self._record(**known), unknown

    def write_key(self, key: str, record: Any) -> Any:
        """One key alone, even if it holds the default."""
        field = self._by_key[key]
        value = attrgetter(field.attribute)(record)
        if value is None:
            raise FieldError("has no value, but extra holds a key of that name", key)
        return field.write(value)

    def write(self, record: Any, unknown: Any = None) -> dict[str, Any]:
        """The mapping for a record, defaults left out, unknown keys after the known ones."""
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
        """One item of a list, its unknown keys in its own `extra`."""
        known, unknown = self.read(value)
        try:
            return self._record(**known, extra=unknown)
        except TypeError:
            missing = next(field.key for field in self._fields if field.attribute not in known)
            raise FieldError("is missing", missing) from None

    def read_list(self, value: Any) -> tuple[Any, ...]:
        """A list of such blocks."""
        if not isinstance(value, list | tuple):
            raise FieldError(f"must be a list, is {shown(value)}")
        items = []
        for index, item in enumerate(value):
            try:
                items.append(self.read_item(item))
            except FieldError as error:
                raise error.under(f"[{index}]") from None
        return tuple(items)

    def write_list(self, records: Any) -> list[dict[str, Any]]:
        """The list of mappings for a list of records."""
        return [self.write(record, record.extra) for record in records]


def add_unknown(out: dict[str, Any], unknown: Any, known: frozenset[str]) -> None:
    """Write unknown keys into a block; one that is a field of the block is refused, since it could not be told apart."""
    extra = values.plain_data(unknown)
    if not isinstance(extra, dict):
        raise FieldError(f"extra must be a mapping here, is {shown(unknown)}")
    for key in extra:
        if key in known:
            raise FieldError("extra holds a key that is a field of its own; set the field instead", key)
    out.update(extra)
