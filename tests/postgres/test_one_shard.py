"""Every statement works unchanged on one server, behind a pooler and on Citus: it names one tenant, and goes to one shard.

Citus is not needed for it: the rules are those of its planner, and `make test-citus` asks a real one.
"""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from pglast import ast, parse_sql

from engram.store.postgres.schema import migrations
from engram.store.postgres.setup import open_store
from engram.store.postgres.sql import _statements
from tests.clock import Clock
from tests.once import once
from tests.postgres import whole_day
from tests.postgres.mutability import Functions
from tests.postgres.one_shard import Statement, nodes, problems, tables, words
from tests.postgres.recording import recording_server
from tests.postgres.server import Server, fresh_database, ordinary_role
from tests.postgres.statements import FILLED, FRAGMENTS, every_statement, numbered, placeholders

pytestmark = pytest.mark.heavy

USED, MOVED = "recorded", "recorded-2"
MODIFYING = (ast.InsertStmt, ast.UpdateStmt, ast.DeleteStmt)
EXCEPTED = {
    "vectors_partition": "asked only where the vectors are partitioned within one server: the partition is that server's",
    "due_tenants": "a worker of all tenants asks all shards for the names of tenants with work: names only, without a lock",
    "SET \"statement_timeout\" = '6h'": "for vacuum and CREATE INDEX, outside of any transaction and never through a pooler",
    "SET \"lock_timeout\" = '20s'": "the same",
    "SET \"maintenance_work_mem\" = '512MB'": "the same",
}
"""What does not keep to the rules, and why it may."""
NOT_IN_A_DAY = {
    **dict.fromkeys((name for name in _statements() if name.startswith("citus_")), "asked where there is a Citus"),
    "what_became": "asked when the answer to a commit was lost",
    "last_document": "asked when a number came twice",
    "last_seq": "asked when a number came twice",
    "following": "asked of a replica",
    "vectors_partition": "asked where the vectors are partitioned",
    "foldable_slice": "asked once, of a tenant that an older version filled",
    "writable": "asked for a role that lacks privileges",
}
"""What no ordinary day holds. The rules are held against their text all the same."""


@pytest.fixture(scope="module")
def distributed() -> frozenset[str]:
    return tables()


@pytest.fixture(scope="module")
def sent(run_folder: Path, postgres_server: Server) -> list[Statement]:
    """What a server was asked in the whole life of a tenant, each text once."""
    return once(run_folder, "statements of a day", lambda: _recorded(postgres_server))


def _recorded(server: Server) -> list[Statement]:
    with (
        recording_server(server.kept) as recorder,
        ordinary_role(recorder.server) as role,
        fresh_database(role) as url,
    ):
        open_store(url, "migrating", None, clock=Clock()).close()
        dbname = url.rpartition("/")[2]
        before = len(recorder.sent(dbname, role.name))
        whole_day.live(url, USED, MOVED)
        statements = recorder.statements(dbname, role.name, {USED, MOVED}, before)
        return list({statement.text: statement for statement in statements}.values())


# -- the product's own


def test_every_statement_of_the_files_goes_to_one_shard(distributed: frozenset[str]) -> None:
    found = {statement.name: problems(statement, distributed) for statement in every_statement()}
    assert [said for name, told in found.items() if name not in EXCEPTED for said in told] == []


def test_every_statement_that_was_sent_goes_to_one_shard(sent: list[Statement], distributed: frozenset[str]) -> None:
    named = {numbered(name, text).text: name for name, text in _statements().items()}
    told = {named.get(statement.text, statement.text): problems(statement, distributed) for statement in sent}
    assert [said for name, found in told.items() if name not in EXCEPTED for said in found] == []


def test_a_day_holds_every_statement_of_the_files(sent: list[Statement]) -> None:
    texts = {statement.text for statement in sent}
    missing = [
        name
        for name, text in _statements().items()
        if name not in FRAGMENTS | set(NOT_IN_A_DAY) and not _was_sent(text, texts)
    ]
    assert missing == []


def _was_sent(text: str, texts: set[str]) -> bool:
    """Whether a statement is among these; of a template its beginning, and the slices of a rebuild are sent FOR UPDATE."""
    beginning = numbered("", text.partition("{")[0] if placeholders(text) else text).text
    whole = {beginning, f"{beginning} FOR UPDATE"}
    return any(sent in whole or (placeholders(text) and sent.startswith(beginning)) for sent in texts)


def test_every_template_is_filled_here_as_the_product_fills_it() -> None:
    assert {name for name, text in _statements().items() if placeholders(text)} - FRAGMENTS == FILLED


