"""trust: let a repository's own memories count, after reading them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from engram.cli.declared import Argument, Option
from engram.cli.surface import Surface
from engram.cli.verbs.options import Yes
from engram.model.errors import InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    from engram.store.files.store import FilesStore
    from engram.store.files.team import TeamFile

Directory = Annotated[Path | None, Argument("[DIR]", "A directory of the repository. Default: this one.")]
Revoke = Annotated[bool, Option("--revoke", help="Trust nothing of it any more.")]


def trust(surface: Surface, directory: Directory = None, revoke: Revoke = False, yes: Yes = False) -> None:
    """Trust a repository's own memories (.engram/).

    What it holds now is listed and, once confirmed, counts; anything that changes later must be trusted again. Where nobody
    can be asked, --yes confirms; without it nothing is trusted and the exit code is 2.
    """
    from engram.store.files import team

    place = (directory or Path.cwd()).absolute()
    with surface.memory(directory=place) as mem:
        store = files_store(mem)
        surface.said |= set(store.warnings)
        if revoke:
            team.distrust(store, place)
            surface.answer({"trusted": [], "revoked": True}, lambda: None)
            surface.hint("engram: nothing of it is trusted any more")
            return
        folder = _team_folder(place)
        waiting = [file for file in team.team_files(store.parts, folder) if not file.trusted]
        readable = [file for file in waiting if not file.error]
        surface.answer(
            {"waiting": [_file_data(file) for file in waiting], "trusted": yes}, lambda: _draw(waiting, folder)
        )
        if not readable:
            surface.hint("engram: everything here that can be read is trusted already")
        elif not yes and not surface.person:
            raise InvalidInput("nothing was trusted; read what is listed, then add --yes to trust it")
        elif yes or surface.confirm(f"Trust these {len(readable)} file(s)?"):
            _trust_exactly(store, place, readable)
            surface.hint(f"engram: trusted {len(readable)} file(s); `engram trust --revoke` takes it back")
        else:
            surface.hint("engram: nothing was trusted")


def files_store(mem: Any) -> "FilesStore":
    """The store as files; team stores and journals exist nowhere else."""
    from engram.store.files.store import FilesStore

    if not isinstance(mem.store, FilesStore):
        raise InvalidInput(
            "a team's memories are files in its repository, which a server's store does not read; name a store of files "
            "with --home DIR, or take them in with `engram import DIR/.engram/engrams`"
        )
    return mem.store


def _team_folder(place: Path) -> Path:
    from engram.store.scope_of import team_folder

    folder = team_folder(place)
    if folder is None:
        raise NotFound(f"{place} lies in no repository with a team store (.engram/engrams)")
    return folder


def _trust_exactly(store: "FilesStore", place: Path, listed: "list[TeamFile]") -> None:
    """Trust what was listed and nothing that came after: a pull may run while a person reads."""
    from engram.store.files import team

    now = {
        file.digest for file in team.team_files(store.parts, _team_folder(place)) if not file.trusted and not file.error
    }
    if now != {file.digest for file in listed}:
        raise Refused("the files changed while you read them; nothing was trusted. Run `engram trust` again")
    team.trust(store, place)


def _file_data(file: "TeamFile") -> dict[str, Any]:
    return {
        "path": str(file.path),
        "error": file.error,
        "memories": [{"id": m.id, "type": m.type, "scope": m.scope, "statement": m.statement} for m in file.memories],
    }


def _draw(waiting: "list[TeamFile]", folder: Path) -> None:
    from engram.cli import drawing
    from engram.cli.drawing import Column
    from engram.cli.plain_text import line

    rows: list[list[drawing.Cell]] = []
    for file in waiting:
        name = str(file.path.relative_to(folder))
        rows += [[(m.id, "cyan"), m.type, m.scope, line(m.statement)] for m in file.memories]
        if file.error:
            rows.append([(name, "red"), ("unreadable", "red"), "", line(file.error)])
    if rows:
        drawing.table([Column("id"), Column("type"), Column("scope", "bright_black"), Column("says", grows=True)], rows)
