"""init, config, demo, version: the store and the program itself."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.agents.agent import agent_names
from engram.cli import display
from engram.cli.surface import Surface
from engram.model.errors import InvalidInput, Refused
from engram.model.memory import SCHEMA_VERSION

if TYPE_CHECKING:
    from engram.settings import Settings


def init(surface: Surface, harness: str = "", project: bool = False, undo: bool = False, dry_run: bool = False) -> None:
    """Carry out `engram init`."""
    if harness:
        _wire(surface, harness, project, undo, dry_run)
        return
    if project or undo or dry_run:
        raise InvalidInput(f"--project, --undo and --dry-run need a harness: one of {', '.join(agent_names())}")
    from engram.store.defaults import requested_server
    from engram.store.postgres.setup import prepare_server

    made = _is_missing(surface.home)
    server = requested_server(surface.home)
    told = prepare_server(server.url) if server is not None else []
    with surface.memory() as mem:
        data = {"store": mem.store.place, "created": made, "embedder": mem.settings.embedder}
        data |= {"distribution": told} if server is not None else {}
        words = ("created", "green") if made else ("ready", "green")
        surface.answer(
            data, lambda: display.lines([words, f"  {mem.store.place}"], *([f"       {line}"] for line in told))
        )
        surface.hint('engram: now try `engram learn "…"`, then `engram recall "…"`; `engram demo` shows the rest')


def _wire(surface: Surface, harness: str, project: bool, undo: bool, dry_run: bool) -> None:
    """Change the configuration of a harness, or print the entry that others read."""
    from engram.agents.agent import find_agent
    from engram.agents.wiring.registration import config_file, server_command, store_environment, unwire, wire
    from engram.store.scopes import repository_of

    harness = harness.lower()
    environment, warning = store_environment(surface.home, is_shared=project)
    if harness not in agent_names():
        _print_entry(surface, harness, project or undo or dry_run, environment, warning)
        return
    folder = repository_of(Path.cwd()) if project else None
    # Configuration that an earlier version wrote outside a repository can still be removed.
    if project and folder is None and not undo:
        raise Refused(
            f"{Path.cwd()} is in no repository, so it has no project's files; nothing was written. Run this inside the repository "
            "(`git init` makes one), or leave out --project to wire it for yourself in every project"
        )
    agent = find_agent(harness)
    config = config_file(agent, (folder or Path.cwd()) if project else None)
    is_desktop = agent.configuration.is_desktop
    server = server_command(is_shared=project, is_desktop=is_desktop, environment=environment)
    change = unwire(config, dry_run=dry_run) if undo else wire(config, server, dry_run=dry_run)
    data = {"harness": harness, "file": str(change.path), "changed": bool(change.diff) and not dry_run}
    data |= {"diff": change.diff, "backup": str(change.backup) if change.backup else None}
    surface.answer(data, lambda: display.block(change.diff))
    if warning and not undo:
        surface.warn([warning])
    if not change.diff:
        surface.hint(f"engram: {change.path} has {'no entry of Engram' if undo else 'this entry already'}")
    elif dry_run:
        surface.hint("engram: nothing was written")
    else:
        kept = f"; as it was before `engram init`: {change.backup}" if change.backup else ""
        done = "removed" if change.is_removed else "wrote"
        surface.hint(f"engram: {done} {change.path}{kept}. Restart {harness} to make it take effect")


def _print_entry(surface: Surface, client: str, is_change: bool, environment: dict[str, str], warning: str) -> None:
    """Print the entry for a client whose files Engram does not know. Raises `InvalidInput` for a misspelt harness."""
    import difflib

    from engram.agents.wiring.registration import generic_entry

    known = agent_names()
    meant = [name for name in known if name.startswith(client)] or difflib.get_close_matches(client, known, 1, 0.8)
    if meant:
        raise InvalidInput(f"Unknown harness {client!r}; did you mean {meant[0]}?")
    if is_change:
        raise InvalidInput(
            f"--project, --undo and --dry-run need a harness whose files Engram knows: {', '.join(known)}"
        )
    entry = generic_entry(client, environment)
    surface.answer({"entry": entry}, lambda: display.write(json.dumps(entry, indent=2)))
    if warning:
        surface.warn([warning])
    surface.hint(f"engram: {client!r} is not known here; put this entry into its MCP configuration")


def _is_missing(home: Path | None) -> bool:
    """Whether opening the store creates its directory."""
    from engram.store.defaults import requested_server
    from engram.store.home import default_root, expanded

    if requested_server(home) is not None:
        return False
    return not (expanded(home or default_root(), "the store").absolute() / "store.json").exists()


def config(surface: Surface, words: list[str] | None = None) -> None:
    """Carry out `engram config`."""
    from engram.settings import OWNERS, SETTABLE, check_settable, parse_setting, save_setting

    given = list(words or [])
    if given[:1] in (["get"], ["set"]):
        wanted = 2 if given.pop(0) == "get" else 3
        if len(given) != wanted - 1:
            raise InvalidInput("Write `engram config get KEY` or `engram config set KEY VALUE`")
    if len(given) > 2:
        raise InvalidInput("Write `engram config`, `engram config KEY` or `engram config KEY VALUE`")
    if given:
        check_settable(given[0])
    file = _config_file(surface.home)
    if len(given) == 2:
        value = parse_setting(given[0], given[1])
        if given[0] in OWNERS and not surface.person:
            raise Refused(
                f"{given[0]} {OWNERS[given[0]]}, so only a person sets it: run this at a terminal, or edit {file}"
            )
        _check(given[0], value, file)
        save_setting(file, given[0], value)
        surface.warn(_read(file)[1])
        surface.answer({given[0]: value}, lambda: _draw_settings({given[0]: value}))
        if given[0] == "embedder":
            surface.hint(_after_embedder(value))
        return
    # Not through the store: a wrong setting must not prevent its owner from changing another.
    settings, problems = _read(file)
    surface.warn(problems)
    chosen = {key: settings.value_of(key) for key in (given or SETTABLE)}
    surface.answer(chosen, lambda: _draw_settings(chosen, only_value=bool(given)))


def _config_file(home: Path | None) -> Path:
    """The settings file. For a server, these are the owner's own settings, and no store is created for them."""
    from engram.disk import DIRECTORY_MODE
    from engram.store.defaults import requested_server
    from engram.store.home import default_root, open_home

    if requested_server(home) is None:
        return open_home(home).config
    root = default_root().expanduser().absolute()
    root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    return root / "config.toml"


