"""The two forms that a memory can be given in (spec 3): feedback (behavior, impact, action) and fact (subject, predicate, object).

A form's parts may be given as fields of their own. The statement is rendered from them, and the situation says when it matters.
"""

from collections.abc import Mapping
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.memory import FORMS

__all__ = [
    "FACT",
    "FEEDBACK",
    "FORM_PARTS",
    "check_complete",
    "check_form_kept",
    "form_name",
    "merge_form",
    "with_form",
]

FEEDBACK, FACT = "feedback", "fact"
FORM_PARTS: dict[str, tuple[str, ...]] = {FEEDBACK: FORMS[0], FACT: FORMS[1]}
"""Each form by its name, which is also the type of a memory in it."""
_ALL = tuple(part for parts in FORM_PARTS.values() for part in parts)


def form_name(form: Mapping[str, str]) -> str:
    """`feedback` or `fact`; "" for a memory without a form."""
    return next((name for name, parts in FORM_PARTS.items() if any(part in form for part in parts)), "")


def with_form(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """A caller's fields without the parts of a form, and these parts. Raises `InvalidInput` for parts of both forms, or a form besides."""
    parts = {part: given[part] for part in _ALL if given.get(part) is not None}
    rest = {name: value for name, value in given.items() if name not in _ALL}
    if not parts:
        return rest, {}
    if rest.get("form"):
        raise InvalidInput(f"give the parts of a form ({', '.join(parts)}) or `form`, not both")
    _check_texts(parts)
    name = form_name(parts)
    if foreign := [part for part in parts if part not in FORM_PARTS[name]]:
        raise InvalidInput(f"{foreign[0]} belongs to the other form; a {name} takes {', '.join(FORM_PARTS[name])}")
    return rest, parts


def check_complete(parts: Mapping[str, str], situation: str, *, named: str = "{}") -> None:
    """Raise `InvalidInput` naming every part that a new memory in a form lacks; `named` is how a caller writes a name."""
    name = form_name(parts)
    absent = [part for part in FORM_PARTS[name] if not parts.get(part, "").strip()]
    missing = [*([] if situation.strip() else ["situation"]), *absent]
    if missing:
        raise InvalidInput(f"{name} needs {', '.join(map(named.format, missing))}; every part of it is required")


def merge_form(before: Mapping[str, str], parts: Mapping[str, str]) -> dict[str, str]:
    """A form with some parts changed. Raises `InvalidInput` for parts of the other form, and for a part left empty."""
    known = form_name(before)
    if known and known != form_name(parts):
        raise InvalidInput(f"{next(iter(parts))} is no part of {known}, which has {', '.join(FORM_PARTS[known])}")
    if empty := [part for part, text in parts.items() if not text.strip()]:
        raise InvalidInput(f"{empty[0]} cannot be empty; leave it out to keep what it says")
    merged = {**before, **parts}
    return {part: merged[part] for part in FORM_PARTS[form_name(parts)] if part in merged}


def check_form_kept(before: Mapping[str, str], changes: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` where changed fields leave a form behind without its parts, or with the type of the other one."""
    known, wanted = form_name(before), changes.get("type", "")
    if not known or "form" in changes:
        return
    parts = ", ".join(FORM_PARTS[known])
    if "statement" in changes:
        raise InvalidInput(f"the statement of this {known} follows its parts; change these instead: {parts}")
    if wanted != known and wanted in FORM_PARTS:
        takes = ", ".join(FORM_PARTS[wanted])
        raise InvalidInput(
            f"{wanted} takes {takes}, but this {known} has {parts}: `learn` it with those parts, and `forget` this one"
        )


def _check_texts(parts: Mapping[str, Any]) -> None:
    for part, text in parts.items():
        if not isinstance(text, str):
            raise InvalidInput(f"{part}: {text!r} is not text")
