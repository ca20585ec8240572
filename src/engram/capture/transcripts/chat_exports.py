"""Exports of chats, as transcripts: ChatGPT's and Claude's `conversations.json`, alone, in its folder, or in the zip it came in.

The file is read one conversation at a time, and a zip is never unpacked: neither a long history nor a zip bomb fills
memory or disk.
"""

import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from engram.agents.transcripts.records import key_of, moment
from engram.agents.transcripts.session import Role, Transcript, TranscriptTurn, problem_of
from engram.disk import reading
from engram.model.errors import InvalidInput, UnreadableData
from engram.model.lazy import dataclass
from engram.readers.json_list import json_items
from engram.sessions.observations import make_storable

LARGEST_MEMBER = 4 * 1024 * 1024 * 1024
"""The maximum unpacked size in bytes of a file in a zip."""
MOST_PACKED = 1000
"""The maximum compression ratio of a file in a zip; text compresses about tenfold."""
_MEMBER = re.compile(r"(?:.*/)?conversations(?:[-_]?[0-9]{1,4})?\.json")
_Conversation = Mapping[str, Any]
Named = Callable[[str, str], None]
"""Called with what could not be read, and why."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """One program's export: how to recognise a conversation, and how to read its turns."""

    name: str
    mark: str
    """The key that only its conversations have."""
    ids: tuple[str, ...]
    turns: Callable[[_Conversation], list[TranscriptTurn]]

    def transcript(self, conversation: _Conversation, number: int, path: Path) -> Transcript:
        """A conversation as a transcript. Raises `InvalidInput` if it has no id."""
        found = next((value for key in self.ids if isinstance(value := conversation.get(key), str) and value), "")
        if not found:
            raise InvalidInput(f"conversation {number} has no id")
        return Transcript(self.name, "", "", f"{self.name}-{found[:100]}", str(path), self.turns(conversation))


def is_chat_export(path: Path) -> bool:
    """Whether a path is a `conversations.json` in a known format, its folder, or a zip with one."""
    try:
        return bool(chat_format_of(path))
    except (InvalidInput, OSError):
        return False


def chat_format_of(path: Path) -> str:
    """The format of an export: `chatgpt`, `claude`, or "" for none. Raises `InvalidInput` and `OSError`."""
    file = path / "conversations.json" if path.is_dir() else path.resolve()
    if not file.is_file() or file.suffix.lower() not in (".json", ".zip"):
        return ""
    for _, stream in _streams(file):
        first = next(iter(json_items(stream, file.name)), None)
        return next((one.name for one in CHAT_FORMATS.values() if isinstance(first, Mapping) and one.mark in first), "")
    return ""


def read_chats(path: Path, name: str, named: Named) -> Iterator[Transcript]:
    """The conversations of an export, oldest file first; one that cannot be read is named. Raises `InvalidInput`."""
    chosen = CHAT_FORMATS[name]
    file = path / "conversations.json" if path.is_dir() else path.resolve()
    if not file.is_file():
        raise InvalidInput(f"{path} has no conversations.json")
    for place, stream in _streams(file):
        for number, conversation in enumerate(json_items(stream, place), 1):
            where = f"{place} conversation {number}"
            if isinstance(conversation, UnreadableData):
                named(where, conversation.reason)
                continue
            if not isinstance(conversation, Mapping) or chosen.mark not in conversation:
                named(where, f"is no conversation of {name}: it has no {chosen.mark}")
                continue
            try:
                transcript = chosen.transcript(conversation, number, path)
            except Exception as error:  # a bad conversation does not stop the others
                named(where, problem_of(error))
                continue
            yield transcript


# -- files


