"""One thing has one name: what the glossary lists is used, and words of our own are listed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sendonce

SOURCE = Path(sendonce.__file__).parent
GLOSSARY = (SOURCE.parents[1] / "docs" / "glossary.md").read_text(encoding="utf-8")

# Words of everyday English in the names of ports. Any other has to be explained.
EVERYDAY = {
    *("begun", "engine", "event", "found", "journal", "key", "letter", "people", "readable"),
    *("report", "route", "intake", "log", "queue", "quick", "roster", "seen", "sending"),
    *("site", "source", "store", "wire", "wired"),
}


def entries() -> dict[str, str]:
    """Each word of the glossary, in lower case, with what is said of it."""
    found = {}
    for paragraph in GLOSSARY.split("\n\n"):
        if said := re.match(r"\*\*(.+?)\.\*\*(.*)", " ".join(paragraph.split())):
            found.update(dict.fromkeys(said[1].lower().split(", "), said[2]))
    return found


def sources() -> Iterator[str]:
    """The product's own code, in lower case; the sandbox speaks the languages of others."""
    for file in SOURCE.rglob("*.py"):
        if "sandbox" not in file.parts:
            yield file.read_text(encoding="utf-8").lower()


def singular(word: str) -> str:
    return re.sub("ies$", "y", re.sub("ches$", "ch", word)).removesuffix("s")


def words_of(class_name: str) -> list[str]:
    """``SenderHolds``: sender, hold."""
    return [singular(word.lower()) for word in re.findall("[A-Z][a-z]+", class_name)]


BUILT = [word for word, said in entries().items() if "(Not built yet" not in said]


@pytest.mark.parametrize("word", BUILT)
def test_every_word_is_used(word: str) -> None:
    """In a name or in a sentence of the code. What is to come says “not built yet”."""
    pattern = re.compile(rf"(?<![a-z]){re.escape(word).replace(chr(92) + ' ', '[ _-]?')}(s|es)?(?![a-z])")
    assert any(pattern.search(source) for source in sources())


def port_names() -> list[str]:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in (SOURCE / "ports").rglob("*.py")]
    return [node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("name", sorted(set(port_names())))
def test_every_port_has_a_name_that_is_explained(name: str) -> None:
    """By an entry of its own, or as part of one: an inbox is explained under “page inbox”."""
    known = {singular(word) for entry in entries() for word in entry.split()}
    assert not set(words_of(name)) - known - EVERYDAY


SPECIAL = (
    *("turn", "group", "parcel", "permit", "fence", "canary", "pepper", "steward", "witness", "graveyard"),
    *("bury", "halt", "vouch", "twin", "stretch", "lane", "lease", "pulse", "neighbour", "standstill"),
)


@pytest.mark.parametrize("word", SPECIAL)
def test_words_of_our_own_are_listed(word: str) -> None:
    """A newcomer could not guess these."""
    assert word in entries()
