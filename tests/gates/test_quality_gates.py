"""The quality gates on raw patterns, as a session leaves them behind."""

from collections.abc import Sequence

import pytest

from engram.gates.pipeline import judge
from engram.gates.proposal import GateSettings, Neighbour, Proposal
from engram.gates.quality import pattern, triviality_problem
from engram.model.decision import Outcome
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.tokens import tokens
from tests.tables import table

# Each with the gate that should stop it, or "pass".
RAW_PATTERNS: tuple[tuple[str, str], ...] = (
    # what a memory is for
    ("Always run the migration before restarting the workers, because old workers crash on the new schema", "pass"),
    ("Never mock the payment gateway in integration tests; the mock accepts cards the real one rejects", "pass"),
    ("The user prefers short answers with the command first and the explanation after", "pass"),
    ("Use UTC in every timestamp column, otherwise the nightly report counts a day twice", "pass"),
    ("Don't rebase a branch that someone else has already reviewed", "pass"),
    ("The ORM silently drops timezone info, so convert to aware datetimes before saving", "pass"),
    ("Prefer composition over inheritance for the report builders", "pass"),
    ("When the importer times out, lower the batch size before raising the timeout", "pass"),
    ("Ask before deleting any file outside the build directory", "pass"),
    ("The staging cluster rejects images without a digest, so pin images by digest", "pass"),
    ("Quote dates in YAML fixtures because the parser turns bare dates into objects", "pass"),
    ("Avoid naming a column order in SQL; it must be escaped in every query", "pass"),
    ("The user is allergic to peanuts", "pass"),
    ("Retry uploads with exponential backoff, since the storage API throttles bursts", "pass"),
    ("Commit messages must start with the ticket's component, not with its number", "pass"),
    ("If the linter and the formatter disagree, the formatter wins", "pass"),
    ("Write error messages that say what to do next instead of what went wrong inside", "pass"),
    ("The finance team wants amounts in cents as integers, never as floats", "pass"),
    ("Only regenerate the API client when the schema version changes", "pass"),
    ("Feature flags should default to off in production and on in staging", "pass"),
    ("The websocket client leaks connections unless close is awaited", "pass"),
    ("The user hates emoji in commit messages", "pass"),
    ("Close the cursor before the connection, otherwise the pool deadlocks under load", "pass"),
    ("Prefer pnpm over npm in the web workspace because of the shared store", "pass"),
    ("Validate webhook signatures before parsing the body", "pass"),
    ("The user works from Lisbon and expects meeting times in Western European Time", "pass"),
    ("Keep public functions under forty lines so that reviews stay short", "pass"),
    ("Benchmarks need a warm cache, so discard the first three runs", "pass"),
    ("Batch inserts in groups of five hundred; larger ones lock the table for seconds", "pass"),
    ("Don't log request bodies in the auth service, they hold personal data", "pass"),
    ("Snapshot tests break on every locale change, so set the locale in the fixture", "pass"),
    ("Escalate to the on-call engineer only after the health check fails twice", "pass"),
    # narration, state, sentiment: nothing to act on
    ("I ran the test suite and everything passed", "behavioral"),
    ("Let me look at the configuration first", "behavioral"),
    ("Fixed the import error in the parser", "behavioral"),
    ("The user asked about the deployment", "behavioral"),
    ("We discussed several options for the cache", "behavioral"),
    ("Now I will update the tests accordingly", "behavioral"),
    ("The codebase is quite large", "behavioral"),
    ("This library is really well designed", "behavioral"),
    ("Added a new endpoint for exports", "behavioral"),
    ("Maybe the cache is too small for production", "behavioral"),
    ("I think the race might be in the scheduler", "behavioral"),
    ("The README has two hundred lines", "behavioral"),
    ("The build took eleven minutes", "behavioral"),
    ("Looking at the logs of the worker", "behavioral"),
    ("Updated the dependencies and committed the lock file", "behavioral"),
    ("The dashboard shows four charts", "behavioral"),
    ("Here is a summary of the changes", "behavioral"),
    ("Python is a popular language", "behavioral"),
    ("Implemented the retry logic in the uploader", "behavioral"),
    ("The meeting went well", "behavioral"),
    ("I'm going to refactor the session module", "behavioral"),
    ("Tests pass now", "behavioral"),
    ("The assistant suggested a different approach", "behavioral"),
    ("It seems the index is stale, possibly after the crash", "behavioral"),
    ("The project uses a monorepo", "behavioral"),
    # where, what and how: the documentation's job
    ("Run `make test` to run the tests", "documentation"),
    ("Open `http://localhost:8000/docs` for the API reference", "documentation"),
    ("Call `client.sync()` to push local changes", "documentation"),
    ("The required settings are defined in config/settings.py", "documentation"),
    ("The function takes a path and requires two arguments", "documentation"),
    ("Start the server with `uvicorn app:main --reload`", "documentation"),
    ("The class needs a logger and inherits from BaseWorker", "documentation"),
    ("Execute `npm run build` in the web folder", "documentation"),
    # vague, or about one occasion
    ("Always write good code", "specificity"),
    ("Be careful and make sure everything works", "specificity"),
    ("Never do bad things", "specificity"),
    ("You should follow best practices", "specificity"),
    ("The fix for #4312 must go into the parser before the tokenizer", "specificity"),
    ("This PR should not touch the billing module", "specificity"),
    ("The failing test needs a longer timeout than the others", "specificity"),
    ("Line 212 must come before the import block, see line 212", "specificity"),
    ("Revert commit 9f3c2ab1 because it breaks the exporter", "specificity"),
    ("Always remember to do it properly", "specificity"),
    # gone in three months
    ("Don't deploy the billing service this week, the vendor migrates its servers", "scope"),
    ("Use the old endpoint for now because the new one times out", "scope"),
    ("Skip the flaky browser suite until Friday", "scope"),
    ("The registry is down, so install from the local mirror instead", "scope"),
    ("Avoid the search service, it is being rewritten", "scope"),
    ("The export job must wait, the warehouse migration is in progress", "scope"),
    ("Answer customers by EOD because the launch is tomorrow", "scope"),
    # no pattern at all
    ("Thanks, that looks great!", "triviality"),
    ("ok", "triviality"),
    ("Hello there", "triviality"),
    ("How do I run the tests?", "triviality"),
    ("Sounds good, go ahead", "triviality"),
    ("What does this function do?", "triviality"),
    ("👍", "triviality"),
    # a second session
    ("Keep the retry budget at three, more retries hide real outages from the dashboards", "pass"),
    ("The customer insists on invoices in PDF, not in HTML", "pass"),
    ("Checkpoint before long refactors so a wrong turn can be undone", "pass"),
    ("Postgres needs an explicit VACUUM after the nightly purge or the index bloats", "pass"),
    ("Mention the rollback plan whenever you propose a schema change", "pass"),
    ("User likes seeing a diff before any file gets written", "pass"),
    ("Whenever a test touches the clock, freeze time with the fixture rather than sleeping", "pass"),
    ("Anna owns the billing module; route questions about invoices to her", "pass"),
    ("Numbers from the analytics export are off by one day unless the timezone is passed", "pass"),
    ("Group imports by standard library, third party and local", "pass"),
    ("The legacy parser chokes on CRLF, strip it first", "pass"),
    ("Do not trust the status field of the vendor API: it lags behind by minutes", "pass"),
    ("Explain trade-offs in two sentences at most; the user skims", "pass"),
    ("Secrets come from the vault at start-up; never read them from the environment", "pass"),
    ("Checked out the main branch and pulled the latest changes", "behavioral"),
    ("There are about forty services in total", "behavioral"),
    ("The code looks fine to me", "behavioral"),
    ("I'll start with the database layer", "behavioral"),
    ("User opened the settings page", "behavioral"),
    ("The response was slow", "behavioral"),
    ("Refactored three modules", "behavioral"),
    ("Great progress on the parser", "behavioral"),
    ("Interesting approach with the generators", "behavioral"),
    ("The repo was created in 2019", "behavioral"),
    ("Next, I will write the migration", "behavioral"),
    ("Search returned no results for the term", "behavioral"),
    ("Alice and Bob talked about the roadmap", "behavioral"),
    ("The entry point is src/main.py", "behavioral"),
    ("Use `docker compose up` to start everything", "documentation"),
    ("Type `exit` to leave the shell", "documentation"),
    ("Requests are handled in app/routes/users.py", "behavioral"),
    ("Just make it better", "behavioral"),
    ("That test needs to be fixed", "specificity"),
    ("See the stack trace below, it must be the parser", "specificity"),
    ("Things should be done the right way", "specificity"),
    ("We need to finish the export feature by Monday", "scope"),
    ("The CI is red today so merge manually", "behavioral"),
    ("Don't touch staging right now", "scope"),
    ("great, thanks a lot", "triviality"),
    ("Can you explain why?", "triviality"),
    ("yes please", "triviality"),
    ("Good morning", "triviality"),
)


