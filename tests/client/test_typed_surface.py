"""What a caller's editor knows: public names, filters and fields. `typed_caller.py` is what the type checker makes of them."""

import inspect
import subprocess
import sys

import engram
from engram.capture.draft import _FIELDS as SETTABLE
from engram.model import errors, memory
from engram.model.memory import FORMS, SearchFilters
from engram.recall.query import FILTERS


def test_typed_arguments_are_those_that_are_accepted() -> None:
    spelled = set(memory.ChangedFields.__annotations__)
    parts = {part for form in FORMS for part in form}
    assert parts <= spelled
    assert {memory.FIELD_ALIASES.get(name, name) for name in spelled} - {"agent_id", "user_id"} - parts == SETTABLE
    filters = {memory.FILTER_ALIASES.get(name, name) for name in SearchFilters.__annotations__}
    assert filters - {"agent_id", "user_id"} == FILTERS


def test_public_names_are_sorted_complete_and_importable() -> None:
    assert engram.__all__ == sorted(engram.__all__) == dir(engram)
    assert all(getattr(engram, name) is not None for name in engram.__all__)
    tree = {name for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, Exception)}
    assert tree <= set(engram.__all__)


def test_importing_the_package_loads_no_part_of_it() -> None:
    program = "import sys, engram; print([m for m in sys.modules if m.startswith('engram.') and 'model' not in m])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