def test_every_exception_is_needed(sent: list[Statement], distributed: frozenset[str]) -> None:
    known = {statement.name: statement for statement in (*sent, *every_statement())}
    assert [name for name in EXCEPTED if name not in known or not problems(known[name], distributed)] == []
    assert set(NOT_IN_A_DAY) - set(_statements()) == set()


def test_the_tables_with_a_tenant_are_those_of_the_server(shared_database: str, distributed: frozenset[str]) -> None:
    with psycopg.connect(shared_database) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.columns WHERE table_schema = 'engram' AND column_name = 'tenant'"
        ).fetchall()
    assert {name for (name,) in rows} == distributed


def test_no_policy_holds_a_subquery(distributed: frozenset[str]) -> None:
    policies = [
        node
        for text in migrations().values()
        for node in nodes(tuple(parsed.stmt for parsed in parse_sql(text)))
        if isinstance(node, ast.CreatePolicyStmt)
    ]
    assert policies
    subqueries = [policy.policy_name for policy in policies if any(isinstance(n, ast.SubLink) for n in nodes(policy))]
    assert subqueries == [], "Citus distributes no table whose policy has a subquery"


# -- what functions promise


@pytest.fixture(scope="module")
def functions(shared_database: str) -> Iterator[Functions]:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        yield Functions(connection)


def is_modifying(statement: Statement) -> bool:
    return isinstance(parse_sql(statement.text)[0].stmt, MODIFYING)


def test_a_modification_calls_no_function_that_citus_refuses(functions: Functions) -> None:
    modifying = [statement for statement in every_statement() if is_modifying(statement)]
    assert len(modifying) > 80
    assert [told for statement in modifying for told in functions.problems(statement)] == []


def test_a_question_to_a_shard_calls_no_volatile_function(
    functions: Functions, sent: list[Statement], distributed: frozenset[str]
) -> None:
    for statement in (*every_statement(), *sent):
        root = parse_sql(statement.text)[0].stmt
        held = list(nodes(root)) if isinstance(root, ast.SelectStmt) else []
        if any(isinstance(node, ast.RangeVar) and node.relname in distributed for node in held):
            called = {words(node)[-1] for node in held if isinstance(node, ast.FuncCall)}
            assert functions.volatile_named(called) == set(), statement.name


VOLATILE = {
    "INSERT INTO engram.tombstones (tenant, id) VALUES ($1, random()::text)": "random() is volatile",
    "INSERT INTO engram.commits (tenant, writer, token, at) SELECT $1, 'w', 't', clock_timestamp() RETURNING 1": "volatile",
    "UPDATE engram.journal SET reason = at::text WHERE tenant = $1": "timestamptz_out() is not immutable and has a column",
    "DELETE FROM engram.journal WHERE tenant = $1 AND to_char(at, 'YYYY') = '2020'": "to_char() is not immutable and has",
    "DELETE FROM engram.journal WHERE tenant = $1 AND reason = coalesce(now()::text, '')": "now() is not immutable and stands",
    "UPDATE engram.journal SET reason = CASE WHEN now() > $2 THEN '' END WHERE tenant = $1": "in CASE or COALESCE",
    "DELETE FROM engram.scopes WHERE tenant = $1 RETURNING now()": "now() in returningList",
    "INSERT INTO engram.commits (tenant, writer, token, at) VALUES ($1, '', '', now()) "
    "ON CONFLICT (tenant, writer) DO UPDATE SET at = now()": "now() in onConflict",
}


@pytest.mark.parametrize("text", VOLATILE)
def test_a_function_that_citus_refuses_is_told(functions: Functions, text: str) -> None:
    assert any(VOLATILE[text] in told for told in functions.problems(Statement("bad", text)))


def test_what_is_computed_from_values_alone_may_be_less_than_immutable(functions: Functions) -> None:
    for text in (
        "INSERT INTO engram.commits (tenant, writer, token, at) VALUES ($1, '', '', now())",
        "DELETE FROM engram.commits WHERE tenant = $1 AND at < now()",
        "UPDATE engram.agent_events e SET record = g.record::json FROM unnest($2::text[]) AS g(record) WHERE e.tenant = $1",
    ):
        assert functions.problems(Statement("good", text)) == []


# -- every rule can fail

