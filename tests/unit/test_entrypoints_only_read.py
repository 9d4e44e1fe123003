"""Entrypoints and wiring read from a store what they show and need; what changes a store is a flow's."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import sendonce
from sendonce.ports.prospecting import ProspectingStore
from sendonce.ports.store import Store

PACKAGE = Path(sendonce.__file__).parent
WITHOUT_RULES = [*(PACKAGE / "entrypoints").rglob("*.py"), *(PACKAGE / "wiring").rglob("*.py")]

# A verb that is not listed here counts as one that writes.
READING: Mapping[str, frozenset[str]] = {
    "assets": frozenset({"get"}),
    "audit_log": frozenset({"all", "entries"}),
    "dispatches": frozenset({"abandoned", "get", "put_off_beyond", "running", "to_finish"}),
    "letters": frozenset({"get"}),
    "event_route": frozenset({"is_subscribed", "listening"}),
    "events": frozenset({"all", "count_unreadable", "unreadable"}),
    "canaries": frozenset({"last"}),
    "jobs": frozenset(
        {
            *(
                "accepted_near",
                "books",
                "count_by_state",
                "count_unsubscribed",
                "get",
                "handed_over_since",
                "list",
            ),
            *("next_due", "oldest_due", "outcomes", "troubles", "with_prefix"),
        }
    ),
    "keys": frozenset({"link_secrets", "used"}),
    "ledger": frozenset({"doubts", "identity", "now", "oldest_claim", "sending_of", "surroundings"}),
    "mailbox_log": frozenset({"all", "cursor", "known", "readings"}),
    "mailouts": frozenset(
        {
            *(
                "all",
                "count_excluded",
                "due",
                "get",
                "letter",
                "of_all_tenants",
                "of_page",
                "twins",
                "with_prefix",
            ),
            *("being_prepared", "running", "twins", "with_prefix", "with_stale_report", "with_status"),
        }
    ),
    "contacts": frozenset({"all", "count", "of"}),
    "companies": frozenset({"all", "at", "count", "found_by", "get", "with_prefix"}),
    "directions": frozenset({"all", "get"}),
    "duplicates": frozenset({"alike", "count", "listed", "pairs", "pairs_of"}),
    "funnels": frozenset({"outreach"}),
    "outbox": frozenset({"due"}),
    "pipeline_journal": frozenset({"lines"}),
    "quotas": frozenset({"spent", "windows"}),
    "search_operations": frozenset({"next_due"}),
    "searches": frozenset({"all", "tally", "with_prefix"}),
    "tasks": frozenset({"count_open"}),
    "people": frozenset({"file_of"}),
    "tenants": frozenset({"all", "get"}),
    "permits": frozenset(),
    "sender_holds": frozenset({"all", "get"}),
    "senders": frozenset({"all", "get", "waiting"}),
    "subscribers": frozenset({"all", "attribute_names", "count", "count_lacking", "find", "import_lanes"}),
    "suppressions": frozenset({"all", "covers", "undoable"}),
    "written_letters": frozenset(
        {"all", "count", "get", "of_job", "spent_since", "unwritten", "with_prefix"}
    ),
    "workers": frozenset({"claims_of", "find", "open", "statuses"}),
}


def writing() -> dict[str, frozenset[str]]:
    """The verbs of each part of a store that change it."""
    return {part: verbs - READING.get(part, frozenset()) for part, verbs in parts().items()}


def parts() -> dict[str, frozenset[str]]:
    """The parts of a store, declared as attributes or as properties, with their verbs."""
    ports: dict[str, Any] = {}
    for base in [*reversed(Store.__mro__), *reversed(ProspectingStore.__mro__)]:
        ports |= get_type_hints(base)
        for name, member in vars(base).items():
            if isinstance(member, property):
                ports[name] = get_type_hints(member.fget)["return"]
    return {part: frozenset(_verbs(port)) for part, port in ports.items()}


def _verbs(port: Any) -> Iterator[str]:
    for base in (each for kind in get_args(port) or (port,) for each in kind.__mro__ if each is not object):
        yield from (name for name in {**vars(base), **get_type_hints(base)} if not name.startswith("_"))


def writes_in(source: str) -> Iterator[tuple[int, str]]:
    """Every mention of such a verb: called, or handed to somebody who calls it."""
    tree = ast.parse(source)
    verbs, held = writing(), set(_held_alone(tree))
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Attribute(attr=part), attr=verb) if verb in verbs.get(part, ()):
                yield node.lineno, f"{part}.{verb}"
            case ast.Attribute(value=ast.Name(id=part), attr=verb) if part in held & verbs.keys():
                if verb in verbs[part]:
                    yield node.lineno, f"{part}.{verb}"


def _held_alone(tree: ast.AST) -> Iterator[str]:
    """Names that may stand for a part of a store: parameters, and what an attribute was assigned to."""
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute()):
                yield name


@pytest.mark.parametrize("file", sorted(WITHOUT_RULES), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_neither_an_entrypoint_nor_wiring_changes_a_store(file: Path) -> None:
    """Or a rule would live at one door, and the other doors would not know it."""
    assert not list(writes_in(file.read_text(encoding="utf-8")))


def test_a_verb_that_writes_is_seen_however_it_is_reached() -> None:
    """Called, handed on, or reached through a part that stands alone; a module of that name is none."""
    assert list(writes_in("store.dispatches.cancel(name)")) == [(1, "dispatches.cancel")]
    assert list(writes_in("in_thread(self.store.ledger.retry, ids)")) == [(1, "ledger.retry")]
    assert list(writes_in("def f(keys): keys.rotate(me)")) == [(1, "keys.rotate")]
    assert list(writes_in("keys = store.keys; keys.rotate(me)")) == [(1, "keys.rotate")]
    assert list(writes_in("from cli import people\npeople.erase")) == []
    assert list(writes_in("store.mailouts.get(tenant, name)")) == []


def test_every_reading_verb_is_a_verb_of_its_port() -> None:
    """A list that names what is gone would let its successor pass."""
    for part, verbs in READING.items():
        assert verbs <= parts()[part], part
