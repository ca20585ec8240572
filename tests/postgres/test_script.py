"""A script is cut where Postgres would cut it: never inside a quote, a comment, a rule or a routine's body."""

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import errors

from engram.store.postgres.migrating import migrations
from engram.store.postgres.script import statements_of

ROUTINE = """CREATE FUNCTION pg_temp.f(a int) RETURNS int LANGUAGE sql BEGIN ATOMIC
    SELECT 1; SELECT CASE WHEN a > 0 THEN (CASE a WHEN 1 THEN 2 END) ELSE 0 END; SELECT 3;
END"""
CUT = {
    "": [],
    "  ;;\n; -- nothing\n /* ; */ ": [],
    "SELECT 1": ["SELECT 1"],
    "SELECT 1;SELECT 2;": ["SELECT 1", "SELECT 2"],
    "-- first\nSELECT 1 -- one; and\n; /* second */ SELECT 2 /* ; */;": ["SELECT 1", "SELECT 2"],
    "SELECT 1 /* a /* b; */ c; */ + 1; SELECT 2": ["SELECT 1 /* a /* b; */ c; */ + 1", "SELECT 2"],
    "SELECT 'a;''b;', ''; SELECT 2": ["SELECT 'a;''b;', ''", "SELECT 2"],
    r"SELECT 'a\'; SELECT 2": [r"SELECT 'a\'", "SELECT 2"],
    r"SELECT E'a\'; b', e'\\'; SELECT 2": [r"SELECT E'a\'; b', e'\\'", "SELECT 2"],
    "SELECT E'a'  -- goes on;\n  '\\'; b'; SELECT 2": ["SELECT E'a'  -- goes on;\n  '\\'; b'", "SELECT 2"],
    "SELECT date'2026-01-01', 1 AS e; SELECT 2": ["SELECT date'2026-01-01', 1 AS e", "SELECT 2"],
    'SELECT 1 AS "a;""b;"; SELECT 2': ['SELECT 1 AS "a;""b;"', "SELECT 2"],
    "SELECT $$a;'b$$, $x$ $$ ; $y$ $x$; SELECT 2": ["SELECT $$a;'b$$, $x$ $$ ; $y$ $x$", "SELECT 2"],
    "SELECT 1 AS a$b$c; SELECT 2 AS d$b$": ["SELECT 1 AS a$b$c", "SELECT 2 AS d$b$"],
    "SELECT 1 AS ü$$; SELECT $é$;$é$": ["SELECT 1 AS ü$$", "SELECT $é$;$é$"],
    "SELECT 2 - -1 --;\n; SELECT 4 /2; SELECT 3": ["SELECT 2 - -1", "SELECT 4 /2", "SELECT 3"],
    "DO $$ BEGIN PERFORM 1; PERFORM 2; END $$; SELECT 2": ["DO $$ BEGIN PERFORM 1; PERFORM 2; END $$", "SELECT 2"],
    "CREATE TEMP TABLE t (a int); CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2); SELECT 3": [
        "CREATE TEMP TABLE t (a int)",
        "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)",
        "SELECT 3",
    ],
    f"{ROUTINE}; SELECT 2": [ROUTINE, "SELECT 2"],
    "BEGIN; SELECT 1 AS atomic; END; SELECT 2": ["BEGIN", "SELECT 1 AS atomic", "END", "SELECT 2"],
}
"""Scripts, and the statements in them."""


@pytest.mark.parametrize("script", CUT, ids=range(len(CUT)))
def test_a_script_is_cut_into_its_statements(script: str) -> None:
    assert statements_of(script) == CUT[script]


@pytest.mark.parametrize(
    "script", ["SELECT 'a; ''", 'SELECT "a;', "SELECT $x$ a $y$;", "SELECT 1 /* /* */ ;", r"SELECT E'a\';"]
)
def test_what_is_never_closed_is_refused(script: str) -> None:
    with pytest.raises(ValueError, match="never closed"):
        statements_of(script)


@pytest.mark.parametrize("number", migrations())
def test_every_statement_of_every_migration_is_one_for_the_server(number: int, shared_database: str) -> None:
    pieces = statements_of(migrations()[number])
    assert pieces, "a migration says something"
    with psycopg.connect(shared_database, autocommit=True) as connection:
        for piece in pieces:
            assert parsed_alone(connection, piece), piece


@pytest.mark.parametrize("script", CUT, ids=range(len(CUT)))
def test_the_server_takes_each_piece_as_one_statement(script: str, shared_database: str) -> None:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        assert all(parsed_alone(connection, piece) for piece in statements_of(script))


def parsed_alone(connection: psycopg.Connection, statement: str) -> bool:
    """Whether the server's own parser finds exactly one statement; nothing is carried out."""
    prepared = connection.pgconn.prepare(b"", statement.encode())
    words = bytes(prepared.error_message).decode()
    return "multiple commands" not in words and "syntax error" not in words and "unterminated" not in words


def test_the_server_would_have_said_so(shared_database: str) -> None:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        assert not parsed_alone(connection, "SELECT 1; SELECT 2")
        assert not parsed_alone(connection, "SELECT 'a")
        with pytest.raises(errors.SyntaxError, match="multiple commands"):
            connection.execute("SELECT %s; SELECT 2", (1,))


PIECES = st.sampled_from(
    [
        "SELECT",
        "x",
        " 1",
        " ",
        "\n",
        "'a;b'",
        "''",
        r"E'\';'",
        '"c;d"',
        "$$;$$",
        "$t$ $$; $t$",
        "/* ; */",
        "-- ;\n",
        "(1;2)",
        "a$b",
    ]
)


@given(st.lists(st.lists(PIECES, min_size=1).map(lambda some: ["SELECT ", *some]), max_size=5))
def test_statements_put_together_come_apart_again(statements: list[list[str]]) -> None:
    texts = [" ".join(pieces) for pieces in statements]
    found = statements_of(";".join(f"{text}\n" for text in texts))
    assert len(found) == len(texts)
    for text, piece in zip(texts, found, strict=True):
        assert text.startswith(piece)
        assert all(rest in ("", "/*", ";", "*/") or rest.startswith("--") for rest in text[len(piece) :].split())
