"""Dataclasses, cached properties and regular expressions that cost nothing until they are used.

`dataclasses` compiles up to six functions for each class, which takes 1.7 ms, while a bare Python start takes 20: a
quarter of a cold `engram recall` was spent on classes it hardly used. Here the initialiser is compiled with the first
object, and all classes share the other methods. `asdict` and everything else in `dataclasses` works with them. Ordered
classes are not supported, and either all fields of a class are keyword-only or none.
"""

import re
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, cast

if TYPE_CHECKING:
    from dataclasses import MISSING as MISSING
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from dataclasses import fields as fields
    from dataclasses import is_dataclass as is_dataclass
    from dataclasses import replace as replace
    from functools import cached_property as cached_property

_MISSING: Any = object()
_FIELDS = "__record_fields__"
_KEYWORDS = "__record_keywords__"
"""The attribute that says whether the initialiser takes its arguments only by name."""
_BUILDERS = ("__dataclass_fields__", "__dataclass_params__")
"""The attributes that `dataclasses` expects of a class."""


class _Field:
    """The declaration of one field of a class."""

    __slots__ = ("compare", "default", "default_factory", "init", "name", "repr", "type")

    def __init__(self, default: Any = _MISSING, *, default_factory: Any = _MISSING, **flags: bool) -> None:
        self.name, self.type = "", Any
        self.default, self.default_factory = default, default_factory
        self.init, self.repr, self.compare = (flags.get(name, True) for name in ("init", "repr", "compare"))


def _dataclass(
    *, frozen: bool = False, slots: bool = False, repr: bool = True, kw_only: bool = False
) -> Callable[[type], type]:
    """A decorator for a class of fields."""

    def decorate(cls: type) -> type:
        own = _declared_fields(cls)
        inherited = (getattr(base, _FIELDS, {}) for base in reversed(cls.__bases__))
        fields = {name: one for known in (*inherited, own) for name, one in known.items()}
        body = _methods(fields, frozen, repr) | {_KEYWORDS: kw_only}
        if kw_only:
            body["__match_args__"] = ()
        if slots and frozen:
            body |= {"__getstate__": _state, "__setstate__": _restore}
        body = {name: value for name, value in body.items() if name not in vars(cls)}
        return _make_slotted(cls, own, body) if slots else _add_to_class(cls, own, body)

    return decorate


def _replace(record: Any, /, **changes: Any) -> Any:
    """A copy of a record with some fields changed."""
    for name, one in getattr(record, _FIELDS).items():
        if one.init and name not in changes:
            changes[name] = getattr(record, name)
    return record.__class__(**changes)


def _fields(record: Any) -> tuple[_Field, ...]:
    """The fields of a record or of its class."""
    return tuple(getattr(record, _FIELDS).values())


def _is_dataclass(record: Any) -> bool:
    """Whether an object is a record or the class of one."""
    return hasattr(record, _FIELDS)


class _CachedProperty:
    """A property that is computed on first use, like `functools.cached_property` but without a lock.

    Python 3.11 holds one lock for all objects of a class meanwhile, and a process forked then waits for it forever. Two
    threads may both compute the value; both get the first one.
    """

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self._make, self._name, self.__doc__ = make, make.__name__, make.__doc__

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        return instance.__dict__.setdefault(self._name, self._make(instance))


if not TYPE_CHECKING:
    MISSING, dataclass, field, cached_property = _MISSING, _dataclass, _Field, _CachedProperty
    fields, is_dataclass, replace = _fields, _is_dataclass, _replace


def _declared_fields(cls: type) -> dict[str, _Field]:
    """The fields that a class itself declares, in order."""
    found: dict[str, _Field] = {}
    for name, kind in own_annotations(cls).items():
        if getattr(kind, "__origin__", kind) is ClassVar:
            continue
        default = vars(cls).get(name, _MISSING)
        found[name] = default if isinstance(default, _Field) else _Field(default)
        found[name].name, found[name].type = name, kind
    return found


def own_annotations(cls: type) -> dict[str, Any]:
    """The annotations in the body of a class. Before Python 3.14, a class without any would show those of its base."""
    own: dict[str, Any] = (
        getattr(cls, "__annotations__", {}) if sys.version_info >= (3, 14) else vars(cls).get("__annotations__", {})
    )
    return own


def _methods(fields: dict[str, _Field], frozen: bool, shown: bool) -> dict[str, Any]:
    compared = [name for name, one in fields.items() if one.compare]
    body: dict[str, Any] = {
        _FIELDS: fields,
        "__match_args__": tuple(name for name, one in fields.items() if one.init),
        "__init__": _LazyMethod(_initialiser, frozen),
        "_compared": attrgetter(*compared) if compared else type,
        "__eq__": _equal,
        "__hash__": _hash if frozen else None,
        **{name: _LazyMethod(_standard, frozen) for name in _BUILDERS},
    }
    if shown:
        body["__repr__"] = _repr
    if frozen:
        body |= {"__setattr__": _refuse_change, "__delattr__": _refuse_change}
    return body


