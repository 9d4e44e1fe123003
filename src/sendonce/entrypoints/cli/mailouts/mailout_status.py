"""How a mailout stands, for people and for programs."""

from __future__ import annotations

from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from sendonce.domain.engine.jobs import Books, JobState
from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.domain.mailouts.progress import Cause, Progress
from sendonce.domain.mailouts.status_words import status_words
from sendonce.entrypoints.cli.context import find_mailout, time_zone
from sendonce.entrypoints.cli.mailouts.progress import progress_lines, standstill_line
from sendonce.entrypoints.cli.output import print_json, print_table, say
from sendonce.entrypoints.views import mailout_view, progress_view
from sendonce.errors import RefusedByRule, SendonceError, Unavailable

if TYPE_CHECKING:
    from sendonce.ports.store import Store
    from sendonce.settings import Settings


def next_step(mailout: Mailout) -> str:
    """What to do with it. A page of Notion may have had its mailout for long."""
    if mailout.status == MailoutStatus.DRAFT:
        return f"When it is to be sent, make it ready: sendonce mailout ready {mailout.id}"
    if mailout.status == MailoutStatus.READY:
        return (
            f"Look at it: sendonce mailout preview {mailout.id}\nSend it: sendonce mailout send {mailout.id}"
        )
    if mailout.status == MailoutStatus.SENDING:
        return f"It was started before. See how it goes: sendonce mailout status {mailout.id}"
    return f"It is over and is not sent again. See what became of it: sendonce mailout report {mailout.id}"


def print_outcome(settings: Settings, store: Store, mailout_id: str, json: bool) -> None:
    """After the work: how it stands. Raises the reason, which is said once, where it was not sent."""
    error = _why_not_sent(settings, store, mailout_id)
    print_status(settings, store, mailout_id, json, with_reason=error is None)
    if error is not None:
        raise error


def print_status(
    settings: Settings, store: Store, mailout_id: str, json: bool, *, with_reason: bool = True
) -> None:
    from sendonce.flows.engine.resolve_doubts import summarise_doubts
    from sendonce.wiring.doubts import doubt_quiet

    mailout = find_mailout(store, mailout_id)
    books = store.jobs.books(mailout.id)
    progress = _progress(settings, store, mailout)
    searched = settings.imap_server_files_sent
    quiet = doubt_quiet(settings)
    doubts = summarise_doubts(store, quiet, mailout_id, sent_folder=searched) if books.in_doubt else []
    if json:
        told = [{"standing": each.standing, "why": each.why, "jobs": count} for each, count in doubts]
        print_json({**mailout_view(mailout, books), **progress_view(progress), "doubts": told})
        return
    say(f"Mailout {mailout.id} «{mailout.name}»: {status_words(mailout)}")
    if with_reason:
        _print_reason(mailout, progress, time_zone(settings))
    print_books(books)
    for weighed, count in doubts:
        say(f"{count} in doubt, {weighed.standing}: {weighed.why}")
    if any(weighed.parked for weighed, _ in doubts):
        say(f"What is parked waits for your word: sendonce jobs in-doubt --mailout {mailout.id}")


def _print_reason(mailout: Mailout, progress: Progress, zone: tzinfo) -> None:
    """Why it stands as it does, and how it gets on."""
    if mailout.reason and not mailout.cancelled:
        say(f"  {mailout.reason}")
    if mailout.scheduled and mailout.send_at is not None:
        say(f"  It starts at {shown_moment(mailout.send_at, zone)}, if a worker runs then.")
    elif lines := progress_lines(progress, zone):
        say("\n".join(f"  {line}" for line in lines))


def print_books(books: Books) -> None:
    """The books as a table; the states sum up to what was planned, the marks are of those sent."""
    states = ["scheduled", "sending", "sent", "failed", "skipped", "dead", "in_doubt"]
    rows: list[tuple[str, Any]] = [(name.replace("_", " "), getattr(books, name)) for name in states]
    rows.append(("= planned" if books.balanced else "≠ planned", books.planned))
    marks = [("delivered", books.delivered), ("bounced", books.bounced), ("complained", books.complained)]
    rows += [(f"  of those sent: {name}", count) for name, count in marks]
    if books.rejected:
        rows.append(("  of those sent: rejected by the provider", books.rejected))
    if books.duplicates:
        rows.append(("DUPLICATES: a second copy left", books.duplicates))
    print_table("", ["jobs", "count"], rows)


def _why_not_sent(settings: Settings, store: Store, mailout_id: str) -> SendonceError | None:
    """A mailout that was stopped before its first letter is back to ready, with the reason; one that was
    interrupted or paused is still sending; one of which no letter was taken has failed."""
    mailout = find_mailout(store, mailout_id)
    if mailout.status == MailoutStatus.FAILED:
        return SendonceError(f"Nothing was sent of mailout {mailout_id}: {_why_nothing(store, mailout)}.")
    if mailout.status == MailoutStatus.READY:
        return RefusedByRule(mailout.reason or "The mailout was not started.")
    if mailout.paused:
        why = f": {mailout.reason}" if mailout.reason else ""
        return RefusedByRule(
            f"Mailout {mailout_id} is paused{why}. To go on: sendonce mailout resume {mailout_id}"
        )
    if mailout.status == MailoutStatus.SENDING:
        interrupted = Unavailable(
            f"Interrupted. To go on where it stopped: sendonce mailout send {mailout_id}"
        )
        return _why_held(settings, store, mailout_id) or interrupted
    doubts = store.jobs.books(mailout.id).in_doubt
    if doubts:
        return SendonceError(
            f"In doubt: {doubts}. The provider may or may not have taken these letters. "
            "A worker settles what events decide; the rest waits for you: "
            f"sendonce jobs in-doubt --mailout {mailout_id}"
        )
    return None


def _progress(settings: Settings, store: Store, mailout: Mailout) -> Progress:
    from sendonce.flows.mailouts.explain_progress import explain_progress
    from sendonce.wiring.senders import keys_of

    return explain_progress(store, mailout, store.jobs.books(mailout.id), keys_of(settings))


def _why_held(settings: Settings, store: Store, mailout_id: str) -> RefusedByRule | None:
    mailout = find_mailout(store, mailout_id)
    still = _progress(settings, store, mailout).standstill
    if still is None or still.cause is not Cause.HELD:
        return None
    return RefusedByRule(
        f"{standstill_line(still, time_zone(settings))}\n{still.fix}\n"
        f"No letter is lost: a worker goes on by itself; so does 'sendonce mailout send {mailout_id}'."
    )


def _why_nothing(store: Store, mailout: Mailout) -> str:
    """How the letters ended, each way with the reason of one of them."""
    if mailout.cancelled:
        return "it was cancelled"
    books = store.jobs.books(mailout.id)
    ways = []
    for state in (JobState.FAILED, JobState.DEAD, JobState.SKIPPED):
        for job in store.jobs.list(states=[state], dispatch_id=mailout.id, limit=1):
            # A server's reply may have several lines, and characters that a terminal would obey.
            words = (job.reason or job.code or "no reason given").split()
            why = "".join(c for c in " ".join(words) if c.isprintable())
            ways.append(f"{getattr(books, state)} {state} ({why})")
    return ", ".join(ways)
