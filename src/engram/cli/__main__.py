"""`python -m engram.cli` is `engram`."""

from engram.cli.main import run

run()
