"""Calls of the library: each is checked against the declaration of its verb before it does anything."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar, cast

from engram.model.fields import Owner
from engram.rules.argument_limits import CHECKED_BY_VERB, check_argument
from engram.verbs.declaration import REQUIRED, Method, Verb

Call = TypeVar("Call", bound=Callable[..., Any])


class Signature:
    """What a method takes, by the declaration of its verb."""

    def __init__(self, verb: Verb) -> None:
        assert isinstance(verb.library, Method)
        taken, rest = list(verb.parameters()), verb.library.rest
        self.method = verb.library.name
        self.positional = tuple(argument.name for argument in taken if argument.is_positional)
        self.required = tuple(argument.name for argument in taken if argument.default is REQUIRED)
        # The fields of a memory and the filters of a question are checked where their aliases are known.
        named = {argument.name for argument in taken} | ({*Owner.__annotations__} if rest is Owner else set())
        self.known = named if rest in (None, Owner) else None

    def check_sizes(self, args: Sequence[Any], given: Mapping[str, Any]) -> None:
        """Raise `InvalidInput` for an argument that is too large."""
        for name, value in (*zip(self.positional, args, strict=False), *given.items()):
            if (self.method, name) not in CHECKED_BY_VERB:
                check_argument(name, value)

    def check_names(self, args: Sequence[Any], given: Mapping[str, Any], owner: str) -> None:
        """Raise `TypeError` where the arguments are not those of the method; `owner` is the class that the caller knows."""
        named = self.positional[: len(args)]
        call = f"{owner}.{self.method}()"
        unknown = next((name for name in given if self.known is not None and name not in self.known), None)
        if unknown is not None:
            raise TypeError(f"{call} got an unexpected keyword argument {unknown!r}")
        if len(args) > len(self.positional):
            raise TypeError(f"{call} takes {len(self.positional)} positional arguments but {len(args)} were given")
        twice = next((name for name in named if name in given), None)
        if twice is not None:
            raise TypeError(f"{call} got multiple values for argument {twice!r}")
        missing = next((name for name in self.required if name not in named and name not in given), None)
        if missing is not None:
            raise TypeError(f"{call} missing a required argument: {missing!r}")


def bind_verb(verb: Verb) -> Callable[[Call], Call]:
    """A decorator for the method of `Engram` behind a verb."""
    signature = Signature(verb)

    def decorate(method: Call) -> Call:
        @wraps(method)
        def check_and_call(self: Any, /, *args: Any, **given: Any) -> Any:
            signature.check_sizes(args, given)
            signature.check_names(args, given, "Engram")
            return method(self, *args, **given)

        check_and_call.signature = signature  # type: ignore[attr-defined]
        return cast(Call, check_and_call)

    return decorate


def signature_of(method: Callable[..., Any]) -> Signature | None:
    """The declared signature of a method, if it has one."""
    return getattr(method, "signature", None)
