"""One table of a TOML file is set and removed; every other byte stays."""

import tomllib

import pytest

from engram.agents.wiring.toml_table import parse, with_table, with_table_of, with_value, without_table
from engram.model.errors import InvalidInput
from tests.tables import table

PATH = ("mcp_servers", "engram")
ENTRY = {"command": '/opt/it\'s "here"/engram', "args": ["mcp"], "env": {"ENGRAM_HOME": "/tmp/ü 🙂"}}
FILES = [
    "",
    'model = "gpt"\n',
    '# mine\nmodel = "gpt" # the best\n\n[mcp_servers.other]\ncommand = "x"\n',
    '[mcp_servers.other]\ncommand = "x"\n\n# projects\n[projects."/a b"]\ntrust = true\n',
    'model = "gpt"\r\n',
]


@pytest.mark.parametrize("text", FILES)
def test_removing_what_was_added_restores_every_byte(text: str) -> None:
    made = with_table(text, PATH, ENTRY)
    assert tomllib.loads(made)["mcp_servers"]["engram"] == ENTRY
    assert without_table(made, PATH) == text


TABLE = """\
[mcp_servers.engram] # my note
# why old
  command = "old"  # was "new" # once
args = [ # all
  "mcp", # the server
]
since = 2020-01-01
note = \'\'\'
command = "no key"
\'\'\'
# the last word

[mcp_servers.engram.env] # mine
A = "1"
"""


@table(
    ("path", "value", "before", "after"),
    [
        (("command",), "new", '  command = "old"  # was', 'command = "new"  # was'),
        (("args",), ["x"], '[ # all\n  "mcp", # the server\n]', '["x"]'),
        (("cwd",), "/tmp", "'''\n# the last", "'''\ncwd = \"/tmp\"\n# the last"),
        (("env", "A"), "2", 'A = "1"', 'A = "2"'),
        (("env", "B"), "2", 'A = "1"\n', 'A = "1"\nB = "2"\n'),
    ],
)
def test_a_value_is_set_where_it_is_and_comments_stay(
    path: tuple[str, ...], value: object, before: str, after: str
) -> None:
    assert TABLE.count(before) == 1
    for text in (TABLE, TABLE.replace("\n", "\r\n")):
        assert with_value(text, (*PATH, *path), value).replace("\r\n", "\n") == TABLE.replace(before, after)


@pytest.mark.parametrize("text", ["", "mcp_servers = { engram = {} }", "[mcp_servers]\nengram = {}", "[mcp_servers.x]"])
def test_a_value_of_a_table_without_a_header_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no header"):
        with_value(text, (*PATH, "command"), "new")


@table("text", [TABLE, TABLE.rstrip("\n"), f'model = "x"\n\n{TABLE}\n[other] # theirs\na = 1\n'])
def test_a_table_is_put_back_as_another_text_has_it(text: str) -> None:
    changed = with_value(with_value(text, (*PATH, "command"), "new"), (*PATH, "env", "B"), "2")
    assert with_table_of(changed, PATH, text).rstrip("\n") == text.rstrip("\n")
    assert with_table_of(f"new = 1\n{changed}", PATH, text).rstrip("\n") == f"new = 1\n{text}".rstrip("\n")


def test_what_is_not_toml_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not valid TOML"):
        parse("a = = 1")
