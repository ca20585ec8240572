"""queue, promote, reject, edit, merge, distrust: what capture proposed, and decisions about one or many of it."""

import pytest

from engram import Engram
from engram.cli import surface
from engram.model.memory import Evidence, Memory
from engram.review.amendment import store_retelling
from engram.settings import parse_setting, save_setting

from .conftest import Console

HARNESS = "harness:codex:acme"
KNOWN = Memory("ENG-2026-0301-001", "")
FACTS = (
    "The deploy script lives in tools/deploy.sh",
    "Screenshots are compared with pixelmatch",
    "Invoices are rendered by a headless browser",
)


def proposed(cli: Console, *facts: str, source: str = HARNESS, type_: str = "tooling") -> list[str]:
    with Engram.open(cli.folder / "home") as mem:
        decisions = [mem.learn(fact, source=source, type=type_) for fact in facts]
    return [str(decision.memory.id) for decision in decisions if decision.memory is not None]


def status(cli: Console, ref: str) -> str:
    return str(cli.json("show", ref)["status"])


@pytest.fixture
def nobody(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal to prove a person at."""
    monkeypatch.setattr(surface, "_TERMINAL", cli.folder / "no-terminal")


# -- queue


def test_the_queue_lists_by_source_with_a_cap_and_counts_the_rest(cli: Console) -> None:
    proposed(cli, *FACTS)
    proposed(cli, "Prices are stored in cents", source="import:pack.json")
    page = cli.json("queue", "--per-source", "2")
    assert (page["waiting"], page["more"]) == (4, {HARNESS: 1})
    result = cli("queue", "--per-source", "2")
    assert f"… and 1 more from {HARNESS}" in result.stdout
    assert "4 candidates" in result.stderr


def test_the_queue_takes_filters(cli: Console) -> None:
    proposed(cli, *FACTS)
    (pack,) = proposed(cli, "Prices are stored in cents", source="import:pack.json", type_="preference")
    for words in (("--source", "import"), ("--kind", "preference")):
        groups = cli.json("queue", *words)["groups"]
        assert [item["memory"]["id"] for group in groups for item in group["items"]] == [pack], words
    assert cli.json("queue", "--tier", "3")["waiting"] == 0
    assert cli.json("queue", "--scope", "project:none")["waiting"] == 0


@pytest.mark.parametrize("words", [("--kind", "gossip"), ("--tier", "7"), ("--per-source", "-1")])
def test_a_filter_that_cannot_be_is_wrong_usage(cli: Console, words: tuple[str, ...]) -> None:
    result = cli("queue", *words)
    assert result.exit_code == 2
    assert words[0] != "--kind" or "preference, tooling, project, infra, identity" in result.stderr


def test_an_empty_queue_says_so(cli: Console) -> None:
    result = cli("queue")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "nothing awaits review" in result.stderr


def test_show_has_the_provenance_of_a_candidate(cli: Console) -> None:
    current = cli.json("remember", "The api listens on port 8080")["memory"]["id"]
    (waiting,) = proposed(cli, "The api listens on port 9090")
    found = cli.json("show", waiting)["provenance"]
    assert (found["tier"], found["kind"]) == (1, "tooling")
    assert [other["id"] for other in found["contradicts"]] == [current]
    assert "contradiction" in found["gates"]
    assert "gates:" in cli("show", waiting).stdout
    assert "provenance" not in cli.json("show", current)


def test_show_quotes_the_turn_that_a_candidate_comes_from(cli: Console) -> None:
    with Engram.open(cli.folder / "home") as mem:
        added = mem.add_conversation(
            "I always deploy on Fridays from the office", session="S-7", source="harness:codex:acme"
        )
    (waiting,) = [memory.id for memory in added if memory.status == "candidate"]
    (quote,) = cli.json("show", waiting)["provenance"]["quotes"]
    assert quote["session"] == "S-7" and "deploy on Fridays" in quote["text"]


def test_the_queue_names_a_source_once_and_gives_a_reason_only_where_it_adds_something(cli: Console) -> None:
    proposed(cli, FACTS[0])
    proposed(cli, "The patient is allergic to penicillin", source="import:pack.json", type_="health")
    result = cli("queue")
    assert f"from {HARNESS}" not in result.stdout and result.stdout.count("import:pack.json") == 1
    told = " ".join(result.stdout.split())
    assert "penicillin — type 'health' is tier 3" in told and f"{FACTS[0]} —" not in told
    assert result.stderr.count("`engram") == 3 and "--group" not in result.stderr


# -- promote


@pytest.mark.usefixtures("person")
@pytest.mark.parametrize(
    "words",
    [
        ("promote", "--source", "import"),
        ("reject", "--source", "import"),
        ("promote", "--source", "import", "--dry-run"),
        ("promote", "--eligible", "--source", "import"),
        ("promote", "--eligible", "--dry-run", "--source", "import"),
    ],
)
def test_filters_that_choose_nothing_say_so(cli: Console, words: tuple[str, ...]) -> None:
    proposed(cli, FACTS[0])
    result = cli(*words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "engram: No candidate matches.\n")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.usefixtures("person")
def test_a_rehearsed_promotion_changes_nothing_and_says_who_still_waits(cli: Console, named: bool) -> None:
    (sensitive,) = proposed(cli, "The patient is allergic to penicillin", type_="health")
    (harmless,) = proposed(cli, FACTS[0])
    cli("remember", "The api listens on port 8080")
    (contrary,) = proposed(cli, "The api listens on port 9090")
    chosen = (sensitive, harmless, contrary) if named else ("--source", "harness")
    plan = cli.json("promote", *chosen, "--dry-run")
    assert [memory["id"] for memory in plan["promoted"]] == [harmless]
    assert set(plan["waiting"]) == {sensitive, contrary}
    assert "--confirm asks for a typed code" in plan["waiting"][sensitive]
    assert f"`engram review {contrary} --keep new|old|both|merge`" in plan["waiting"][contrary]
    assert {status(cli, ref) for ref in (sensitive, harmless, contrary)} == {"candidate"}


def test_a_contradiction_is_promoted_by_the_command_that_settles_it(cli: Console) -> None:
    cli("remember", "The api listens on port 8080")
    (contrary,) = proposed(cli, "The api listens on port 9090")
    result = cli("promote", contrary)
    assert result.exit_code == 2
    assert f"resolve it with `engram review {contrary} --keep new|old|both|merge`" in result.stderr


@pytest.mark.usefixtures("person")
def test_among_several_a_contradiction_is_left_and_named(cli: Console) -> None:
    cli("remember", "The api listens on port 8080")
    contrary, harmless = *proposed(cli, "The api listens on port 9090"), *proposed(cli, FACTS[0])
    result = cli("promote", contrary, harmless)
    assert result.exit_code == 1
    assert f"engram review {contrary} --keep" in " ".join(result.stdout.split())
    assert (status(cli, contrary), status(cli, harmless)) == ("candidate", "active")


@pytest.mark.parametrize(
    ("setting", "allowing"),
    [
        (("autopromote_harvest", "false"), "autopromote_harvest true"),
        (("autopromote_kinds", "preference"), "autopromote_kinds preference,tooling"),
    ],
)
def test_what_still_waits_is_grouped_by_reason_with_the_setting_that_allows_it(
    cli: Console, setting: tuple[str, str], allowing: str
) -> None:
    proposed(cli, *FACTS)
    config = cli.folder / "home" / "config.toml"
    for key, value in (("autopromote_harvest", "true"), setting):
        save_setting(config, key, parse_setting(key, value))
    for words in ((), ("--dry-run",)):
        told = " ".join(cli("promote", "--eligible", *words).stdout.split())
        assert "still wait 3 3 × " in told and told.count(f"`engram config {allowing}` allows this") == 1


@pytest.mark.usefixtures("person")
def test_a_person_promotes_several_and_undoes_it_as_a_whole(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    decision = cli.json("promote", *ids)
    assert [memory["verification"] for memory in decision["done"]] == ["user_confirmed"] * 3
    assert cli("undo", decision["decision"]).exit_code == 0
    assert {status(cli, ref) for ref in ids} == {"candidate"}


@pytest.mark.usefixtures("person")
def test_history_names_the_bulk_decision(cli: Console) -> None:
    first, *others = proposed(cli, *FACTS)
    decision = cli.json("promote", first, *others)["decision"]
    assert cli.json("history", first)[-1]["session"] == decision
    assert decision in cli("history", first).stdout


@pytest.mark.usefixtures("nobody")
def test_an_agent_promotes_nothing_from_an_untrusted_source(cli: Console) -> None:
    (waiting,) = proposed(cli, FACTS[0])
    result = cli("promote", waiting)
    assert result.exit_code == 1
    assert f"`engram promote {waiting} --confirm`" in result.stderr
    assert cli("promote", waiting, "--confirm").exit_code == 1
    assert status(cli, waiting) == "candidate"


@pytest.mark.usefixtures("person")
def test_tier_3_is_refused_without_confirm_even_for_a_person(cli: Console) -> None:
    (waiting,) = proposed(cli, "The patient is allergic to penicillin", type_="health")
    (harmless,) = proposed(cli, FACTS[0])
    result = cli("promote", harmless, waiting)
    assert result.exit_code == 1
    assert f"{waiting} needs a person: type 'health' is tier 3" in result.stderr
    assert f"`engram promote {waiting} --confirm`" in result.stderr
    assert {status(cli, ref) for ref in (waiting, harmless)} == {"candidate"}


@pytest.mark.usefixtures("person")
def test_filters_show_a_preview_and_ask(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    refused = cli("promote", "--source", "harness", stdin="n\n")
    assert "promote 3 candidates" in refused.stderr and FACTS[0] in refused.stderr
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    cli("promote", "--source", "harness", stdin="y\n")
    assert {status(cli, ref) for ref in ids} == {"active"}


@pytest.mark.usefixtures("person")
def test_filters_leave_out_tier_3(cli: Console) -> None:
    (waiting,) = proposed(cli, "The patient is allergic to penicillin", type_="health")
    (harmless,) = proposed(cli, FACTS[0])
    result = cli("promote", "--source", "harness", "--yes")
    assert "--confirm includes them" in result.stderr
    assert (status(cli, waiting), status(cli, harmless)) == ("candidate", "active")


def test_without_a_terminal_a_bulk_decision_needs_yes(cli: Console) -> None:
    ids = [cli.learned(fact, "--type", "people") for fact in ("Ana leads the shop", "Ben cooks for the team")]
    assert cli("reject", "--source", "agent").exit_code == 2
    assert cli("reject", "--source", "agent", "--yes", "--reason", "noise").exit_code == 0
    assert {status(cli, ref) for ref in ids} == {"rejected"}
    assert cli.json("history", ids[0])[-1]["reason"] == "noise"


def test_without_a_terminal_only_what_agents_proposed_is_rejected(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    assert cli("reject", "--source", "harness", "--yes").exit_code == 1
    assert {status(cli, ref) for ref in ids} == {"candidate"}


def test_eligible_promotes_what_the_settings_allow(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    plan = cli.json("promote", "--eligible", "--dry-run")
    assert plan["promoted"] == [] and set(plan["waiting"]) == set(ids)
    save_setting(cli.folder / "home" / "config.toml", "autopromote_harvest", True)
    assert len(cli.json("promote", "--eligible", "--dry-run")["promoted"]) == 3
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    assert len(cli.json("promote", "--eligible")["done"]) == 3
    assert {status(cli, ref) for ref in ids} == {"active"}
    assert cli("undo", "--last").exit_code == 0
    assert {status(cli, ref) for ref in ids} == {"candidate"}


def test_eligible_names_the_conflict_that_keeps_a_candidate_waiting(cli: Console) -> None:
    (waiting,) = proposed(cli, "The api listens on port 9090")
    current = cli.json("remember", "The api listens on port 8080")["memory"]["id"]
    save_setting(cli.folder / "home" / "config.toml", "autopromote_harvest", True)
    decision = cli.json("promote", "--eligible")
    assert decision["done"] == [] and current in decision["left"][waiting]


@pytest.mark.parametrize(
    "words",
    [
        ("promote",),
        ("reject",),
        ("promote", "x", "--eligible"),
        ("promote", "x", "--source", "y"),
        ("promote", "x", "--dry-run"),
        ("undo",),
        ("undo", "x", "--last"),
        ("edit", "x"),
        ("distrust", "--undo"),
    ],
)
def test_a_decision_needs_something_to_decide_about(cli: Console, words: tuple[str, ...]) -> None:
    assert cli(*words).exit_code in (2, 3)


def test_what_is_not_there_is_not_found(cli: Console) -> None:
    for words in (("promote", "ENG-1"), ("reject", "ENG-1"), ("edit", "ENG-1", "--statement", "x"), ("undo", "DEC-1")):
        assert cli(*words).exit_code == 3, words


@pytest.mark.usefixtures("person")
def test_what_could_not_be_promoted_is_named_and_the_exit_code_says_so(cli: Console) -> None:
    first, second, _ = proposed(cli, *FACTS)
    cli("reject", first, "--reason", "wrong")
    result = cli("promote", first, second)
    assert result.exit_code == 1
    assert "rejected it" in result.stdout
    assert status(cli, second) == "active"


@pytest.mark.usefixtures("person")
def test_the_second_reviewer_gets_a_clear_error(cli: Console) -> None:
    (waiting,) = proposed(cli, FACTS[0])
    cli("reject", waiting)
    result = cli("promote", waiting)
    assert result.exit_code == 1
    assert f"{waiting} no longer waits: human rejected it" in result.stderr


# -- edit and merge


@pytest.mark.usefixtures("person")
def test_an_edited_candidate_keeps_its_source(cli: Console) -> None:
    (waiting,) = proposed(cli, FACTS[0])
    edited = cli.json("edit", waiting, "--statement", "The deploy script lives in ops/deploy.sh")
    assert (edited["source"], edited["learned_by"], edited["status"]) == (HARNESS, "manual", "candidate")


@pytest.mark.usefixtures("person")
def test_merge_leaves_one_and_undo_brings_all_back(cli: Console) -> None:
    first, second, _ = proposed(cli, *FACTS)
    assert cli("merge", first, second).exit_code == 2
    merged = cli.json("merge", first, second, "--statement", "Deploys and screenshots have scripts in tools")
    assert (merged["id"], status(cli, second)) == (first, "superseded")
    cli("undo", merged["id"])
    assert {status(cli, ref) for ref in (first, second)} == {"candidate"}


@pytest.mark.usefixtures("person")
def test_undoing_a_merge_as_the_last_decision_counts_what_came_back(cli: Console) -> None:
    first, second, _ = proposed(cli, *FACTS)
    cli("merge", first, second, "--statement", "Deploys and screenshots have scripts in tools")
    undone = cli.json("undo", "--last")
    assert {memory["id"]: memory["status"] for memory in undone["done"]} == {first: "candidate", second: "candidate"}


# -- distrust


def test_a_source_is_taken_out_and_put_back(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    rehearsed = cli.json("distrust", "harness:codex", "--dry-run")
    assert {memory["id"] for memory in rehearsed["done"]} == set(ids)
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    result = cli("distrust", "harness:codex", "--yes")
    assert "`engram distrust --undo harness:codex` undoes it" in result.stderr
    assert {status(cli, ref) for ref in ids} == {"rejected"}
    assert list(cli.json("distrust")) == ["harness:codex"]
    assert cli("distrust", "--undo", "harness:codex").exit_code == 0
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    assert cli.json("distrust") == {}


@pytest.mark.usefixtures("person")
def test_distrust_names_what_a_person_confirmed_and_says_how_to_take_it_out(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    cli("promote", ids[0], stdin="y\n")
    result = cli("distrust", "harness:codex", stdin="y\n")
    assert f"kept: 1 that a person confirmed ({ids[0]}); --include-confirmed takes those out as well" in result.stderr
    assert [status(cli, ref) for ref in ids] == ["active", "rejected", "rejected"]
    cli("distrust", "harness:codex", "--include-confirmed", stdin="y\n")
    assert status(cli, ids[0]) == "retired"


def test_distrust_since_takes_a_time(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    assert cli.json("distrust", "harness:codex", "--since", "2999-01-01", "--yes")["done"] == []
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    assert cli("distrust", "harness:codex", "--since", "yesterday-ish").exit_code == 2


def test_distrust_without_a_terminal_needs_yes(cli: Console) -> None:
    (waiting,) = proposed(cli, FACTS[0])
    result = cli("distrust", "harness:codex")
    assert result.exit_code == 2
    assert "take out 1 memory" in result.stderr and "add --yes" in result.stderr
    assert (status(cli, waiting), cli.json("distrust")) == ("candidate", {})


@pytest.mark.usefixtures("person")
def test_distrust_shows_what_would_be_taken_out_and_asks(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    refused = cli("distrust", "harness:codex", stdin="n\n")
    assert "take out 3 memories" in refused.stderr and FACTS[0] in refused.stderr
    assert "nothing was changed" in refused.stderr
    assert {status(cli, ref) for ref in ids} == {"candidate"}
    assert "taken out 3" in cli("distrust", "harness:codex", stdin="y\n").stdout
    assert {status(cli, ref) for ref in ids} == {"rejected"}


@pytest.mark.usefixtures("person")
def test_a_source_without_memories_is_said_to_have_none_and_the_known_ones_are_listed(cli: Console) -> None:
    proposed(cli, FACTS[0], source="import:pack.json")
    proposed(cli, *FACTS[1:])
    cli("remember", "Prices are stored in cents")
    result = cli("distrust", "import:pak.json", stdin="n\n")
    assert "No memory comes from import:pak.json." in result.stderr
    assert f"Known sources: {HARNESS} (2), import:pack.json (1)\n" in result.stderr
    assert cli.json("distrust") == {}
    cli("distrust", "import:pak.json", stdin="y\n")
    assert list(cli.json("distrust")) == ["import:pak.json"]


def test_a_rehearsed_distrust_says_what_would_be_taken_out(cli: Console) -> None:
    proposed(cli, *FACTS)
    result = cli("distrust", "harness:codex", "--dry-run")
    assert result.stdout.startswith("would be taken out 3\n")
    assert "nothing was changed" in result.stderr


def test_undo_last_after_a_distrust_trusts_the_source_again(cli: Console) -> None:
    ids = proposed(cli, *FACTS)
    cli("distrust", "harness:codex", "--yes")
    result = cli("undo", "--last")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "put back 3")
    assert "harness:codex is trusted again" in result.stderr
    assert ({status(cli, ref) for ref in ids}, cli.json("distrust")) == ({"candidate"}, {})


def test_undo_last_after_a_distrust_that_took_out_nothing_leaves_everything_else(cli: Console) -> None:
    kept = cli.learned("Prices are stored in cents")
    cli("distrust", "import:pak.json", "--yes")
    result = cli("undo", "--last")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "import:pak.json is trusted again" in result.stderr
    assert (status(cli, kept), cli.json("distrust")) == ("active", {})


# -- separate


def told_again(cli: Console, *words: str) -> str:
    """A candidate that was told again in these words."""
    with Engram.open(cli.folder / "home") as mem:
        events = mem.sessions.observe_batch("S-1", [{"role": "user", "content": one} for one in words])
        evidence = [store_retelling(mem.store, KNOWN, Memory("", one.content), Evidence(one.id)) for one in events]
        return mem.add(FACTS[0], status="candidate", source=HARNESS, evidence=evidence).id


def test_the_queue_and_show_list_in_which_other_words_a_candidate_was_told(cli: Console) -> None:
    ref = told_again(cli, "tools/deploy.sh is how we deploy")
    assert f"{ref} 1 also told as “tools/deploy.sh is how we deploy”" in cli("queue").stdout
    assert "1 also told as “tools/deploy.sh is how we deploy”" in cli("show", ref).stdout


def test_show_lists_the_other_words_of_a_promoted_memory_too(cli: Console) -> None:
    ref = told_again(cli, "tools/deploy.sh is how we deploy")
    with Engram.open(cli.folder / "home") as mem:
        mem.review.approve(ref, actor="human")
    assert cli.json("show", ref)["retellings"][0]["statement"] == "tools/deploy.sh is how we deploy"


def test_separate_makes_a_candidate_of_a_retelling_and_undo_puts_it_back(cli: Console) -> None:
    ref = told_again(cli, "deploys run from tools/deploy.sh", "the pager rotates on Mondays")
    taken = cli.json("separate", ref, "2")
    assert (taken["statement"], taken["status"]) == ("the pager rotates on Mondays", "candidate")
    assert len(cli.json("show", ref)["evidence"]) == 1
    cli.json("undo", taken["id"])
    assert len(cli.json("show", ref)["evidence"]) == 2
