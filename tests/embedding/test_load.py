"""The setting that names an embedder."""

import sys

import pytest

from engram.embedding import EmbedderError, load_embedder
from engram.embedding.providers import OpenAIEmbedder
from engram.embedding.static import StaticEmbedder
from engram.model.errors import EngramError
from tests.tables import table


def test_the_default_is_the_bundled_model() -> None:
    assert isinstance(load_embedder(), StaticEmbedder)
    assert isinstance(load_embedder(" static "), StaticEmbedder)


def test_none_means_keyword_only() -> None:
    assert load_embedder("none") is None


@table("spec", ["", "word2vec", "fastembed", "fastembed:", "static:x", "none:x", "openai:"])
def test_an_unknown_setting_is_answered_with_the_known_ones(spec: str) -> None:
    with pytest.raises(EmbedderError, match=r'Unknown embedder .*use "static"'):
        load_embedder(spec)


@pytest.mark.parametrize("spec", ["openai:model", "openai:model@", "openai:@http://localhost/v1"])
def test_an_openai_setting_without_model_or_address_says_so(spec: str) -> None:
    with pytest.raises(EmbedderError, match="has no address"):
        load_embedder(spec)


def test_an_address_that_is_no_url_is_refused() -> None:
    with pytest.raises(EmbedderError, match="must start with http"):
        load_embedder("openai:model@localhost:11434")


def test_a_model_name_may_hold_an_at_sign() -> None:
    assert isinstance(load_embedder("openai:team/model@v2@http://localhost:1/v1"), OpenAIEmbedder)


def test_fastembed_absent_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", None)
    with pytest.raises(EmbedderError, match=r"engram\[fastembed\]"):
        load_embedder("fastembed:BAAI/bge-small-en-v1.5")


def test_httpx_absent_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    embedder = load_embedder("openai:model@http://localhost:1/v1")
    assert embedder is not None
    with pytest.raises(EmbedderError, match=r"engram\[openai\]"):
        embedder.embed(["hello"])


def test_its_error_is_one_of_engrams() -> None:
    assert issubclass(EmbedderError, EngramError)
