"""The texts of the traffic: statements that differ by invented names, and rules that a user types to an agent."""

from importlib import resources

_SYLLABLES = (
    "ba", "co", "dri", "fen", "gal", "hom", "jur", "kel", "lin", "mor", "nap", "ost", "pir", "qua", "rud", "sev", "tam", "ul",
    "ver", "wick", "yan", "zor",
)  # fmt: skip
_STEP = 7_919
"""A prime, so that the names of neighbouring numbers share no syllables in the same position."""


def name(number: int) -> str:
    """An invented name of four syllables, unique for every number below 200,000."""
    rest, parts = number * _STEP % len(_SYLLABLES) ** 4, []
    for _ in range(4):
        rest, place = divmod(rest, len(_SYLLABLES))
        parts.append(_SYLLABLES[place])
    return "".join(parts).capitalize()


def statement(number: int) -> str:
    """A fact that no other number's fact resembles."""
    return _filled("statements.txt", number)


def rule(number: int) -> str:
    """A lasting rule, as users type it to a coding agent."""
    return _filled("rules.txt", number)


def _filled(file: str, number: int) -> str:
    templates = resources.files(__package__).joinpath(file).read_text("utf-8").splitlines()
    return templates[number % len(templates)].format(name(2 * number), name(2 * number + 1))
