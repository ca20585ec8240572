"""The kinds of values an argument takes: how each is read from a command line or from JSON, its schema, and what a refusal says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.model.arguments import MAX_INTEGER


class WrongValue(ValueError):
    """A value that an argument does not take; the message continues `NAME must be …`."""


class Kind:
    """What an argument takes. The value itself is its text, if nothing else is said."""

    is_many = False
    """Whether an option may be repeated, and an argument takes all remaining words."""
    is_flag = False
    """Whether an option has no value."""

    @property
    def requirement(self) -> str:
        """What it takes, as the end of `NAME must be …`."""
        return "text"

    def parse(self, word: str) -> Any:
        """The value of a word on the command line. Raises `WrongValue`."""
        return word

    def collect(self, values: list[Any]) -> Any:
        """The value of an argument that takes several words."""
        return values

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the value."""
        return {"type": "string"}

    def decode(self, value: Any) -> Any:
        """The value from JSON. Raises `WrongValue`."""
        if not isinstance(value, str):
            raise WrongValue(self.requirement)
        return value


class Text(Kind):
    """Text; one of the choices, where there are any."""

    def __init__(self, choices: Sequence[str] = (), *, least: int = 0) -> None:
        self.choices, self.least = tuple(choices), least

    @property
    def requirement(self) -> str:
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        return "text, and not empty" if self.least else "text"

    def parse(self, word: str) -> Any:
        if self.choices and word not in self.choices:
            raise WrongValue(self.requirement)
        return word

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.least:
            schema["minLength"] = self.least
        return schema

    def decode(self, value: Any) -> Any:
        if not isinstance(value, str) or len(value) < self.least or (self.choices and value not in self.choices):
            raise WrongValue(self.requirement)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongValue("text without half characters") from None
        return value


class File(Kind):
    """A path, or several; on the command line alone."""

    def __init__(self, *, is_many: bool = False) -> None:
        self.is_many = is_many

    def parse(self, word: str) -> Any:
        return Path(word)


class Whole(Kind):
    """A whole number."""

    def __init__(self, least: int | None = None, most: int | None = None) -> None:
        self.least, self.most = least, most

    @property
    def requirement(self) -> str:
        return f"a whole number{_limits(self.least, self.most)}"

    def parse(self, word: str) -> Any:
        try:
            number = int(word)
        except ValueError:
            raise WrongValue(self.requirement) from None
        if abs(number) > MAX_INTEGER:
            raise WrongValue(f"a whole number up to {MAX_INTEGER}")
        return number

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", **_bounds(self.least, self.most)}

    def decode(self, value: Any) -> Any:
        if isinstance(value, float) and value.is_integer():  # to JSON, 3.0 is one
            value = int(value)
        if type(value) is not int or not _is_within(value, self.least, self.most):
            raise WrongValue(self.requirement)
        return value


class Real(Kind):
    """A number."""

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self.least, self.most = least, most

    @property
    def requirement(self) -> str:
        return f"a number{_limits(self.least, self.most)}"

    def parse(self, word: str) -> Any:
        try:
            return float(word)
        except ValueError:
            raise WrongValue(self.requirement) from None

    def schema(self) -> dict[str, Any]:
        return {"type": "number", **_bounds(self.least, self.most)}

    def decode(self, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not _is_within(value, self.least, self.most):
            raise WrongValue(self.requirement)
        return float(value)


class Flag(Kind):
    """True or false; an option without a value."""

    is_flag = True

    @property
    def requirement(self) -> str:
        return "true or false"

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, bool):
            raise WrongValue(self.requirement)
        return value


class TextList(Kind):
    """A list of texts. Some clients send it as JSON text, or as words with commas."""

    is_many = True

    def __init__(self, most: int | None = None) -> None:
        self.most = most

    @property
    def requirement(self) -> str:
        return "a list of texts" + (f", at most {self.most}" if self.most is not None else "")

    def schema(self) -> dict[str, Any]:
        return {"items": {"type": "string"}, "type": "array", **({"maxItems": self.most} if self.most else {})}

    def decode(self, value: Any) -> Any:
        listed = _split(value) if isinstance(value, str) else value
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            raise WrongValue(self.requirement)
        if self.most is not None and len(listed) > self.most:
            raise WrongValue(self.requirement)
        return [Text().decode(one) for one in listed]


class Pairs(Kind):
    """Data of the caller's own: on the command line, `KEY=VALUE` again and again."""

    is_many = True

    @property
    def requirement(self) -> str:
        return "KEY=VALUE"

    def parse(self, word: str) -> Any:
        """A pair; a value that is JSON is read as such."""
        from engram.model.errors import UnreadableData
        from engram.readers.json_reader import NotJson, parse_json

        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise WrongValue(self.requirement)
        try:
            return key.strip(), parse_json(value, characters="any")
        except NotJson:
            return key.strip(), value
        except UnreadableData as error:
            raise WrongValue(f"{self.requirement}: {error}") from None

    def collect(self, values: list[Any]) -> Any:
        return dict(values)


class ListsById(Kind):
    """A list of texts for each id."""

    @property
    def requirement(self) -> str:
        return "a list of texts for each id"

    def schema(self) -> dict[str, Any]:
        return {"additionalProperties": TextList().schema(), "type": "object"}

    def decode(self, value: Any) -> Any:
        if not isinstance(value, Mapping) or not all(isinstance(one, list) for one in value.values()):
            raise WrongValue(self.requirement)
        return {Text().decode(key): TextList().decode(one) for key, one in value.items()}


class InPython(Kind):
    """A value that only a program in Python can give, such as a function."""

    @property
    def requirement(self) -> str:
        return "an object of Python"


def _split(text: str) -> Any:
    if text.lstrip().startswith("["):
        from engram.model.errors import UnreadableData
        from engram.readers.json_reader import parse_json

        try:
            return parse_json(text)
        except UnreadableData as error:
            raise WrongValue(f"a list; its text cannot be read: {error}") from None
    return [word.strip() for word in text.split(",") if word.strip()]


def _is_within(number: float, least: float | None, most: float | None) -> bool:
    return (least is None or number >= least) and (most is None or number <= most)


def _limits(least: float | None, most: float | None) -> str:
    if least is None and most is None:
        return ""
    if most is None:
        return f" of at least {least}"
    return f" up to {most}" if least is None else f" from {least} to {most}"


def _bounds(least: float | None, most: float | None) -> dict[str, Any]:
    named = {"minimum": least, "maximum": most}
    return {name: bound for name, bound in named.items() if bound is not None}
