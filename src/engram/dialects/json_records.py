"""Records as JSON, for programs that would rather not read YAML."""

import json
from collections.abc import Sequence
from typing import Any

from engram.dialects.record import to_mapping
from engram.model.memory import Memory


def dump_json(memories: Sequence[Memory]) -> str:
    """Memories as a JSON list, one record per line, so that a diff shows which one changed."""
    lines = [_line(to_mapping(memory)) for memory in memories]
    return "[\n" + ",\n".join(lines) + "\n]\n" if lines else "[]\n"


def _line(record: dict[str, Any]) -> str:
    text = json.dumps(record, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(record)
    return text
