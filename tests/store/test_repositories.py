"""Which repository a directory belongs to, and the scope of its remote; with repositories that git itself made."""

import re
import subprocess
from pathlib import Path

import pytest

from engram.rules.scopes import ancestors, parse_scope
from engram.store.scopes import (
    earlier_scopes,
    git_folder,
    main_worktree,
    remote_of,
    remote_scope,
    scope_of,
    session_scope,
    worktrees,
)
from tests.repositories import make_repository

ACME = "project:github.com:acme/api"


def git(folder: Path, *words: str) -> None:
    config = ("user.name=Ann", "user.email=ann@example.org", "protocol.file.allow=always", "commit.gpgsign=false")
    options = [part for one in config for part in ("-c", one)]
    subprocess.run(["git", *options, *words], cwd=folder, check=True, capture_output=True)


def init(folder: Path, remote: str = "") -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "Start")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


@pytest.fixture(autouse=True)
def no_settings_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    return init(tmp_path / "acme", "git@github.com:acme/api.git")


SAME = (
    "git@github.com:acme/api.git",
    "github.com:acme/api",
    "github.com:/acme/api.git",
    "ssh://git@github.com/acme/api.git",
    "ssh://git@github.com:22/acme/api",
    "ssh://git@ssh.github.com:443/acme/api.git",
    "https://github.com/acme/api",
    "https://github.com/acme/api.git/",
    "https://GitHub.com/Acme/API.git",
    "https://github.com:443/acme/api.git",
    "https://ann:secret@github.com/acme/api.git",
    "https://ann:p%40ss@github.com/acme/api",
    "git+ssh://git@github.com./acme/api",
)
OTHERS = (
    ("https://evil.example/acme/api", "project:evil.example:acme/api"),
    ("https://github.com@evil.example/acme/api", "project:evil.example:acme/api"),
    ("github.com.evil.example:acme/api", "project:github.com.evil.example:acme/api"),
    ("https://git.example/evil/acme/api", "project:git.example:evil/acme/api"),
    ("https://gitlab.com/a/b/c/d/e.git", "project:gitlab.com:a/b/c/d/e"),
    ("https://git.sr.ht/~ann/api", "project:git.sr.ht:~ann/api"),
    ("https://github.com/acme/.github", "project:github.com:acme/.github"),
    ("acme:api", "project:acme:api"),
    ("ssh://acme/api", "project:acme:api"),
    ("ssh://git@[2001:db8::1]:22/acme/api", "project:2001_db8__1:acme/api"),
    ("", None),
)
UNUSUAL = (
    # The host ends before the "@" for curl, or for git, which decodes addresses of ssh.
    "https://evil.example?@github.com/acme/api",
    "https://evil.example#@github.com/acme/api",
    "https://evil.example\\@github.com/acme/api",
    "https://evil.example/@github.com/acme/api",
    "https://evil.example:443@x@github.com/acme/api",
    "ssh://evil.example%2fx@github.com/acme/api",
    "ssh://evil.example%3f@github.com/acme/api",
    "ssh://git@evil.example:22:@github.com/acme/api",
    "evil.example?@github.com:acme/api",
    "evil.example#@github.com:acme/api",
    "[git@evil.example:22]:acme/api",
    "-oProxyCommand=x@github.com/acme/api",
    # Another path.
    "https://github.com/acme/api/../../evil/x",
    "https://github.com/acme/api/%2e%2e/%2e%2e/evil/x",
    "https://github.com/acme/api/..git",
    "https://github.com/acme/api/...git",
    "https://github.com/acme/api/.git",
    "https://github.com/acme/./api",
    "https://github.com//acme/api",
    "https://github.com/acme/api//",
    "https://github.com/acme/api?x=/evil",
    "https://github.com/acme/api#evil",
    "https://github.com/acme\\api",
    "git@github.com:../acme/api",
    "git@github.com://acme/api",
    # A file of somebody's pull request, served as a repository.
    "https://github.com/acme/api/raw/1a2b3c/evil",
    "https://gitlab.com/acme/api/-/raw/1a2b3c/evil",
    "https://git.example/acme/api/raw/commit/1a2b3c/evil",
    # Other characters.
    "https://github.com/acme/ api",
    "https://github.com/acme/api\x00evil",
    "https://github.com/acme/api\nevil",
    "https://github\u3002com/acme/api",
    "https://GITHUB.com/acme/\u212aapi",
    "https://github.com:x/acme/api",
    "https://github..com/acme/api",
    "https://[github.com]/acme/api",
    # Programs that git runs.
    "ext::sh -c evil github.com:acme/api",
    "evil::https://github.com/acme/api",
    "evil://github.com/acme/api",
    # Without a path, or longer than any.
    "https://github.com",
    "https://github.com/",
    "https://github.com/acme",
    "..",
    "https://git.example/" + "a/" * 600 + "api",
)


