"""Erase a person from the database and from the reports of this machine."""

from __future__ import annotations

from sendonce.domain.engine.addresses import Address
from sendonce.domain.people.privacy import Erasure
from sendonce.errors import BadInput, Unavailable
from sendonce.flows.mailouts.write_report import write_report
from sendonce.flows.people.erase import erase
from sendonce.ports.mailouts import MailoutStore, Reports


def erase_person(store: MailoutStore, reports: Reports, address: Address, actor: str) -> tuple[Erasure, int]:
    """What was erased, and how many reports were written again without the address.

    They are written also when the database did not change: another machine may have erased the person there.
    """
    erasure = erase(store.people, address, actor)
    return erasure, _rewrite_reports(store, reports, address)


def _rewrite_reports(store: MailoutStore, reports: Reports, address: Address) -> int:
    """Raises Unavailable with the files that it could not write."""
    mailouts = {letter.job.dispatch_id for letter in store.people.file_of(address).letters}
    written, left = 0, []
    for mailout_id in sorted(mailouts):
        try:
            if reports.has(mailout_id):
                write_report(store, reports, mailout_id)
                written += 1
        except BadInput:
            left.append(reports.place_of(mailout_id))
    if left:
        raise Unavailable(
            "The database has nothing of the person any more, but these reports cannot be written anew and "
            f"may still hold the address: {', '.join(left)}. Delete them, or erase again as their owner."
        )
    return written
