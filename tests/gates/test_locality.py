"""Whether a statement is about the project it was learned in: a table of statements."""

import subprocess
from pathlib import Path

import pytest

from engram import Engram
from engram.gates.nature import ProjectPlace, locality

PLACE = ProjectPlace("project:acme/billing", lambda path: path in ("src/app.py", "Makefile", "docs/adr/"))
OF_THE_PROJECT = [
    ("Migrations of this project are written by hand and reviewed by two people", ""),
    ("The search cluster keeps two replicas because a single one lost shards", ""),
    ("Our payment provider retries webhooks for three days", ""),
    ("We squash commits before they are merged", "preference"),
    ("src/app.py must not import the command line", ""),
    ("Decisions are written down in docs/adr/", ""),
    ("Billing stores amounts in cents", "factual"),
    ("acme/billing is deployed on Tuesdays", ""),
    ("Use SQLite for jobs because it needs no server", "decision"),
    ("Branches are named after their ticket", "convention"),
    ("In this repo I prefer tabs", "preference"),
]
EVERYWHERE = [
    ("Use tabs, not spaces", "preference"),
    ("I prefer pnpm over npm", ""),
    ("The user wants short answers, and the api documented in English", "preference"),
    ("pytest needs -p no:cacheprovider on read-only file systems", "factual"),
    ("Python 3.13 removed the cgi module", "factual"),
    ("When writing async Go tests, wait on channels, not on sleeps", "feedback"),
    ("Anna leads the platform team and is on call", "people"),
    ("SQLite locks the whole database for a writer", "factual"),
    ("other/file.py does not exist here either", ""),
    ("The docs of every api are wrong", ""),
]


def test_what_is_about_the_project_is_told_from_what_holds_everywhere() -> None:
    missed = [text for text, kind in OF_THE_PROJECT if not locality(text, PLACE, type_name=kind)]
    taken = [text for text, kind in EVERYWHERE if locality(text, PLACE, type_name=kind)]
    assert (missed, taken) == ([], [])


def test_the_reason_names_what_decided() -> None:
    assert locality("Our builds are slow", PLACE) == "it says “our”"
    assert locality("src/app.py is generated", PLACE) == "it names src/app.py"


@pytest.mark.parametrize("scope", ["project:github.com:acme/billing", "project:billing~9c1f02ab3d5e7a64"])
def test_a_project_is_named_without_its_host_and_without_a_digest(scope: str) -> None:
    place = ProjectPlace(scope, lambda path: False)
    assert locality("Billing stores amounts in cents", place, type_name="factual") == "it names billing"


def test_the_situation_counts_too() -> None:
    assert locality("Ask before deleting rows", PLACE, situation="working on the billing tables")


@pytest.mark.parametrize("scope", ["project:acme/api", "project:tools", "project:x"])
def test_a_project_with_an_everyday_name_is_not_named_by_that_word(scope: str) -> None:
    place = ProjectPlace(scope, lambda path: False)
    assert not locality(f"{scope.rpartition('/')[2].rpartition(':')[2]} keys rotate monthly at most vendors", place)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with one file."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path / "gazelle")], check=True, timeout=120)
    (tmp_path / "gazelle" / "schema.sql").touch()
    return tmp_path / "gazelle"


def test_the_client_infers_the_directorys_scope(project: Path) -> None:
    with Engram.open(ephemeral=True, directory=project) as mem:
        assert mem.infer_scope("schema.sql is the only place for DDL") == ("project:gazelle", "it names schema.sql")
        assert mem.infer_scope("I prefer pnpm over npm") == ("global", "")


def test_a_path_that_leads_out_of_the_project_names_nothing(project: Path) -> None:
    (project.parent / "secret.txt").touch()
    with Engram.open(ephemeral=True, directory=project) as mem:
        assert mem.infer_scope("../secret.txt is elsewhere")[0] == "global"
        assert mem.infer_scope(f"{project.parent}/secret.txt is elsewhere")[0] == "global"


def test_outside_of_a_repository_everything_is_global(tmp_path: Path) -> None:
    with Engram.open(ephemeral=True, directory=tmp_path) as mem:
        assert mem.infer_scope("Our api is slow") == ("global", "")


def test_what_global_knows_already_stays_there(project: Path) -> None:
    with Engram.open(ephemeral=True, directory=project) as mem:
        mem.add("Our api answers within 200 milliseconds")
        assert mem.infer_scope("Our api answers within 200 milliseconds") == ("global", "")
        assert mem.infer_scope("Our api answers within 300 milliseconds")[0] == "project:gazelle"


def test_a_fact_in_a_form_stays_where_its_older_value_is(project: Path) -> None:
    form = {"subject": "our api", "predicate": "runs on", "object": "Java 17"}
    with Engram.open(ephemeral=True, directory=project) as mem:
        assert mem.infer_scope(form=form) == ("project:gazelle", "it says “our”")
        mem.learn(situation="deploying", subject="our api", predicate="runs on", object="Java 17", scope="global")
        assert mem.infer_scope(form={**form, "object": "Java 21"}) == ("global", "")
        assert mem.infer_scope(form={**form, "predicate": "is deployed to"})[0] == "project:gazelle"
