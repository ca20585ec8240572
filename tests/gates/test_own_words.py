"""Nothing that Engram itself writes looks like a secret: its ids, its messages, and the paths and keys they name."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import engram
from engram.gates.secrets.scan import find_secrets, redact
from tests.tables import table

SOURCES = Path(engram.__file__).parent
IDS = (
    "ENG-2026-0411-017",
    "ENG-X-7d1f00c2a9b4e815",
    "EVT-20260411-9f31c2d07ab4",
    "TASK-20260411-101500-4efa28",
    "CKP-20260411-101500-4efa28-002",
    "S-20260411-101500-4efa28",
)
NAMED = ("EVT-20260411-9f31c2d07ab4", "'k1'", "/home/ana/.engram/store")
AROUND = (
    "the key 'k1' belongs to event {}",
    "the key {} is taken",
    "the secret in {} was redacted",
    "token: {}",
    "{} opens with {}",
    "log in and approve {}",
)


def messages() -> Iterator[str]:
    """Every error with a value in it that the source raises, once with each value."""
    for path in sorted(SOURCES.glob("**/*.py")):
        for raised in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(raised, ast.Raise) and raised.exc is not None:
                for node in ast.walk(raised.exc):
                    yield from _filled(node) if isinstance(node, ast.JoinedStr) else ()


def _filled(node: ast.JoinedStr) -> Iterator[str]:
    parts = [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
    if (None, None) in pairwise(parts):
        return
    for value in NAMED:
        yield "".join(value if part is None else part for part in parts)


@table("id", IDS)
def test_an_id_is_never_redacted(id: str) -> None:
    assert [words for words in AROUND if id not in redact(words.format(id, id))[0]] == []


def test_what_continues_an_id_is_no_part_of_it() -> None:
    assert find_secrets("password: EVT-20260411-9f31c2d07ab4Xq9!") != []


def test_no_message_is_redacted() -> None:
    assert [message for message in messages() if find_secrets(message)] == []
