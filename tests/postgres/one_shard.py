"""What a statement must be so that it works unchanged on one server, behind a pooler, and on Citus distributed by `tenant`.

Read with PostgreSQL's own parser, so no server is needed. Each rule has a reason that was met on a real cluster or stands in the
source of Citus' planner: it sends a statement to one shard only if it finds the tenant at every table, level by level.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from pglast import ast, parse_sql
from pglast.enums import A_Expr_Kind, BoolExprType, JoinType, SetOperation, VariableSetKind

from engram.store.postgres.schema import migrations

SCHEMA = "engram"
TENANT = "acme"
"""The tenant that stands in statements which write it out."""
_MODIFYING = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)
_LEVELS = (ast.SelectStmt, *_MODIFYING)
_ELSEWHERE = {
    "set_config": "Citus passes on only SET: write SET LOCAL with a literal",
    **dict.fromkeys(
        ("pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock", "pg_try_advisory_lock_shared"),
        "the lock of a session outlives the transaction, and behind a pooler the client: take pg_advisory_xact_lock",
    ),
}
_OF_THE_NODE = (
    "pg_current_snapshot",
    "pg_current_xact_id",
    "pg_xact_status",
    "txid_",
    "pg_snapshot_",
    "pg_postmaster_",
)
"""Beginnings of functions whose answer is that of the server which runs them."""
_PLAIN = (
    ast.SelectStmt, ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt, ast.VariableSetStmt, ast.TransactionStmt, ast.VacuumStmt,
    ast.IndexStmt, ast.DropStmt, ast.DeallocateStmt, ast.PrepareStmt,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement as it goes to the server, and which of its parameters are the tenant."""

    name: str
    text: str
    tenants: frozenset[int] = field(default_factory=frozenset)
    tenant: str = TENANT


def tables() -> frozenset[str]:
    """Every table that has a tenant, from the migrations."""
    found = (parsed.stmt for text in migrations().values() for parsed in parse_sql(text))
    made: Any = [stmt for stmt in found if isinstance(stmt, ast.CreateStmt)]
    return frozenset(
        stmt.relation.relname
        for stmt in made
        if any(isinstance(part, ast.ColumnDef) and part.colname == "tenant" for part in stmt.tableElts)
    )


def problems(statement: Statement, distributed: Collection[str]) -> list[str]:
    """What keeps a statement from going to one shard: each with the alias it is about and what to do."""
    parsed = parse_sql(statement.text)
    if len(parsed) != 1:
        return [f"{statement.name}: {len(parsed)} statements in one string; send one at a time"]
    read = _Read(statement, parsed[0].stmt, distributed)
    return [f"{statement.name}: {said}" for rule in _RULES for said in rule(read)]


# -- walking a tree


def nodes(root: object) -> Iterator[Any]:
    """A node and everything below it."""
    if isinstance(root, (tuple, list)):
        for item in root:
            yield from nodes(item)
    elif isinstance(root, ast.Node):
        yield root
        for member in root:
            yield from nodes(getattr(root, member))


def own(root: object) -> Iterator[Any]:
    """A node and what is below it, but for the queries inside."""
    if isinstance(root, (tuple, list)):
        for item in root:
            yield from own(item)
    elif isinstance(root, ast.Node):
        yield root
        for member in root:
            child = getattr(root, member)
            yield from own(child if not isinstance(child, _LEVELS) else None)


def conjuncts(condition: Any) -> Iterator[Any]:
    """The parts of a condition that must all hold."""
    if isinstance(condition, ast.BoolExpr) and condition.boolop == BoolExprType.AND_EXPR:
        for part in condition.args or ():
            yield from conjuncts(part)
    elif condition is not None:
        yield condition


def words(node: Any) -> tuple[str, ...]:
    """The parts of a column's or a function's name; `*` for all columns."""
    parts = node.fields if isinstance(node, ast.ColumnRef) else node.funcname
    return tuple(str(part.sval) if isinstance(part, ast.String) else "*" for part in parts or ())


def is_column(node: Any, name: str) -> bool:
    """Whether a node is a column of this name, of whatever table."""
    return isinstance(node, ast.ColumnRef) and words(node)[-1] == name


