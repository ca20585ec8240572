"""The owner's settings: `config.toml` in the store's directory, with the default and meaning of every key."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from engram.disk import replace_file
from engram.model.errors import InvalidInput, UnreadableData
from engram.model.lazy import dataclass, field, fields
from engram.rules.numbers import DEFAULT_BUDGET


@dataclass(frozen=True, slots=True)
class Settings:
    """The keys of `config.toml`."""

    embedder: str = "static"
    """The embedder: static, fastembed:<model>, openai:<model>@<base_url>, none."""
    budget: int = DEFAULT_BUDGET
    """The token budget of an injection."""
    autopromote_remember: bool = True
    """An explicit `learn` or `remember` of a harmless type is active at once."""
    autopromote_harvest: bool = False
    """So is what was captured without being asked for."""
    autopromote_kinds: str = ""
    """The only kinds that become active without review: preference, tooling, project or infra, separated by commas; "" for all four."""
    harvest_limit: int = 100
    """Candidates that one harvest takes from one source; the rest waits for the next one."""
    source_daily_limit: int = 500
    """Candidates that one untrusted source (a transcript, a page, a tool) may add a day; 0 for no limit."""
    keep_journal_days: int = 0
    """`engram prune` deletes journal images older than this; 0 keeps all."""
    keep_usage_days: int = 0
    """`engram prune` deletes usage lines older than this; 0 keeps all."""
    keep_ledger_days: int = 0
    """`engram prune` deletes ledgers of sessions that ended longer ago; 0 keeps all."""
    model: str = ""
    """A language model that adds to what the rules do: openai:NAME[@URL], anthropic:NAME, ollama:NAME[@URL]; "" for none."""
    model_timeout: int = 30
    """The time limit for an answer of the model, in seconds."""
    model_daily_tokens: int = 200_000
    """The daily token limit of the model; 0 for none."""
    enrich_with_client: bool = False
    """Let the MCP server ask the client's own model for cues when a session ends, if the client offers it (sampling)."""
    time_zone: str = ""
    """The zone in which "tomorrow" and times without a zone are read: America/Los_Angeles, UTC, +05:30; "" for the system's."""
    policy: str = "default"
    """What infers types, pins critical facts and says which fact replaces which: a preset, or one of `policies`."""
    capture_mode: str = "smart"
    """When buffered turns are read: smart (a high signal, the number of turns, or the time), every_n (the number alone), time."""
    capture_turns: int = 5
    """Turns after which a session's buffer is read."""
    capture_minutes: int = 15
    """Minutes from its oldest turn after which a session's buffer is read."""
    capture_model_timeout: int = 10
    """Seconds that the capture of a turn waits for the model; turns that take longer stay in the buffer, and it is asked again later."""
    policies: Mapping[str, Any] = field(default_factory=dict)
    """Your own policies by name: the tables `[policies.NAME]`, which `engram.gates.policies` reads."""
    signals: Mapping[str, Any] = field(default_factory=dict)
    """Your own signals by language: the tables `[signals.LANGUAGE]`, which `engram.capture.signals` reads."""
    hooks: Mapping[str, bool] = field(default_factory=dict)
    """What hooks do: the key `hooks.prompt_recall`, false to add no memories to prompts."""
    secrets: Mapping[str, Any] = field(default_factory=dict)
    """What is not a secret: the key `secrets.allow`, a list of patterns such as `["zq[0-9]*"]` that cover a whole value."""

    @property
    def promoted_kinds(self) -> frozenset[str]:
        """`autopromote_kinds` as a set; empty for all."""
        return frozenset(name.strip() for name in self.autopromote_kinds.split(",") if name.strip())

    @property
    def prompt_recall(self) -> bool:
        """Whether the prompt hook adds memories that are about the prompt."""
        return self.hooks.get("prompt_recall", True)

    @property
    def allowed_values(self) -> tuple[str, ...]:
        """The patterns of `secrets.allow`."""
        return tuple(self.secrets.get("allow", ()))

    def value_of(self, key: str) -> Any:
        """The value of a setting that `engram config` shows."""
        return getattr(self, key.removeprefix(f"{HOOKS}."))


RANGES = {
    "budget": (50, 1_000_000),
    "harvest_limit": (1, 100_000),
    "source_daily_limit": (0, 1_000_000),
    "keep_journal_days": (0, 36_500),
    "keep_usage_days": (0, 36_500),
    "keep_ledger_days": (0, 36_500),
    "model_timeout": (1, 600),
    "model_daily_tokens": (0, 10**9),
    "capture_turns": (1, 1_000),
    "capture_minutes": (1, 10_080),
    "capture_model_timeout": (1, 600),
}
"""The allowed range of each number."""

