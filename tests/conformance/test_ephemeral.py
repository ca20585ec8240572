"""An ephemeral store is one of files, in a folder that is removed with it: what holds for files holds for it."""

from engram import Engram
from engram.store.files.store.backend import FilesStore
from tests.homes import home_of


def test_an_ephemeral_store_is_one_of_files_and_gone_when_it_is_closed() -> None:
    with Engram.open(ephemeral=True) as mem:
        assert isinstance(mem.store, FilesStore)
        home = home_of(mem)
        kept = mem.add("The staging server is called nightshift")
        assert mem.search("what is staging called")[0].id == kept.id
        assert home.root.exists() and home.index.exists()
    assert not home.root.exists() and not home.index.exists()
