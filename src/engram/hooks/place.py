"""The input, store and output of a hook: the harness's payload, the store with its owner's settings, and the answer."""

import contextlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import UnreadableData
from engram.model.lazy import cached_property, dataclass
from engram.readers.data import parse_json_object
from engram.store.home import CONFIG, Home, default_cache, default_root, expanded, open_home
from engram.store.hook_files import failure_logs, temporary_folders

if TYPE_CHECKING:
    from engram.hooks.memory_index import MemoryIndex
    from engram.store.scopes import ScopeLinks
    from engram.store.states import StateValue

SWEEP_SECONDS = 0.01
"""How long a hook looks for edited files."""
EDIT_PATIENCE = 0.5
"""How long it waits for other writers before it records the edits it found."""


class HookPlace:
    """The home of one store; nothing is opened or created until it is needed."""

    def __init__(self, home: str = "") -> None:
        self.root = expanded(Path(home) if home else default_root(), "the store").absolute()
        self.is_server = not home and bool(os.environ.get("ENGRAM_URL", "").strip())

    @property
    def logs(self) -> list[Path]:
        """The log files of failures: in the home or, if that cannot be written, in the cache or among the temporary files."""
        return failure_logs(self.root, default_cache().expanduser().absolute())

    @property
    def memos(self) -> list[Path]:
        """The folders of the sessions' memos, in the same places as `logs`."""
        return [self.root / "state" / "hooks", *(folder / "sessions" for folder in temporary_folders())]

    @property
    def is_paused(self) -> bool:
        """Whether the owner has paused Engram here."""
        return (self.root / "state" / "paused").exists()

    @property
    def exists(self) -> bool:
        """Whether there is a store."""
        return (self.root / "store.json").exists()

    @cached_property
    def home(self) -> Home | None:
        """The store's paths; None if there is no store. Raises `UnknownVersion` if a newer Engram wrote it."""
        if not self.exists:
            return None
        return open_home(self.root, create=False)

    @property
    def prompt_recall(self) -> bool:
        """The setting `hooks.prompt_recall`; off if the file that sets it has a mistake, since off may have been intended."""
        try:
            data = (self.root / CONFIG).read_bytes()
        except OSError:
            return True
        if b"prompt_recall" not in data:
            return True
        from engram.settings import read_settings

        settings, problems = read_settings(self.root / CONFIG)
        return settings.prompt_recall and not problems

    @property
    def config_problem(self) -> str:
        """The first mistake in the owner's settings; "" if there is none."""
        if not (self.root / CONFIG).exists():
            return ""
        from engram.settings import read_settings

        problems = read_settings(self.root / CONFIG)[1]
        if not problems:
            return ""
        return problems[0] if self.prompt_recall else f"{problems[0]}; prompts get no memories before that is mended"

    def index(self, seconds: float = SWEEP_SECONDS) -> "MemoryIndex | None":
        """The open index, including people's edits; None if it does not exist yet, or is only an empty file.

        Looking for edited files takes at most `seconds`, enough for several thousand files. Raises `StoreCorrupt` or
        `StoreReadOnly` if the index cannot be read.
        """
        index = self._open_index()
        if index is not None and self.home is not None and index.has_edits(self.home, seconds):
            index.close()
            self._read_edits(self.home)
            index = self._open_index()
        return index

    def _read_edits(self, home: Home) -> None:
        """Index edited files without vectors; the next process with an embedder adds them."""
        from engram.model.errors import EngramError
        from engram.store.files.store.backend import FilesStore

        # If edits cannot be recorded, as on a read-only disk, a hook answers from the current index.
        with contextlib.suppress(EngramError):
            store = FilesStore(home, deadline=EDIT_PATIENCE)
            try:
                store.read_edits()
            finally:
                store.close()

    def _open_index(self) -> "MemoryIndex | None":
        if self.home is None or not (self.home.index / "index.db").exists():
            return None
        import sqlite3

        from engram.hooks.memory_index import MemoryIndex

        try:
            index = MemoryIndex(self.home.index)
            if index.has_tables:
                return index
            index.close()
            return None
        except sqlite3.Error as error:
            from engram.store.sqlite.connection import index_error

            raise index_error(error, self.home.index / "index.db") from None

    def scopes(self, directory: Path) -> tuple[str, ...]:
        """The scopes that a session in a directory sees."""
        from engram.store.scopes import scopes_seen, trusted_of

        return scopes_seen(None, directory, trusted_of(self.root / "state", directory), self.links)

    @cached_property
    def links(self) -> "ScopeLinks":
        """The scopes that the owner has linked to projects."""
        from engram.store.scopes import LINKS_STATE, links_of

        return links_of(self.state(LINKS_STATE))

    def state(self, name: str) -> "StateValue":
        """A named state of the store; {} if there is none."""
        from engram.store.files.states.named import load_state

        return load_state(self.home, name) if self.home is not None else {}


MAX_HOOK_TEXT_CHARS = 9_500
"""Maximum characters of the text that a hook adds; Claude Code cuts at 10,000."""
_LONGEST_PATH = 4_096


class UnreadablePayload(ValueError):
    """A hook's input does not have the format that the harness documents."""


@dataclass(frozen=True, slots=True)
class HookPayload:
    """The payload fields that Engram's hooks use; "" for missing ones."""

    event: str = ""
    """The harness's own name for the event."""
    session: str = ""
    transcript: str = ""
    cwd: str = ""
    source: str = ""
    prompt: str = ""
    commands: tuple[str, ...] = ()
    """The shell commands that tools ran without an error."""
    is_subagent: bool = False


def read_payload(data: bytes) -> HookPayload:
    """Parse a payload. Raises `UnreadablePayload` for anything but a JSON object."""
    try:
        loaded = parse_json_object(data, characters="repaired")
    except UnreadableData as error:
        raise UnreadablePayload(f"the hook's input is not JSON that can be read ({error})") from None
    return HookPayload(
        event=_text_field(loaded, "hook_event_name"),
        session=_text_field(loaded, "session_id")[:200],
        transcript=_text_field(loaded, "transcript_path")[:_LONGEST_PATH],
        cwd=_text_field(loaded, "cwd")[:_LONGEST_PATH],
        source=_text_field(loaded, "source"),
        prompt=_text_field(loaded, "prompt"),
        commands=tuple(_commands_run(loaded)),
        is_subagent=bool(loaded.get("agent_id")),
    )


def _text_field(fields: dict[str, Any], name: str) -> str:
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def _commands_run(fields: dict[str, Any]) -> list[str]:
    """The commands of one tool (PostToolUse), or of a batch of tools (PostToolBatch)."""
    batch = fields.get("tool_calls")
    calls = batch if isinstance(batch, list) else [fields]
    inputs = [call.get("tool_input") for call in calls if isinstance(call, dict) and not _has_failed(call)]
    return [_text_field(one, "command") for one in inputs if isinstance(one, dict)]


def _has_failed(call: dict[str, Any]) -> bool:
    return _text_field(call, "tool_response").startswith(("Exit code ", "<tool_use_error>"))


def answer(event: str, text: str) -> str:
    """The JSON that adds a text to the session; "" for an empty text."""
    if not text:
        return ""
    from engram.text.display import visible_json

    if len(text) > MAX_HOOK_TEXT_CHARS:
        text = text[:MAX_HOOK_TEXT_CHARS].rpartition("\n")[0]
    fields = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return visible_json(json.dumps(fields, ensure_ascii=False)) + "\n"
