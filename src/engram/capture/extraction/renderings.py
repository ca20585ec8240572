"""How what a rule found is put down: in the third person, as a command, or as a decision."""

import re
from collections.abc import Callable

from engram.capture.extraction.wording import about_the_user, as_told, of_the_user, swapped, swapped_after

Rendering = Callable[[re.Match[str]], str]

_MEETING = re.compile(r"(?:stand-?up|retro|daily|sync|scrum|all-hands)\b", re.IGNORECASE)
_STATES = ("married", "divorced", "engaged")


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
    """As it was said, in the third person; without when it came about, which is dated apart."""
    end = found.start("ago") - found.start() if found.groupdict().get("ago") else len(found[0])
    return as_told(found[0][:end])


def lives(found: re.Match[str]) -> str:
    """Where the user lives since they moved."""
    return f"The user lives in {found['place']}"


def works(found: re.Match[str]) -> str:
    """Where the user works since they joined."""
    role = f" as {swapped(found['role'])}" if found["role"] else ""
    return f"The user works at {found['place']}{role}"


def switched(found: re.Match[str]) -> str:
    """What was switched to, and from what."""
    thing = f" {swapped(found['thing'])}" if found["thing"] else ""
    old = f" from {found['old']}" if found["old"] else ""
    return f"{_who(found)} switched{thing}{old} to {found['new']}"


def replaced(found: re.Match[str]) -> str:
    """What took the place of what."""
    return f"{_who(found)} replaced {found['old']} with {found['new']}"


def _who(found: re.Match[str]) -> str:
    return "The user" if found["who"].lower() == "i" else str(found["who"]).capitalize()


def changed(found: re.Match[str]) -> str:
    """What the user became, left, bought or took up."""
    verb = found["verb"].lower()
    return f"The user {'gave up' if verb == 'given up' else verb} {swapped(found['rest'])}"


def not_any_more(found: re.Match[str]) -> str:
    """ "I don't use X any more" → "The user no longer uses X"."""
    if found["we"]:
        return f"We no longer {found['verb'].lower()} {swapped(found['rest'])}"
    return no_longer(found)


def we_stopped(found: re.Match[str]) -> str:
    """What a team gave up."""
    return f"We stopped {swapped(found['rest'])}"


def was_moved(found: re.Match[str]) -> str:
    """ "We moved the demo to Friday" → "The demo was moved to Friday"."""
    return f"{about_the_user(found['what'])} was moved to {swapped(found['rest'])}"


def was_made(found: re.Match[str]) -> str:
    """ "I got promoted" → "The user was promoted"; of a state, that it holds."""
    return f"The user {'is' if found['rest'].lower() in _STATES else 'was'} {swapped(found['rest'])}"


def still_not(found: re.Match[str]) -> str:
    """ "I'm no longer X" → "The user is no longer X"."""
    return f"The user is {swapped(found['rest'])}"


def for_the_user(found: re.Match[str]) -> str:
    """ "Mornings work for me" → "Mornings work for the user"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} for the user{swapped_after(found['rest'])}"


def does_to_the_user(found: re.Match[str]) -> str:
    """ "Noise drives me crazy" → "Noise drives the user crazy"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user{swapped_after(found['rest'])}"


def my_favourite(found: re.Match[str]) -> str:
    """ "Tea is my favourite" → "Tea is the user's favourite"."""
    return f"{swapped(found['what'])} {found['verb'].lower()} the user's {swapped(found['rest'])}"


def it_is(found: re.Match[str]) -> str:
    """What a correction says it is."""
    return f"It is {swapped(found['rest'])}"


def meant(found: re.Match[str]) -> str:
    """What the user meant."""
    return f"The user meant {swapped(found['rest'])}"


def the_meeting(found: re.Match[str]) -> str:
    """As it was said, a meeting's name with its article."""
    said = as_told_of(found)
    return f"The {said[0].lower()}{said[1:]}" if _MEETING.match(said) else said


RENDERINGS: dict[str, Rendering] = {
    rendering.__name__: rendering
    for rendering in (
        as_said, as_told_of, born, called, changed, command, decided, decided_against, decided_not, decided_use, does_to_the_user,
        for_the_user, it_is, lives, meant, my_favourite, no_longer, not_any_more, of_the_users, replaced, still_not, switched,
        the_meeting, the_user, the_user_is, the_user_would, was_made, was_moved, we_stopped, whose,
        works,
    )
}  # fmt: skip
"""By the name a table calls it."""
