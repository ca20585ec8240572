"""The benchmarks as a user runs them, on small data of our own."""

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.bench import beam, locomo, longmemeval
from engram.bench.dataset import add_wordings
from engram.bench.figures import retrieval_text
from engram.bench.retrieval import BenchQuestion, fill, measure
from engram.bench.speed import measure as measure_speed
from engram.bench.speed import parse_sizes
from engram.cli.main import main
from engram.model.errors import InvalidInput
from tests.homes import home_of

DATA = [
    {
        "sample_id": "conv-zq1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bob",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ann", "dia_id": "ZQ1:1", "text": "I finally adopted a grey parrot called Figaro."},
                {"speaker": "Bob", "dia_id": "ZQ1:2", "text": "How lovely! Does he talk already?"},
                {"speaker": "Ann", "dia_id": "ZQ1:3", "text": "He whistles, mostly in the morning."},
            ],
            "session_2_date_time": "9:00 am on 1 June, 2023",
            "session_2": [
                {"speaker": "Bob", "dia_id": "ZQ2:1", "text": "My pottery class starts on Thursday."},
                {"speaker": "Ann", "dia_id": "ZQ2:2", "text": "Bring me a mug!"},
            ],
        },
        "qa": [
            {"question": "What is the name of Ann's parrot?", "evidence": ["ZQ1:1"], "category": 4, "answer": "Figaro"},
            {"question": "What does Bob learn?", "evidence": ["ZQ2:1"], "category": 1, "answer": "pottery"},
        ],
    }
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "locomo.json"
    path.write_text(json.dumps(DATA))
    return path


