"""`python -m engram.cli` is `engram`."""

from engram.launch import ignore_working_directory

if __name__ == "__main__":
    ignore_working_directory()
    from engram.cli.main import run

    run()
