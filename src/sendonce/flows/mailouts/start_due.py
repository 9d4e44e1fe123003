"""Start the mailouts whose time has come. Each starts once, for the start itself is one atomic step.

The audience is whoever is subscribed at that time. What cannot be started is not tried again by the clock:
it is ready, with the reason, and waits for a person.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sendonce.domain.engine.letters import MessageSettings
from sendonce.domain.mailouts.mailouts import Mailout
from sendonce.errors import BadSetting, LedgerRolledBack, Overtaken, RefusedByRule, SendonceError, Unavailable
from sendonce.flows.engine.check_sender import UNCHECKED, SenderCheck
from sendonce.flows.mailouts.start_mailout import StartOrder, start_mailout
from sendonce.ports.mailouts import MailoutStore

log = logging.getLogger(__name__)

LATEST = timedelta(hours=24)
"""A letter for a certain morning is not sent days later because nobody ran a worker in between."""


@dataclass(frozen=True, slots=True)
class DueStarter:
    store: MailoutStore
    message_settings: Callable[[], MessageSettings]
    sender_check: SenderCheck = UNCHECKED

    def run(self) -> None:
        for mailout in self.store.mailouts.due():
            try:
                self._start(mailout)
            except (LedgerRolledBack, Unavailable):
                raise
            except Overtaken as exc:
                # It has another time or another letter by now: the next look goes by those.
                log.info("a due mailout was changed", extra={"fields": _fields(mailout, exc)})
            except BadSetting as exc:
                # This process cannot judge the letter; a worker, which has these settings, can.
                log.warning("a due mailout waits for a worker", extra={"fields": _fields(mailout, exc)})
            except SendonceError as exc:
                if self.store.mailouts.unschedule(mailout.id, str(exc)):
                    log.error("a due mailout was not started", extra={"fields": _fields(mailout, exc)})

    def _start(self, mailout: Mailout) -> None:
        assert mailout.send_at is not None
        if self.store.ledger.now() - mailout.send_at > LATEST:
            raise RefusedByRule(
                f"It was to start at {mailout.send_at:%Y-%m-%d %H:%M} UTC, and no worker ran within a day of "
                "that time. Send it again if it is still wanted."
            )
        order = StartOrder(
            mailout.id,
            mailout.tenant_id,
            at_once=True,
            for_time=mailout.send_at,
            force=mailout.forced,
        )
        start_mailout(self.store, self.message_settings, order, self.sender_check)


def _fields(mailout: Mailout, why: Exception) -> dict[str, str]:
    return {"mailout": mailout.id, "reason": str(why)}
