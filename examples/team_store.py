"""A team's memories in its repository: read by everyone, trusted by each reader. Run: python examples/team_store.py"""
# ruff: noqa: T201

import tempfile
from pathlib import Path

from engram import Engram
from engram.dialects import engram_yaml
from engram.model.memory import Memory
from engram.store.files.store.backend import FilesStore, trust_team_files

RULE = Memory(
    id="ENG-2026-0101-918273645",
    statement="Changelog entries are written in the imperative, one line each, newest first",
    type="convention",
    scope="project:shop",
)


def commit(repository: Path) -> None:
    """What a colleague did: a YAML file under .engram/engrams, committed with the code."""
    folder = repository / ".engram" / "engrams" / RULE.scope
    folder.mkdir(parents=True)
    (folder / f"{RULE.id}.yaml").write_text(engram_yaml.dump([RULE]), "utf-8")


def asked(repository: Path, *, trusting: bool) -> list[str]:
    """What a fresh clone answers, before and after its reader has read and trusted the files."""
    with Engram.open(ephemeral=True, directory=repository) as mem:
        assert isinstance(mem.store, FilesStore)
        if trusting:
            for file in trust_team_files(mem.store, repository):
                print(f"trusted: {file.path.name}: {file.memories[0].statement}")
        else:
            print("note:", mem.store.warnings[0].replace(str(repository), "<repository>"))
        return [hit.text for hit in mem.search("how do we write the changelog?")]


def main() -> None:
    """Nothing of a cloned repository counts until its reader says so."""
    with tempfile.TemporaryDirectory() as folder:
        repository = Path(folder)
        commit(repository)
        print("before trust:", asked(repository, trusting=False))
        print("after trust: ", asked(repository, trusting=True))


if __name__ == "__main__":
    main()