def _streams(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The `conversations.json` of an export, open: one, or those in a zip, which newer exports split."""
    if file.suffix.lower() != ".zip":
        with reading(file) as stream:
            yield file.name, stream
        return
    with _open_zip(file) as archive:
        members = sorted(
            (one for one in archive.infolist() if _MEMBER.fullmatch(one.filename)), key=lambda one: one.filename
        )
        if not members:
            raise InvalidInput(f"{file} has no conversations.json")
        for member in members:
            _refuse_bomb(member, file)
            with archive.open(member) as stream:
                yield f"{file.name}/{member.filename}", stream


@contextmanager
def _open_zip(file: Path) -> Iterator[zipfile.ZipFile]:
    try:
        with reading(file) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except (zipfile.BadZipFile, NotImplementedError, EOFError) as error:
        raise UnreadableData(f"cannot be read as a zip: {error}; download it again", where=str(file)) from None
    except RuntimeError as error:  # zipfile's error for a password
        raise InvalidInput(f"{file} cannot be read: {error}; unpack it, and import its conversations.json") from None


def _refuse_bomb(member: zipfile.ZipInfo, file: Path) -> None:
    size, packed = member.file_size, max(member.compress_size, 1)
    if size > LARGEST_MEMBER or size > packed * MOST_PACKED:
        raise InvalidInput(f"{member.filename} in {file} unpacks to {size:,} bytes from {packed:,}; it is not read")


# -- ChatGPT


def _chatgpt_turns(conversation: _Conversation) -> list[TranscriptTurn]:
    """The turns on the branch that was shown last, from its beginning."""
    nodes = conversation.get("mapping")
    if not isinstance(nodes, Mapping):
        raise InvalidInput("its mapping is no block of messages")
    turns: list[TranscriptTurn] = []
    for key in _branch(nodes, conversation.get("current_node")):
        message = nodes[key].get("message")
        if isinstance(message, Mapping) and (turn := _chatgpt_turn(message, key)) is not None:
            turns.append(turn)
    return _number_turns(turns)


def _branch(nodes: Mapping[str, Any], current: Any) -> list[str]:
    """The keys from the root to the current node or, if there is none, to the newest message."""
    if not isinstance(current, str) or current not in nodes:
        current = max(nodes, key=lambda key: _seconds(_message(nodes[key]).get("create_time")), default="")
    path: list[str] = []
    seen: set[str] = set()
    while isinstance(current, str) and current not in seen and isinstance(nodes.get(current), Mapping):
        seen.add(current)
        path.append(current)
        current = nodes[current].get("parent")
    return path[::-1]


def _message(node: Any) -> Mapping[str, Any]:
    found = node.get("message") if isinstance(node, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _chatgpt_turn(message: Mapping[str, Any], key: str) -> TranscriptTurn | None:
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, Mapping) else None
    metadata = message.get("metadata")
    hidden = isinstance(metadata, Mapping) and (
        metadata.get("is_visually_hidden_from_conversation") or metadata.get("is_user_system_message")
    )
    addressed = message.get("recipient") in (None, "all")
    if role not in ("user", "assistant") or not isinstance(content, Mapping) or hidden or not addressed:
        return None
    if content.get("content_type") not in ("text", "multimodal_text"):
        return None
    text = _join_parts(content.get("parts"))
    return _turn(role, text, _from_seconds(message.get("create_time")), key_of(message.get("id"), make_storable(key)))


def _join_parts(parts: Any) -> str:
    return "\n".join(found for part in parts if (found := _part(part))) if isinstance(parts, list) else ""


def _part(part: Any) -> str:
    """The text of a part; for other media, only a note that it was there."""
    if isinstance(part, str):
        return part.strip()
    if not isinstance(part, Mapping):
        return ""
    if isinstance(part.get("text"), str):
        return str(part["text"]).strip()
    kind = str(part.get("content_type") or part.get("type") or "attachment").partition("_")[0]
    return f"[{kind[:20]}]"


# -- Claude


def _claude_turns(conversation: _Conversation) -> list[TranscriptTurn]:
    messages = conversation.get("chat_messages")
    if not isinstance(messages, list):
        raise InvalidInput("its chat_messages are no list")
    turns: list[TranscriptTurn] = []
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping):
            continue
        role: Role | None = {"human": "user", "assistant": "assistant"}.get(str(message.get("sender")))  # type: ignore[assignment]
        turn = _turn(
            role, _claude_text(message), moment(message.get("created_at")), key_of(message.get("uuid"), str(number))
        )
        if turn is not None:
            turns.append(turn)
    return _number_turns(turns)


def _claude_text(message: Mapping[str, Any]) -> str:
    blocks = message.get("content")
    blocks = blocks if isinstance(blocks, list) else []
    texts = [str(block["text"]).strip() for block in blocks if _is_text(block)]
    text = "\n".join(filter(None, texts)) or (message["text"].strip() if isinstance(message.get("text"), str) else "")
    files = [
        f"[file {one['file_name'][:100]}]"
        for key in ("attachments", "files")
        if isinstance(message.get(key), list)
        for one in message[key]
        if isinstance(one, Mapping) and isinstance(one.get("file_name"), str)
    ]
    return "\n".join(filter(None, (text, *files)))


def _is_text(block: Any) -> bool:
    return isinstance(block, Mapping) and block.get("type") == "text" and isinstance(block.get("text"), str)


# -- both


def _turn(role: Role | None, text: str, at: datetime | None, key: str) -> TranscriptTurn | None:
    return TranscriptTurn(role, text, at, key[:200]) if role is not None and text else None


def _number_turns(turns: list[TranscriptTurn]) -> list[TranscriptTurn]:
    """The turns with their positions in the conversation, and keys that are unique in it."""
    seen: dict[str, int] = {}
    numbered = []
    for position, turn in enumerate(turns, 1):
        seen[turn.key] = times = seen.get(turn.key, 0) + 1
        key = turn.key if times == 1 else f"{turn.key} {times}"
        numbered.append(TranscriptTurn(turn.role, turn.content, turn.at, key, position))
    return numbered


def _seconds(value: Any) -> float:
    try:
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    except OverflowError:
        return 0.0


def _from_seconds(value: Any) -> datetime | None:
    return moment(_seconds(value) * 1000) if _seconds(value) > 0 else None


CHAT_FORMATS = {
    one.name: one
    for one in (
        ChatFormat("chatgpt", "mapping", ("conversation_id", "id"), _chatgpt_turns),
        ChatFormat("claude", "chat_messages", ("uuid", "id"), _claude_turns),
    )
}
