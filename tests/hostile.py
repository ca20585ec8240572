"""Texts that make slow rules slow: one piece over and over, and the rules that read whatever a user or a file says."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from engram.capture.documents.chunk import chunks_of
from engram.capture.documents.facts import fact_spans
from engram.capture.documents.source import kind_of
from engram.capture.extraction import extract
from engram.dialects import engram_yaml
from engram.gates.instructions import injection_problem
from engram.gates.policies import policy_named
from engram.gates.proposal import GateSettings, statement_problem
from engram.gates.quality import QUALITY_GATES, pattern, triviality_problem
from engram.gates.secrets.scan import secrets_problem
from engram.model.errors import EngramError
from engram.model.memory import Memory
from engram.model.records import Event
from engram.readers.data import parse_json
from engram.recall.parse import parse
from engram.sessions.summary_lines import lines_of
from engram.text import content_hash, display, entities, statements, tokens
from engram.text.time import dates
from engram.text.time.windows import time_phrase

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)

PIECES = (
    *"/#*-=_.,:;!?'\"`~@$%^&()[]{}<>|\\+ \t\n0aA",
    "a ", "1 ", "a.", "1.", "1,", "1-", "a-", "A ", "# ", "#\n", "- \n", "| ", "|\n", "\n\n", "\r\n", " \n", "```\n", "~~~\n", "<!--",
    "-->", "[[", "[a](", "**", "{#", "/*", "//", "---\n", "===\n", '"""', '"""a', "a'", "'s ", "I ", "not ", "and ", "never ", "must ",
    "a b ", "Aa ", "A.", "é", "漢", "漢。", "a\u0301", "👩\u200d👧", "\u200b", "\ud800", "http://", "a@", "a@a.", "a=", "a: ", "password ",
    "password: ", "key=", "sk-", "AKIA", "eyJ", "-----BEGIN ", "-----BEGIN A-----", "2020-01-01 ", "2020-", "Monday ", "last ", "1 day ",
    "in ", "at 5 ", "10:", "within ", "(1) ", "1) ", "ARTICLE ", "Section 1.", "$1", "€", "1%", "%20", "ENG-", "EVT-", "project:", "a/", "../",
    "@@ -1 +1 @@\n", "+a\n", "diff --git a/a b/b\n", "def a", "class A", "<a>", "</", "&lt;", "${", "\\\\", "x: y\n", "- x\n", "a? ", "a! ",
    "because ", "I prefer ", "my name is ", " - ", "…", "...", "&a ", "*a ", "!!a ", "? : ", "% ", "from now on ",
    "كلمة السر ", "пароль ", "密码", "パスワード", "never use ", "- [ ] ", "| a ", "@.", "@a.md ", "a*", "c2VjcmV0", "deadbeef", "a@b.co ",
    "https://a.co/b ", "&#x61;", "\u0301", "а", "` `` ", "<!-- engram:begin -->\n", "paths: a\n", "ENG-2026-0101-001 password: x1y2z3\n",
    "ﷺ", "Ǆ", "ǆ", "𝐀", "ﬃ", "½", "²", "㌖", "&#97;", "%61", "\\x61", "user:pw@", "pass=", "pin 4471 ", "pin: 1234, ", "Passwort ", "mot de passe ",
    "contraseña ", "şifre ", "รหัสผ่าน", "비밀번호 ", "рassword ", "the password is ", "login: a / b\n", "-p x1 ", "Bearer ", "Alice Smith ", "Dr. ",
    "I no longer ", "forget what I said about ", "remember that I ", "{\"a\": ", "[1, ", "null,", "ф", "ก", "각", "א", "ا", "١", "😀", "🇩🇪", "\U000e0041",
    "\u202e", "\ufeff", "\xad", "I\u0307", "aA1!", "0x1f ", "4111 1111 1111 1111 ", "DE89 3704 ", "abandon ", "12:30 ", "last week ", "next Tuesday at 5 ",
    "a_b ", "a1b2-c3d4 ", "capital R, then 5, ", "<b>", "> ", "1. a\n", "| a | b |\n", "x='y' ", "export A=", "-----BEGIN RSA PRIVATE KEY-----\n",
    "eyJhbGciOiJIUzI1NiJ9.", "ghp_", "xoxb-1-", "https://u:p@h/ ", "a" * 30 + " ", "Zx9Kq2Lm ", "0123456789abcdef ",
)  # fmt: skip
"""What is repeated; a text is one of them, or two in turn."""


def _as_statement(rule: Callable[[Memory], Any], text: str) -> None:
    rule(Memory("", text))


def _documents(kind: str, text: str) -> None:
    for chunk in chunks_of(text, kind=kind):
        fact_spans(text, chunk, kind)


def _quality(text: str) -> None:
    found = pattern(text)
    for _, gate in QUALITY_GATES:
        gate(found)


def _refusing(read: Callable[[str], Any], text: str) -> None:
    try:
        read(text)
    except (ValueError, EngramError):
        return


def _conversation(text: str) -> None:
    extract([{"role": "user", "content": text}], at=NOW)


def _summary(text: str) -> None:
    lines_of(Event("EVT-1", "s", 1, "user", text, NOW))


def _read(spans: Any) -> None:
    list(spans)


RULES: Mapping[str, Callable[[str], Any]] = {
    "shape": partial(_as_statement, lambda memory: statement_problem(memory, GateSettings())),
    "secrets": partial(_as_statement, secrets_problem),
    "instructions": partial(_as_statement, injection_problem),
    "triviality": partial(_as_statement, triviality_problem),
    "quality": _quality,
    "policy": lambda text: policy_named("default").apply(Memory("", text), typed=False),
    "extraction": _conversation,
    "summary": _summary,
    "look": kind_of,
    **{f"document {kind}": partial(_documents, kind) for kind in ("markdown", "text", "code", "diff")},
    "question": lambda text: parse(text, NOW),
    "time phrase": lambda text: time_phrase(text, NOW),
    "tokens": tokens.tokens,
    "query terms": tokens.query_terms,
    "entities": entities.entities,
    "numbers": statements.numbers,
    "polarity": statements.normalize_statement,
    "dates": lambda text: _read(dates.date_spans(text)),
    "content hash": content_hash.content_hash,
    "quote": display.quote_text,
    "yaml": partial(_refusing, engram_yaml.load),
    "json": partial(_refusing, parse_json),
}
"""Every gate, parser and splitter that reads what anyone may write."""
