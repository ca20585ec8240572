"""One table of a TOML file is set and removed; every other byte stays."""

import tomllib

import pytest

from engram.harnesses.toml_table import parse, with_table, without_table
from engram.model.errors import InvalidInput

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


def test_an_entry_is_renewed_where_it_is() -> None:
    text = '[mcp_servers.engram]\ncommand = "old"\n[mcp_servers.engram.env]\nA = "1"\n\n# next\n[other]\na = 1\n'
    made = with_table(text, PATH, {"command": "new"})
    assert made == '[mcp_servers.engram]\ncommand = "new"\n\n# next\n[other]\na = 1\n'


def test_what_is_not_toml_is_refused() -> None:
    with pytest.raises(InvalidInput, match="not valid TOML"):
        parse("a = = 1")
