"""`engram hook`: events of a harness, and keyword recall, in a few dozen milliseconds with the standard library alone.

A hook runs before every prompt, so its start time matters: this path imports neither numpy nor rich nor pydantic. It
reads the existing index, with the same terms, weights and filters as `engram search --mode keyword` (a test compares
them). It does not read edited files; the next ordinary verb does. Memories given to a session are recorded as used;
those `recall` lists are not.
"""

import json
import os
import sqlite3
import sys
import time
from pathlib import Path

from engram.cli.surface import Surface
from engram.hooks.runner import SECONDS, run
from engram.model.arguments import MAX_LIMIT
from engram.model.errors import EngramError, Refused, UnreadableData
from engram.readers.data import parse_json_object
from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.files.states import named as named_states
from engram.store.home import open_home
from engram.store.scopes import LINKS_STATE, links_of, scopes_seen, trusted_of, working_directory
from engram.store.sqlite.search import document_frequencies
from engram.text import display
from engram.text.display import visible_json
from engram.text.tokens import prune_terms, query_terms
from engram.text.translation import translation

PAUSED_WARNING = "Engram is paused; `engram resume` ends that"


def hook(surface: Surface, action: str, text: list[str] | None = None, limit: int = 5, cwd: str = "") -> None:
    """Carry out `engram hook`."""
    if action in SECONDS:
        run(action, str(surface.home or ""))
        surface.answered = True
        return
    if action != "recall":
        # Not a usage error, because a harness takes its exit code 2 as an order to block the session.
        raise Refused(f"Unknown action {action!r}; choose recall, {', '.join(SECONDS)}")
    payload = _payload(text or [])
    place = cwd or payload.get("cwd") or working_directory()
    answer = recall(str(payload.get("prompt", "")), str(place), str(surface.home or ""), min(limit, MAX_LIMIT))
    sys.stdout.write(visible_json(json.dumps(answer, ensure_ascii=False)) + "\n")
    surface.answered = True


def _payload(words: list[str]) -> dict[str, object]:
    if words:
        return {"prompt": " ".join(words)}
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        return parse_json_object(text, characters="repaired")
    except UnreadableData:
        return {"prompt": text}


def recall(prompt: str, cwd: str, home: str = "", limit: int = 5) -> dict[str, object]:
    """Memories that share words with the prompt, best first, as plain data."""
    if not home and os.environ.get("ENGRAM_URL", "").strip():
        return _recall_on_server(prompt, Path(cwd), limit)
    try:
        place = open_home(Path(home) if home else None, create=False)
        if (place.state / "paused").exists():
            return _answer(prompt, [], PAUSED_WARNING)
        index = place.index / "index.db"
        database = sqlite3.connect(f"{index.as_uri()}?mode=ro", uri=True, timeout=1, isolation_level=None)
    except (EngramError, OSError, sqlite3.Error) as error:
        return _answer(prompt, [], f"no memory to ask yet: {error}")
    try:
        links = links_of(named_states.load_state(place, LINKS_STATE))
        scopes = scopes_seen(None, Path(cwd), trusted_of(place.state, Path(cwd)), links)
        return _answer(prompt, _hits(database, prompt, scopes, limit))
    except sqlite3.Error as error:
        from engram.store.sqlite.connection import index_error

        return _answer(prompt, [], str(index_error(error, index)))
    finally:
        database.close()


def _recall_on_server(prompt: str, cwd: Path, limit: int) -> dict[str, object]:
    """Like `recall`, for a server's store. It uses the ordinary engine, because there is no local index to read."""
    from engram.client import Engram
    from engram.recall.query import may_answer
    from engram.store.records import image
    from engram.store.scopes import scope_links
    from engram.store.states import is_paused

    try:
        with Engram.open(create=False, directory=cwd, embedder="none") as mem:
            if is_paused(mem.store):
                return _answer(prompt, [], PAUSED_WARNING)
            if not prompt.strip() or limit < 1:
                return _answer(prompt, [])
            scopes = scopes_seen(None, cwd, mem.store.trusted_here(cwd), scope_links(mem.store))
            found = mem.search(prompt[:10_000], limit=limit, mode="keyword", scope=scopes, kinds=("memory",))
            now = mem.upkeep.clock()
    except (EngramError, OSError) as error:
        return _answer(prompt, [], f"no memory to ask: {error}")
    # Prompts get current memories only.
    hits = [(hit.score, hit.memory) for hit in found if hit.memory is not None and not may_answer(hit, now)]
    return _answer(prompt, [_hit(memory.id, score, image(memory)) for score, memory in hits])


def _answer(prompt: str, hits: list[dict[str, object]], warning: str = "") -> dict[str, object]:
    text = "\n".join(_line(hit) for hit in hits)
    answer: dict[str, object] = {"query": prompt, "mode": "keyword", "hits": hits, "text": text}
    return {**answer, "warnings": [display.notice(warning)]} if warning else answer


def _line(hit: dict[str, object]) -> str:
    return f"[{display.safe_word(str(hit['id']))}] {display.safe_word(str(hit['type']))}: {display.quote_text(str(hit['text']))}"


def _hits(database: sqlite3.Connection, prompt: str, scopes: tuple[str, ...], limit: int) -> list[dict[str, object]]:
    prompt = prompt[:10_000]
    terms = prune_terms(document_frequencies(database, query_terms(f"{prompt} {translation(prompt)}")))
    if not terms or limit < 1:
        return []
    now = time.time()
    weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS)
    rows = database.execute(
        f"SELECT d.id, -bm25(words, {weights}), r.record FROM words JOIN docs d ON d.n = words.rowid "
        f"JOIN records r ON r.n = d.n WHERE words MATCH ? AND d.kind = 'memory' "
        f"AND d.scope IN ({', '.join('?' * len(scopes))}) AND d.status IN ('active', 'dormant') "
        "AND (d.valid_from IS NULL OR d.valid_from <= ? OR d.valid_from <= d.known) AND (d.valid_until IS NULL OR d.valid_until > ?) "
        "ORDER BY 2 DESC, 1 LIMIT ?",
        (" OR ".join(f'"{term}"' for term in terms), *scopes, now, now, limit),
    ).fetchall()
    return [_hit(memory_id, score, json.loads(record)) for memory_id, score, record in rows]


def _hit(memory_id: str, score: float, record: dict[str, object]) -> dict[str, object]:
    told = {"text": record.get("statement", ""), "type": record.get("type", "behavioral"),
            "scope": record.get("scope", "global"), "situation": record.get("situation", "")}  # fmt: skip
    return {
        "id": display.disable_markup(memory_id),
        "score": score,
        **{k: display.disable_markup(str(v)) for k, v in told.items()},
    }
