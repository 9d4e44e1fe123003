"""A mailout is found by its id, by the beginning of it and by its page, and only by its tenant."""

from __future__ import annotations

import pytest

from sendonce.domain.people.subscribers import DEFAULT_TENANT
from sendonce.errors import NotFound
from sendonce.flows.mailouts.find_mailout import find_mailout, mailout_named
from tests.conformance.backdoor import make_tenant
from tests.conformance.stage import Stage

PAGE = "01234567-89ab-cdef-0123-456789abcdef"


def test_it_is_found_by_every_name_of_it(stage: Stage) -> None:
    """By its id, the beginning of it, and the id or the link of its page."""
    mailout = stage.new_mailout(source="notion", source_id=PAGE, letter=None)
    link = f"https://www.notion.so/Hello-{PAGE.replace('-', '')}?pvs=4"
    for name in (mailout.id, mailout.id[:13], PAGE, PAGE.replace("-", ""), link):
        assert find_mailout(stage.store, DEFAULT_TENANT, name).id == mailout.id, name


def test_a_program_does_not_abbreviate(stage: Stage) -> None:
    """The beginning of an id starts nothing by accident."""
    mailout = stage.new_mailout(source="notion", source_id=PAGE, letter=None)
    for name in (mailout.id, PAGE):
        found = mailout_named(stage.store, DEFAULT_TENANT, name)
        assert found is not None
        assert found.id == mailout.id
    assert mailout_named(stage.store, DEFAULT_TENANT, mailout.id[:13]) is None


def test_another_tenants_mailout_counts_as_not_found(stage: Stage) -> None:
    """Whichever of its names is given."""
    make_tenant(stage.store, "another")
    mailout = stage.new_mailout(source="notion", source_id=PAGE, letter=None)
    for name in (mailout.id, mailout.id[:13], PAGE):
        assert mailout_named(stage.store, "another", name) is None
        with pytest.raises(NotFound):
            find_mailout(stage.store, "another", name)
