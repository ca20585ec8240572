"""What the doctor says about hooks: which failed when they ran last, and how many sessions wait to be harvested."""

from datetime import UTC, datetime
from pathlib import Path

from engram.model.report import Finding
from engram.settings import read_settings
from engram.store import hook_log, spool
from engram.store.home import CONFIG, Home, default_cache, default_root, expanded
from engram.text.display import format_count, notice

MANY_WAITING_SESSIONS = 50
"""So many waiting sessions mean that nothing harvests them."""

_ADVICE = "run `engram harvest`, or `engram worker`"


def hook_findings(home: Home | None) -> list[Finding]:
    """The finding about hooks; none where no hook has ever run. On a server the hooks' files are in this user's home."""
    root = home.root if home is not None else expanded(default_root(), "the home").absolute()
    cache = home.cache if home is not None else expanded(default_cache(), "the cache").absolute()
    return _findings(root, cache, is_server=home is None)


def _findings(root: Path, cache: Path, *, is_server: bool) -> list[Finding]:
    failed = hook_log.failures(*hook_log.logs_of(root, cache))
    waiting = spool.count_waiting(root)
    if any(not one.recovered for one in failed):
        told = "; ".join(map(_describe_failure, failed))
        return [Finding.of("hooks", False, told, "when the cause is mended, the next run of the hook clears this")]
    if not failed and not waiting and not (root / "state" / "hooks").is_dir():
        return []
    parts = [*map(_describe_failure, failed)] or ["no failures"]
    parts.append(f"{format_count(waiting, 'session waits', 'sessions wait')} to be harvested")
    advice = _ADVICE if waiting >= MANY_WAITING_SESSIONS else ""
    if is_server and read_settings(root / CONFIG)[0].prompt_recall:
        parts.append("no memories are added to prompts, since these are compared with local stores only")
        advice = advice or "`engram config hooks.prompt_recall false` if you do not expect that"
    return [Finding.of("hooks", True, "; ".join(parts), advice)]


def _describe_failure(one: hook_log.HookFailure) -> str:
    at = datetime.fromtimestamp(one.at, UTC)
    since = ", and works again" if one.recovered else ""
    return notice(
        f"{one.event} failed {format_count(one.count, 'time')}, last {at:%Y-%m-%d %H:%M} UTC{since}: {one.message}"
    )
