"""The reader of bundled arrays agrees with numpy's own."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engram
from engram.models.weights import read_arrays

BUNDLED = sorted(Path(engram.__file__).parent.rglob("*.npz"))


def test_every_bundled_array_is_read_as_numpy_reads_it() -> None:
    assert BUNDLED
    for file in BUNDLED:
        read = read_arrays(file)
        with np.load(file) as expected:
            assert list(read) == expected.files
            for name, array in read.items():
                assert array.dtype == expected[name].dtype and array.shape == expected[name].shape
                assert np.array_equal(array, expected[name])


def test_plain_empty_single_and_transposed_arrays_are_read(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        "none": np.zeros((0, 3)),
        "one": np.float32(4.5),
        "turned": np.arange(6).reshape(2, 3).T,
        "row": np.arange(3),
    }
    np.savez(tmp_path / "some.npz", **given)
    read = read_arrays(tmp_path / "some.npz")
    assert all(
        np.array_equal(read[name], array) and read[name].shape == np.shape(array) for name, array in given.items()
    )


@pytest.mark.parametrize("broken", [b"", b"PK\5\6", b"no zip at all", b"cut"])
def test_another_file_is_refused(tmp_path: Path, broken: bytes) -> None:
    file = tmp_path / "some.npz"
    np.savez_compressed(file, words=np.array(["a", "b"]))
    file.write_bytes(file.read_bytes()[40:] if broken == b"cut" else broken)
    with pytest.raises(ValueError):
        read_arrays(file)
