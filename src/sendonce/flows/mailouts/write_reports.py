"""Write the report of every mailout that ended, once."""

from __future__ import annotations

import logging
from collections.abc import Callable

from sendonce.errors import BadInput
from sendonce.ports.mailouts import MailoutStore

log = logging.getLogger(__name__)

TOPIC = "mailout.report"


def write_reports(store: MailoutStore, write: Callable[[str], object]) -> None:
    """``write`` makes the files of one mailout. What cannot be written now is tried again."""
    for entry_id, body in store.outbox.due(TOPIC, 10):
        mailout_id = body["mailout_id"]
        try:
            where = write(mailout_id)
        except BadInput as exc:
            log.error(
                "a report cannot be written", extra={"fields": {"mailout": mailout_id, "error": str(exc)}}
            )
            return
        store.outbox.done(entry_id)
        log.info("report written", extra={"fields": {"mailout": mailout_id, "file": str(where)}})
