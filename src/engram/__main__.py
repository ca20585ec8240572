"""`engram`, also as `python -m engram`. A hook runs at every prompt, so its usual command line is read without the parser."""

import sys

HOOK_WORDS = 3
"""`engram hook EVENT`, and nothing else."""


def run() -> None:
    """The program's entry point."""
    if len(sys.argv) == HOOK_WORDS and sys.argv[1] == "hook" and sys.argv[2] not in ("recall", "-h", "--help"):
        from engram.hooks import runner

        if sys.argv[2] in runner.SECONDS and sys.stdin is not None and sys.stdout is not None:
            runner.run(sys.argv[2])
            return
    from engram.cli.main import run as run_verb

    run_verb()


if __name__ == "__main__":
    run()
