"""Regular expressions that are compiled with their first use: a cold command needs few of the large ones."""

import re
from typing import Any, cast


class _LazyPattern:
    """A pattern whose methods are looked up, and kept, one by one."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, postponed until one of the pattern's methods is called."""
    return cast(re.Pattern[str], _LazyPattern(source, flags))
