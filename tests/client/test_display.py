"""Records show themselves in a line, and in a notebook as an escaped table."""

from engram import Decision, Engram, Hits, Memory, Outcome
from tests.tables import table


def test_a_memory_shows_what_matters_and_what_is_not_default() -> None:
    memory = Memory("ENG-1", "The office is in Lisbon", type="fact", tags=("office",), source="human")
    assert repr(memory) == (
        "Memory(id='ENG-1', type='fact', status='active', statement='The office is in Lisbon', tags=('office',))"
    )
    assert len(repr(memory.replace(statement="long " * 1000))) < 200
    assert repr(Decision(outcome=Outcome.REJECTED, reason="a secret")).endswith("memory=None, reason='a secret')")


def test_a_notebook_gets_a_table_that_runs_no_script(mem: Engram) -> None:
    mem.add("The staging server is called <script>alert(1)</script>")
    hits = mem.search("staging server")
    for shown in (hits._repr_html_(), hits[0]._repr_html_(), hits[0].memory._repr_html_()):  # type: ignore[union-attr]
        assert shown.startswith("<table>") and "&lt;script&gt;" in shown and "<script>" not in shown
    assert Hits()._repr_html_().endswith("<tbody></tbody></table>")


@table(
    ("scope", "agent", "user"),
    [
        ("agent:bot", "bot", None),
        ("agent:a%2Fb/50%25", "a/b", "50%"),
        ("user:ana", None, "ana"),
        ("user", None, None),
        ("project:acme/api", None, None),
    ],
)
def test_a_memory_is_read_under_the_names_of_spec_two(scope: str, agent: str | None, user: str | None) -> None:
    memory = Memory("ENG-1", "Tabs", scope=scope, type="fact", context="why", session="S-1", lineage="ENG-0")
    assert (memory.agent_id, memory.user_id) == (agent, user)
    assert (memory.content, memory.fact, memory.main_content) == ("Tabs", "Tabs", "why")
    assert (memory.memory_type, memory.session_id, memory.lineage_id) == ("fact", "S-1", "ENG-0")
