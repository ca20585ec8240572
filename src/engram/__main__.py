"""`python -m engram`."""

from engram.cli.main import run

run()
