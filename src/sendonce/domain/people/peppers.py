"""The pepper that keys the hashes of addresses: a chain of links, one more after each rotation.

    key = link_n( … link_1( link_0( address ) ) )

A rotation hashes every stored key once more, under a new link. So the keys of erased people move too,
although nobody knows their addresses any more, and a look-up needs one key and not one for each former
pepper. Whoever has only the former links cannot test addresses against the keys that are in force.
"""

from __future__ import annotations

from hashlib import sha256

LINK_LENGTH = 32
KEY_LENGTH = 16


def first_link(pepper: bytes) -> bytes:
    """The key of the hash over the address itself."""
    return pepper[:LINK_LENGTH]


def rotated(key: str, pepper: bytes) -> str:
    """A key made under the first link, hashed on through the later ones."""
    for start in range(LINK_LENGTH, len(pepper), LINK_LENGTH):
        key = rekeyed(key, pepper[start : start + LINK_LENGTH])
    return key


def rekeyed(key: str, link: bytes) -> str:
    """A stored key under one more link.

    SHA-256 over a fixed length, because PostgreSQL can do the same to all rows in one statement.
    """
    return sha256(link + bytes.fromhex(key)).digest()[:KEY_LENGTH].hex()
