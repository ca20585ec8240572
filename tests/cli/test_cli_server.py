"""The command line with `$ENGRAM_URL` set: the same verbs, and what only files can do is refused with what to do."""

import json
from pathlib import Path

import pytest

from tests.served import PLACE, URL, Backend, plugged_in

from .conftest import Console

PORT = "The api listens on port 8080 in production"


@pytest.fixture
def backend(cli: Console, monkeypatch: pytest.MonkeyPatch) -> Backend:
    monkeypatch.setenv("ENGRAM_URL", URL)
    return plugged_in(cli.folder, monkeypatch)


def test_what_is_learned_is_found_listed_shown_and_undone(cli: Console, backend: Backend) -> None:
    known = cli.learned(PORT)
    assert [hit["id"] for hit in cli.json("recall", "which port has the api")["hits"]] == [known]
    assert [memory["id"] for memory in cli.json("list")] == [known]
    shown = cli.json("show", known)
    assert (shown["statement"], shown["file"]) == (PORT, "")
    cli.json("update", known, "--statement", "The api listens on port 9090 in production")
    assert cli.json("undo", known)["statement"] == PORT
    assert not (cli.folder / "home").exists()


def test_sessions_are_listed_newest_first(cli: Console, backend: Backend) -> None:
    begun = [cli.json("session", "start", task)["id"] for task in ("one task", "another task", "a third task")]
    assert {one["id"] for one in cli.json("session", "list")} == set(begun)
    assert len(cli.json("session", "list", "--limit", "2")) == 2


def test_status_and_init_say_where_the_store_is_but_not_the_password(cli: Console, backend: Backend) -> None:
    assert cli.json("init") == {"store": PLACE, "created": False, "embedder": "static", "distribution": []}
    assert cli.json("status")["store"] == PLACE
    printed = cli("status").stdout + cli("init").stdout
    assert PLACE in printed
    assert "hunter2" not in printed


def test_a_pause_holds_for_verbs_and_hooks(cli: Console, backend: Backend) -> None:
    cli.learned(PORT)
    cli.json("pause")
    assert cli.json("status")["paused"]
    answer = json.loads(cli("hook", "recall", "which port has the api").stdout)
    assert (answer["hits"], len(answer["warnings"])) == ([], 1)
    cli.json("resume")
    assert not cli.json("status")["paused"]


def test_a_home_on_the_command_line_beats_the_variable(cli: Console, backend: Backend) -> None:
    mine = str(cli.folder / "mine")
    assert cli.json("init", "--home", mine)["store"] == mine
    assert json.loads(cli("hook", "recall", "--home", mine, "anything").stdout)["hits"] == []
    assert cli("doctor", "--repair", "--home", mine).exit_code == 0
    assert backend.asked == []


def test_a_hook_answers_as_keyword_search_does(cli: Console, backend: Backend) -> None:
    known = cli.learned(PORT)
    cli.learned("The staging server is called nightshift")
    answer = json.loads(cli("hook", "recall", "which port has the api", "--limit", "1").stdout)
    assert [(hit["id"], hit["text"], hit["scope"]) for hit in answer["hits"]] == [(known, PORT, "global")]
    assert answer["text"] == f"[{known}] fact: “{PORT}”"
    assert "warnings" not in answer


@pytest.mark.parametrize("words", [("",), ("api port", "--limit", "0")])
def test_a_hook_that_asks_nothing_gets_nothing(cli: Console, backend: Backend, words: tuple[str, ...]) -> None:
    cli.learned(PORT)
    result = cli("hook", "recall", *words, stdin="{}")
    assert (result.exit_code, json.loads(result.stdout)["hits"]) == (0, [])


def test_a_server_that_is_away_costs_a_hook_its_answer_not_the_agent_its_prompt(cli: Console, backend: Backend) -> None:
    backend.down = True
    result = cli("hook", "recall", "which port has the api")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["warnings"] == [f"no memory to ask: cannot reach {PLACE}"]


def test_a_hook_neither_makes_the_schema_nor_loads_a_model(cli: Console, backend: Backend) -> None:
    cli("hook", "recall", "anything")
    assert [(call["create"], call["embedder"]) for call in backend.asked] == [(False, None)]


def test_the_doctor_examines_the_server_even_with_wrong_settings(cli: Console, backend: Backend) -> None:
    healthy = cli.json("doctor")
    assert (healthy["ok"], healthy["facts"]["store"]) == (True, PLACE)
    (cli.folder / "home").mkdir()
    (cli.folder / "home" / "config.toml").write_text("budget = 'much'\n", "utf-8")
    result = cli("doctor", "--json")
    found = json.loads(result.stdout)
    assert (result.exit_code, [check["name"] for check in found["checks"] if not check["ok"]]) == (1, ["settings"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("doctor", "--repair"), "--home DIR"),
        (("restore", "memory.tar.gz"), "--home DIR"),
        (("trust",), "engram import"),
        (("trust", "--revoke"), "engram import"),
        (("add", "Indent with tabs", "--team"), "open a home instead"),
    ],
)
def test_what_only_files_can_do_is_refused_with_what_to_do(
    cli: Console, backend: Backend, words: tuple[str, ...], says: str
) -> None:
    result = cli(*words)
    assert (result.exit_code, says in result.stderr) == (2, True), result.stderr
    assert not (cli.folder / "home").exists()


def test_sync_says_that_there_are_no_files(cli: Console, backend: Backend) -> None:
    assert "no files" in cli("sync").stderr


def test_settings_are_the_owners_and_make_no_store(cli: Console, backend: Backend) -> None:
    assert cli.json("config", "budget", "900") == {"budget": 900}
    assert cli.json("config", "get", "budget") == {"budget": 900}
    assert [path.name for path in (cli.folder / "home").iterdir()] == ["config.toml"]


def test_a_backup_is_the_stores_own_business(cli: Console, backend: Backend) -> None:
    cli.learned(PORT)
    made = cli.json("backup", "memory.tar.gz")
    assert (made["bytes"], made["files"] > 0) == (Path("memory.tar.gz").stat().st_size, True)


def test_importing_twice_changes_nothing(cli: Console, backend: Backend) -> None:
    Path("records.json").write_text(json.dumps([{"statement": PORT, "scope": "project:acme"}]), "utf-8")
    assert len(cli.json("import", "records.json")["created"]) == 1
    assert cli.json("import", "records.json")["created"] == []
