"""Reading a log from its end."""

import os
from collections.abc import Iterator
from pathlib import Path

from engram.store.files.confinement import open_plain

_FIRST_STEP, _LONGEST_STEP = 1 << 13, 1 << 22


def lines_backwards(path: Path) -> Iterator[bytes]:
    """A file's whole lines without their newlines, the last one first; what a crash left of a line is none."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
        position, step = file.seek(0, os.SEEK_END), _FIRST_STEP
        rest, ended = b"", False
        while position > 0:
            step = min(step, position)
            position -= step
            file.seek(position)
            rest, *lines = (file.read(step) + rest).split(b"\n")
            if lines and not ended:
                lines.pop()
                ended = True
            yield from reversed(lines)
            step = min(step * 2, _LONGEST_STEP)
        if ended:
            yield rest
