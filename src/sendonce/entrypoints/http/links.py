"""Links in letters: which job a token names. The database may get a new secret while the service runs."""

from __future__ import annotations

import time

from sendonce.domain.engine.tokens import UNSUBSCRIBE, read_token_of_any
from sendonce.entrypoints.http.service import Service
from sendonce.wiring.messages import known_unsubscribe_secrets

# Forged tokens come by the thousand; at most one look at the database a second for all of them.
_LOOK_AGAIN_AFTER = 1.0


class LinkReader:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._secrets = known_unsubscribe_secrets(service.settings, service.store)
        self._looked = time.monotonic()

    async def job_of(self, token: str, purpose: bytes = UNSUBSCRIBE) -> str | None:
        """The job whose letter carries this token; None for a token that none of our secrets signed."""
        job_id = read_token_of_any(token, self._secrets, purpose)
        if job_id is None and time.monotonic() - self._looked > _LOOK_AGAIN_AFTER:
            self._looked = time.monotonic()
            self._secrets = await self._service.in_thread(
                known_unsubscribe_secrets, self._service.settings, self._service.store
            )
            job_id = read_token_of_any(token, self._secrets, purpose)
        return job_id
