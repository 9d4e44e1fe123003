"""Change the keys that outlive what they were used for."""

from __future__ import annotations

from sendonce.errors import NotFound
from sendonce.ports.people import Keys


def rotate_keys(keys: Keys, actor: str) -> int:
    """Put the hashes of suppressed addresses under a new key; how many suppressions there are.

    Erased people stay suppressed. Whoever writes to the database waits meanwhile.
    """
    return keys.rotate(actor)


def forget_key(keys: Keys, fingerprint: str, actor: str) -> None:
    """Stop asking after a secret of unsubscribe links that is lost. Raises NotFound for an unknown one."""
    if not keys.forget(fingerprint, actor):
        raise NotFound(f"No letters were signed with a secret of fingerprint {fingerprint[:80]!r}.")
