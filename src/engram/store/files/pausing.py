"""The owner's pause: one empty file, which a hook can look for without opening the store."""

from engram.model.errors import StoreReadOnly
from engram.store.files.home import Home, write_private

PAUSE_FILE = "paused"


def is_paused(home: Home) -> bool:
    """Whether the owner has paused learning and injection."""
    return (home.state / PAUSE_FILE).exists()


def pause(home: Home, paused: bool) -> None:
    """Begin or end a pause."""
    path = home.state / PAUSE_FILE
    try:
        if paused:
            write_private(path, b"")
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot change {path}: {error.strerror}") from error