class NothingKnown:
    """An empty store."""

    def exact(self, content_hash: str, scope: str) -> Memory | None:
        return None

    def heads(self, conflict_key: str, scope: str) -> Sequence[Memory]:
        return ()

    def near(self, proposal: Proposal) -> Sequence[Neighbour]:
        return ()

    def rejected_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        return ()

    def withdrawn_neighbours(self, proposal: Proposal) -> Sequence[Neighbour]:
        return ()


def stopped_by(text: str, *, autonomous: bool = True) -> str:
    memory = Memory(id="", statement=text, source="harness:claude:acme" if autonomous else "agent")
    proposal = Proposal(memory, autonomous, content_hash(text), tuple(tokens(text)))
    verdict = judge(proposal, NothingKnown(), GateSettings())
    return verdict.gate if verdict.outcome == Outcome.REJECTED else "pass"


@table(("text", "expected"), RAW_PATTERNS)
def test_each_raw_pattern_is_stopped_by_its_gate_or_passes(text: str, expected: str) -> None:
    assert stopped_by(text) == expected


def test_a_third_to_a_half_of_raw_patterns_pass() -> None:
    passed = sum(stopped_by(text) == "pass" for text, _ in RAW_PATTERNS)
    assert 0.30 <= passed / len(RAW_PATTERNS) <= 0.50


