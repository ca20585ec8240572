"""The owner's settings: `config.toml` in the store's directory, every key with its default and its meaning."""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput
from engram.rules.numbers import DEFAULT_BUDGET


@dataclass(frozen=True, slots=True)
class Settings:
    """What `config.toml` may hold."""

    embedder: str = "static"
    """Who makes vectors: static, fastembed:<model>, openai:<model>@<base_url>, none."""
    budget: int = DEFAULT_BUDGET
    """Tokens an injection may take."""
    autopromote_remember: bool = True
    """An explicit `learn` or `remember` of a harmless type is active at once."""
    autopromote_harvest: bool = False
    """So is what was captured without anyone's word."""
    keep_journal_days: int = 0
    """`engram prune` lets go of journal images older than this; 0 keeps all."""
    keep_usage_days: int = 0
    """`engram prune` lets go of usage lines older than this; 0 keeps all."""
    keep_ledger_days: int = 0
    """`engram prune` lets go of ledgers of sessions that ended longer ago; 0 keeps all."""


def load_settings(path: Path) -> Settings:
    """Settings from a file; none means the defaults. A key or value Engram does not know is an error that names it."""
    if not path.exists():
        return Settings()
    import tomllib

    try:
        with path.open("rb") as file:
            given = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path}: {error}") from None
    return Settings(**{key: checked_setting(key, value, str(path)) for key, value in given.items()})


def checked_setting(key: str, value: Any, where: str = "config") -> Any:
    """The value, if a setting of that name takes it."""
    kinds = {field.name: type(getattr(Settings(), field.name)) for field in fields(Settings)}
    if key not in kinds:
        raise InvalidInput(f"{where}: unknown setting {key!r}; known: {', '.join(kinds)}")
    if type(value) is not kinds[key] or (kinds[key] is int and value < 0):
        raise InvalidInput(f"{where}: {key} takes {kinds[key].__name__}, not {value!r}")
    return value


def parse_setting(key: str, text: str) -> Any:
    """A setting's value from the text a person typed."""
    kind = type(getattr(Settings(), key, ""))
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "on", "off"):
            raise InvalidInput(f"{key} takes true or false, not {text!r}")
        return checked_setting(key, text.lower() in ("true", "yes", "on"))
    if kind is int:
        if not text.isdigit():
            raise InvalidInput(f"{key} takes a whole number, not {text!r}")
        return checked_setting(key, int(text))
    return checked_setting(key, text)


def save_setting(path: Path, key: str, value: Any) -> None:
    """Change one line of the file, leaving the rest, comments included, as it is."""
    rendered = (
        str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else _quoted(value)
    )
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    line = f"{key} = {rendered}"
    for i, old in enumerate(lines):
        if old.split("=")[0].strip() == key:
            lines[i] = line
            break
    else:
        lines.append(line)
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    fresh.write_text("\n".join(lines) + "\n", "utf-8")
    fresh.chmod(0o600)
    fresh.replace(path)


def _quoted(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
