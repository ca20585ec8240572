"""What is dear to make and the same for everyone: the first worker of a run that asks makes it, the others read it."""

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Made = TypeVar("Made")


def once(run_folder: Path, name: str, make: Callable[[], Made]) -> Made:
    """What `make` returns, made once in a run; whoever asks meanwhile waits."""
    kept = run_folder / f"{name}.pickle"
    with (run_folder / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not kept.exists():
            kept.write_bytes(pickle.dumps(make()))
    made: Made = pickle.loads(kept.read_bytes())
    return made
