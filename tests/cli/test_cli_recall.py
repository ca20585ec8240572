"""recall, search, inject."""

import json

from .conftest import Console


def taught(cli: Console) -> list[str]:
    return [
        cli.learned("Deploys go through the staging cluster first", "--type", "convention", "--tag", "ops"),
        cli.learned("I prefer pnpm over npm for JavaScript", "--type", "preference", "--domain", "dev/js"),
        cli.learned("Backups of the database are kept for thirty days", "--type", "factual", "--scope", "project:acme"),
    ]


def test_recall_prints_one_line_per_answer(cli: Console) -> None:
    deploys, *_ = taught(cli)
    result = cli("recall", "what do deploys go through first?")
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == f"[{deploys}] Convention: “Deploys go through the staging cluster first”"


def test_recall_in_json_carries_the_memory_and_its_score(cli: Console) -> None:
    deploys, *_ = taught(cli)
    answer = cli.json("recall", "deploys")
    assert answer["question"] == "deploys"
    assert answer["hits"][0]["id"] == deploys
    assert answer["hits"][0]["score"] > 0
    assert answer["hits"][0]["memory"]["type"] == "convention"


def test_recall_without_an_answer_is_done_and_says_that_nothing_is_known(cli: Console) -> None:
    result = cli("recall", "anything")
    assert result.exit_code == 0
    assert result.stdout == "Nothing is known about this.\n"
    assert "nothing found" in result.stderr


def test_a_close_memory_has_a_heading_of_its_own(cli: Console) -> None:
    cli("add", "Anna likes tea", "--scope", "global")
    heading, shown = cli("recall", "where does Anna live?").stdout.splitlines()
    assert heading == "Possibly related:" and shown.endswith("“Anna likes tea”")
    data = cli.json("recall", "where does Anna live?")
    assert (data["hits"], [hit["text"] for hit in data["possible"]]) == ([], ["Anna likes tea"])


def test_the_least_relevance_is_an_option(cli: Console) -> None:
    deploys, *_ = taught(cli)
    assert cli.json("search", "what do deploys go through first?")["hits"][0]["relevance"] <= 1
    for verb in ("search", "recall"):
        assert cli.json(verb, "what do deploys go through first?", "--min-relevance", "0")["hits"][0]["id"] == deploys
        assert cli.json(verb, "what do deploys go through first?", "--min-relevance", "1")["hits"] == []
    for verb in ("inject", "prepare"):
        assert deploys in cli(verb, "what do deploys go through first?").stdout
        assert deploys not in cli(verb, "what do deploys go through first?", "--min-relevance", "1").stdout
    refused = cli("recall", "deploys", "--min-relevance", "7")
    assert refused.exit_code == 2 and "min_relevance 7.0 must be a number from 0 to 1" in refused.stderr


def test_an_answer_names_what_it_rests_on(cli: Console) -> None:
    deploys, *_ = taught(cli)
    answer = f"“Deploys go through the staging cluster first” [{deploys}]"
    assert cli("recall", "--answer", "what do deploys go through first?").stdout.splitlines() == [answer]
    assert cli.json("recall", "--answer", "what do deploys go through first?")["answer"] == answer
    assert cli.json("recall", "what do deploys go through first?")["answer"] == ""
    unknown = cli("recall", "--answer", "what is the capital of Peru?")
    assert (
        unknown.exit_code == 0
        and unknown.stdout == "Nothing is known about this.\n"
        and "Nothing that is known answers" in unknown.stderr
    )
    assert cli("recall", "--answer", "--trace", "what do deploys go through first?").stdout.splitlines()[0] == answer


def test_recall_search_and_list_see_their_scopes_and_everywhere_all_of_them(cli: Console) -> None:
    *_, backups = taught(cli)
    assert backups not in [hit["id"] for hit in cli.json("recall", "database backups")["hits"]]
    assert backups in [hit["id"] for hit in cli.json("recall", "backups", "--scope", "project:acme")["hits"]]
    for verb in ("recall", "search"):
        assert backups not in [hit["id"] for hit in cli.json(verb, "database backups")["hits"]]
        assert cli.json(verb, "database backups", "--everywhere")["hits"][0]["id"] == backups
    assert backups not in {memory["id"] for memory in cli.json("list")}
    assert backups in {memory["id"] for memory in cli.json("list", "--everywhere")}
    assert cli("list", "--everywhere", "--scope", "global").exit_code


def test_explain_adds_up_to_the_score(cli: Console) -> None:
    taught(cli)
    for hit in cli.json("recall", "deploys", "--explain")["hits"]:
        total = 0.0
        for part in hit["trace"]["parts"]:
            total = total * part["value"] if part["operation"] == "×" else total + part["value"]
        assert abs(total - hit["score"]) < 1e-9


