"""What a process waits for before it forks: imports that other threads have begun.

Python locks each module while it is imported, and Engram imports much on first use. In a child that was forked meanwhile the
lock stays locked, and its first import of that module waits forever.
"""

import sys
import threading
import time
from importlib import _bootstrap
from typing import Any

PATIENCE = 5.0
"""How long a fork waits. A child forked later may hang, but the parent never does."""
_PAUSE = 0.0005
_PACKAGES = frozenset({"engram", "numpy", "psycopg", "psycopg_binary", "psycopg_pool"}) | sys.stdlib_module_names
"""What Engram imports. A caller's own module may run for as long as the program does."""
_LOCKS: dict[str, Any] = getattr(_bootstrap, "_module_locks", {})
"""Weak references to the locks of the modules that are being imported; Python offers no other way to see them."""


def wait_for_imports(patience: float = PATIENCE) -> None:
    """Wait until no other thread imports a module that Engram may need."""
    deadline = time.monotonic() + patience
    while _is_importing() and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _is_importing() -> bool:
    here = threading.get_ident()
    locks = [found() for name, found in list(_LOCKS.items()) if name.partition(".")[0] in _PACKAGES]
    return any(getattr(lock, "owner", None) not in (None, here) for lock in locks)
