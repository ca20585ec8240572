"""A LangGraph store: `BaseStore` over a memory, with LangGraph's filters, for graphs compiled with `store=EngramStore(mem)`."""

import json
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from engram.integrations.calls import AnyEngram, awaited_call, blocking_call
from engram.integrations.items import MAX_RANKED_ITEMS, ItemKey, ItemValue, KeyedItem, KeyedItems, Namespace
from engram.model.errors import InvalidInput
from engram.rules.scopes import parse_scope
from engram.text.display import quote_text

if TYPE_CHECKING:
    from engram.client import Engram

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
OPERATORS = ("$eq", "$ne", *_ORDERED)


def check_filter(wanted: Any) -> None:
    """Raise `ValueError` for an unknown operator, before anything is searched."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            unknown = [name for name in wanted if name not in OPERATORS]
            if unknown:
                raise ValueError(f"Unsupported operator: {unknown[0]}; the operators are {', '.join(OPERATORS)}")
        else:
            for part in wanted.values():
                check_filter(part)
    elif isinstance(wanted, list | tuple):
        for part in wanted:
            check_filter(part)


def matches_value(found: Any, wanted: Any) -> bool:
    """Whether a value matches a filter; a mapping matches if each of its parts does."""
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_matches_operator(found, name, value) for name, value in wanted.items())
        return isinstance(found, Mapping) and all(matches_value(found.get(key), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(found, list | tuple) and len(found) == len(wanted) and all(map(matches_value, found, wanted))
    return bool(found == wanted)


def _has_operators(wanted: Mapping[str, Any]) -> bool:
    return any(str(name).startswith("$") for name in wanted)


def _matches_operator(found: Any, name: str, value: Any) -> bool:
    if name == "$eq":
        return bool(found == value)
    if name == "$ne":
        return bool(found != value)
    pair = _numbers(found, value) or ((found, value) if isinstance(found, str) and isinstance(value, str) else None)
    return pair is not None and _ORDERED[name](*pair)


def _numbers(found: Any, value: Any) -> tuple[float, float] | None:
    """Both values as numbers if possible; values without an order never compare."""
    try:
        return float(found), float(value)
    except (TypeError, ValueError):
        return None


try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        InvalidNamespaceError,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise ImportError(f"the LangGraph store needs a package: pip install 'engram[langgraph]' ({error})") from error


KIND = "langgraph"
SOURCE = "agent:langgraph"
WHOLE_VALUE = ("$",)
"""The path that means the whole value."""
_MAX_LABELLED_WORDS = 3
"""Maximum words of a text that is labelled with the name of its field, as in `theme: dark`."""
DEFAULT_RANKED_ITEMS = 100
"""Maximum items that a search ranks unless it asks for more, or filters them."""


class EngramStore(BaseStore):
    """LangGraph's long-term memory, kept by Engram.

    `memory` is an open `Engram` or `AsyncEngram`, which its opener closes. `fields` are the searched paths of a value,
    by default all of it; `put(…, index=…)` chooses others for one item. Each namespace is a scope of the kind `kind`:
    `("ana", "notes")` is `langgraph:ana/notes`. `source` records who puts the items: by default an agent, so text that
    reads like an instruction or is sensitive waits for a person before Engram's own `recall` and `inject` use it.

    Values are returned unchanged. A search with a query ranks like `mem.search`, without any configuration. A delete
    retires the item: it is left out of every answer, and only a purge destroys it.
    """

    supports_ttl = True

    def __init__(
        self,
        memory: AnyEngram,
        *,
        fields: Sequence[str] = WHOLE_VALUE,
        kind: str = KIND,
        source: str = SOURCE,
        ttl: TTLConfig | None = None,
    ) -> None:
        parse_scope(f"{kind}:x")
        if isinstance(fields, str) or not all(fields):
            raise InvalidInput("fields must be a list of paths into a value, such as ['text', 'notes[*].title']")
        self.ttl_config = ttl
        self._memory = memory
        self._fields = tuple(fields)
        self._kind, self._source = kind, source

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: first the reads, then the writes, all or none."""
        return blocking_call(self._memory, self._run, _check_operations(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Like `batch`, awaited; the work is done on another thread."""
        return await awaited_call(self._memory, self._run, _check_operations(ops))

    def _run(self, mem: "Engram", ops: Sequence[Op]) -> list[Result]:
        items = KeyedItems(mem, self._kind, self._source)
        results = [_READERS[type(op)](items, op) if type(op) in _READERS else None for op in ops]
        # Of several puts to one key, the last counts.
        puts = {_at(op): op for op in ops if isinstance(op, PutOp)}
        items.put({at: self._value_to_store(op, op.value) for at, op in puts.items() if op.value is not None})
        for at, op in puts.items():
            if op.value is None:
                items.delete(at)
        return results

    def _value_to_store(self, op: PutOp, value: Mapping[str, Any]) -> ItemValue:
        if not isinstance(value, Mapping):
            raise InvalidInput(f"the value of {quote_text(op.key[:80])} must be a mapping, not {type(value).__name__}")
        paths = self._fields if op.index is None else op.index or ()
        return ItemValue(value, _searched_text(value, paths), op.ttl)


def _check_operations(ops: Iterable[Op]) -> list[Op]:
    """The operations. Raises LangGraph's `InvalidNamespaceError` for an invalid namespace."""
    found = list(ops)
    for op in found:
        if not isinstance(op, GetOp | SearchOp | ListNamespacesOp | PutOp):
            raise ValueError(f"Unknown operation type: {type(op)}")
        validate_op_namespace(op)
        if isinstance(op, GetOp | PutOp) and not op.namespace:
            raise InvalidNamespaceError("Namespace cannot be empty.")
    return found


def _at(op: GetOp | PutOp) -> ItemKey:
    # Callers pass lists, too.
    return ItemKey(tuple(op.namespace), op.key)


# -- reading


def _get(items: KeyedItems, op: GetOp) -> Item | None:
    found = items.get(_at(op), refresh=op.refresh_ttl)
    if found is None:
        return None
    return Item(
        value=found.value,
        key=found.at.key,
        namespace=found.at.namespace,
        created_at=found.created_at,
        updated_at=found.updated_at,
    )


def _search(items: KeyedItems, op: SearchOp) -> list[SearchItem]:
    if op.limit < 0 or op.offset < 0:
        raise InvalidInput(f"limit {op.limit} and offset {op.offset} must be at least 0")
    check_filter(op.filter)
    end = op.offset + op.limit
    found = [(item, score) for item, score in _rank_items(items, op, end) if matches_value(item.value, op.filter or {})]
    if len(found) < end:
        # Items that are not indexed or not ranked come last and have no score.
        known = {item.at for item, _ in found}
        rest = [item for item in items.list_below(tuple(op.namespace_prefix)) if item.at not in known]
        found += [(item, None) for item in rest if matches_value(item.value, op.filter or {})]
    page = found[op.offset : end]
    if op.refresh_ttl:
        items.refresh(item for item, _ in page)
    return [_search_item(item, score) for item, score in page]


def _rank_items(items: KeyedItems, op: SearchOp, end: int) -> list[tuple[KeyedItem, float | None]]:
    if not op.query or not end:
        return []
    # The same number for the first pages, because the number of ranked items affects their order.
    most = DEFAULT_RANKED_ITEMS if end <= DEFAULT_RANKED_ITEMS and not op.filter else MAX_RANKED_ITEMS
    return list(items.rank(tuple(op.namespace_prefix), op.query, most))


def _search_item(item: KeyedItem, score: float | None) -> SearchItem:
    return SearchItem(item.at.namespace, item.at.key, item.value, item.created_at, item.updated_at, score)


def _list_namespaces(items: KeyedItems, op: ListNamespacesOp) -> list[Namespace]:
    conditions = op.match_conditions or ()
    found = {item.at.namespace for item in items.list_below(())}
    kept = {namespace for namespace in found if all(_matches(condition, namespace) for condition in conditions)}
    cut = kept if op.max_depth is None else {namespace[: op.max_depth] for namespace in kept}
    return sorted(cut)[op.offset : op.offset + op.limit]


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    size = len(condition.path)
    if size > len(namespace):
        return False
    part = namespace[:size] if condition.match_type == "prefix" else namespace[len(namespace) - size :]
    return all(wanted in ("*", label) for wanted, label in zip(condition.path, part, strict=True))


_READERS: dict[type, Callable[[KeyedItems, Any], Any]] = {
    GetOp: _get,
    SearchOp: _search,
    ListNamespacesOp: _list_namespaces,
}


# -- the statement of an item


def _searched_text(value: Mapping[str, Any], paths: Sequence[str]) -> str:
    """The searched parts of a value, as a text a person can read; "" for none."""
    texts = [text for path in paths for text in _texts_at(value, path)]
    return "\n".join(text for text in texts if text.strip())


def _texts_at(value: Mapping[str, Any], path: str) -> list[str]:
    if path == "$":
        leaves = list(_leaves(value))
        alone = len(leaves) == 1 and len(value) == 1
        return ["; ".join(text if alone or _is_sentence(text) else f"{name}: {text}" for name, text in leaves)]
    return get_text_at_path(dict(value), tokenize_path(path))


def _is_sentence(text: str) -> bool:
    """Whether a text is meaningful without the name of its field."""
    return len(text.split()) > _MAX_LABELLED_WORDS


def _leaves(value: Any, name: str = "") -> "Iterable[tuple[str, str]]":
    """Every text, number and flag inside a value, with its path."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _leaves(part, name)
    elif value is not None:
        yield name, value if isinstance(value, str) else json.dumps(value, default=str)
