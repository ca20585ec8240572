"""A memory in the person's own editor, as the YAML of its file."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from engram.cli.surface import Surface, message_of
from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import fields
from engram.model.memory import Memory

DEFAULT_EDITOR = "vi"
_HINT = "# Change what this memory says, save and leave the editor. Leave it unchanged to change nothing.\n"


def edit_fields(surface: Surface, memory: Memory) -> dict[str, Any]:
    """The fields that the person changed; {} for none. Raises `InvalidInput` where the text cannot be read, and says where it is."""
    if not os.environ.get("VISUAL") and not os.environ.get("EDITOR"):
        statement = surface.ask(f"  It says: {memory.statement}\n  Instead: ")
        return {"statement": statement} if statement else {}
    return edit_in_editor(memory)


def edit_in_editor(memory: Memory) -> dict[str, Any]:
    """The fields that a person changed in $VISUAL or $EDITOR."""
    from engram.dialects import engram_yaml

    folder = Path(tempfile.mkdtemp(prefix="engram-edit-"))
    path = folder / "memory.yaml"
    path.touch(0o600)
    path.write_text(_HINT + engram_yaml.dump([memory]), "utf-8")
    _run_editor(path)
    try:
        (after,) = engram_yaml.load(path.read_text("utf-8"), where=str(path))
    except (EngramError, OSError, ValueError) as error:
        told = message_of(error) if isinstance(error, (EngramError, OSError)) else str(error)
        raise InvalidInput(
            f"the edited memory cannot be read: {told}. Nothing was changed; your text is in {path}"
        ) from None
    path.unlink()
    folder.rmdir()
    return {
        one.name: getattr(after, one.name)
        for one in fields(Memory)
        if getattr(after, one.name) != getattr(memory, one.name)
    }


def _run_editor(path: Path) -> None:
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR)
    try:
        ended = subprocess.run([*command, str(path)], check=False).returncode
    except OSError as error:
        raise InvalidInput(
            f"cannot start {command[0]!r} ({error.strerror}); set $EDITOR, or give --statement TEXT"
        ) from None
    if ended:
        raise InvalidInput(f"{command[0]} ended with {ended}; nothing was changed. Your text is in {path}")
