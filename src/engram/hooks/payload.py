"""What a harness tells a hook on stdin, and what a hook answers."""

import json
from typing import Any

from engram.model.errors import UnreadableData
from engram.model.lazy import dataclass
from engram.readers.json_reader import parse_json_object

MAX_HOOK_TEXT_CHARS = 9_500
"""Characters of the text a hook adds; Claude Code cuts at 10,000."""
_LONGEST_PATH = 4_096


class UnreadablePayload(ValueError):
    """The input of a hook is not what the harness promises."""


@dataclass(frozen=True, slots=True)
class HookPayload:
    """The fields that Engram's hooks use; "" for what was not given."""

    event: str = ""
    """The harness's own name of the event."""
    session: str = ""
    transcript: str = ""
    cwd: str = ""
    source: str = ""
    prompt: str = ""
    commands: tuple[str, ...] = ()
    """The shell commands that tools ran without an error."""
    is_subagent: bool = False


def read_payload(data: bytes) -> HookPayload:
    """The payload in some bytes. Raises `UnreadablePayload` for anything but a JSON object."""
    try:
        loaded = parse_json_object(data, characters="repaired")
    except UnreadableData as error:
        raise UnreadablePayload(f"the hook's input is not JSON that can be read ({error})") from None
    return HookPayload(
        event=_text(loaded, "hook_event_name"),
        session=_text(loaded, "session_id")[:200],
        transcript=_text(loaded, "transcript_path")[:_LONGEST_PATH],
        cwd=_text(loaded, "cwd")[:_LONGEST_PATH],
        source=_text(loaded, "source"),
        prompt=_text(loaded, "prompt"),
        commands=tuple(_commands(loaded)),
        is_subagent=bool(loaded.get("agent_id")),
    )


def _text(fields: dict[str, Any], name: str) -> str:
    found = fields.get(name)
    return found if isinstance(found, str) else ""


def _commands(fields: dict[str, Any]) -> list[str]:
    """Of one tool (PostToolUse), or of a batch of them (PostToolBatch)."""
    batch = fields.get("tool_calls")
    calls = batch if isinstance(batch, list) else [fields]
    inputs = [call.get("tool_input") for call in calls if isinstance(call, dict) and not _has_failed(call)]
    return [_text(one, "command") for one in inputs if isinstance(one, dict)]


def _has_failed(call: dict[str, Any]) -> bool:
    return _text(call, "tool_response").startswith(("Exit code ", "<tool_use_error>"))


def answer(event: str, text: str) -> str:
    """The JSON that adds a text to the session; "" for none."""
    if not text:
        return ""
    from engram.text.display import visible_json

    if len(text) > MAX_HOOK_TEXT_CHARS:
        text = text[:MAX_HOOK_TEXT_CHARS].rpartition("\n")[0]
    fields = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}}
    return visible_json(json.dumps(fields, ensure_ascii=False)) + "\n"
