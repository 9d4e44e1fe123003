"""A person is found in the lists by the folded address, and other spellings of it by their key."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from hypothesis import given
from hypothesis import strategies as st

from sendonce.adapters.stores.schema import FOLDED
from sendonce.domain.people.suppression_keys import suppression_fold

LOCALS = st.text("ab.+", min_size=1, max_size=5)
DOMAINS = st.sampled_from(("gmail.com", "googlemail.com", "example.com", "mail.gmail.com", "notgmail.com"))


@given(LOCALS, DOMAINS)
def test_the_index_has_every_address_that_is_not_its_own_fold(local: str, domain: str) -> None:
    """An address that it lacked would be neither shown nor erased."""
    key = f"{local}@{domain}"
    with closing(sqlite3.connect(":memory:")) as connection:
        (indexed,) = connection.execute(f"SELECT {FOLDED} FROM (SELECT ? AS address_key)", (key,)).fetchone()
    assert indexed or suppression_fold(key) == key
