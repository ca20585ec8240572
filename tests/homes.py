"""The directory of a store that a test opened on files."""

from engram import Engram
from engram.store.home import Home


def home_of(mem: Engram) -> Home:
    """Where its files lie."""
    assert mem.home is not None, "this store is not kept in files"
    return mem.home
