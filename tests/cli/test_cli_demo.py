"""demo: every scene, real answers, no store left behind."""

from .conftest import Console

SCENES = (
    "taught",
    "recalled",
    "injected and rated",
    "fading",
    "contradicted and reviewed",
    "edited by hand, and undone",
    "forgotten for good",
)


def test_every_scene_is_played_and_ends_with_what_to_type_next(cli: Console) -> None:
    result = cli("demo")
    assert result.exit_code == 0
    for number, title in enumerate(SCENES, 1):
        assert f"== {number} · {title}" in result.stdout
    for outcome in (
        "CREATED",
        "DUPLICATE",
        "REJECTED",
        "CONTRADICTION",
        "superseded",
        "dormant",
        "proof",
        "Possibly related:",
    ):
        assert outcome in result.stdout
    assert 'engram learn "…"' in result.stdout.rpartition("== now you")[2]


def test_it_is_also_data(cli: Console) -> None:
    account = cli.json("demo")
    assert [scene["scene"] for scene in account] == list(SCENES)
    outcomes = [step["answer"]["outcome"] for step in account[0]["steps"]]
    assert outcomes == ["CREATED", "CREATED", "CREATED", "CREATED", "DUPLICATE", "REJECTED"]
    known, unknown = (step["answer"] for step in account[1]["steps"])
    assert "sandbox key" in known[0]["text"] and known[0]["relevance"] > 0.5
    assert unknown == []
    assert account[6]["steps"][0]["answer"]["remaining"] == []


def test_what_fades_is_not_injected_and_still_answers(cli: Console) -> None:
    fading = cli.json("demo")[3]["steps"]
    strengths = next(iter(fading[0]["answer"].values()))
    assert strengths["0"] > strengths["30"] > strengths["90"] > strengths["180"]
    left_out = fading[1]["answer"]
    assert any("answers when asked" in reason for _, reason in left_out)
    assert fading[2]["answer"][0]["note"] == "dormant"


def test_the_owners_store_is_not_touched(cli: Console) -> None:
    cli("demo")
    assert not (cli.folder / "home").exists()