SHAPES = {
    "embedder": (
        r"static|none|fastembed:.+|openai:.+@.+",
        "static, none, fastembed:<model> or openai:<model>@<base_url>",
    ),
    "autopromote_kinds": (
        r"(?:\s*+(?:(?:preference|tooling|project|infra)\s*+)?(?:,|$))*+",
        'preference, tooling, project or infra, separated by commas, or "" for all of them',
    ),
    "model": (
        r"|(?:openai|anthropic|ollama):.+",
        'openai:NAME[@URL], anthropic:NAME, ollama:NAME[@URL], or "" for none',
    ),
    "capture_mode": (r"smart|every_n|time", "smart, every_n or time"),
}
"""The allowed forms of some texts, as a pattern and in words."""

MAX_ALLOWED, MAX_ALLOWED_CHARS = 200, 200
"""The limits of `secrets.allow`: how many patterns, and how long each may be."""
MIN_LITERAL_CHARS = 2
"""Characters of a pattern that are not wildcards."""

_DIGITS = 20
"""A longer number is beyond every range, and slow to parse."""

HOOKS = "hooks"
TABLES = ("policies", "signals", HOOKS, "secrets")
"""Settings that are tables in the file."""
DOTTED = ("hooks.prompt_recall",)
"""Keys of the table of hooks; each is true or false."""

SETTABLE = (*(each.name for each in fields(Settings) if each.name not in TABLES), *DOTTED)
"""The settings that `engram config` shows and sets."""

OWNERS = {
    **dict.fromkeys(
        ("autopromote_remember", "autopromote_harvest", "autopromote_kinds", "harvest_limit", "source_daily_limit"),
        "decides what becomes active without a person",
    ),
    "policy": "decides what a memory's type is, and what it replaces",
    "time_zone": "decides when memories are valid",
    **dict.fromkeys(("keep_journal_days", "keep_usage_days", "keep_ledger_days"), "decides how long history is kept"),
    **dict.fromkeys(("model", "embedder"), "decides where memories are sent"),
    "model_daily_tokens": "decides what the model may cost",
    "enrich_with_client": "decides whether the client's model is used",
}
"""The settings that only a person changes, and what each decides."""


def load_settings(path: Path | None) -> Settings:
    """Settings from a file, the defaults without one; raises `InvalidInput` for an unknown key or value."""
    settings, problems = read_settings(path)
    if problems:
        raise InvalidInput(f"{problems[0]}; `engram doctor` lists every problem")
    return settings


def read_settings(path: Path | None) -> tuple[Settings, list[str]]:
    """Settings as far as the file can be read, defaults for the rest, and its problems by line."""
    if path is None or not path.exists():
        return Settings(), []
    if not path.is_file():
        return Settings(), [f"{path} is not a file. Move it away, or put your settings there"]
    from engram.readers.data import MAX_SETTINGS_BYTES, parse_toml, read_text

    try:
        text = read_text(path, MAX_SETTINGS_BYTES)
        given = parse_toml(text, where=str(path))
    except UnreadableData as error:
        return Settings(), [f"{error}. Fix or remove that line in an editor"]
    except OSError as error:
        return Settings(), [f"{path}: {error.strerror}. Fix or remove that line in an editor"]
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, value in given.items():
        try:
            for name in value if key == HOOKS and isinstance(value, dict) else ():
                checked_setting(f"{HOOKS}.{name}", value[name], f"{path}:{_line_of(name, text)}")
            values[key] = checked_setting(key, value, f"{path}:{_line_of(key, text)}")
        except InvalidInput as error:
            problems.append(f"{error}. {_remedy(key)}")
    return Settings(**values), problems


def _remedy(key: str) -> str:
    return f"`engram config {key} VALUE` fixes it" if key in SETTABLE else "Fix or remove that line in an editor"


def _line_of(key: str, text: str) -> int:
    return next((number for number, line in enumerate(text.splitlines(), 1) if _sets(key, line)), 1)


def _sets(key: str, line: str) -> bool:
    """Whether a line of the file sets a key, correctly or not."""
    return re.match(rf"\s*\[{{0,2}}\s*[\"']?{re.escape(key)}[\"']?\s*(?:[\s=:\].]|$)", line) is not None


_WORDS: dict[type, str] = {
    int: "a whole number",
    bool: "true or false",
    str: "a text in quotes",
    dict: "tables of their own, such as [{key}.NAME]",
}