def test_explain_prints_a_table_whose_last_line_is_the_score(cli: Console) -> None:
    taught(cli)
    score = cli.json("search", "deploys", "--limit", "1", "--explain")["hits"][0]["score"]
    lines = cli("search", "deploys", "--limit", "1", "--explain").stdout.strip().splitlines()
    assert "found by" in lines[1]
    assert lines[-1].split()[0] == "score"
    assert abs(float(lines[-1].split()[-1]) - score) < 1e-4
    assert lines[-2].split()[-1] == lines[-1].split()[-1]


def test_filters_narrow_a_search(cli: Console) -> None:
    deploys, pnpm, backups = taught(cli)

    def ids(*options: str) -> set[str]:
        return {hit["id"] for hit in cli.json("search", "deploys pnpm backups", *options)["hits"]}

    assert ids("--type", "preference") == {pnpm}
    assert ids("--tag", "ops") == {deploys}
    assert ids("--domain", "dev") == {pnpm}
    assert ids("--scope", "project:acme") == {backups}
    assert ids("--since", "2100-01-01") == set()
    assert len(ids("--limit", "1")) == 1


def test_keyword_mode_and_rank_fusion_are_answered(cli: Console) -> None:
    deploys, *_ = taught(cli)
    assert cli.json("search", "deploys", "--mode", "keyword")["mode"] == "keyword"
    assert cli.json("search", "deploys", "--fusion", "rrf")["hits"][0]["id"] == deploys


def test_an_unknown_mode_is_wrong_usage(cli: Console) -> None:
    result = cli("search", "x", "--mode", "psychic")
    assert result.exit_code == 2
    assert "hybrid, semantic or keyword" in result.stderr


def test_events_are_found_when_asked_for(cli: Console) -> None:
    session = cli.json("session", "start", "a chat about pizza")["id"]
    cli.json("session", "observe", session, "user", "The pizza oven is broken again")
    found = cli.json("search", "pizza oven", "--kind", "event", "--in-session", session)["hits"]
    assert found[0]["event"]["content"] == "The pizza oven is broken again"
    assert cli.json("search", "pizza oven", "--kind", "memory")["hits"] == []


def test_inject_prints_the_text_for_a_prompt(cli: Console) -> None:
    deploys, *_ = taught(cli)
    result = cli("inject", "deploy to staging")
    assert result.stdout.startswith("# Memory")
    assert deploys in result.stdout


def test_inject_keeps_its_budget(cli: Console) -> None:
    taught(cli)
    answer = cli.json("inject", "deploy to staging with pnpm", "--budget", "60")
    assert answer["tokens"] <= 60 == answer["budget"]


def test_inject_with_nothing_to_say_says_so_on_stderr(cli: Console) -> None:
    result = cli("inject", "bake a cake")
    assert result.exit_code == 0
    assert result.stdout.strip() == ""
    assert "no memory is relevant" in result.stderr


def test_the_question_comes_from_stdin(cli: Console) -> None:
    deploys, *_ = taught(cli)
    answer = json.loads(cli("--json", "recall", "-", stdin="deploys").stdout)
    assert answer["hits"][0]["id"] == deploys


def test_metadata_filters_and_comes_back(cli: Console) -> None:
    wanted = cli.learned("Incident 7 was caused by a full disk", "--meta", "ticket=7")
    cli.learned("Incident 8 was caused by an expired certificate", "--meta", "ticket=8")
    hits = cli.json("search", "incident", "--meta", "ticket=7")["hits"]
    assert [hit["id"] for hit in hits] == [wanted]
    assert hits[0]["metadata"] == {"ticket": 7}


def changed(cli: Console) -> tuple[str, str]:
    old = cli.json("add", "The office is in Berlin", "--valid-from", "2025-01-01")["id"]
    new = cli.json("revise", old, "The office is in Lisbon", "--valid-from", "2026-01-01")["id"]
    return old, new


def test_recall_says_what_it_understood_where_it_is_not_the_usual(cli: Console) -> None:
    old, new = changed(cli)
    usual = cli("recall", "where is the office?")
    assert new in usual.stdout and usual.stderr == ""
    before = cli("recall", "where was the office in March 2025?")
    known, possible = before.stdout.split("\nPossibly related:\n")
    assert known.startswith(f"[{old}]") and f"[{new}]" not in known and possible.startswith(f"[{new}]")
    assert f"superseded by {new}" in before.stdout
    assert "question about a past value" in before.stderr
    assert "from 2025-03-01" in before.stderr and "“in March 2025”" in before.stderr


def test_recall_in_json_has_intent_window_phrase_and_reason(cli: Console) -> None:
    changed(cli)
    usual = cli.json("recall", "where is the office?")
    assert (usual["intent"], usual["window"], usual["phrase"], usual["warnings"]) == ("current", None, "", [])
    past = cli.json("recall", "where was the office in March 2025?")
    assert (past["intent"], past["phrase"]) == ("historical", "in March 2025")
    assert past["window"]["since"].startswith("2025-0") and past["window"]["until"] > past["window"]["since"]
    assert past["reason"]


