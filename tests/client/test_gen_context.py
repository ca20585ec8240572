"""`gen_context`: a block of memories in AGENTS.md or CLAUDE.md, and what a purge does to it."""

import codecs
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from engram import ContextUpdate, Engram, InvalidInput, Purged, Refused
from engram.disk import write_temporary
from engram.recall.prompt.context_block import BEGIN, END
from tests.backends import Backend
from tests.clock import Clock
from tests.repositories import make_repository


@pytest.fixture
def work(tmp_path: Path, mem: Engram) -> Path:
    """A repository, in which the memory is used."""
    folder = tmp_path / "repo"
    make_repository(folder)
    mem.directory = folder
    return folder


def written(mem: Engram, path: Path, **options: object) -> ContextUpdate:
    """What becomes of one file."""
    (update,) = mem.gen_context(path, **options)  # type: ignore[arg-type]
    return update


def test_a_named_file_is_created(mem: Engram, work: Path) -> None:
    known = mem.add("Use pnpm", type="preference")
    update = written(mem, work / "AGENTS.md")
    assert (update.change, update.ids) == ("created", (known.id,))
    assert f"- “Use pnpm” ({known.id})\n{END}\n" in (work / "AGENTS.md").read_text("utf-8")


def test_a_relative_path_is_below_the_directory(mem: Engram, work: Path) -> None:
    written(mem, Path("AGENTS.md"))
    assert (work / "AGENTS.md").is_file()


def test_a_new_file_has_the_mode_of_any_new_file(mem: Engram, work: Path) -> None:
    (work / "other").touch()
    written(mem, work / "AGENTS.md")
    assert (work / "AGENTS.md").stat().st_mode == (work / "other").stat().st_mode


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_without_a_name_it_is_the_file_of_the_directory(mem: Engram, work: Path, name: str) -> None:
    (work / name).write_text("# Rules\n")
    (update,) = mem.gen_context()
    assert update.file == str(work / name)


