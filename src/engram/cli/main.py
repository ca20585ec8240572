"""`engram`: finds the verb that was asked for and imports that one alone, so that a cold start stays cheap."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import typer

VERBS: dict[str, str] = {
    "init": "setting_up",
    "learn": "teaching",
    "remember": "teaching",
    "add": "teaching",
    "recall": "asking",
    "search": "asking",
    "inject": "asking",
    "show": "reading",
    "list": "reading",
    "history": "reading",
    "update": "changing",
    "pin": "changing",
    "forget": "forgetting",
    "feedback": "changing",
    "reinforce": "changing",
    "verify": "changing",
    "undo": "changing",
    "session": "session",
    "review": "review",
    "trust": "trust",
    "pause": "upkeep",
    "resume": "upkeep",
    "sync": "upkeep",
    "prune": "upkeep",
    "backup": "upkeep",
    "restore": "upkeep",
    "import": "exchange",
    "export": "exchange",
    "index": "health",
    "doctor": "health",
    "status": "health",
    "config": "setting_up",
    "bench": "bench",
    "hook": "setting_up",
    "mcp": "setting_up",
    "demo": "setting_up",
    "version": "setting_up",
}
"""Every verb and the module of `engram.cli.verbs` that holds it, in the order of the help."""

_FUNCTIONS = {"list": "list_", "import": "import_"}
"""Verbs whose name Python already uses for something else."""


def build(only: str | None = None) -> "typer.Typer":
    """The program with all its verbs, or with the one that is about to run."""
    import typer

    from engram.cli.surface import root

    app = typer.Typer(
        name="engram",
        help="A memory for AI agents: plain text you own, found again in milliseconds.",
        epilog="`engram VERB --help` explains a verb. `engram demo` shows it all.",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(root)
    for name in [only] if only else VERBS:
        _register(app, name)
    return app


def function_of(name: str) -> Any:
    """What stands behind a verb: a function, or a group of further verbs."""
    return getattr(import_module(f"engram.cli.verbs.{VERBS[name]}"), _FUNCTIONS.get(name, name))


def _register(app: "typer.Typer", name: str) -> None:
    import typer

    from engram.cli.surface import verb

    found = function_of(name)
    if isinstance(found, typer.Typer):
        app.add_typer(found, name=name)
    else:
        app.command(name)(verb(found))


def asked_verb(arguments: Sequence[str]) -> str | None:
    """The verb in a command line, if its global options can be read past; else None, and every verb is loaded."""
    rest = iter(arguments)
    for word in rest:
        if word == "--home":
            next(rest, None)
        elif not word.startswith("-"):
            return word if word in VERBS else None
        elif word != "--json" and not word.startswith("--home="):
            return None
    return None


def run() -> None:
    """The program's entry point."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["hook"]:
        from engram.cli.hook import main

        sys.exit(main(arguments[1:]))
    for stream in (sys.stdout, sys.stderr):
        # A memory may hold half a character; printing it must not end the program.
        cast(Any, stream).reconfigure(errors="backslashreplace")
    build(asked_verb(arguments))(prog_name="engram")


if __name__ == "__main__":
    run()