def _after_embedder(value: str) -> str:
    if value == "none":
        return "engram: search uses keywords only from now on"
    return "engram: run `engram index --reembed` to compute vectors with it"


def _read(file: Path) -> "tuple[Settings, list[str]]":
    """The usable settings, and the problems with them and the owner's policies."""
    from engram.gates.policies import policy_problems
    from engram.settings import read_settings

    settings, problems = read_settings(file)
    return settings, problems + policy_problems(settings.policy, settings.policies, str(file))


def _check(key: str, value: Any, file: Path) -> None:
    if key == "embedder":
        from engram.embedding import load_embedder

        load_embedder(value)
    if key == "policy":
        from engram.gates.policies import PRESETS
        from engram.settings import read_settings

        known = tuple(dict.fromkeys((*PRESETS, *read_settings(file)[0].policies)))
        if value not in known:
            raise InvalidInput(f"Unknown policy {value!r}; choose {', '.join(known)}")


def _draw_settings(chosen: dict[str, Any], *, only_value: bool = False) -> None:
    rows = [(key, str(value).lower() if isinstance(value, bool) else str(value)) for key, value in chosen.items()]
    if only_value:
        display.write(rows[0][1])
    else:
        display.fields(rows)


def demo(surface: Surface, fast: bool = False) -> None:
    """Carry out `engram demo`."""
    from engram.cli.demo import play

    play(surface, pause=not fast)


def version(surface: Surface) -> None:
    """Carry out `engram version`."""
    import platform

    from engram import __version__

    data = {"engram": __version__, "schema": SCHEMA_VERSION, "python": platform.python_version()}
    surface.answer(data, lambda: display.write(f"engram {__version__}"))
