"""What kind of document a text is: by the ending of its name, else by its look."""

import re
from pathlib import PurePath

__all__ = ["KINDS", "look_of"]

KINDS = ("markdown", "text", "code", "diff")

LOOKED_AT = 20_000

_ENDINGS = {
    "markdown": "md markdown mdown mkd mdx mdc qmd rmd",
    "diff": "diff patch",
    "code": """
        py pyi pyx js jsx mjs cjs ts tsx mts cts java kt kts scala groovy gradle c h cc cpp cxx hpp hh hxx m mm cs fs vb go rs
        swift rb erb php pl pm lua r jl ex exs erl hrl hs ml mli clj cljs el lisp scm sh bash zsh fish ps1 bat cmd sql
        proto thrift graphql tf hcl nix cmake mk zig nim d dart v sv vhd vhdl sol asm s css scss sass less vue svelte html htm
        xml xsl svg json jsonc json5 jsonl ndjson yaml yml toml ini cfg conf properties
    """,
    "text": "rst adoc asciidoc org tex csv tsv log srt vtt eml",
}
_KIND_OF = {ending: kind for kind, endings in _ENDINGS.items() for ending in endings.split()}
_CODE_NAMES = frozenset({"makefile", "dockerfile", "rakefile", "gemfile", "justfile", "jenkinsfile", "vagrantfile"})

_DIFF = re.compile(r"^(?:diff --git a/|Index: \S|--- \S.*\n\+\+\+ \S.*\n@@ -\d)", re.MULTILINE)
_HUNK = re.compile(r"^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@", re.MULTILINE)
_MARKDOWN = (
    re.compile(r"^ {0,3}#{1,6} \S", re.MULTILINE),
    re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE),
    re.compile(r"\[[^\]\n]{1,200}\]\([^)\s]{1,500}\)"),
    re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    re.compile(r"^\|.{1,500}\|[ \t]*\r?$", re.MULTILINE),
    re.compile(r"^[^\n]{1,200}\n(?:={3,}|-{3,})[ \t\r]*$", re.MULTILINE),
)
_CODE_LINE = re.compile(
    r"^[ \t]*+(?:(?:def|class|if|for|while|function|func|fn|public|private|struct|interface|elif|else|with|try|except)\b.*[:{)]"
    r"[ \t\r]*$|(?:import|package|use|\#include|const|let|var)[ \t]+\S+[ \t\r;]*$|from[ \t]+\S+[ \t]+import\b|return\b|"
    r"[\w.$\[\]\"' :]{1,60}?[-+:]?=[ \t]*\S|.*[;{}][ \t\r]*$|[)\]}]+[,;]?[ \t\r]*$|@\w+|//|\#!|[\w.]+\(.*\)[ \t\r]*$)",
    re.MULTILINE,
)
_MOSTLY_CODE = 0.4


def look_of(text: str, name: str = "") -> str:
    """The kind of a text: "markdown", "text", "code" or "diff".

    A name's ending decides where it is known; `.txt`, unknown endings and no name leave it to the look.
    """
    by_name = _by_name(name)
    return by_name or _by_look(text[:LOOKED_AT])


def _by_name(name: str) -> str:
    path = PurePath(name.lower())
    if path.name in _CODE_NAMES:
        return "code"
    return _KIND_OF.get(path.suffix[1:], "")


def _by_look(text: str) -> str:
    if _DIFF.search(text) and _HUNK.search(text):
        return "diff"
    if text.startswith("#!") or _share_of_code(text) > _MOSTLY_CODE:
        return "code"
    signs = [len(sign.findall(text)) for sign in _MARKDOWN]
    # A lone `#` may be a comment or a number; with another sign, or several of them, it is a heading.
    is_markdown = sum(found > 0 for found in signs) >= 2 or signs[0] >= 2 or signs[-1] >= 2
    return "markdown" if is_markdown else "text"


def _share_of_code(text: str) -> float:
    lines = sum(1 for line in text.split("\n") if line.strip())
    return len(_CODE_LINE.findall(text)) / lines if lines > 2 else 0.0
