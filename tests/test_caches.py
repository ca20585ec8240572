"""Tests keep to their own folders."""

import subprocess
import sys
from pathlib import Path

from engram.store.home import default_cache

ASKED = "from engram.store.home import default_cache; print(default_cache())"


def test_an_index_that_a_test_gives_no_place_is_not_in_the_developers_cache() -> None:
    told = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, check=True).stdout.strip()
    for cache in (default_cache(), Path(told)):
        assert not cache.is_relative_to(Path.home() / ".cache")