def test_questions_are_asked_and_every_measure_is_printed(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["bench", "locomo", str(data), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["questions"] == 2
    assert report["measures"]["fraction@10"] == 1.0
    wanted = {"any@5", "all@5", "fraction@5", "any@10", "all@10", "fraction@10", "ndcg@10", "session any@10"}
    assert wanted <= set(report["measures"])
    assert {"p50", "p95", "p99"} == set(report["latency_ms"])
    assert report["rss_mb"] > 0


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid"])
def test_every_mode_can_be_measured(data: Path, mode: str) -> None:
    assert measure(locomo.load(data), BenchQuestion(mode=mode, limit=1))["questions"] == 1


CHATS = [
    {
        "id": "chat-1",
        "sessions": [
            {
                "id": "s1",
                "turns": [
                    {"id": "0", "role": "user", "at": "2024-03-15T09:00:00Z", "text": "I adopted a parrot, Figaro."},
                    {"id": "1", "role": "assistant", "at": "2024-03-15T09:00:00Z", "text": "Parrots need company."},
                ],
            },
            {
                "id": "s2",
                "turns": [{"id": "2", "role": "user", "at": "2024-04-15T09:00:00Z", "text": "My pottery class began."}],
            },
        ],
        "questions": [
            {"question": "What is my parrot called?", "category": "extraction", "evidence": ["0"]},
            {"question": "What do my parrot and my class need?", "category": "multi_hop", "evidence": ["1", "2"]},
        ],
    }
]
POOL: dict[str, Any] = {
    "sessions": [
        {"id": "a", "date": "2023/05/20 (Sat) 02:21", "turns": [{"role": "user", "text": "I sold a boat."}]},
        {"id": "b", "date": "2023/05/21 (Sun) 02:21", "turns": [{"role": "user", "text": "I bought a kayak."}]},
    ],
    "questions": [
        {
            "question": "Which boat did I sell?",
            "type": "user",
            "date": "2023/05/28 (Sun) 09:39",
            "answer_sessions": ["a"],
            "answer_turns": ["a#0"],
        },
        {
            "question": "Which kayak did I buy?",
            "type": "user",
            "date": "2023/05/28 (Sun) 09:39",
            "answer_sessions": ["b"],
        },
    ],
}


def test_chats_are_judged_by_turns_in_every_category(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(CHATS))
    report = measure(beam.load(path), BenchQuestion())
    assert report["measures"]["fraction@10"] == 1.0
    assert {name: set(means) for name, means in report["by_category"].items()} == {
        "extraction": {"fraction@10", "any@10"},
        "multi_hop": {"fraction@10", "any@10"},
    }
    assert "baseline" not in report


def test_a_pool_is_judged_by_sessions_and_by_the_turns_it_names(tmp_path: Path) -> None:
    path = tmp_path / "pooled.json"
    path.write_text(json.dumps(POOL))
    report = measure(longmemeval.load(path), BenchQuestion(by_turn=False))
    assert report["questions"] == 2
    assert {"any@5", "all@5", "any@10", "turn any@5", "turn fraction@10"} <= set(report["measures"])
    assert report["measures"]["all@5"] == report["measures"]["turn all@5"] == 1.0
    assert set(report["by_category"]["user"]) == {"all@5", "any@5"}


def test_distractors_join_every_store_and_can_only_cost_hits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, more = tmp_path / "pooled.json", tmp_path / "more.json"
    path.write_text(json.dumps(POOL))
    # Six sessions that repeat one question come before its answer.
    session = {
        "date": "2023/05/22 (Mon) 02:21",
        "turns": [{"role": "user", "text": "Which boat did I sell, which boat?"}],
    }
    more.write_text(json.dumps({"sessions": [{"id": f"d{number}", **session} for number in range(6)]}))
    main(["bench", "longmemeval", str(path), "--distractors", str(more), "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["questions"] == 2
    assert report["measures"]["any@5"] == 0.5
    path.write_text(json.dumps(POOL | {"sessions": [*POOL["sessions"], {"id": "d3", **session}]}))
    with pytest.raises(SystemExit):
        main(["bench", "longmemeval", str(path), "--distractors", str(more)])
    assert "session d3 is both a distractor and part of pool-1" in capsys.readouterr().err


def test_wordings_of_a_file_are_asked_with_their_question(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "wordings.json"
    path.write_text(json.dumps({"Which craft is new?": ["pottery class"]}))
    data.write_text(data.read_text().replace("What does Bob learn?", "Which craft is new?"))
    (conversation,) = add_wordings(locomo.load(data), path)
    assert [question.wordings for question in conversation.questions] == [(), ("pottery class",)]
    found = [measure(each, BenchQuestion(mode="keyword")) for each in ([conversation], locomo.load(data))]
    assert [report["by_category"]["multi-hop"]["any@10"] for report in found] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([], "a list of wordings for each question"),
        ({"What does Bob learn?": "pottery"}, "a list of wordings for each question"),
        ({"What does Bob learn?": [7]}, "wordings must be texts"),
        ({"Who is Carol?": ["Carol"]}, "names no question of the data set"),
    ],
)
def test_a_file_of_wordings_that_fits_no_question_is_refused(
    data: Path, tmp_path: Path, content: object, problem: str
) -> None:
    path = tmp_path / "wordings.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InvalidInput, match=problem):
        add_wordings(locomo.load(data), path)


def test_the_baseline_answers_the_same_questions_and_stands_in_a_column_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(CHATS))
    main(["bench", "beam", str(path), "--mode", "keyword", "--baseline", "bm25", "--json"])
    report = json.loads(capsys.readouterr().out)
    assert report["baseline"]["name"] == "bm25"
    assert set(report["baseline"]["measures"]) == set(report["measures"])
    assert set(report["baseline"]["by_category"]) == {"extraction", "multi_hop"}
    rows = [line.split() for line in retrieval_text(report).splitlines()]
    assert ["keyword", "bm25"] in rows
    assert ["fraction@10", "1.000", "1.000"] in rows
    assert ["extraction,", "any@10", "1.000", "1.000"] in rows


def test_a_turn_is_stored_with_its_own_date(tmp_path: Path) -> None:
    path = tmp_path / "chats.json"
    path.write_text(json.dumps(CHATS).replace("2024-03-15T09:00:00Z", "2024-03-15T11:30:00Z", 1))
    with Engram.open(ephemeral=True) as mem:
        fill(mem, beam.load(path)[0])
        (hit,) = mem.search("Figaro", kinds=("event",), mode="keyword")
    assert hit.event is not None
    assert hit.event.at == datetime(2024, 3, 15, 11, 30, tzinfo=UTC)


def test_ids_of_the_data_set_never_reach_indexed_text(data: Path, tmp_path: Path) -> None:
    conversation = locomo.load(data)[0]
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path) as mem:
        fill(mem, conversation)
        for key in ("ZQ1:1", "ZQ1", "conv-zq1", "session_1", "zq"):
            assert mem.search(key, kinds=("event",), mode="keyword") == []
        index = sqlite3.connect(home_of(mem).index / "index.db")
        terms = [term for (term,) in index.execute("SELECT term FROM vocabulary")]
        index.close()
    assert "figaro" in terms
    assert not any("zq" in term for term in terms)


def test_speed_prints_each_figure_beside_its_floor(capsys: pytest.CaptureFixture[str]) -> None:
    report = measure_speed(50, cold=False)
    figures = {figure["name"]: figure for figure in report["figures"]}
    recall = figures["recall, hybrid, embedding included ÷ scan + FTS5"]
    assert recall["ratio"] == pytest.approx(recall["value"] / recall["floor"])
    assert figures["add_batch, durable"]["value"] > 0


def test_sizes_that_make_no_sense_are_refused() -> None:
    for text in ("", "many", "10", "1000,x", "5000000"):
        with pytest.raises(InvalidInput):
            parse_sizes(text)