BAD = {
    "SELECT 1 FROM engram.terms t": "t (engram.terms) does not name the tenant",
    "SELECT 1 FROM engram.terms t WHERE t.tenant = $2": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t WHERE t.tenant = 'other'": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t WHERE t.tenant = $1 OR true": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t WHERE NOT t.tenant = $1": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t WHERE t.tenant >= $1": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t WHERE t.term = $1": "t (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t, engram.postings p WHERE tenant = $1": "p (engram.postings) does not name",
    "SELECT 1 FROM engram.terms t JOIN engram.postings p ON p.term = t.term WHERE t.tenant = $1": "p (engram.postings) does",
    "SELECT 1 FROM engram.terms t LEFT JOIN engram.postings p ON p.tenant = $1 AND t.tenant = $1": "t (engram.terms) does not",
    "SELECT 1 FROM engram.terms t RIGHT JOIN engram.postings p ON p.tenant = $1 AND t.tenant = $1": "p (engram.postings) does",
    "SELECT 1 FROM engram.terms t FULL JOIN engram.postings p ON p.tenant = $1 AND t.tenant = $1": "p (engram.postings) does",
    "SELECT (SELECT 1 FROM engram.postings p WHERE p.n = 1) FROM engram.terms t WHERE t.tenant = $1": "p (engram.postings)",
    "SELECT 1 FROM engram.terms t WHERE t.tenant = $1 AND EXISTS (SELECT FROM engram.postings p)": "p (engram.postings)",
    "SELECT 1 FROM unnest($2::text[]) u CROSS JOIN LATERAL (SELECT 1 FROM engram.terms t WHERE t.term = u) x": "t (engram.terms)",
    "WITH x AS (SELECT 1 FROM engram.terms t) SELECT 1 FROM x": "t (engram.terms) does not name",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT t.documents FROM x, engram.terms t) SELECT n FROM x": "t (engram.terms)",
    "SELECT 1 FROM engram.terms t WHERE t.tenant = $1 UNION ALL SELECT 1 FROM engram.postings p": "p (engram.postings) does not",
    "SELECT term FROM engram.terms t ORDER BY (SELECT max(p.n) FROM engram.postings p)": "p (engram.postings) does not name",
    "UPDATE engram.terms t SET documents = 1": "t (engram.terms) does not name",
    "UPDATE engram.terms t SET documents = p.n FROM engram.postings p WHERE t.tenant = $1": "p (engram.postings) does not name",
    "DELETE FROM engram.terms t USING engram.postings p WHERE p.tenant = $1": "t (engram.terms) does not name",
    "DELETE FROM engram.terms USING unnest($2::text[]) AS gone(tenant) WHERE tenant = $1": "terms (engram.terms) does not name",
    "SELECT 1 FROM engram.terms t JOIN engram.postings p ON p.tenant = t.tenant WHERE t.tenant = $1 AND p.tenant = $1":
        "p.tenant = t.tenant takes the tenant from another table",
    "SELECT 1 FROM terms t WHERE t.tenant = $1": "say engram.terms",
    "SELECT 1 FROM engram.terms t, engram.schema_versions s WHERE t.tenant = $1": "schema_versions has no tenant",
    "SELECT 1 FROM engram.terms t JOIN pg_class c ON c.relname = t.term WHERE t.tenant = $1": "pg_class has no tenant",
    "INSERT INTO engram.tombstones VALUES ($1, 'x')": "name its columns, tenant first",
    "INSERT INTO engram.tombstones (id, tenant) VALUES ('x', $1)": "name its columns, tenant first",
    "INSERT INTO engram.tombstones (tenant, id) VALUES ($2, 'x')": "its tenant is neither",
    "INSERT INTO engram.tombstones (tenant, id) SELECT u, u FROM unnest($2::text[]) u RETURNING 1": "its tenant is neither",
    "INSERT INTO engram.tombstones (tenant, id) SELECT d.tenant, d.id FROM engram.documents d": "its tenant is neither",
    "INSERT INTO engram.tombstones (tenant, id) SELECT $1, u FROM unnest($2::text[]) u": "add RETURNING 1",
    "INSERT INTO engram.tombstones (tenant, id) SELECT $1, d.id FROM engram.documents d WHERE d.tenant = $1": "add RETURNING 1",
    "INSERT INTO engram.scopes (tenant, scope, change) SELECT $1, u, 1 FROM unnest($2::text[]) u "
    "ON CONFLICT (tenant, scope) DO UPDATE SET change = $3": "a parameter in ON CONFLICT",
    "INSERT INTO engram.tombstones (tenant, id) VALUES ($1, (SELECT 'x'))": "a subquery in VALUES",
    "INSERT INTO engram.scopes (tenant, scope, change) VALUES ($1, '', 1) ON CONFLICT (tenant, scope) DO UPDATE SET change = "
    "(SELECT max(s.change) FROM engram.scopes s WHERE s.tenant = $1)": "a subquery in ON CONFLICT",
    "INSERT INTO engram.scopes AS s (tenant, scope, change) VALUES ($1, '', 1) ON CONFLICT (tenant, scope) DO UPDATE SET change = "
    "CASE s.change WHEN 1 THEN 2 ELSE 3 END": "CASE x WHEN y in a modification",
    "UPDATE engram.scopes SET change = CASE change WHEN 1 THEN 2 END WHERE tenant = $1": "CASE x WHEN y in a modification",
    "WITH x AS (DELETE FROM engram.terms t WHERE t.tenant = $1 RETURNING 1) SELECT 1 FROM x": "WITH x writes",
    "WITH RECURSIVE x AS (SELECT 1 AS n UNION ALL SELECT n FROM x) SEARCH DEPTH FIRST BY n SET o SELECT 1 FROM x": "SEARCH or CYCLE",
    "UPDATE engram.terms t SET tenant = $1 WHERE t.tenant = $1": "SET tenant",
    "INSERT INTO engram.tombstones (tenant, id) VALUES ($1, '') ON CONFLICT (tenant, id) DO UPDATE SET tenant = excluded.tenant":
        "SET tenant",
    "SELECT nextval('engram.use_numbers'), t.term FROM engram.terms t WHERE t.tenant = $1": "nextval beside a table",
    "SELECT set_config('engram.tenant', $1, true)": "write SET LOCAL",
    "SELECT pg_advisory_lock(1)": "pg_advisory_xact_lock",
    "SELECT pg_current_snapshot()": "ask it FROM a table of the tenant",
    "SELECT pg_xact_status($2)": "ask it FROM a table of the tenant",
    "SELECT (SELECT pg_current_snapshot()) FROM engram.journal j WHERE j.tenant = $1": "ask it FROM a table of the tenant",
    "SELECT t.tableoid FROM engram.terms t WHERE t.tenant = $1": "tableoid is each server's own",
    "DELETE FROM engram.terms t WHERE t.tenant = $1 AND ctid = ANY(ARRAY(SELECT p.ctid FROM engram.postings p))": "ctid is a place",
    "SET jit = off": "write SET LOCAL jit",
    "SET LOCAL search_path = engram, public": "write SET LOCAL search_path = one literal",
    "SET LOCAL jit TO DEFAULT": "write SET LOCAL jit = one literal",
    "RESET jit": "write SET LOCAL",
    "COPY engram.terms FROM STDIN": "CopyStmt is not among what works everywhere",
    "LISTEN jobs": "ListenStmt is not among",
    "LOCK TABLE engram.terms": "LockStmt is not among",
    "SELECT 1; SELECT 2": "2 statements in one string",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD)
