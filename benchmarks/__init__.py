"""Our own benchmarks, run from a checkout: `python -m benchmarks.NAME --help`.

`engram bench` has those for all users.
"""
