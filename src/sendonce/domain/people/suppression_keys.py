"""Who is behind an address, as suppression sees it: where two may share a mailbox, deny wins."""

from __future__ import annotations

from hashlib import blake2b

from sendonce.domain.people.peppers import KEY_LENGTH, first_link, rotated
from sendonce.errors import BadInput


def suppression_fold(key: str) -> str:
    """The widest reading of who is behind a key; for suppression look-up only, never to send to.

    The plus tag is dropped for every domain: most large providers deliver ``user+tag`` to ``user``, and
    where one does not, a person is at worst left in peace. Gmail ignores dots, and googlemail.com is it.
    """
    local, _, domain = key.rpartition("@")
    local = local.partition("+")[0] or local
    if domain == "googlemail.com":
        domain = "gmail.com"
    if domain == "gmail.com":
        local = local.replace(".", "") or local
    return f"{local}@{domain}"


def suppression_key(address_key: str, pepper: bytes) -> str:
    """A keyed hash that still finds a suppressed person after the address itself was erased."""
    if not pepper:
        raise BadInput(
            "The suppression pepper is empty: without it anyone can test addresses for membership."
        )
    folded = suppression_fold(address_key).encode()
    key = blake2b(folded, digest_size=KEY_LENGTH, key=first_link(pepper)).hexdigest()
    return rotated(key, pepper)
