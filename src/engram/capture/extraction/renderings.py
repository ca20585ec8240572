"""How what a rule found is put down: in the third person, as a command, or as a decision."""

import re

from engram.capture.extraction.wording import about_the_user, as_told, of_the_user, swapped


def as_said(found: re.Match[str]) -> str:
    """As it was said."""
    return about_the_user(found[0])


def the_user(found: re.Match[str]) -> str:
    """ "I prefer X" → "The user prefers X"."""
    groups = found.groupdict()
    said = of_the_user(groups["verb"], groups["rest"] or "", groups.get("adv") or "")
    context = swapped(groups.get("ctx") or "").rstrip(" ,")
    return f"{context}, the{said[3:]}" if context else said


def the_user_is(found: re.Match[str]) -> str:
    """ "I'm X" → "The user is X"."""
    return f"The user is {(found['neg'] or '').lower()}{swapped(found['rest'])}"


def of_the_users(found: re.Match[str]) -> str:
    """ "My X" → "The user's X"."""
    return f"The user's {swapped(found['rest'])}"


def the_user_would(found: re.Match[str]) -> str:
    """ "I'd rather X" → "The user would rather X"."""
    return f"The user would {found['verb'].lower()} {swapped(found['rest'])}"


def no_longer(found: re.Match[str]) -> str:
    """ "I no longer use X" → "The user no longer uses X"."""
    return of_the_user(found["verb"], found["rest"], "no longer")


def command(found: re.Match[str]) -> str:
    """What is to be done, as a command."""
    return about_the_user(found["rest"])


def decided(found: re.Match[str]) -> str:
    """What was decided."""
    return f"Decided: {swapped(found['rest'])}"


def decided_use(found: re.Match[str]) -> str:
    """What was chosen."""
    return f"Decided: use {swapped(found['rest'])}"


def decided_not(found: re.Match[str]) -> str:
    """What is not to be done."""
    return f"Decided: do not {swapped(found['rest'])}"


def decided_against(found: re.Match[str]) -> str:
    """What was not chosen."""
    return f"Decided: do not use {swapped(found['rest']).removeprefix('using ')}"


def called(found: re.Match[str]) -> str:
    """What the user wants to be called."""
    return f"The user wants to be called {found['rest']}"


def whose(found: re.Match[str]) -> str:
    """ "My budget is …" as the user's."""
    said = found[0]
    return f"The user's {swapped(said[3:])}" if said[:3].lower() == "my " else said


def born(found: re.Match[str]) -> str:
    """When or where the user was born."""
    return f"The user was born {swapped(found['rest'])}"


def as_told_of(found: re.Match[str]) -> str:
    """As it was said, in the third person."""
    return as_told(found[0])