@dataclass(frozen=True, slots=True)
class _Table:
    """A table of one query level, the conditions that restrict it there, and whether it stands alone in its FROM."""

    node: Any
    conditions: tuple[Any, ...]
    alone: bool

    @property
    def alias(self) -> str:
        return str(self.node.alias.aliasname if self.node.alias else self.node.relname)


class _Read:
    """A statement's tree, and what the rules ask of it."""

    def __init__(self, statement: Statement, root: Any, distributed: Collection[str]) -> None:
        self.statement, self.root, self.distributed = statement, root, distributed
        self.all = list(nodes(root))
        self.levels: list[Any] = [node for node in self.all if isinstance(node, _LEVELS)]
        self.inserts: list[Any] = [level for level in self.levels if isinstance(level, ast.InsertStmt)]
        self.queries = {node.ctename for node in self.all if isinstance(node, ast.CommonTableExpr)}

    def called(self) -> list[str]:
        """The name of every function."""
        return [words(node)[-1] for node in self.all if isinstance(node, ast.FuncCall)]

    def is_distributed(self, node: Any) -> bool:
        """Whether a name in FROM is a table that has a tenant."""
        if not isinstance(node, ast.RangeVar) or (node.schemaname is None and node.relname in self.queries):
            return False
        return node.relname in self.distributed and node.schemaname in (None, SCHEMA)

    def tables(self, level: Any) -> list[_Table]:
        """The tables with a tenant in the FROM of a level; the target of an INSERT is not read."""
        if isinstance(level, ast.SelectStmt):
            sources = [*(level.fromClause or ())]
        elif isinstance(level, ast.UpdateStmt):
            sources = [level.relation, *(level.fromClause or ())]
        elif isinstance(level, ast.DeleteStmt):
            sources = [level.relation, *(level.usingClause or ())]
        else:
            return []
        wanted = tuple(conjuncts(level.whereClause))
        alone = len(sources) == 1 and isinstance(sources[0], ast.RangeVar)
        found = (pair for source in sources for pair in _joined(source, wanted))
        return [_Table(node, conditions, alone) for node, conditions in found if self.is_distributed(node)]

    def is_tenant(self, node: Any) -> bool:
        """Whether a value is the tenant: its parameter, or the tenant written out."""
        while isinstance(node, (ast.TypeCast, ast.CollateClause)):
            node = node.arg
        if isinstance(node, ast.ParamRef):
            return node.number in self.statement.tenants
        return isinstance(node, ast.A_Const) and getattr(node.val, "sval", None) == self.statement.tenant

    def restricts(self, condition: Any, table: _Table) -> bool:
        """Whether a condition says that a table's tenant is the tenant."""
        if (
            not isinstance(condition, ast.A_Expr)
            or condition.kind != A_Expr_Kind.AEXPR_OP
            or _operator(condition) != "="
        ):
            return False
        sides = ((condition.lexpr, condition.rexpr), (condition.rexpr, condition.lexpr))
        return any(self._is_its_tenant(column, table) and self.is_tenant(value) for column, value in sides)

    def _is_its_tenant(self, node: Any, table: _Table) -> bool:
        if not isinstance(node, ast.ColumnRef):
            return False
        return words(node) == (table.alias, "tenant") or (table.alone and words(node) == ("tenant",))

    def is_restricted(self, table: _Table) -> bool:
        """Whether a table's tenant is named where it stands."""
        return any(self.restricts(condition, table) for condition in table.conditions)


def _operator(node: Any) -> str:
    return str(node.name[-1].sval)