def checked_setting(key: str, value: Any, where: str = "config") -> Any:
    """The value; raises `InvalidInput` where the setting does not accept it."""
    kinds = {each.name: type(getattr(Settings(), each.name)) for each in fields(Settings)} | dict.fromkeys(DOTTED, bool)
    if key not in kinds:
        raise InvalidInput(f"{where}: unknown setting {key!r}; known: {', '.join(kinds)}")
    if type(value) is not kinds[key]:
        raise InvalidInput(f"{where}: {key} takes {_WORDS[kinds[key]].format(key=key)}, not {value!r:.60}")
    if key in RANGES and not RANGES[key][0] <= value <= RANGES[key][1]:
        low, high = RANGES[key]
        raise InvalidInput(f"{where}: {key} takes a whole number from {low} to {high}, not {value!r:.60}")
    if key in SHAPES and re.fullmatch(SHAPES[key][0], value.strip()) is None:
        raise InvalidInput(f"{where}: {key} takes {SHAPES[key][1]}, not {value!r:.60}")
    if key == "time_zone" and value.strip():
        _check_zone(value, where)
    if key == "secrets":
        _check_allowed(value, where)
    return value


def _check_allowed(table: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(table) - {"allow"})
    if unknown:
        raise InvalidInput(f"{where}: unknown setting 'secrets.{unknown[0]}'; known: secrets.allow")
    patterns = table.get("allow", [])
    if not isinstance(patterns, list) or not all(isinstance(each, str) for each in patterns):
        raise InvalidInput(f'{where}: secrets.allow takes a list of texts in quotes, such as ["zq[0-9]*"]')
    if len(patterns) > MAX_ALLOWED or any(len(each) > MAX_ALLOWED_CHARS for each in patterns):
        raise InvalidInput(
            f"{where}: secrets.allow takes at most {MAX_ALLOWED} patterns of {MAX_ALLOWED_CHARS} characters"
        )
    for each in patterns:
        if len(re.sub(r"[*?\s]|\[[^\]\[]*+\]", "", each)) < MIN_LITERAL_CHARS:
            raise InvalidInput(
                f"{where}: the pattern {each!r} in secrets.allow would allow nearly everything; "
                f"give at least {MIN_LITERAL_CHARS} characters besides * ? and [ ]"
            )


def _check_zone(name: str, where: str) -> None:
    from engram.text.time.zone import zone_named

    try:
        zone_named(name)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def check_settable(key: str) -> None:
    """Raise `InvalidInput` unless the key is one that `engram config` shows and sets."""
    if key in ("secrets", "secrets.allow"):
        raise InvalidInput('secrets.allow is a list in config.toml, [secrets] allow = ["…"]: edit it there')
    if key in TABLES:
        raise InvalidInput(f"{key} are tables of config.toml, [{key}.NAME]: edit them there")
    if key not in SETTABLE:
        raise InvalidInput(f"unknown setting {key!r}; known: {', '.join(SETTABLE)}")


def parse_setting(key: str, text: str) -> Any:
    """A setting's value from the text a person typed."""
    check_settable(key)
    kind = type(Settings().value_of(key))
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "on", "off"):
            raise InvalidInput(f"{key} takes true or false, not {text!r}")
        return checked_setting(key, text.lower() in ("true", "yes", "on"))
    if kind is int:
        low, high = RANGES[key]
        if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS:
            raise InvalidInput(f"{key} takes a whole number from {low} to {high}, not {text!r:.60}")
        return checked_setting(key, int(text))
    return checked_setting(key, text)


def save_setting(path: Path, key: str, value: Any) -> None:
    """Change one line of the file, leaving the rest, comments included, as it is."""
    rendered = (
        str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else _quote_toml(value)
    )
    old = path.read_text("utf-8", "surrogateescape").splitlines() if path.exists() else []
    if key in DOTTED and any(_sets(HOOKS, line) for line in old if line.lstrip().startswith("[")):
        raise InvalidInput(f"{path} has a table [{HOOKS}]: edit it there")
    tables = _lines_of_tables(old)
    places = [number for number, line in enumerate(old) if number not in tables and _sets(key, line)]
    lines = [line for number, line in enumerate(old) if number not in places]
    lines.insert(places[0] if places else _end_of_settings(lines), f"{key} = {rendered}")
    replace_file(path, ("\n".join(lines) + "\n").encode("utf-8", "surrogateescape"))


def _lines_of_tables(lines: list[str]) -> set[int]:
    """The lines that belong to the owner's tables."""
    found: set[int] = set()
    inside = False
    for number, line in enumerate(lines):
        if line.lstrip().startswith("["):
            inside = any(_sets(name, line) for name in TABLES)
        if inside:
            found.add(number)
    return found


def _end_of_settings(lines: list[str]) -> int:
    """Where a new line goes: before the first table heading."""
    return next((number for number, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))


def _quote_toml(value: str) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