def test_below_the_root_it_is_the_file_of_the_root(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").touch()
    (work / "src").mkdir()
    mem.directory = work / "src"
    (update,) = mem.gen_context()
    assert update.file == str(work / "AGENTS.md")


def test_of_two_files_it_is_the_one_with_a_block(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_text("# Rules\n")
    (work / "CLAUDE.md").write_text(f"{BEGIN}\n{END}\n")
    (update,) = mem.gen_context()
    assert update.file == str(work / "CLAUDE.md")
    assert (work / "AGENTS.md").read_text() == "# Rules\n"


def test_without_any_file_the_choices_are_named(mem: Engram, work: Path) -> None:
    with pytest.raises(InvalidInput, match=r"AGENTS\.md or CLAUDE\.md"):
        mem.gen_context()
    assert [path.name for path in work.iterdir()] == [".git"]


def test_an_unchanged_file_is_not_touched(mem: Engram, work: Path) -> None:
    mem.add("Use pnpm", type="preference")
    written(mem, work / "AGENTS.md")
    os.utime(work / "AGENTS.md", ns=(1, 1))
    before = (work / "AGENTS.md").stat()
    assert written(mem, work / "AGENTS.md").change == "unchanged"
    after = (work / "AGENTS.md").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, 1)


def test_a_new_memory_is_added_to_the_block(mem: Engram, work: Path) -> None:
    written(mem, work / "AGENTS.md")
    mem.add("Use pnpm", type="preference")
    assert written(mem, work / "AGENTS.md").change == "updated"
    assert "Use pnpm" in (work / "AGENTS.md").read_text("utf-8")


def test_a_forgotten_memory_leaves_the_block(mem: Engram, work: Path) -> None:
    known = mem.add("Use pnpm", type="preference")
    written(mem, work / "AGENTS.md")
    mem.forget(known.id)
    written(mem, work / "AGENTS.md")
    assert "Use pnpm" not in (work / "AGENTS.md").read_text("utf-8")


def test_a_dry_run_writes_nothing_and_shows_the_difference(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_text("# Rules\n")
    update = written(mem, work / "AGENTS.md", dry_run=True)
    assert update.changed
    assert f"+{BEGIN}" in update.diff
    assert (work / "AGENTS.md").read_text() == "# Rules\n"


def test_mode_line_endings_and_byte_order_mark_are_kept(mem: Engram, work: Path) -> None:
    file = work / "AGENTS.md"
    file.write_bytes(codecs.BOM_UTF8 + "# Régles\r\n".encode())
    file.chmod(0o640)
    mem.add("Use pnpm", type="preference")
    written(mem, file)
    data = file.read_bytes()
    assert data.startswith(codecs.BOM_UTF8 + "# Régles\r\n".encode())
    assert data.count(b"\n") == data.count(b"\r\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_file_in_utf_16_stays_in_utf_16(mem: Engram, work: Path) -> None:
    file = work / "AGENTS.md"
    file.write_bytes(codecs.BOM_UTF16_LE + "# Rules\n".encode("utf-16-le"))
    mem.add("Use pnpm", type="preference")
    written(mem, file)
    assert "“Use pnpm”" in file.read_bytes().decode("utf-16")


def test_no_temporary_file_stays_behind(mem: Engram, work: Path) -> None:
    written(mem, work / "AGENTS.md")
    written(mem, work / "AGENTS.md", limit=1)
    assert sorted(path.name for path in work.iterdir()) == [".git", "AGENTS.md"]


def test_one_refused_file_leaves_all_of_them_as_they_were(mem: Engram, work: Path) -> None:
    (work / "good.md").write_text("good\n")
    (work / "bad.md").write_text(f"{BEGIN}\n")
    with pytest.raises(Refused, match="line 1"):
        mem.gen_context([work / "good.md", work / "bad.md"])
    assert (work / "good.md").read_text() == "good\n"
    assert (work / "bad.md").read_text() == f"{BEGIN}\n"


def test_a_file_that_is_no_text_is_refused(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_bytes(b"caf\xe9\n")
    with pytest.raises(Refused, match="byte 3"):
        written(mem, work / "AGENTS.md")
    assert (work / "AGENTS.md").read_bytes() == b"caf\xe9\n"


def test_a_folder_is_refused(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").mkdir()
    with pytest.raises(Refused, match="not a plain file"):
        written(mem, work / "AGENTS.md")


def test_a_file_in_a_folder_that_does_not_exist_is_refused(mem: Engram, work: Path) -> None:
    with pytest.raises(InvalidInput, match="does not exist"):
        written(mem, work / "none" / "AGENTS.md")


def test_a_link_inside_the_repository_is_written_through(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_text("# Rules\n")
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    written(mem, work / "CLAUDE.md")
    assert (work / "CLAUDE.md").is_symlink()
    assert BEGIN in (work / "AGENTS.md").read_text("utf-8")


def test_a_file_and_a_link_to_it_are_one_file(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_text("# Rules\n")
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(mem.gen_context([work / "AGENTS.md", work / "CLAUDE.md"])) == 1
    assert (work / "AGENTS.md").read_text("utf-8").count(BEGIN) == 1


@pytest.mark.parametrize("linked", ["file", "folder"])
def test_a_link_out_of_the_repository_is_refused(mem: Engram, work: Path, tmp_path: Path, linked: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "AGENTS.md").write_text("theirs\n")
    target = work / "AGENTS.md" if linked == "file" else work / "docs" / "AGENTS.md"
    (target if linked == "file" else target.parent).symlink_to(outside / "AGENTS.md" if linked == "file" else outside)
    with pytest.raises(Refused, match="outside of"):
        written(mem, target)
    assert (outside / "AGENTS.md").read_text() == "theirs\n"


def test_only_memories_seen_from_the_folder_of_the_file_are_quoted(mem: Engram, work: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_repository(other)
    mem.add("Use pnpm here", scope="project:repo", type="preference")
    mem.add("Use npm there", scope="project:other", type="preference")
    mem.add("Be brief everywhere", scope="global", type="preference")
    written(mem, work / "AGENTS.md")
    written(mem, other / "AGENTS.md")
    here, there = ((folder / "AGENTS.md").read_text("utf-8") for folder in (work, other))
    assert ("Use pnpm here" in here, "Use npm there" in here, "Be brief" in here) == (True, False, True)
    assert ("Use pnpm here" in there, "Use npm there" in there, "Be brief" in there) == (False, True, True)


def test_a_scope_limits_the_block_to_that_scope(mem: Engram, work: Path) -> None:
    own = mem.add("Use pnpm here", scope="project:repo", type="preference")
    mem.add("Be brief everywhere", scope="global", type="preference")
    assert written(mem, work / "AGENTS.md", scope="project:repo").ids == (own.id,)


def test_sensitive_memories_need_to_be_asked_for(mem: Engram, work: Path) -> None:
    mem.add("Ana earns 80,000 euros a year", type="fiscal")
    assert written(mem, work / "AGENTS.md").left_out == {"tier 3": 1}
    assert "80,000" not in (work / "AGENTS.md").read_text("utf-8")
    written(mem, work / "AGENTS.md", tier=3)
    assert "80,000" in (work / "AGENTS.md").read_text("utf-8")


def test_a_stale_memory_comes_back_once_it_is_verified(mem: Engram, work: Path, clock: Clock) -> None:
    known = mem.add("Use pnpm", type="preference", decay_days=30)
    clock.forward(days=60)
    assert written(mem, work / "AGENTS.md").left_out == {"stale": 1}
    mem.verify(known.id, actor="human")
    assert written(mem, work / "AGENTS.md").ids == (known.id,)


def test_a_memory_with_an_open_contradiction_is_marked(mem: Engram, work: Path) -> None:
    known = mem.learn("The staging server listens on port 8080", source="agent").memory
    assert known is not None
    assert mem.learn("The staging server listens on port 9090", source="agent").outcome == "CONTRADICTION"
    written(mem, work / "AGENTS.md")
    assert f"port 8080” (disputed, {known.id})" in (work / "AGENTS.md").read_text("utf-8")


@pytest.mark.parametrize("options", [{"tier": 0}, {"tier": 4}, {"limit": 0}, {"limit": 2000}, {"budget": 5}])
def test_numbers_that_make_no_sense_are_refused(mem: Engram, work: Path, options: dict[str, int]) -> None:
    with pytest.raises(InvalidInput):
        written(mem, work / "AGENTS.md", **options)
    assert not (work / "AGENTS.md").exists()


def test_removing_the_block_restores_the_file(mem: Engram, work: Path) -> None:
    (work / "AGENTS.md").write_text("# Rules\n\nBe nice.\n")
    written(mem, work / "AGENTS.md")
    assert written(mem, work / "AGENTS.md", remove=True).change == "removed"
    assert (work / "AGENTS.md").read_text() == "# Rules\n\nBe nice.\n"


def test_a_file_that_was_created_for_the_block_goes_with_it(mem: Engram, work: Path) -> None:
    written(mem, work / "AGENTS.md")
    assert written(mem, work / "AGENTS.md", remove=True).change == "deleted"
    assert not (work / "AGENTS.md").exists()


def test_a_created_file_that_somebody_has_added_to_stays(mem: Engram, work: Path) -> None:
    written(mem, work / "AGENTS.md")
    (work / "AGENTS.md").write_text("Mine.\n" + (work / "AGENTS.md").read_text("utf-8"))
    assert written(mem, work / "AGENTS.md", remove=True).change == "removed"
    assert (work / "AGENTS.md").read_text() == "Mine.\n"


def test_what_somebody_writes_in_the_meantime_is_not_lost(
    mem: Engram, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = work / "AGENTS.md"
    file.write_text("# Rules\n")

    def write_after_somebody(*args: Any, **options: Any) -> tuple[str, os.stat_result]:
        monkeypatch.undo()
        file.write_text("# Rules\n\nBe nice.\n")
        return write_temporary(*args, **options)

    monkeypatch.setattr("engram.agents.wiring.user_file.write_temporary", write_after_somebody)
    written(mem, file)
    assert file.read_text("utf-8").startswith(f"# Rules\n\nBe nice.\n\n{BEGIN}\n")


# -- purge


def test_a_purge_removes_the_text_from_the_blocks(mem: Engram, work: Path, backend: Backend) -> None:
    gone = mem.add("The locker code is four twenty", type="preference")
    kept = mem.add("Use pnpm", type="preference")
    mem.gen_context([work / "AGENTS.md", work / "CLAUDE.md"])
    purged = backend.client().forget(gone.id, purge=True)
    assert isinstance(purged, Purged)
    for name in ("AGENTS.md", "CLAUDE.md"):
        text = (work / name).read_text("utf-8")
        assert "locker" not in text
        assert kept.id in text
        assert any(str(work / name) in line for line in purged.out_of_reach)
    assert purged.remaining == ()


def test_a_purge_of_a_scope_removes_its_text_from_the_blocks(mem: Engram, work: Path) -> None:
    mem.add("The locker code is four twenty", scope="project:repo", type="preference")
    written(mem, work / "AGENTS.md")
    mem.purge("project:repo")
    assert "locker" not in (work / "AGENTS.md").read_text("utf-8")


def test_a_purge_leaves_a_file_that_does_not_quote_it_untouched(mem: Engram, work: Path) -> None:
    gone = mem.add("Ana earns 80,000 euros a year", type="fiscal")
    written(mem, work / "AGENTS.md")
    os.utime(work / "AGENTS.md", ns=(1, 1))
    mem.forget(gone.id, purge=True)
    assert (work / "AGENTS.md").stat().st_mtime_ns == 1


def test_a_purge_names_a_block_that_it_cannot_clean(mem: Engram, work: Path) -> None:
    gone = mem.add("The locker code is four twenty", type="preference")
    written(mem, work / "AGENTS.md")
    text = (work / "AGENTS.md").read_text("utf-8").replace(END, "")
    (work / "AGENTS.md").write_text(text, "utf-8")
    purged = mem.forget(gone.id, purge=True)
    assert isinstance(purged, Purged)
    assert any(str(work / "AGENTS.md") in line and "may quote it" in line for line in purged.out_of_reach)
    assert (work / "AGENTS.md").read_text("utf-8") == text


def test_a_purge_names_the_same_words_outside_of_the_block(mem: Engram, work: Path) -> None:
    gone = mem.add("The locker code is four twenty", type="preference")
    (work / "AGENTS.md").write_text("The locker code is four twenty.\n")
    written(mem, work / "AGENTS.md")
    purged = mem.forget(gone.id, purge=True)
    assert isinstance(purged, Purged)
    assert f"{work / 'AGENTS.md'}: contains the same words outside of Engram's block" in purged.out_of_reach


def test_a_purge_names_the_files_of_other_hosts(mem: Engram, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = mem.add("The locker code is four twenty", type="preference")
    monkeypatch.setattr("engram.upkeep.context_files._host_name", lambda: "elsewhere")
    written(mem, work / "AGENTS.md")
    monkeypatch.undo()
    purged = mem.forget(gone.id, purge=True)
    assert isinstance(purged, Purged)
    assert any(f"{work / 'AGENTS.md'} on elsewhere" in line for line in purged.out_of_reach)


def test_a_file_that_was_deleted_is_no_matter_to_a_purge(mem: Engram, work: Path) -> None:
    gone = mem.add("The locker code is four twenty", type="preference")
    written(mem, work / "AGENTS.md")
    (work / "AGENTS.md").unlink()
    purged = mem.forget(gone.id, purge=True)
    assert isinstance(purged, Purged)
    assert not any("AGENTS.md" in line for line in purged.out_of_reach)
    assert mem.store.state("context") == {}


def test_the_store_remembers_where_the_blocks_are_and_nothing_of_what_they_say(mem: Engram, work: Path) -> None:
    mem.add("The locker code is four twenty", type="preference")
    written(mem, work / "AGENTS.md")
    (entry,) = mem.store.state("context")["files"]
    assert entry == {"host": os.uname().nodename, "path": str((work / "AGENTS.md").resolve()), "created": True}


# -- doctor


def test_the_doctor_names_a_block_that_quotes_what_is_no_longer_current(mem: Engram, work: Path) -> None:
    known = mem.add("Use pnpm", type="preference")
    written(mem, work / "AGENTS.md")
    assert mem.doctor()["context"].level == "ok"
    mem.forget(known.id)
    finding = mem.doctor()["context"]
    assert finding.level == "advice"
    assert known.id in finding.message
    assert "gen-context" in finding.fix