def test_every_form_of_a_remote_has_one_scope() -> None:
    assert {url: remote_scope(url) for url in SAME} == dict.fromkeys(SAME, ACME)


def test_another_host_or_path_is_another_scope() -> None:
    found = {url: remote_scope(url) for url, _ in OTHERS}
    assert found == dict(OTHERS)
    assert all(parse_scope(scope) == scope for scope in found.values() if scope)


def test_an_address_that_programs_read_differently_names_no_project() -> None:
    found = {url: remote_scope(url) or "" for url in UNUSUAL}
    assert [url for url, scope in found.items() if not re.fullmatch(r"project:[\w.-]+~[0-9a-f]{16}", scope)] == []
    assert len(set(found.values())) >= len(UNUSUAL) - 1, "https://github.com and https://github.com/ are the same"
    assert all(ancestors(scope) == (scope,) and parse_scope(scope) == scope for scope in found.values())


def test_the_scope_of_an_unusual_address_shows_no_password() -> None:
    assert (remote_scope("https://hunter2@github.com") or "").startswith("project:github.com~")


def test_a_submodule_cannot_name_the_folder_of_a_repository_without_a_remote(tmp_path: Path, acme: Path) -> None:
    git(acme, "submodule", "--quiet", "add", str(init(tmp_path / "library")), "plain")
    git(acme / "plain", "remote", "set-url", "origin", "https://evil.example/")
    assert scope_of(init(tmp_path / "plain")) == "project:plain" != scope_of(acme / "plain")


def test_a_value_with_an_odd_line_end_adds_no_remote(tmp_path: Path) -> None:
    top = init(tmp_path / "x")
    for number, end in enumerate("\u2028\x85\x0b\x0c\x1c\r"):
        git(
            top, "config", f"submodule.s{number}.url", f'x{end}[remote "origin"]{end}url = git@github.com:acme/api{end}'
        )
    assert remote_of(top) == ""
    git(top, "config", "remote.origin.url", "https://github.com/acme/\test")
    assert remote_of(top) == "https://github.com/acme/\test"


def test_a_host_is_no_scope_that_its_projects_see() -> None:
    assert ancestors(ACME) == (ACME, "project:github.com:acme")


@pytest.mark.parametrize("url", ["/srv/git/acme/api.git", "../acme/api", "file:///srv/git/acme/api.git", "./x:y/api"])
def test_a_remote_on_this_machine_has_a_scope_that_no_host_and_no_folder_has(tmp_path: Path, url: str) -> None:
    scope = remote_scope(url)
    assert scope is not None
    assert scope.startswith("project:api~")
    assert remote_scope(f"{url.removesuffix('.git')}/other") != scope
    assert scope_of(init(tmp_path / scope.removeprefix("project:"))) != scope


def test_file_urls_and_paths_are_the_same_remote() -> None:
    assert remote_scope("file:///srv/git/api.git") == remote_scope("/srv/git/api.git/")


def test_what_git_writes_instead_of_a_remote_counts(tmp_path: Path) -> None:
    short, other = init(tmp_path / "a", "gh:acme/api"), init(tmp_path / "b", "work:api")
    assert scope_of(short) == "project:gh:acme/api"
    config = '[url "git@github.com:"]\n\tinsteadOf = "gh:"\n[url "https://github.com/acme/"]\n\tinsteadof = work:\n'
    (tmp_path / ".gitconfig").write_text(config)
    assert scope_of(short) == scope_of(other) == session_scope("/gone/api", "gh:acme/api") == ACME


def test_the_first_address_of_origin_counts_whatever_else_a_configuration_says(tmp_path: Path) -> None:
    top = init(tmp_path / "x", "https://github.com/acme/api")
    git(top, "remote", "set-url", "--add", "origin", "https://evil.example/acme/api")
    git(top, "remote", "add", "a-mirror", "https://mirror.example/acme/api")
    git(top, "config", "remote.origin.pushurl", "https://push.example/acme/api")
    included = tmp_path / "included"
    included.write_text('[remote "origin"]\n\turl = https://included.example/acme/api\n')
    git(top, "config", "include.path", str(included))
    assert remote_of(top) == "https://github.com/acme/api"


