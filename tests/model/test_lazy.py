"""Our `dataclass` behaves as the one in `dataclasses` does."""

import copy
import dataclasses
import inspect
import pickle
import threading

import pytest

from engram.model.lazy import cached_property, dataclass, field, fields, is_dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    label: str = field(default="", compare=False, repr=False)


@dataclass(slots=True)
class Path:
    """Many places, and how many there were at the beginning."""

    points: list[Point]
    count: int = field(init=False)

    def __post_init__(self) -> None:
        self.count = len(self.points)


@dataclass(frozen=True)
class Named:
    """Something with a name."""

    name: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Place(Named):
    """A named place."""

    where: Point = Point(0)


def test_values_come_by_position_or_name_and_defaults_are_not_shared() -> None:
    first, second = Point(1), Point(y=2, x=1)
    assert (first.x, first.y, second.y) == (1, 0, 2)
    assert first.notes == {} and first.notes is not second.notes
    assert Path([first, second]).count == 2


@pytest.mark.parametrize("given", [{}, {"x": 1, "z": 2}])
def test_a_missing_or_unknown_field_is_a_type_error(given: dict[str, int]) -> None:
    with pytest.raises(TypeError):
        Point(**given)  # type: ignore[arg-type]


def test_records_are_equal_by_their_compared_fields() -> None:
    assert Point(1, label="a") == Point(1, label="b") != Point(2)
    assert Named("a") != Place("a")
    assert hash(Named("a")) == hash(Named("a"))
    with pytest.raises(TypeError, match="unhashable"):
        hash(Path([]))


def test_a_frozen_record_does_not_change() -> None:
    point = Point(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError, match="'x'"):
        del point.x
    assert not hasattr(point, "__dict__")


def test_replace_changes_some_fields() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert replace(Path([Point(1)]), points=[]).count == 0


def test_a_subclass_has_the_fields_of_its_base() -> None:
    place = Place("home", where=Point(3))
    assert (place.name, place.tags, place.where.x) == ("home", (), 3)
    assert [one.name for one in fields(Place)] == ["name", "tags", "where"]


def test_a_subclass_with_an_initialiser_of_its_own_calls_that_of_its_base() -> None:
    @dataclass()
    class Base:
        x: int

    class Derived(Base):
        def __init__(self, text: str) -> None:
            super().__init__(len(text))
            self.text = text

    made = Derived("four")
    assert (made.x, made.text) == (4, "four")


def test_the_repr_leaves_out_what_is_hidden() -> None:
    assert repr(Point(1, label="a")) == "Point(x=1, y=0, notes={})"
    loop = Path([])
    loop.points.append(loop)  # type: ignore[arg-type]
    assert repr(loop) == "Path(points=[...], count=0)"


def test_records_are_copied_and_pickled() -> None:
    for record in (Point(1, 2, {"a": "b"}), Path([Point(1)]), Place("home")):
        assert pickle.loads(pickle.dumps(record)) == record
        assert copy.deepcopy(record) == record


def test_the_standard_library_knows_them() -> None:
    for known in (Point, Point(1)):
        assert is_dataclass(known)
        assert dataclasses.is_dataclass(known)
    assert dataclasses.asdict(Place("home")) == {
        "name": "home",
        "tags": (),
        "where": {"x": 0, "y": 0, "notes": {}, "label": ""},
    }
    assert [one.name for one in dataclasses.fields(Path)] == ["points", "count"]
    assert dataclasses.replace(Point(1), x=2) == Point(2)
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_the_signature_is_that_of_the_fields() -> None:
    assert list(inspect.signature(Place).parameters) == ["name", "tags", "where"]
    assert inspect.signature(Named).parameters["tags"].default == ()


class Slow:
    """An object whose value another thread may be computing."""

    def __init__(self, begun: threading.Event | None = None, go_on: threading.Event | None = None) -> None:
        self.begun, self.go_on, self.made = begun, go_on, 0

    @cached_property
    def value(self) -> list[int]:
        """A list."""
        self.made += 1
        if self.begun is not None and self.go_on is not None and self.made == 1:
            self.begun.set()
            assert self.go_on.wait(30)
        return [self.made]


def test_a_cached_property_is_computed_once_and_documented() -> None:
    slow = Slow()
    assert slow.value is slow.value
    assert (slow.value, Slow.value.__doc__) == ([1], "A list.")


def test_no_lock_is_held_while_a_cached_property_is_computed() -> None:
    begun, go_on = threading.Event(), threading.Event()
    slow, seen = Slow(begun, go_on), list[list[int]]()
    thread = threading.Thread(target=lambda: seen.append(slow.value))
    thread.start()
    assert begun.wait(30)
    first = slow.value  # another thread, and a forked child, would wait here for the first
    go_on.set()
    thread.join()
    assert first == [2] and seen[0] is first is slow.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is given by name only; a field with a default may come first."""

    label: str = ""
    name: str


def test_fields_may_be_keyword_only() -> None:
    made = Options(name="a")
    assert (made.label, made.name) == ("", "a")
    assert replace(made, label="b") == Options(label="b", name="a") == copy.copy(Options(name="a", label="b"))
    assert dataclasses.asdict(made) == {"label": "", "name": "a"}
    assert Options.__match_args__ == ()
    with pytest.raises(TypeError, match="positional"):
        Options("a")  # type: ignore[call-arg]
