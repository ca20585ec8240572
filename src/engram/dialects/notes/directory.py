"""A directory of notes: which of its files are memories, read and written."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path

from engram.dialects.markdown_files import markdown_files, markdown_text
from engram.dialects.notes.note import note_of, read_note
from engram.dialects.notes.note_file import parse_note, render_note
from engram.dialects.source import ImportSource, origin_of_path, without_origin
from engram.disk import make_folder, remove_leftovers, replace_file
from engram.model.errors import EngramError, InvalidInput
from engram.model.memory import Memory

FOLDERS = ("facts", "corrections", "procedures", "reasoning-traces", "artifacts", "archive", "cold")
"""Where memories are; the others hold what is derived from them, or about the program itself."""
_CATEGORY = re.compile(r"^category:", re.MULTILINE)
_ENOUGH_TO_TELL = 20
"""Files that are looked at to recognise a directory."""


def is_notes(path: Path) -> bool:
    """Whether a folder has this layout."""
    if not path.is_dir():
        return False
    return any(map(_has_note, _folders(path)))


def _has_note(folder: Path) -> bool:
    for file in islice(markdown_files(folder, []), _ENOUGH_TO_TELL):
        try:
            if _CATEGORY.search(markdown_text(file)[:4096]):
                return True
        except EngramError:
            continue
    return False


def read_notes(path: Path) -> ImportSource:
    """Read every note of a directory; what cannot be read is named. Raises `InvalidInput` if there is none."""
    if not path.is_dir():
        raise InvalidInput(f"{path} is a file; give the directory that holds facts/ and corrections/")
    source = ImportSource(origin=origin_of_path("import", path), whole=True)
    others: dict[str, int] = {}
    for file in markdown_files(path, source.skipped):
        place = file.relative_to(path).as_posix()
        top = place.split("/")[0]
        if "/" not in place or top not in FOLDERS:
            others[top] = others.get(top, 0) + 1
            continue
        try:
            keys, body = parse_note(markdown_text(file))
            memory = read_note(keys, body, name=file.stem, folder=place.rpartition("/")[0])
        except EngramError as error:
            source.skipped.append((place, str(error)))
            continue
        source.add(place, memory)
    source.not_read += [f"{name}: {count} Markdown files (not memories)" for name, count in sorted(others.items())]
    if not source.found and not source.skipped:
        raise InvalidInput(f"{path} contains no notes; they are below {', '.join(FOLDERS)}")
    return source


def refuse_overwriting(directory: Path, names: Collection[str], *, force: bool) -> None:
    """Raise `InvalidInput` where a note of one of these names is there already, in any folder, or a link leads out."""
    if not directory.is_dir():
        return
    for top in _folders(directory):
        for place in (top, *top.rglob("*")):
            if place.is_symlink() and place.is_dir() and not place.resolve().is_relative_to(directory.resolve()):
                raise InvalidInput(f"{place} leads out of {directory}; remove the link")
    taken = next((file for file in _notes_below(directory) if file.stem in names), None)
    if taken is not None and not force:
        raise InvalidInput(f"{taken} already exists; choose another directory, or add --force to replace it")


def write_notes(
    directory: Path,
    memories: Sequence[Memory],
    names: Mapping[str, str],
    *,
    force: bool,
    report: Callable[[str, int, int], None],
) -> None:
    """Write each memory as the note that `names` gives its id; with `force`, in place of the one that is there.

    Raises `InvalidInput` where a file is in the way, before anything is written.
    """
    taken = set(names.values())
    refuse_overwriting(directory, taken, force=force)
    files: dict[Path, str] = {}
    for memory in memories:
        folder, keys, body = note_of(memory, names[memory.id], lambda target: names.get(target, without_origin(target)))
        files[directory / folder / f"{names[memory.id]}.md"] = render_note(keys, body)
    blocked = next((file for file in files if file.exists() or file.is_symlink()), None)
    if blocked is not None and not force:
        raise InvalidInput(f"{blocked} already exists; choose another directory, or add --force to replace it")
    moved = [file for file in _notes_below(directory) if file.stem in taken and file not in files]
    for place in {file.parent for file in files}:
        make_folder(place)
        remove_leftovers(place)
    for number, (file, text) in enumerate(files.items(), 1):
        replace_file(file, text.encode(), durable=False)
        report("Exporting", number, len(files))
    for file in moved:  # the same note under the folder it belonged in before
        file.unlink(missing_ok=True)


def _folders(directory: Path) -> list[Path]:
    return [folder for name in FOLDERS if (folder := directory / name).is_dir()]


def _notes_below(directory: Path) -> list[Path]:
    return [file for folder in _folders(directory) for file in markdown_files(folder, [])]
