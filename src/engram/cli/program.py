"""The program as typer sees it: help, error messages and suggestions, made from the verbs' declarations."""

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

import typer

from engram.cli.declared import GLOBALS, Argument, Group, Parameter, Verb, parameters
from engram.cli.main import VERBS, verb_of
from engram.cli.surface import Surface, perform

# The base of typer's usage errors; which package it lives in differs between versions of typer.
_Complaint: Any = typer.BadParameter.__mro__[2]


def explain(arguments: Sequence[str]) -> None:
    """Run a command line through typer, which says what is wrong with it. Ends in SystemExit."""
    try:
        code = build()(list(arguments), prog_name="engram", standalone_mode=False)
    except _Complaint as error:
        error.show()
        if "--json" in arguments:
            Surface(as_json=True).failed(error.format_message(), error.exit_code)
        raise SystemExit(error.exit_code) from None
    raise SystemExit(code or 0)


def build() -> typer.Typer:
    """The program with all its verbs."""
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
    app.callback()(_root())
    for name in VERBS:
        found = verb_of(name)
        if isinstance(found, Group):
            app.add_typer(_grouped(found), name=name)
        elif found is not None:
            app.command(name)(_command(found))
    return app


def _grouped(group: Group) -> typer.Typer:
    app = typer.Typer(help=group.help, no_args_is_help=True)
    for name, function in group.verbs.items():
        app.command(name)(_command(function))
    return app


def _root() -> Callable[..., None]:
    """Hold the global options until the verb asks for them."""

    def root(typer_context: typer.Context, home: str | None, as_json: bool) -> None:
        typer_context.obj = {"home": home, "as_json": as_json}

    return _signed(root, [*GLOBALS])


def _command(function: Verb) -> Callable[..., None]:
    """A verb as a command of typer's: it gains --home and --json."""

    @wraps(function)
    def command(typer_context: typer.Context, home: str | None, as_json: bool, **given: Any) -> None:
        before = typer_context.obj
        home = before["home"] if home is None else home
        perform(function, {**given, "home": home, "as_json": as_json or before["as_json"]})

    return _signed(command, [*parameters(function), *GLOBALS])


def _signed(function: Callable[..., None], declared: list[Parameter]) -> Callable[..., None]:
    """Give a function the signature that typer reads."""
    entries = [inspect.Parameter("typer_context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
    entries += [
        inspect.Parameter(p.name, inspect.Parameter.KEYWORD_ONLY, default=p.default, annotation=_annotation(p))
        for p in declared
    ]
    function.__signature__ = inspect.Signature(entries)  # type: ignore[attr-defined]
    function.__annotations__ = {entry.name: entry.annotation for entry in entries}
    return function


def _annotation(parameter: Parameter) -> Any:
    said = parameter.said
    shared: dict[str, Any] = {"help": said.help, "metavar": said.metavar or None, "envvar": said.envvar or None}
    if isinstance(said, Argument):
        return Annotated[parameter.annotation, typer.Argument(**shared)]
    return Annotated[parameter.annotation, typer.Option(*said.names, **shared)]