def _make_slotted(cls: type, own: dict[str, _Field], body: dict[str, Any]) -> type:
    """A copy of the class with slots, which can only be declared when a class is created."""
    left_out = {"__dict__", "__weakref__", *own}
    body = {name: value for name, value in vars(cls).items() if name not in left_out} | body
    made = type(cls)(cls.__name__, cls.__bases__, {**body, "__slots__": tuple(own)})
    made.__qualname__ = cls.__qualname__
    return made


def _add_to_class(cls: type, own: dict[str, _Field], body: dict[str, Any]) -> type:
    for name, one in own.items():
        if one.default is not _MISSING:
            setattr(cls, name, one.default)
        elif name in vars(cls):
            delattr(cls, name)
    for name, value in body.items():
        setattr(cls, name, value)
        if isinstance(value, _LazyMethod):
            value.__set_name__(cls, name)
    return cls


class _LazyMethod:
    """An attribute of a class that `make` creates on first access."""

    def __init__(self, make: Callable[[type, str, bool], Any], frozen: bool) -> None:
        self.make, self.frozen = make, frozen

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: Any, owner: type) -> Any:
        made = self.make(self.owner, self.name, self.frozen)
        setattr(self.owner, self.name, made)
        return made.__get__(instance, owner) if hasattr(made, "__get__") else made


def _initialiser(owner: type, _attribute: str, frozen: bool) -> Any:
    """The `__init__` of a class."""
    fields: dict[str, _Field] = getattr(owner, _FIELDS)
    names: dict[str, Any] = {"set_": object.__setattr__, "missing": _MISSING}
    parameters, lines = ["self", "*"] if fields and getattr(owner, _KEYWORDS) else ["self"], []
    for name, one in fields.items():
        value = name
        if one.default_factory is not _MISSING:
            names[f"new_{name}"] = one.default_factory
            value = f"new_{name}() if {name} is missing else {name}" if one.init else f"new_{name}()"
        elif one.default is not _MISSING:
            names[f"default_{name}"] = one.default
            value = name if one.init else f"default_{name}"
        elif not one.init:
            continue
        slot = getattr(owner, name, None)
        if not frozen:
            lines.append(f"self.{name} = {value}")
        elif type(slot) is MemberDescriptorType:  # a third faster: a recall makes thousands of records
            names[f"set_{name}"] = slot.__set__
            lines.append(f"set_{name}(self, {value})")
        else:
            lines.append(f"set_(self, {name!r}, {value})")
        if one.init:
            parameters.append(name + _default(name, one))
    if hasattr(owner, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__({', '.join(parameters)}):\n " + "\n ".join(lines or ["pass"]), names)
    init = names["__init__"]
    init.__qualname__, init.__module__ = f"{owner.__qualname__}.__init__", owner.__module__
    init.__annotations__ = {name: one.type for name, one in fields.items() if one.init} | {"return": None}
    return init


def _default(name: str, one: _Field) -> str:
    if one.default_factory is not _MISSING:
        return "=missing"
    return f"=default_{name}" if one.default is not _MISSING else ""


def _standard(owner: type, attribute: str, frozen: bool) -> Any:
    """An attribute by which `dataclasses` knows its classes."""
    import dataclasses

    listed = []
    for name, one in getattr(owner, _FIELDS).items():
        given = {key: getattr(one, key) for key in ("default", "default_factory") if getattr(one, key) is not _MISSING}
        listed.append((name, one.type, dataclasses.field(**given, init=one.init, repr=one.repr, compare=one.compare)))
    known = dataclasses.make_dataclass(
        owner.__name__, listed, init=False, repr=False, frozen=frozen, kw_only=getattr(owner, _KEYWORDS)
    )
    return getattr(known, attribute)


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{name}={getattr(self, name)!r}" for name, one in getattr(self, _FIELDS).items() if one.repr]
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _refuse_change(self: Any, name: str, *_: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, name) for name in getattr(self, _FIELDS)]


def _restore(self: Any, state: list[Any]) -> None:
    for name, value in zip(getattr(self, _FIELDS), state, strict=True):
        object.__setattr__(self, name, value)


def lazy_pattern(source: str, flags: int = 0) -> re.Pattern[str]:
    """`re.compile`, postponed until a method of the pattern is called: for large patterns that few commands need."""
    return cast(re.Pattern[str], _LazyPattern(source, flags))


class _LazyPattern:
    """A pattern whose methods are looked up one by one, and cached."""

    def __init__(self, source: str, flags: int) -> None:
        self._source, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        method = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, method)
        return method
