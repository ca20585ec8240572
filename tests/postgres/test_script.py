"""A migration is cut where Postgres would cut it: never inside a text, a comment or a body."""

import psycopg
import pytest

from engram.store.postgres.schema import migrations, statements_of
from tests.tables import table

CUT = {
    "": [],
    "  ;;\n; -- nothing; at all\n": [],
    "SELECT 1": ["SELECT 1"],
    "SELECT 1;SELECT 2;": ["SELECT 1", "SELECT 2"],
    "-- first; of two\nSELECT 1; -- and\nSELECT 2": ["SELECT 1", "SELECT 2"],
    "SELECT 'a;''b; -- c', ''; SELECT 2": ["SELECT 'a;''b; -- c', ''", "SELECT 2"],
    "DO $$ BEGIN PERFORM 'a;'; -- one\nEND $$; SELECT 2 - 1": [
        "DO $$ BEGIN PERFORM 'a;'; -- one\nEND $$",
        "SELECT 2 - 1",
    ],
}
"""Scripts, and the statements in them."""


@table("script", CUT, ids=range(len(CUT)))
def test_a_script_is_cut_into_its_statements(script: str) -> None:
    assert statements_of(script) == CUT[script]


@pytest.mark.parametrize("number", migrations())
def test_every_statement_of_every_migration_is_one_for_the_server(number: int, shared_database: str) -> None:
    pieces = statements_of(migrations()[number])
    assert pieces, "a migration says something"
    with psycopg.connect(shared_database, autocommit=True) as connection:
        for piece in pieces:
            assert parsed_alone(connection, piece), piece


def parsed_alone(connection: psycopg.Connection, statement: str) -> bool:
    """Whether the server's own parser finds exactly one statement; nothing is carried out."""
    prepared = connection.pgconn.prepare(b"", statement.encode())
    words = bytes(prepared.error_message).decode()
    return "multiple commands" not in words and "syntax error" not in words and "unterminated" not in words


def test_the_server_would_have_said_so(shared_database: str) -> None:
    with psycopg.connect(shared_database, autocommit=True) as connection:
        assert not parsed_alone(connection, "SELECT 1; SELECT 2")
        assert not parsed_alone(connection, "SELECT 'a")
