"""Reads a JSON list item by item, so that a file of gigabytes needs memory for one item only."""

import codecs
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from engram.model.errors import UnreadableData
from engram.readers.data import MAX_DEPTH, check_depth, parse_decimal, parse_integer, refuse_constant

MAX_ITEM_CHARS = 64 * 1024 * 1024
"""Maximum characters of one item."""
_FIRST_STEP = 1 << 16
_SPACE = " \t\r\n"
_OF_NUMBERS = "0123456789+-.eE"
_END = object()


def json_items(stream: IO[bytes], where: str) -> Iterator[Any]:
    """The items of the list in a stream. An `UnreadableData` replaces an item whose numbers cannot be read.

    Raises `UnreadableData` for a text that is not a list or ends in the middle.
    """
    source = _JsonList(stream, where)
    while (item := source.next()) is not _END:
        yield item


class _JsonList:
    """Reads a JSON list item by item, keeping at most one item of the text in memory."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict").decode
        self._scan = json.JSONDecoder(
            parse_int=self._record_errors(parse_integer),
            parse_float=self._record_errors(parse_decimal),
            parse_constant=self._record_errors(refuse_constant),
        ).raw_decode
        self._bad_number = ""
        self._text, self._at, self._ended, self._size = "", 0, False, 0
        self._open = False

    def next(self) -> Any:
        """The next item, or `_END`."""
        sign = self._next_character()
        if not self._open and sign != "[":
            raise UnreadableData("expected a JSON list", where=self._where)
        if self._open and sign == "]":
            return _END
        if self._open and sign and sign != ",":
            raise self._damage_error()
        first, self._open = not self._open, True
        self._at += 1
        sign = self._next_character()
        if sign == "]" and first:
            return _END
        if not sign:
            raise UnreadableData(
                f"ends in the middle, after {self._size:,} bytes; the file is incomplete", where=self._where
            )
        self._complete_number()
        return self._item()

    def _complete_number(self) -> None:
        """Read until the number at this position, if there is one, has ended, because a part of it is also a number."""
        end = self._at
        while True:
            while end < len(self._text) and self._text[end] in _OF_NUMBERS:
                end += 1
            if end < len(self._text) or end - self._at > MAX_ITEM_CHARS:
                return
            end -= self._at
            if not self._read_more(_FIRST_STEP):
                return

    def _damage_error(self) -> UnreadableData:
        return UnreadableData(
            f"not JSON near byte {self._size:,}: the file is incomplete or damaged", where=self._where
        )

    def _next_character(self) -> str:
        """The next character that is not a space; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_more(_FIRST_STEP):
                return ""

    def _item(self) -> Any:
        step = _FIRST_STEP
        while True:
            self._bad_number = ""
            try:
                item, self._at = self._scan(self._text, self._at)
                check_depth(item)
                return UnreadableData(self._bad_number) if self._bad_number else item
            except UnreadableData as error:
                return error
            except (json.JSONDecodeError, RecursionError) as error:
                if len(self._text) - self._at > MAX_ITEM_CHARS:
                    raise UnreadableData(
                        f"an item of more than {MAX_ITEM_CHARS:,} characters", where=self._where
                    ) from None
                if isinstance(error, RecursionError):
                    raise UnreadableData(f"nested deeper than {MAX_DEPTH} levels", where=self._where) from None
                if not self._read_more(step):
                    raise self._damage_error() from None
                step *= 2

    def _record_errors(self, parse: Callable[[str], float]) -> Callable[[str], float]:
        """The same parser of a number, except that it records its error, so that the item is read to its end."""

        def parse_or_note(text: str) -> float:
            try:
                return parse(text)
            except ValueError as error:
                self._bad_number = str(error)
                return 0

        return parse_or_note

    def _read_more(self, size: int) -> bool:
        """Read on; False at the end."""
        if self._ended:
            return False
        try:
            data = self._stream.read(size)
            self._ended = not data
            text = self._decode(data, self._ended)
        except UnicodeDecodeError:
            raise UnreadableData(f"not UTF-8 near byte {self._size:,}", where=self._where) from None
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise UnreadableData(f"cannot be read: {error}", where=self._where) from None
        self._size += len(data)
        self._text, self._at = self._text[self._at :] + text, 0
        return bool(data)
