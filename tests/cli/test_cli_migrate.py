"""`engram migrate`, and `export` and `import` between files and a server."""

from urllib.parse import urlsplit

import pytest

from .conftest import Console

PORT = "The api listens on port 8080 in production"


@pytest.fixture
def password(shared_database: str) -> str:
    return urlsplit(shared_database).password or ""


def test_files_go_to_a_server_and_come_back(
    cli: Console, shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = cli.learned(PORT)
    there = cli.json("migrate", "--to", shared_database, "--to-tenant", tenant)
    assert (there["verified"], there["counts"]["memories"], there["moved"]["memories"]) == (True, 1, 1)
    assert there["differences"] == []
    assert there["seconds"] > 0
    monkeypatch.setenv("ENGRAM_URL", shared_database)
    monkeypatch.setenv("ENGRAM_TENANT", tenant)
    assert cli.json("show", known)["statement"] == PORT
    back = str(cli.folder / "back")
    assert cli.json("migrate", "--to", back)["verified"] is True
    assert cli.json("show", known, "--home", back)["statement"] == PORT
    assert len(cli.json("history", known, "--home", back)) == 1


def test_a_tenant_goes_to_another(cli: Console, shared_database: str, tenant: str) -> None:
    cli.learned(PORT)
    cli.json("migrate", "--to", shared_database, "--to-tenant", tenant)
    server = ("--from", shared_database, "--to", shared_database)
    assert cli.json("migrate", *server, "--tenant", tenant, "--to-tenant", f"{tenant}-2")["verified"] is True
    assert "source and target are both" in cli("migrate", *server, "--tenant", tenant).stderr


def test_a_person_is_told_what_was_moved(cli: Console, shared_database: str, tenant: str) -> None:
    cli.learned(PORT)
    shown = cli("migrate", "--to", shared_database, "--to-tenant", tenant)
    assert shown.exit_code == 0
    assert "both stores are identical" in shown.stdout
    again = cli("migrate", "--to", shared_database, "--to-tenant", tenant)
    assert "both stores are identical" in again.stdout


def test_a_dry_run_says_what_would_move_and_moves_nothing(cli: Console, shared_database: str, tenant: str) -> None:
    cli.learned(PORT)
    told = cli.json("migrate", "--to", shared_database, "--to-tenant", tenant, "--dry-run")
    assert (told["dry_run"], told["counts"]["memories"], told["counts"]["decisions"]) == (True, 1, 1)
    assert "would move" in cli("migrate", "--to", str(cli.folder / "new"), "--dry-run").stdout
    assert not (cli.folder / "new").exists()
    assert cli.json("migrate", "--to", shared_database, "--to-tenant", tenant)["moved"]["memories"] == 1


def test_a_difference_is_exit_1_and_named(cli: Console, monkeypatch: pytest.MonkeyPatch) -> None:
    known = cli.learned(PORT)
    found = [f"memory {known}: differs"] * 30
    monkeypatch.setattr("engram.store.migration.transfer.verify", lambda *_: found)
    shown = cli("migrate", "--to", str(cli.folder / "new"))
    assert shown.exit_code == 1
    assert f"memory {known}: differs" in shown.stdout
    assert "and 10 more" in shown.stdout
    assert "the two stores differ" in shown.stderr


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("--to", "mysql://somewhere/db"), 2, "postgresql://"),
        (("--to", ""), 2, "empty"),
        (("--to", "new", "--tenant", "acme"), 2, "tenant"),
        (("--to", "new", "--to-tenant", "acme"), 2, "--to-tenant"),
        (("--to", "new", "--from", "nowhere"), 1, "engram init"),
        (("--to", "postgresql://127.0.0.1:1/none"), 1, "cannot reach"),
        ((), 2, "--to"),
    ],
)
def test_wrong_ends_are_refused_with_what_to_do(cli: Console, words: tuple[str, ...], code: int, says: str) -> None:
    cli.learned(PORT)
    result = cli("migrate", *words)
    assert (result.exit_code, says in result.stderr) == (code, True), result.stderr


def test_a_password_is_never_shown(cli: Console, shared_database: str, tenant: str, password: str) -> None:
    assert password
    cli.learned(PORT)
    for options in (("--dry-run",), (), ("--json",)):
        shown = cli("migrate", "--to", shared_database, "--to-tenant", tenant, *options)
        assert password not in shown.stdout + shown.stderr
    cli.learned("A second store that is not the first", "--home", str(cli.folder / "other"))
    refused = cli("migrate", "--home", str(cli.folder / "other"), "--to", shared_database, "--to-tenant", tenant)
    assert (refused.exit_code, password in refused.stderr) == (1, False)
    assert tenant in refused.stderr


def test_what_files_export_a_server_imports_and_back(
    cli: Console, shared_database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exchange goes through the client, so either backend reads what the other wrote, unknown keys included."""
    known = cli.learned(PORT, "--tag", "net")
    (path,) = (cli.folder / "home" / "engrams").rglob("*.yaml")
    path.write_text(path.read_text() + "  nobody_knows: {deep: [1, 2.5]}\n")
    cli.json("sync")
    before = cli.json("show", known)
    cli.json("export", "from-files")
    with monkeypatch.context() as served:
        served.setenv("ENGRAM_URL", shared_database)
        served.setenv("ENGRAM_TENANT", tenant)
        assert cli.json("import", "from-files")["created"] == [known]
        cli.json("export", "from-server")
    other = ("--home", str(cli.folder / "other"))
    assert cli.json("import", "from-server", *other)["created"] == [known]
    cli.json("export", "again", *other)
    written = [sorted((cli.folder / "work" / name).rglob("*.yaml"))[0].read_text() for name in ("from-files", "again")]
    assert "nobody_knows" in written[0]
    assert cli.json("show", known, *other)["statement"] == before["statement"]
    assert cli.json("show", known, *other)["tags"] == before["tags"]
    assert "nobody_knows" in written[1]
