"""sendonce erase, sendonce show: one person's data."""

from __future__ import annotations

import getpass
import sys
from datetime import tzinfo
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sendonce.domain.engine.addresses import parse_address
from sendonce.domain.engine.checks import count_of
from sendonce.domain.engine.moments import shown_moment
from sendonce.entrypoints.cli.context import opened_store, ready_settings, time_zone
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput

if TYPE_CHECKING:
    from sendonce.domain.people.privacy import LetterTo, Trace
    from sendonce.flows.mailouts.show_person import Explained, PersonReport

EmailArgument = Annotated[str, typer.Argument(help="The person's address, in any spelling.")]


def erase(
    email: EmailArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json: JsonFlag = False,
) -> None:
    """Remove a person's data everywhere; a keyed hash stays, so that nobody writes to them again."""
    from sendonce.flows.mailouts.erase_person import erase_person
    from sendonce.wiring.reports import report_files

    address = parse_address(email)
    if not yes:
        _confirm(address.text)
    settings = ready_settings(quiet=True)
    with opened_store(settings) as store:
        erasure, reports = erase_person(store, report_files(settings), address, getpass.getuser())
    if json:
        print_json({"erased": erasure.changed, **as_dict(erasure), "reports": reports})
        return
    if reports:
        say(f"Reports written anew without the address: {reports}.")
    if not erasure.changed:
        say("Nothing was left to erase in the database. The address stays suppressed.")
        return
    say(
        f"Erased: {count_of(erasure.subscribers, 'subscriber')}, the recipient of "
        f"{count_of(erasure.letters, 'letter')}, {count_of(erasure.events, 'delivery event')}, "
        f"{count_of(erasure.suppressions, 'suppression')}, {count_of(erasure.notes, 'note')}."
    )
    say("A keyed hash stays in the suppression list: an import will not bring the address back.")


def _confirm(address: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput("Erasing cannot be undone: give --yes where nobody can be asked.")
    if not typer.confirm(f"Erase all data of {address}? This cannot be undone.", err=True):
        raise typer.Exit(1)


def show(email: EmailArgument, json: JsonFlag = False) -> None:
    """Print all that is known of a person, and why each letter was or was not sent."""
    from sendonce.flows.mailouts.show_person import show_person

    address = parse_address(email)
    settings = ready_settings()
    with opened_store(settings) as store:
        report = show_person(store, address)
    if json:
        print_json(_as_json(report))
    else:
        _print_person(report, time_zone(settings))


def _as_json(report: PersonReport) -> dict[str, Any]:
    return {
        "address": report.address,
        "known": report.known,
        "subscribers": [as_dict(person) for person in report.file.subscribers],
        "suppressions": [as_dict(item) for item in report.file.suppressions],
        "letters": [_letter_json(item) for item in report.mailouts],
        "traces": [as_dict(trace) for trace in report.file.traces],
    }


def _letter_json(item: Explained) -> dict[str, Any]:
    letter = item.letter
    return {
        "mailout_id": item.mailout.id if item.mailout else None,
        "mailout": item.mailout.name if item.mailout else None,
        "kind": item.kind,
        "why": item.why,
        "job": as_dict(letter.job) if letter else None,
        "attempts": [as_dict(attempt) for attempt in letter.attempts] if letter else [],
        "events": [as_dict(event) for event in letter.events] if letter else [],
    }


def _print_person(report: PersonReport, zone: tzinfo) -> None:
    if not report.known:
        say(f"Nothing is known of {report.address}.")
        return
    people = report.file.subscribers
    for person in people:
        bounce = " ".join(filter(None, (person.bounce_type, person.bounce_subtype)))
        say(f"Subscriber {person.email} of {person.tenant_id}: {person.status} {bounce}".rstrip())
        say(f"  name: {person.name or '-'}; since {shown_moment(person.created_at, zone)}")
        if person.consent:
            say(f"  consent: {_one_line(person.consent)}")
        for name, value in person.attributes.items():
            say(f"  {name}: {_one_line(value)}")
    erased = report.erased_at
    if erased is not None:
        say(f"{report.address} was erased on {shown_moment(erased, zone)}.")
        say("Only a keyed hash is left, so that nobody writes to the address again. It finds the letters")
        say("below because you gave the address; nothing in them names the person any more.")
    elif not people:
        say(f"{report.address} is not among the subscribers.")
    denials = [
        (s.scope, s.reason, s.note, s.created_at, s.address or "(erased)") for s in report.file.suppressions
    ]
    if denials:
        print_table("Suppressions in force", ["scope", "reason", "note", "since", "as"], denials, zone)
    if report.file.traces:
        traces = [(t.kind, t.tenant_id, _details(t), t.at) for t in report.file.traces]
        print_table("Elsewhere", ["as", "tenant", "what is kept", "since"], traces, zone)
    letters = [_letter_row(item, zone) for item in report.mailouts]
    print_table("Letters", ["mailout", "what became of it", "told"], letters)


def _details(trace: Trace) -> str:
    told = (f"{name}: {_one_line(str(value))}" for name, value in trace.details.items() if value)
    return "; ".join(told)


def _letter_row(item: Explained, zone: tzinfo) -> tuple[object, ...]:
    name = item.mailout.name if item.mailout else f"({item.kind})"
    return name, item.why, _told(item.letter, zone) if item.letter else ""


def _told(letter: LetterTo, zone: tzinfo) -> str:
    tried = [f"attempt {attempt.attempt}: {attempt.outcome}" for attempt in letter.attempts]
    events = [f"{event.kind} {shown_moment(event.occurred_at, zone)}" for event in letter.events]
    return "; ".join(tried + events)


def _one_line(value: str) -> str:
    return "".join(char if char.isprintable() else " " for char in value)
