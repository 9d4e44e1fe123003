"""Sign the unsubscribe links of letters, with a secret that is not lost while a letter may be read."""

from __future__ import annotations

from sendonce.domain.engine.tokens import secret_fingerprint
from sendonce.ports.people import Keys


def signing_secret(keys: Keys, given: bytes) -> bytes:
    """The secret of the settings; without one, the one that the database keeps."""
    return given or keys.make_link_secret()


def note_signing(keys: Keys, secret: bytes) -> None:
    """Remember that letters are signed with it, so that the doctor asks after it if it is taken away."""
    keys.note_used(secret_fingerprint(secret))
