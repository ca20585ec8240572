"""One server process for the tests that only ask it something: starting one takes longer than most tests."""

from collections.abc import Iterator

import pytest

from tests.mcp.talking import Talk, talking


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    """A conversation with a server that runs outside of any repository. Its memories are shared: use words of your own."""
    with talking(tmp_path_factory.mktemp("store")) as talk:
        yield talk
