"""A JSON list that is read item by item: of a file of gigabytes, no more than one item is held."""

import codecs
import json
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO, Any

from engram.model.errors import StoreCorrupt

LONGEST_ITEM = 64 * 1024 * 1024
"""Characters of one item."""
_FIRST_STEP = 1 << 16
_SPACE = " \t\r\n"
_OF_NUMBERS = "0123456789+-.eE"
_END = object()


def json_items(stream: IO[bytes], where: str) -> Iterator[Any]:
    """The items of the list in a stream. Raises `StoreCorrupt` where it is no list, or ends in the middle."""
    source = _JsonList(stream, where)
    while (item := source.next()) is not _END:
        yield item


class _JsonList:
    """Reads a JSON list item by item; of the text, no more than one item is held."""

    def __init__(self, stream: IO[bytes], where: str) -> None:
        self._stream, self._where = stream, where
        self._decode = codecs.getincrementaldecoder("utf-8-sig")("strict").decode
        self._scan = json.JSONDecoder().raw_decode
        self._text, self._at, self._ended, self._size = "", 0, False, 0
        self._open = False

    def next(self) -> Any:
        """The next item, or `_END`."""
        sign = self._sign()
        if not self._open and sign != "[":
            raise StoreCorrupt(f"{self._where}: expected a JSON list")
        if self._open and sign == "]":
            return _END
        if self._open and sign and sign != ",":
            raise self._damaged()
        first, self._open = not self._open, True
        self._at += 1
        sign = self._sign()
        if sign == "]" and first:
            return _END
        if not sign:
            raise StoreCorrupt(f"{self._where}: ends in the middle, after {self._size:,} bytes; the file is incomplete")
        self._complete_number()
        return self._item()

    def _complete_number(self) -> None:
        """Read until the number at this place, if it is one, has ended: a part of it is a number, too."""
        end = self._at
        while True:
            while end < len(self._text) and self._text[end] in _OF_NUMBERS:
                end += 1
            if end < len(self._text) or end - self._at > LONGEST_ITEM:
                return
            end -= self._at
            if not self._more(_FIRST_STEP):
                return

    def _damaged(self) -> StoreCorrupt:
        return StoreCorrupt(f"{self._where}: not JSON near byte {self._size:,}: the file is incomplete or damaged")

    def _sign(self) -> str:
        """The next character that is no space; "" at the end."""
        while True:
            while self._at < len(self._text) and self._text[self._at] in _SPACE:
                self._at += 1
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more(_FIRST_STEP):
                return ""

    def _item(self) -> Any:
        step = _FIRST_STEP
        while True:
            try:
                item, self._at = self._scan(self._text, self._at)
                return item
            except (json.JSONDecodeError, RecursionError) as error:
                if len(self._text) - self._at > LONGEST_ITEM:
                    raise StoreCorrupt(f"{self._where}: an item of more than {LONGEST_ITEM:,} characters") from None
                if isinstance(error, RecursionError) or not self._more(step):
                    raise self._damaged() from None
                step *= 2

    def _more(self, size: int) -> bool:
        """Read on; False at the end."""
        if self._ended:
            return False
        try:
            data = self._stream.read(size)
            self._ended = not data
            text = self._decode(data, self._ended)
        except UnicodeDecodeError:
            raise StoreCorrupt(f"{self._where}: not UTF-8 near byte {self._size:,}") from None
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise StoreCorrupt(f"{self._where}: cannot be read: {error}") from None
        self._size += len(data)
        self._text, self._at = self._text[self._at :] + text, 0
        return bool(data)
