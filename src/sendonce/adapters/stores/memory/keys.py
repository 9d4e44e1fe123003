"""Keys in memory: the rotation of the pepper, and the register of secrets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

from sendonce.adapters.stores.memory.state import State
from sendonce.domain.people.peppers import LINK_LENGTH, rekeyed
from sendonce.domain.people.privacy import rekeyed_name


class MemoryKeys:
    def __init__(self, state: State) -> None:
        self._state = state
        self._used: list[str] = []
        self._link_secrets: list[bytes] = []

    def rotate(self, actor: str) -> int:
        state, link = self._state, os.urandom(LINK_LENGTH)
        with state.transaction():
            if self._link_secrets:
                self._link_secrets.insert(0, os.urandom(LINK_LENGTH))
            state.pepper += link
            state.suppressions = {
                (rekeyed(key, link), scope): replace(denial, key=rekeyed(key, link))
                for (key, scope), denial in state.suppressions.items()
            }
            state.erased = {rekeyed_name(n, link): rekeyed(k, link) for n, k in state.erased.items()}
            for row in state.jobs.values():
                row.recipient = rekeyed_name(row.recipient, link)
                row.recipient_key = rekeyed_name(row.recipient_key, link)
            for index, (event, job_id, at) in enumerate(state.events):
                renamed = tuple(rekeyed_name(name, link) for name in event.recipients)
                natural_key = rekeyed_name(event.natural_key, link)
                state.events[index] = (
                    replace(event, recipients=renamed, natural_key=natural_key),
                    job_id,
                    at,
                )
            for place, mail in state.found_mail.items():
                sender, recipient = (
                    name and rekeyed_name(name, link) for name in (mail.sender, mail.recipient)
                )
                state.found_mail[place] = replace(mail, sender=sender, recipient=recipient)
            state.audit = [(who, what, rekeyed_name(name, link)) for who, what, name in state.audit]
            state.audit.append((actor, "rotate keys", "pepper"))
            return len(state.suppressions)

    def link_secrets(self) -> Sequence[bytes]:
        return tuple(self._link_secrets)

    def make_link_secret(self) -> bytes:
        with self._state.transaction():
            if not self._link_secrets:
                self._link_secrets.append(os.urandom(LINK_LENGTH))
            return self._link_secrets[0]

    def note_used(self, fingerprint: str) -> None:
        if fingerprint not in self._used:
            self._used.append(fingerprint)

    def used(self) -> Sequence[str]:
        return tuple(self._used)

    def forget(self, fingerprint: str, actor: str) -> bool:  # noqa: ARG002 (the port's signature)
        known = fingerprint in self._used
        if known:
            self._used.remove(fingerprint)
        return known
