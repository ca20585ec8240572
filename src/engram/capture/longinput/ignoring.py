"""Which files a folder's `.gitignore` leaves out, read as git reads it."""

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ignored"]

# A longer list is no list of patterns; the rest of it is not read.
LARGEST = 256 * 1024
_SPECIAL = re.compile(
    r"(?P<deep>\*\*/)|(?P<rest>/\*\*$)|(?P<many>\*+)|(?P<one>\?)|(?P<set>\[[^\]/]+\])|(?P<escaped>\\.)"
)


@dataclass(frozen=True, slots=True)
class _Rule:
    """One line of a `.gitignore`: what it matches below its folder, and whether it leaves out or takes back."""

    base: Path
    pattern: re.Pattern[str]
    leaves_out: bool
    folders_only: bool


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules of a folder and of those above it; the last one that matches decides."""

    rules: tuple[_Rule, ...] = ()

    def within(self, folder: Path) -> "Ignored":
        """These rules and those of the folder's own `.gitignore`."""
        named = folder / ".gitignore"
        if not named.is_file():  # a pipe of that name would be waited for
            return self
        try:
            with named.open(encoding="utf-8", errors="replace") as file:
                lines = file.read(LARGEST).splitlines()
        except OSError:
            return self
        found = (_rule(folder, line) for line in lines)
        return Ignored((*self.rules, *(rule for rule in found if rule is not None)))

    def holds(self, path: Path, is_folder: bool) -> bool:
        """Whether the rules leave this file or folder out."""
        for rule in reversed(self.rules):
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(path.relative_to(rule.base).as_posix()):
                return rule.leaves_out
        return False


def _rule(base: Path, line: str) -> _Rule | None:
    line = line.rstrip()
    if not line or line.startswith("#"):
        return None
    leaves_out = not line.startswith("!")
    line = line.removeprefix("!")
    shape = line.rstrip("/")
    if not shape.strip("/"):
        return None
    deep = "" if "/" in shape else "(?:.*/)?"
    try:
        pattern = re.compile(deep + _translated(shape.removeprefix("/")))
    except re.error:
        return None
    return _Rule(base, pattern, leaves_out, line.endswith("/"))


def _translated(shape: str) -> str:
    made, at = [], 0
    for found in _SPECIAL.finditer(shape):
        made += [re.escape(shape[at : found.start()]), _meant(found)]
        at = found.end()
    return "".join([*made, re.escape(shape[at:])])


def _meant(found: re.Match[str]) -> str:
    if found["deep"]:
        return "(?:.*/)?"
    if found["rest"]:
        return "/.*"
    if found["set"]:
        return found["set"].replace("[!", "[^", 1).replace("\\", "\\\\")
    if found["escaped"]:
        return re.escape(found["escaped"][1])
    return "[^/]*" if found["many"] else "[^/]"