def test_a_statement_that_breaks_a_rule_is_told_so(text: str, distributed: frozenset[str]) -> None:
    told = problems(Statement("bad", text, frozenset({1})), distributed)
    assert any(BAD[text] in said for said in told), told
    assert all(said.startswith("bad: ") for said in told)


GOOD = [
    "SELECT 1 FROM engram.terms WHERE tenant = $1",
    "SELECT 1 FROM engram.terms t WHERE $1 = t.tenant",
    "SELECT 1 FROM engram.terms WHERE terms.tenant = 'acme'",
    "SELECT 1 FROM engram.terms t JOIN engram.postings p ON p.tenant = $1 AND p.term = t.term WHERE t.tenant = $1",
    "SELECT 1 FROM engram.terms t LEFT JOIN engram.postings p ON p.tenant = $1 WHERE t.tenant = $1",
    "SELECT 1 FROM engram.terms t JOIN engram.postings p ON p.tenant = $1 AND t.tenant = $1",
    "WITH terms AS (SELECT 1 AS n) SELECT n FROM terms",
    "INSERT INTO engram.tombstones (tenant, id) SELECT d.tenant, d.id FROM engram.documents d WHERE d.tenant = $1",
    "INSERT INTO engram.tombstones (tenant, id) SELECT $1, u FROM unnest($2::text[]) u ON CONFLICT DO NOTHING",
    "SELECT max(seq), pg_current_snapshot() FROM engram.journal WHERE tenant = $1",
    "SELECT nextval('engram.use_numbers') FROM generate_series(1, 3)",
    "SET LOCAL jit = off",
    "SELECT CASE t.term WHEN '' THEN 1 END FROM engram.terms t WHERE t.tenant = $1",
]


@pytest.mark.parametrize("text", GOOD)
def test_a_statement_that_keeps_to_the_rules_is_left_alone(text: str, distributed: frozenset[str]) -> None:
    assert problems(Statement("good", text, frozenset({1})), distributed) == []
