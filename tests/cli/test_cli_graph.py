"""relate, traverse: relations between memories."""

import subprocess
from pathlib import Path

from .conftest import Console


def chain(cli: Console) -> list[str]:
    ids = [
        cli.json("add", text)["id"]
        for text in ("The shop sells bread", "Bread needs flour", "Flour comes from the mill")
    ]
    cli.json("relate", ids[0], ids[1], "--type", "depends_on")
    cli.json("relate", ids[1], ids[2], "--type", "part_of", "--weight", "0.5")
    return ids


def test_a_relation_is_shown_with_its_weight(cli: Console) -> None:
    first, second, _ = chain(cli)
    result = cli("relate", first, second, "--type", "supports", "--weight", "2")
    assert f"depends_on → {second}  weight 1" in result.stdout
    assert f"+ supports → {second}  weight 2" in result.stdout


def test_traverse_goes_on_and_says_by_which_way(cli: Console) -> None:
    first, second, third = chain(cli)
    found = cli.json("traverse", first)
    assert [(one["id"], one["depth"]) for one in found] == [(second, 1), (third, 2)]
    assert found[1]["path"] == [first, second, third]
    lines = cli("traverse", first).stdout.splitlines()
    assert lines[0].lstrip().startswith(f"—depends_on→ {second}")


def test_depth_type_weight_and_direction_narrow_it(cli: Console) -> None:
    first, second, third = chain(cli)
    ids = [[one["id"] for one in cli.json("traverse", *words)] for words in (
        (first, "--depth", "1"), (first, "--type", "part_of"), (first, "--min-weight", "0.9"),
        (third, "--direction", "inbound"), (third,),
    )]  # fmt: skip
    assert ids == [[second], [], [second], [second, first], []]


def test_several_starts_answer_once_each(cli: Console) -> None:
    first, second, third = chain(cli)
    found = [one for one in cli.json("traverse", first, second) if one["id"] == third]
    assert len(found) == 1
    assert (found[0]["depth"], set(found[0]["seeds"])) == (1, {first, second})


def test_prompt_quotes_the_memories_within_its_tokens(cli: Console) -> None:
    first, *_ = chain(cli)
    whole = cli.json("traverse", first, "--prompt")
    assert "“Bread needs flour”" in whole["text"]
    assert cli("traverse", first, "--prompt").stdout.rstrip("\n") == whole["text"].rstrip("\n")
    assert len(cli.json("traverse", first, "--prompt", "--tokens", "60")["text"]) < len(whole["text"])


def test_remove_takes_a_relation_back(cli: Console) -> None:
    first, second, _ = chain(cli)
    result = cli("relate", first, second, "--remove")
    assert f"- depends_on → {second}" in result.stdout
    assert cli.json("traverse", first) == []


def test_what_cannot_be_is_exit_2_and_what_is_not_there_exit_3(cli: Console) -> None:
    first, second, _ = chain(cli)
    assert cli("relate", first, second, "--type", "loves").exit_code == 2
    assert cli("relate", first, second, "--weight", "-1").exit_code == 2
    assert cli("relate", first, second, "--remove", "--weight", "1").exit_code == 2
    assert cli("relate", first, "ENG-2020-0101-001").exit_code == 3
    assert cli("traverse").exit_code == 2
    assert cli("traverse", first, "--tokens", "9").exit_code == 2
    assert cli("traverse", first, "--direction", "sideways").exit_code == 2
    assert cli("traverse", "ENG-2020-0101-001").exit_code == 3


def test_here_outside_of_a_repository_is_refused(cli: Console) -> None:
    first, *_ = chain(cli)
    result = cli("traverse", first, "--scope", "here")
    assert result.exit_code == 2
    assert "not in a repository" in result.stderr


def test_here_is_the_scope_of_the_repository(cli: Console) -> None:
    subprocess.run(["git", "init", "-q"], check=True, cwd=Path.cwd())
    inside = cli.json("add", "The shop sells cake", "--scope", "here")["id"]
    outside = cli.json("add", "Cake needs sugar")["id"]
    start = cli.json("add", "The menu")["id"]
    for target in (inside, outside):
        cli.json("relate", start, target)
    assert [one["id"] for one in cli.json("traverse", start, "--scope", "here")] == [inside]


def test_where_nothing_leads_on_it_says_so(cli: Console) -> None:
    *_, last = chain(cli)
    result = cli("traverse", last)
    assert result.exit_code == 0
    assert "--direction any" in result.stderr
