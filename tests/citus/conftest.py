"""Without a cluster there is nothing to ask it."""

from tests.citus.cluster import GIVEN

collect_ignore_glob = [] if GIVEN else ["test_*.py"]
