"""Whatever is in a file, a reader answers with records, reasons or an error of its own: never with another."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.capture import import_source
from engram.capture.transcripts.chat_exports import is_chat_export, read_chats
from engram.model.errors import EngramError
from tests.capture.test_chat_exports import chatgpt, claude, node
from tests.capture.test_importing_formats import FEEDBACK, record
from tests.dialects.test_memory_v1 import EXAMPLE
from tests.dialects.test_notes import NOTE

WHOLE = {
    "memory.v1": ("memory.md", EXAMPLE),
    "notes": ("facts/a.md", NOTE),
    "markdown": ("a.md", FEEDBACK),
    "mem0": ("export.json", json.dumps([record("Likes tea"), record("Owns a cat", 2, categories=["pets"])])),
    "csv": ("t.csv", 'id,text,tags\n1,"Use tabs",a;b\n2,"Use\nspaces",c\n'),
}
CHATS = {
    "chatgpt": json.dumps([chatgpt(node("a", "root", "user", "Which tea?"), node("b", "a", "assistant", "Green."))]),
    "claude": json.dumps([claude(("human", "Which tea?"), ("assistant", "Green."))]),
}
cuts = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 12),
        st.sampled_from(("", "null", "[", "}", "---\n", "\x00", "9" * 400, "é", ": ", '"', "- ", "{}")),
    ),
    min_size=1,
    max_size=4,
)


def damaged(text: str, changes: list[tuple[float, int, str]], broken: bool) -> bytes:
    """The text with some stretches replaced, and perhaps a byte that no text has."""
    for where, length, instead in changes:
        at = int(where * len(text))
        text = text[:at] + instead + text[at + length :]
    return text.encode() + (b"\xff" if broken else b"")


@pytest.mark.parametrize("format_", list(WHOLE))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=cuts, broken=st.booleans())
def test_a_damaged_file_gives_records_reasons_or_an_error_of_engram(
    tmp_path: Path, format_: str, changes: list[tuple[float, int, str]], broken: bool
) -> None:
    name, whole = WHOLE[format_]
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_bytes(damaged(whole, changes, broken))
    path = file if format_ in ("mem0", "csv") else tmp_path
    try:
        source = import_source.read(path, format_=format_)
    except EngramError:
        return
    assert all(reason for _, reason in source.skipped)


@pytest.mark.parametrize("format_", list(CHATS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=cuts, broken=st.booleans())
def test_a_damaged_export_of_chats_gives_turns_reasons_or_an_error_of_engram(
    tmp_path: Path, format_: str, changes: list[tuple[float, int, str]], broken: bool
) -> None:
    file = tmp_path / "conversations.json"
    file.write_bytes(damaged(CHATS[format_], changes, broken))
    is_chat_export(file)
    try:
        turns = [turn for chat in read_chats(file, format_, lambda *_: None) for turn in chat.turns]
    except EngramError:
        return
    assert all(turn.content and turn.role in ("user", "assistant") for turn in turns)
