"""hook recall: the standard library alone, the same answers as keyword search."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.repositories import make_repository

from .conftest import Console

LESSONS = (
    "Deploys go through the staging cluster first",
    "I prefer pnpm over npm for JavaScript",
    "Backups of the database are kept for thirty days",
    "数据库的备份保留三十天",
)


def taught(cli: Console) -> list[str]:
    return [cli.learned(text) for text in LESSONS]


def test_it_answers_as_keyword_search_does(cli: Console) -> None:
    taught(cli)
    for question in ("how do deploys work", "database backups", "备份", "pnpm or npm?", "nothing of the kind"):
        expected = [hit["id"] for hit in cli.json("search", question, "--mode", "keyword")["hits"]]
        found = json.loads(cli("hook", "recall", question).stdout)
        assert [hit["id"] for hit in found["hits"]] == expected, question


def test_it_reads_a_hooks_payload_from_stdin(cli: Console) -> None:
    deploys, *_ = taught(cli)
    payload = json.dumps({"prompt": "deploys?", "cwd": str(cli.folder), "session_id": "x"})
    answer = json.loads(cli("hook", "recall", stdin=payload).stdout)
    assert answer["hits"][0]["id"] == deploys
    assert deploys in answer["text"]


def test_it_reads_plain_text_too(cli: Console) -> None:
    deploys, *_ = taught(cli)
    assert json.loads(cli("hook", "recall", stdin="deploys").stdout)["hits"][0]["id"] == deploys


def test_it_keeps_to_the_scope_of_the_directory(cli: Console) -> None:
    cli.learned("Run the linter before pushing", "--scope", "project:other")
    here = cli.learned("Run the linter twice", "--scope", "project:mine")
    place = cli.folder / "mine"
    make_repository(place)
    answer = json.loads(cli("hook", "recall", "linter", "--cwd", str(place)).stdout)
    assert [hit["id"] for hit in answer["hits"]] == [here]


def test_without_a_store_it_answers_with_nothing_and_exit_0(cli: Console) -> None:
    result = cli("hook", "recall", "anything")
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    assert answer["hits"] == []
    assert answer["warnings"]


def test_it_is_silent_while_paused(cli: Console) -> None:
    taught(cli)
    cli("pause")
    assert json.loads(cli("hook", "recall", "deploys").stdout)["hits"] == []


def test_retired_memories_do_not_answer(cli: Console) -> None:
    deploys, *_ = taught(cli)
    cli("forget", deploys)
    assert json.loads(cli("hook", "recall", "deploys").stdout)["hits"] == []


def test_wrong_usage_is_exit_2(cli: Console) -> None:
    assert cli("hook", "forget").exit_code == 1


def test_it_loads_nothing_but_the_standard_library(cli: Console) -> None:
    taught(cli)
    program = (
        "import sys; sys.argv = ['engram', 'hook', 'recall', 'deploys']\n"
        "from engram.cli.main import run\n"
        "try: run()\n"
        "except SystemExit as e: assert e.code == 0\n"
        "names = {name.partition('.')[0] for name in sys.modules}\n"
        "foreign = names - set(sys.stdlib_module_names) - {'engram', '__main__', '__mp_main__'}\n"
        "print(sorted(n for n in foreign if not n.startswith('_')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)
    assert len(json.loads(done.stdout)["hits"]) == 1
    loaded = set(done.stderr.strip().strip("[]").replace("'", "").split(", ")) - {"", "sitecustomize", "distutils"}
    assert not loaded & {"numpy", "rich", "pydantic", "yaml", "ryaml", "tokenizers", "platformdirs"}


def test_it_finds_its_home_by_option(cli: Console) -> None:
    taught(cli)
    other = Path(cli.folder / "elsewhere")
    assert json.loads(cli("hook", "recall", "deploys", "--home", str(other)).stdout)["hits"] == []
