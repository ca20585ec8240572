"""Reads the weights of the bundled models: linear ones over hashed features, and the arrays of the others.

It avoids the parser that `numpy.load` runs for each array.
"""

import re
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from engram.model.lazy import dataclass, field, lazy_pattern

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["SCALE", "Linear", "read_arrays"]

SCALE = 64
"""A stored weight is the trained weight times this, rounded."""


@dataclass(slots=True)
class Linear:
    """One model: the file of its weights in this folder, its classes, and the number of hash buckets.

    There is one signed byte per bucket and class, so a file has a few hundred kB at most; it is loaded on first use.
    The training scripts in `training/` also use `bucket_of` and `SCALE`, so that training and prediction hash alike.
    """

    file: str
    classes: tuple[str, ...]
    buckets: int
    _weights: memoryview | None = field(default=None, repr=False)

    def bucket_of(self, feature: str) -> int:
        """The bucket of a feature."""
        return crc32(feature.encode("utf-8", "surrogatepass")) % self.buckets

    def sums(self, found: Iterable[str]) -> list[int]:
        """The score of each class for these features, in stored weights."""
        weights, wide = self._read(), len(self.classes)
        # `bucket_of`, inlined to avoid a call for each of some fifty features.
        starts = [crc32(feature.encode("utf-8", "surrogatepass")) % self.buckets * wide for feature in found]
        return [sum([weights[start + place] for start in starts]) for place in range(wide)]

    def _read(self) -> memoryview:
        if self._weights is None:
            self._weights = memoryview(Path(__file__).with_name(self.file).read_bytes()).cast("b")
        return self._weights


_END = struct.Struct("<4s4H2IH")
"""The end record of a zip file: the number of entries it lists, and the offset of the list."""
_LISTED = struct.Struct("<4s6H3I5H2I")
_LOCAL = struct.Struct("<4s5H3I2H")
"""An entry in the list, and before its data."""
_PREFIX = struct.Struct("<6s2BH")
"""The beginning of a `.npy`: the length of the header after it."""
_HEADER = lazy_pattern(r"\{'descr': '([^']+)', 'fortran_order': (True|False), 'shape': \(([\d, ]*)\), \}\s*")
_STORED, _DEFLATED = 0, 8


def read_arrays(file: Path) -> "dict[str, npt.NDArray[Any]]":
    """The arrays written by `numpy.savez` or `numpy.savez_compressed`, by name and read-only. Raises `ValueError` for
    another file.

    A cold recall reads four files with 114 arrays; reading them took a thirtieth of its time.
    """
    data = file.read_bytes()
    try:
        *_, count, _, at, _ = _END.unpack_from(data, data.rindex(b"PK\5\6"))
        arrays = {}
        for _ in range(count):
            entry = _LISTED.unpack_from(data, at)
            method, packed, (named, extra, noted), start = entry[4], entry[8], entry[10:13], entry[16]
            name = data[at + _LISTED.size : at + _LISTED.size + named].decode()
            at += _LISTED.size + named + extra + noted
            start += _LOCAL.size + sum(_LOCAL.unpack_from(data, start)[-2:])
            arrays[name.removesuffix(".npy")] = _array(_unpack(data[start : start + packed], method))
    except (struct.error, zlib.error, IndexError) as error:
        raise ValueError(f"{file} is no file of arrays ({error}); reinstall engram") from error
    return arrays


def _unpack(data: bytes, method: int) -> bytes:
    if method not in (_STORED, _DEFLATED):
        raise ValueError(f"it is packed in a way that is not supported ({method})")
    return zlib.decompress(data, -zlib.MAX_WBITS) if method == _DEFLATED else data


def _array(data: bytes) -> "npt.NDArray[Any]":
    import numpy as np

    _, major, _, size = _PREFIX.unpack_from(data)
    header: re.Match[str] | None = _HEADER.fullmatch(data[_PREFIX.size : _PREFIX.size + size].decode("latin-1"))
    if major != 1 or header is None:
        raise ValueError("it has an array that is not supported")
    shape = [int(length) for length in header[3].split(",") if length.strip()]
    found = np.frombuffer(data, np.dtype(header[1]), offset=_PREFIX.size + size)
    return found.reshape(shape, order="F" if header[2] == "True" else "C")