def _joined(source: Any, conditions: tuple[Any, ...]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The names in a part of FROM, each with the conditions that restrict it: the ON of an outer join restricts one side only."""
    if isinstance(source, ast.JoinExpr):
        on = tuple(conjuncts(source.quals))
        left = on if source.jointype in (JoinType.JOIN_INNER, JoinType.JOIN_RIGHT) else ()
        right = on if source.jointype in (JoinType.JOIN_INNER, JoinType.JOIN_LEFT) else ()
        yield from _joined(source.larg, conditions + left)
        yield from _joined(source.rarg, conditions + right)
    else:
        yield source, conditions


# -- the rules


def _every_alias_names_the_tenant(read: _Read) -> Iterator[str]:
    for level in read.levels:
        for table in read.tables(level):
            if not read.is_restricted(table):
                yield (
                    f"{table.alias} ({SCHEMA}.{table.node.relname}) does not name the tenant in its own query: add "
                    f"`{table.alias}.tenant = %(tenant)s` to its WHERE, or to the ON that joins it"
                )


def _no_tenant_comes_from_another_table(read: _Read) -> Iterator[str]:
    for node in read.all:
        if isinstance(node, ast.A_Expr) and is_column(node.lexpr, "tenant") and is_column(node.rexpr, "tenant"):
            one, other = ".".join(words(node.lexpr)), ".".join(words(node.rexpr))
            yield f"{one} {_operator(node)} {other} takes the tenant from another table; say `{one} = %(tenant)s`"


def _a_table_is_named_with_its_schema(read: _Read) -> Iterator[str]:
    for node in read.all:
        if read.is_distributed(node) and node.schemaname is None:
            yield f"{node.relname} is found by the search path, which each server has its own; say {SCHEMA}.{node.relname}"


def _no_table_of_one_server_beside_distributed_ones(read: _Read) -> Iterator[str]:
    named: list[Any] = [
        node for node in read.all if isinstance(node, ast.RangeVar) and node.relname not in read.queries
    ]
    local = sorted({node.relname for node in named if not read.is_distributed(node)})
    if local and len(local) < len({node.relname for node in named}) and isinstance(read.root, _LEVELS):
        yield f"{', '.join(local)} has no tenant and stays on one server; ask for it in a statement of its own"


def _an_insert_leads_with_the_tenant(read: _Read) -> Iterator[str]:
    for insert in read.inserts:
        if not read.is_distributed(insert.relation):
            continue
        name = f"{SCHEMA}.{insert.relation.relname}"
        if not insert.cols or insert.cols[0].name != "tenant":
            yield f"INSERT INTO {name}: name its columns, tenant first"
            continue
        for value, level in _first_values(insert.selectStmt):
            restricted = {table.alias for table in read.tables(level) if read.is_restricted(table)}
            if not read.is_tenant(value) and not (is_column(value, "tenant") and words(value)[0] in restricted):
                yield f"INSERT INTO {name}: its tenant is neither %(tenant)s nor `alias.tenant` of a table restricted to it"


def _first_values(select: Any) -> Iterator[tuple[Any, Any]]:
    """The first value of each row or arm that an INSERT takes, and the level it stands in."""
    if select.op != SetOperation.SETOP_NONE:
        yield from _first_values(select.larg)
        yield from _first_values(select.rarg)
    elif select.valuesLists:
        yield from ((row[0], select) for row in select.valuesLists)
    else:
        yield select.targetList[0].val, select


def _an_insert_of_given_rows_is_no_copy(read: _Read) -> Iterator[str]:
    """Citus would fetch the rows and COPY them, which row security forbids; with either clause it inserts them."""
    for insert in read.inserts:
        select = insert.selectStmt
        if not read.is_distributed(insert.relation) or select is None or select.valuesLists:
            continue
        given = any(not is_column(value, "tenant") for value, _ in _first_values(select))
        if given and not insert.returningClause and not insert.onConflictClause:
            yield f"INSERT INTO {SCHEMA}.{insert.relation.relname} … SELECT of given rows: add RETURNING 1 (or ON CONFLICT)"
        # The rows are inserted by a second statement, which is made without the parameters of the first.
        if any(isinstance(node, ast.ParamRef) for node in nodes((insert.returningClause, insert.onConflictClause))):
            yield "a parameter in ON CONFLICT or RETURNING of an INSERT … SELECT; select it as a column, take it from excluded"


def _no_subquery_in_values(read: _Read) -> Iterator[str]:
    for insert in read.inserts:
        if insert.selectStmt is not None and any(
            isinstance(n, ast.SubLink) for n in nodes(insert.selectStmt.valuesLists)
        ):
            yield "a subquery in VALUES; ask first and send what it answered, or write INSERT … SELECT"
        if any(isinstance(node, ast.SubLink) for node in nodes(insert.onConflictClause)):
            yield "a subquery in ON CONFLICT; ask first and send what it answered"


def _no_simple_case_in_a_modification(read: _Read) -> Iterator[str]:
    """Citus reckons `CASE x WHEN y` as a comparison without a column, once for all rows, and sends NULL."""
    for level in (level for level in read.levels if isinstance(level, _MODIFYING)):
        for node in nodes(level):
            if isinstance(node, ast.CaseExpr) and node.arg is not None:
                yield "CASE x WHEN y in a modification; write CASE WHEN x = y"


def _no_writing_with(read: _Read) -> Iterator[str]:
    for node in read.all:
        if isinstance(node, ast.CommonTableExpr) and isinstance(node.ctequery, _MODIFYING):
            yield f"WITH {node.ctename} writes; send a statement for each table in the same transaction"
        if isinstance(node, ast.CommonTableExpr) and (node.search_clause or node.cycle_clause):
            yield f"WITH {node.ctename} has a SEARCH or CYCLE clause, which Citus does not know"


def _the_tenant_of_a_row_never_changes(read: _Read) -> Iterator[str]:
    for node in read.all:
        changed = node.targetList if isinstance(node, (ast.UpdateStmt, ast.OnConflictClause)) else ()
        if any(target.name == "tenant" for target in changed or ()):
            yield "SET tenant: a row would have to move to another shard; delete and insert it"


def _numbers_come_from_no_table(read: _Read) -> Iterator[str]:
    named = any(isinstance(node, ast.RangeVar) for node in read.all)
    if named and "nextval" in read.called():
        yield "nextval beside a table: sequences are the coordinator's; take the number in a SELECT without any table"


def _nothing_is_only_of_the_server_that_answers(read: _Read) -> Iterator[str]:
    yield from (f"{name}(): {_ELSEWHERE[name]}" for name in read.called() if name in _ELSEWHERE)
    for level in read.levels:
        called = {words(node)[-1] for node in own(level) if isinstance(node, ast.FuncCall)}
        local = {name for name in called if name.startswith(_OF_THE_NODE)}
        if local and not any(read.is_restricted(table) for table in read.tables(level)):
            yield f"{', '.join(sorted(local))}: each server answers for itself; ask it FROM a table of the tenant"
    for node in read.all:
        if is_column(node, "tableoid"):
            yield "tableoid is each server's own; ask for the table by name"
        if is_column(node, "ctid") and any(
            not read.is_restricted(t) for level in read.levels for t in read.tables(level)
        ):
            yield "ctid is a place in one shard: every table of the statement must name the tenant"


def _settings_are_of_the_transaction(read: _Read) -> Iterator[str]:
    node = read.root
    if isinstance(node, ast.VariableSetStmt):
        one = node.kind == VariableSetKind.VAR_SET_VALUE and len(node.args or ()) == 1
        if not node.is_local or not one or not isinstance((node.args or (None,))[0], ast.A_Const):
            yield f"SET {node.name}: write SET LOCAL {node.name} = one literal, inside a transaction"


def _only_what_all_of_them_know(read: _Read) -> Iterator[str]:
    if not isinstance(read.root, _PLAIN):
        yield f"{type(read.root).__name__} is not among what works everywhere; COPY, LOCK, LISTEN, CALL and MERGE do not"


_RULES: tuple[Callable[[_Read], Iterator[str]], ...] = (
    _every_alias_names_the_tenant,
    _no_tenant_comes_from_another_table,
    _a_table_is_named_with_its_schema,
    _no_table_of_one_server_beside_distributed_ones,
    _an_insert_leads_with_the_tenant,
    _an_insert_of_given_rows_is_no_copy,
    _no_subquery_in_values,
    _no_simple_case_in_a_modification,
    _no_writing_with,
    _the_tenant_of_a_row_never_changes,
    _numbers_come_from_no_table,
    _nothing_is_only_of_the_server_that_answers,
    _settings_are_of_the_transaction,
    _only_what_all_of_them_know,
)