def test_recall_of_a_lineage_has_every_version(cli: Console) -> None:
    old, new = changed(cli)
    found = cli.json("recall", "how has the location of the office changed?")
    assert found["intent"] == "lineage"
    assert [hit["id"] for hit in found["hits"]] == [old, new]


def test_words_like_last_week_count_from_the_date_that_is_given(cli: Console) -> None:
    session = cli.json("session", "start")["id"]
    event = cli.json(
        "session", "observe", session, "user", "We chose the blue cluster", "--at", "2026-03-04T12:00:00Z"
    )[0]
    asked = ("recall", "what did we choose last week?")
    assert [hit["id"] for hit in cli.json(*asked, "--date", "2026-03-11")["hits"]] == [event["id"]]
    assert cli.json(*asked, "--date", "2026-06-11")["hits"] == []
    assert cli(*asked, "--date", "someday").exit_code == 2


def test_a_trace_accounts_for_what_was_kept_superseded_and_missing(cli: Console) -> None:
    old, new = changed(cli)
    result = cli("recall", "where is the office?", "--trace", "--expect", "Lisbon", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert (found["kept"], found["superseded"], found["missing_expected_terms"]) == ([new], [old], [])
    assert found["tokens"] <= found["budget"] == 2000
    assert found["hits"][0]["trace"]["parts"]


def test_a_trace_gives_the_same_answer_and_then_the_account(cli: Console) -> None:
    changed(cli)
    for asked in (
        ["where is the office?"],
        ["where was the office before?"],
        ["how has the office changed over time?"],
    ):
        asked += ["--date", "2026-05-01", "--mode", "keyword", "--limit", "3"]
        plain, traced = cli("recall", *asked), cli("recall", *asked, "--trace")
        assert traced.stdout.startswith(plain.stdout) and traced.stderr == plain.stderr, asked
        data, account = cli.json("recall", *asked), cli.json("recall", *asked, "--trace")
        assert [hit["id"] for hit in account["hits"]] == [hit["id"] for hit in data["hits"]], asked
        same = ("intent", "window", "text", "warnings", "mode")
        assert {name: account[name] for name in same} == {name: data[name] for name in same}
        assert f"intent      {data['intent']}, " in traced.stdout
        assert account["trace"]["question"]["intent"] == data["intent"]
        assert account["trace"]["searches"][0]["candidates"].keys() == {"keyword", "semantic"}


def test_a_missing_expected_term_is_exit_1(cli: Console) -> None:
    changed(cli)
    result = cli("recall", "where is the office?", "--trace", "--expect", "Lisbon", "--expect", "zebra")
    assert result.exit_code == 1
    assert "missing" in result.stdout and "zebra" in result.stdout
    assert "Lisbon" in result.stdout


def test_a_trace_names_what_its_tokens_trimmed(cli: Console) -> None:
    for i in range(12):
        cli.json("add", f"Deploy step {i} checks the region called {chr(97 + i) * 12}")
    found = cli.json("recall", "deploy step region checks", "--trace", "--tokens", "60")
    assert found["kept"] and found["trimmed"]
    assert "trimmed" in cli("recall", "deploy step region checks", "--trace", "--tokens", "60", "--explain").stdout


def test_a_trace_notes_no_use(cli: Console) -> None:
    known, *_ = taught(cli)
    cli("recall", "deploys", "--trace")
    assert cli.json("status")["last_injection"] is None
    assert cli.json("show", known)["activation"]["frequency"] == 0


def test_options_of_a_trace_belong_to_a_trace(cli: Console) -> None:
    assert cli("recall", "x", "--expect", "y").exit_code == 2
    assert cli("recall", "x", "--tokens", "9").exit_code == 2


def test_a_deep_search_asks_in_several_wordings(cli: Console) -> None:
    deploys, *_ = taught(cli)
    found = cli.json("search", "deploys and staging and backups", "--deep", "--queries", "3")
    assert deploys in [hit["id"] for hit in found["hits"]]
    assert deploys in cli("search", "deploys", "--deep").stdout
    assert cli("search", "x", "--queries", "3").exit_code == 2
    assert cli("search", "x", "--deep", "--queries", "0").exit_code == 2


def test_nothing_is_known_only_if_every_part_is_empty(cli: Console) -> None:
    question = "What is the staging server called?"
    assert cli("recall", question).stdout == "Nothing is known about this.\n"
    cli("learn", "Never restart the staging server without asking the user", "--type", "constraint")
    for options in ((), ("--memories-only",), ("--answer",)):
        found = cli("recall", question, *options)
        assert "Unconfirmed, waiting for review" in found.stdout
        assert "othing is known" not in found.stdout + found.stderr and "Nothing that is known" not in found.stderr
