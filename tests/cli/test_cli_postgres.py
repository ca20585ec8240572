"""The command line on a real server: `$ENGRAM_URL` and `$ENGRAM_TENANT` are all that changes."""

import json
from pathlib import Path

import pytest

from tests.postgres.citus_stand_in import stand_in
from tests.postgres.server import Role, Server

from .conftest import Console

PORT = "The api listens on port 8080 in production"
OTHER_PORT = "The api listens on port 9090 in production"


@pytest.fixture
def served(cli: Console, shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch) -> Console:
    monkeypatch.setenv("ENGRAM_URL", shared_database)
    monkeypatch.setenv("ENGRAM_TENANT", tenant)
    return cli


def test_a_memory_is_learned_found_contradicted_settled_and_undone(served: Console) -> None:
    known = served.learned(PORT)
    assert served.json("learn", PORT)["outcome"] == "DUPLICATE"
    assert [hit["id"] for hit in served.json("recall", "which port has the api")["hits"]] == [known]
    newer = served.json("learn", OTHER_PORT)
    assert (newer["outcome"], len(served.json("review"))) == ("CONTRADICTION", 1)
    served.json("review", newer["memory"]["id"], "--keep", "new")
    assert served.json("show", known)["status"] == "superseded"
    served.json("undo", known)
    assert served.json("show", known)["status"] == "active"
    assert len(served.json("history", known)) >= 3
    assert not (served.folder / "home").exists()


def test_a_session_keeps_its_ledger_and_folds_its_uses(served: Console) -> None:
    known = served.learned(PORT)
    begun = served.json("session", "start", "change the port of the api")["id"]
    served.json("session", "observe", begun, "user", "The port is taken")
    served.json("session", "end", begun)
    shown = served.json("session", "show", begun)
    assert (shown["used"], [event["content"] for event in shown["events"]]) == ([known], ["The port is taken"])
    assert [one["id"] for one in served.json("session", "list")] == [begun]
    assert served.json("show", known)["activation"]["frequency"] == 1


def test_a_hook_answers_as_keyword_search_does(served: Console) -> None:
    served.learned(PORT)
    served.learned("The staging server is called nightshift")
    words = "which port has the api, and what is staging called"
    asked = served.json("search", words, "--mode", "keyword")["hits"]
    answer = json.loads(served("hook", "recall", words).stdout)
    assert [hit["id"] for hit in answer["hits"]] == [hit["id"] for hit in asked]
    assert [hit["score"] for hit in answer["hits"]] == pytest.approx([hit["score"] for hit in asked])


def test_tenants_do_not_see_each_other(served: Console, monkeypatch: pytest.MonkeyPatch, tenant: str) -> None:
    known = served.learned(PORT)
    monkeypatch.setenv("ENGRAM_TENANT", f"{tenant}-other")
    assert (served.json("list"), served("show", known).exit_code) == ([], 3)


def test_the_store_is_healthy_and_says_where_it_is(served: Console, shared_database: str) -> None:
    served.learned(PORT)
    found = served.json("doctor")
    assert (found["ok"], served.json("status")["statuses"]) == (True, {"active": 1})
    assert served.json("index")["documents"] == {"memory": 1}
    assert served("status").exit_code == served("index").exit_code == served("doctor").exit_code == 0
    ready = served.json("init")
    assert (ready["store"].startswith("postgresql://"), ready["distribution"]) == (True, [])
    assert served.json("sync")["added"] == []


def test_init_on_a_cluster_prints_what_it_did(
    cli: Console, postgres_role: Role, postgres_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand_in(postgres_role, postgres_server) as citus:
        monkeypatch.setenv("ENGRAM_URL", citus.url)
        shown = cli("init").stdout
        assert "ready" in shown and "Citus 13.2, 2 nodes" in shown and "distributed now" in shown
        assert cli.json("init")["distribution"][0].startswith("Citus 13.2, 2 nodes: ")


def test_what_is_exported_can_be_imported_and_purged(served: Console) -> None:
    known = served.learned(PORT)
    served.json("export", "out")
    assert served.json("import", "out")["unchanged"] == [known]
    served.json("forget", known, "--purge", "--yes")
    assert served.json("list", "--status", "any") == []


def test_a_task_lasts_its_ledger_verifies_and_its_facts_keep_their_versions(served: Console) -> None:
    task = served.json("task", "start", "Change the port of the api")["id"]
    served.json("task", "turn", task, "--user", "Which port is free?", "--assistant", "Port 9090 is.", "--no-derive")
    served.json("task", "checkpoint", task, "A free port is found", "--todo", "move the api")
    old = served.json("add", PORT)["id"]
    new = served.json("revise", old, OTHER_PORT)["id"]
    text = served("task", "resume", task).stdout
    for words in ("A free port is found", "Port 9090 is.", new):
        assert words in text
    assert [version["id"] for version in served.json("lineage", old)] == [old, new]
    assert served.json("ledger", "verify") == {"whole": True, "events": 2, "redacted": 0, "problems": []}
    event = served.json("ledger", "show", task)[0]["id"]
    served.json("ledger", "redact", event, "--yes")
    assert served.json("ledger", "verify")["whole"]
    assert [one["redacted"] for one in served.json("ledger", "show", task)] == [True, False]


def test_memories_are_linked_and_documents_quoted(served: Console) -> None:
    first, second = (served.json("add", text)["id"] for text in (PORT, "The staging server is called nightshift"))
    served.json("relate", first, second)
    assert [one["id"] for one in served.json("traverse", first)] == [second]
    Path("contract.md").write_text("# Payment\n\nPayment is due within 30 days of the invoice.\n", "utf-8")
    taken = served.json("ingest", "contract.md")[0]
    assert {served.json("cite", fact)["state"] for fact in taken["facts"]} == {"verified"}