def test_a_variable_of_git_does_not_choose_another_repository(
    tmp_path: Path, acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = init(tmp_path / "plain")
    monkeypatch.setenv("GIT_DIR", str(acme / ".git"))
    assert scope_of(plain) == "project:plain"


# -- worktrees and submodules


def test_a_worktree_has_the_scope_of_its_repository(tmp_path: Path, acme: Path) -> None:
    git(acme, "worktree", "add", "-q", str(tmp_path / "fix"))
    fix = tmp_path / "fix"
    assert scope_of(fix) == ACME
    assert main_worktree(fix) == acme
    assert worktrees(fix) == worktrees(acme) == [fix]


def test_a_worktree_with_relative_paths_has_the_scope_of_its_repository(tmp_path: Path, acme: Path) -> None:
    git(acme, "worktree", "add", "-q", str(tmp_path / "fix"))
    (tmp_path / "fix" / ".git").write_text("gitdir: ../acme/.git/worktrees/fix\n")
    (acme / ".git" / "worktrees" / "fix" / "gitdir").write_text("../../../../fix/.git\n")
    assert scope_of(tmp_path / "fix") == ACME


def test_a_worktree_of_a_bare_repository_has_its_remote(tmp_path: Path, acme: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(acme), "bare.git")
    git(tmp_path / "bare.git", "remote", "set-url", "origin", "git@github.com:acme/api.git")
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tmp_path / "tree"))
    assert scope_of(tmp_path / "tree") == ACME


def test_a_submodule_has_its_own_remote_and_its_repository_keeps_its_own(tmp_path: Path, acme: Path) -> None:
    library = init(tmp_path / "library")
    git(acme, "submodule", "--quiet", "add", str(library), "lib")
    git(acme / "lib", "remote", "set-url", "origin", "https://github.com/acme/lib.git")
    assert scope_of(acme / "lib") == "project:github.com:acme/lib"
    assert scope_of(acme) == ACME


CLAIMS = {
    "the git folder": "gitdir: ../acme/.git\n",
    "a worktree of it": "gitdir: ../acme/.git/worktrees/fix\n",
    "a submodule of it": "gitdir: ../acme/.git/modules/lib\n",
    "a git folder of its own with a foreign one in it": "gitdir: meta/worktrees/fix\n",
}


@pytest.mark.parametrize("content", CLAIMS.values(), ids=CLAIMS)
def test_a_git_file_counts_only_if_that_repository_names_the_directory(
    tmp_path: Path, acme: Path, content: str
) -> None:
    git(acme, "worktree", "add", "-q", str(tmp_path / "fix"))
    git(acme, "submodule", "--quiet", "add", str(init(tmp_path / "library")), "lib")
    claimed = tmp_path / "claimed"
    entry = claimed / "meta" / "worktrees" / "fix"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{claimed}/.git\n")
    (entry / "commondir").write_text(f"{acme}/.git\n")
    (claimed / ".git").write_text(content)
    assert git_folder(claimed) is None
    assert main_worktree(claimed) == claimed
    scope = scope_of(claimed)
    assert scope is not None
    assert scope.startswith("project:claimed~")


def test_a_git_folder_that_is_a_link_does_not_count(tmp_path: Path, acme: Path) -> None:
    claimed = tmp_path / "claimed"
    claimed.mkdir()
    (claimed / ".git").symlink_to(acme / ".git")
    assert (scope_of(claimed) or "").startswith("project:claimed~")
    (claimed / ".git").unlink()
    make_repository(claimed)
    (claimed / ".git" / "config").symlink_to(acme / ".git" / "config")
    assert scope_of(claimed) == "project:claimed"


def test_a_directory_with_a_false_git_file_has_a_scope_of_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name / "acme").mkdir(parents=True)
        (tmp_path / name / "acme" / ".git").write_text("gitdir: /nowhere\n")
    assert len({scope_of(tmp_path / name / "acme") for name in ("a", "b")} | {"project:acme"}) == 3


def test_a_repository_lists_no_other_one_as_its_worktree(tmp_path: Path, acme: Path) -> None:
    other = init(tmp_path / "other")
    entry = other / ".git" / "worktrees" / "x"
    entry.mkdir(parents=True)
    (entry / "gitdir").write_text(f"{acme}/.git\n")
    (entry / "commondir").write_text("../..\n")
    assert worktrees(other) == []


def test_broken_files_of_git_are_no_repository(tmp_path: Path) -> None:
    top = tmp_path / "broken"
    top.mkdir()
    found = {}
    for content in (
        b"",
        b"\xff\xfe",
        b"gitdir:",
        b"gitdir: \0",
        b"gitdir: .git",
        b"x" * 100_000,
        b"gitdir: " + b"../" * 5000,
    ):
        (top / ".git").write_bytes(content)
        found[content[:20]] = git_folder(top)
    assert set(found.values()) == {None}


# -- names from before


def test_the_name_without_a_host_is_offered_for_the_remote_and_its_owner(acme: Path) -> None:
    assert earlier_scopes(acme) == {ACME: "project:acme/api", "project:github.com:acme": "project:acme"}
    assert earlier_scopes(acme, {ACME: ACME, "project:github.com:acme": "project:acme"}) == {}


def test_no_name_is_offered_for_a_repository_without_a_remote(tmp_path: Path) -> None:
    assert earlier_scopes(init(tmp_path / "plain")) == {}
    assert earlier_scopes(tmp_path) == {}