def test_what_passes_is_nearly_always_worth_it_and_what_is_worth_it_nearly_always_passes() -> None:
    verdicts = [(stopped_by(text) == "pass", expected == "pass") for text, expected in RAW_PATTERNS]
    passed = [worth for passes, worth in verdicts if passes]
    worthy = [passes for passes, worth in verdicts if worth]
    assert sum(passed) / len(passed) >= 0.9
    assert sum(worthy) / len(worthy) >= 0.9


@pytest.mark.parametrize("text", ["I ran the test suite and everything passed", "ok", "How do I run the tests?"])
def test_an_explicit_word_is_not_judged_by_the_quality_gates(text: str) -> None:
    assert stopped_by(text, autonomous=False) == "pass"


@pytest.mark.parametrize("text", ["I use vim", "Use uv", "No tabs!", "用 pnpm", "タブ禁止"])
def test_a_short_text_is_not_trivial_for_being_short(text: str) -> None:
    assert stopped_by(text) != "triviality"


@pytest.mark.parametrize(
    "text",
    [
        "周五不要部署到生产环境，因为没有人值班",
        "テストの前に必ずマイグレーションを実行する",
        "لا تنشر يوم الجمعة",
        "Никогда не выкладывай в пятницу вечером",
        "Freitags wird nicht ausgeliefert, weil niemand Bereitschaft hat",
    ],
)
def test_other_languages_pass_unjudged_and_wait_for_a_person(text: str) -> None:
    assert not pattern(text).english
    assert stopped_by(text) == "pass"


def test_the_reason_quotes_what_gave_it_away() -> None:
    memory = Memory(id="", statement="Use the old endpoint for now because the new one times out", source="harvest")
    proposal = Proposal(memory, True, "x", ())
    assert "for now" in judge(proposal, NothingKnown(), GateSettings()).reason


@pytest.mark.parametrize(
    "said",
    ["The user is on Linux.", "/home/ana/src/app", "The user's home directory is /home/ana", "Username is anab42"],
)
def test_what_the_machine_shows_is_trivial(said: str) -> None:
    assert "what the machine shows" in triviality_problem(Memory("", said))


@pytest.mark.parametrize(
    "said", ["The user prefers Linux for servers", "Use bash, not zsh, in scripts", "The user's name is Ana"]
)
def test_a_choice_of_system_or_a_name_is_not_trivial(said: str) -> None:
    assert triviality_problem(Memory("", said)) == ""
