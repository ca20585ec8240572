"""Which functions a modification calls, as the server itself understands it: implicit casts and operators are functions, too.

Citus refuses a modification, or carries it out another way, by what its functions promise (`pg_proc.provolatile`). The server
tells by the tree it keeps of a function's body, which is the statement after its names and types were looked up.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tests.postgres.one_shard import Statement

_TOKEN = re.compile(r'[{}()]|"(?:\\.|[^"\\])*"|(?:\\.|[^\s(){}"\\])+')
_CALLS = {
    "FUNCEXPR": "funcid", "OPEXPR": "opfuncid", "SCALARARRAYOPEXPR": "opfuncid", "DISTINCTEXPR": "opfuncid",
    "NULLIFEXPR": "opfuncid", "AGGREF": "aggfnoid", "WINDOWFUNC": "winfnoid",
}  # fmt: skip
_LAZY = ("CASEEXPR", "COALESCEEXPR")
_UPDATE, _DELETE = "2", "4"
_TYPED = ("vartype", "paramtype", "consttype", "funcresulttype", "opresulttype", "resulttype")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the server's tree: its kind, and under each name what stands there."""

    kind: str
    fields: dict[str, list[object]]

    def first(self, name: str) -> str:
        """A plain value."""
        found = self.fields.get(name, [""])
        return found[0] if found and isinstance(found[0], str) else ""


def read_tree(text: str) -> list[object]:
    """The server's tree."""
    tokens = iter(_TOKEN.findall(text))
    return _items(tokens, "")


def _items(tokens: Iterator[str], end: str) -> list[object]:
    found: list[object] = []
    for token in tokens:
        if token == end:
            break
        found.append(_node(tokens) if token == "{" else _items(tokens, ")") if token == "(" else token)
    return found


def _node(tokens: Iterator[str]) -> Node:
    kind, *rest = _items(tokens, "}")
    fields: dict[str, list[object]] = {}
    values: list[object] = []
    for item in rest:
        if isinstance(item, str) and item.startswith(":"):
            values = fields[item[1:]] = []
        else:
            values.append(item)
    return Node(str(kind), fields)


def below(value: object) -> Iterator[Node]:
    """Every node from here on."""
    if isinstance(value, Node):
        yield value
        for field in value.fields.values():
            yield from below(field)
    elif isinstance(value, list):
        for item in value:
            yield from below(item)


class Functions:
    """What the functions of a server promise."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        rows = connection.execute("SELECT oid::text, proname::text, provolatile::text FROM pg_proc").fetchall()
        self._known: dict[str, tuple[str, str]] = {oid: (name, promise) for oid, name, promise in rows}
        types = connection.execute(
            "SELECT oid::text, typinput::oid::text, typoutput::oid::text FROM pg_type"
        ).fetchall()
        self._casts = {oid: (into, out) for oid, into, out in types}

    def volatile_named(self, names: set[str]) -> set[str]:
        """Those names that a volatile function has."""
        return {name for name, promise in self._known.values() if promise == "v" and name in names}

    def tree_of(self, statement: Statement) -> list[object]:
        """A statement's tree after names and types were looked up."""
        run = self._connection.execute
        run(f"PREPARE asked AS {statement.text}".encode())
        row = run("SELECT parameter_types::text[] FROM pg_prepared_statements WHERE name = 'asked'").fetchone()
        run("DEALLOCATE asked")
        assert row is not None
        given = sql.SQL(", ").join(map(sql.SQL, row[0]))
        name = sql.SQL("pg_temp.asked({})").format(given)
        run(
            sql.SQL("CREATE FUNCTION {} RETURNS void LANGUAGE sql BEGIN ATOMIC {}; END").format(
                name, sql.SQL(statement.text)
            )
        )
        row = run("SELECT prosqlbody::text FROM pg_proc WHERE proname = 'asked'").fetchone()
        run(sql.SQL("DROP FUNCTION {}").format(name))
        assert row is not None
        return read_tree(row[0])

    def called(self, node: Node) -> list[tuple[str, str]]:
        """The functions that a node itself calls, and what each promises."""
        if node.kind in _CALLS:
            return [self._known[node.first(_CALLS[node.kind])]]
        if node.kind == "COERCEVIAIO":
            given = [typed for arg in node.fields["arg"] if (typed := _type_of(arg))]
            used = [self._casts[node.first("resulttype")][0], *(self._casts[typed][1] for typed in given)]
            return [self._known[oid] for oid in used]
        return [("the current user or time", "s")] if node.kind == "SQLVALUEFUNCTION" else []

    def mutable(self, value: object, promises: str) -> set[str]:
        """The names of functions from here on that promise no more than one of these."""
        return {name for node in below(value) for name, promise in self.called(node) if promise in promises}

    def problems(self, statement: Statement) -> list[str]:
        """What Citus would not carry out of a modification, or not on the shard."""
        tree = self.tree_of(statement)
        query = next(node for node in below(tree) if node.kind == "QUERY")
        found = [
            f"{name}() is volatile: Citus refuses it, or computes it elsewhere; compute it first and send the value"
            for name in sorted(self.mutable(tree, "v"))
        ]
        if query.first("commandType") in (_UPDATE, _DELETE):
            found += self._of_columns(query)
        for part in ("returningList", "onConflict"):
            found += [
                f"{name}() in {part} is not immutable: Citus refuses it there"
                for name in sorted(self.mutable(query.fields.get(part, []), "sv"))
            ]
        return [f"{statement.name}: {problem}" for problem in found]

    def _of_columns(self, query: Node) -> Iterator[str]:
        for node in below([query]):
            stable = [name for name, promise in self.called(node) if promise == "s"]
            if stable and any(inner.kind == "VAR" for inner in below(list(node.fields.values()))):
                yield f"{stable[0]}() is not immutable and has a column: Citus refuses it; send the value it makes"
            if node.kind in _LAZY and (lazy := self.mutable(list(node.fields.values()), "s")):
                yield f"{min(lazy)}() is not immutable and stands in CASE or COALESCE: Citus refuses it; send its value"


def _type_of(value: object) -> str:
    """The type of an expression, where it says so itself."""
    if not isinstance(value, Node):
        return ""
    return next((value.first(name) for name in _TYPED if name in value.fields), "")
