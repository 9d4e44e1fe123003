"""sendonce contacts …"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sendonce.domain.engine.checks import count_of
from sendonce.domain.prospecting.contacts import Contacts
from sendonce.entrypoints.cli.output import JsonFlag, as_dict, print_json, print_table, say
from sendonce.errors import BadInput

group = typer.Typer(name="contacts", help="E-mails and phones of companies.", no_args_is_help=True)


@group.command()
def extract(
    file: Annotated[Path, typer.Argument(help="A saved page, in whatever encoding it is.")],
    url: Annotated[str, typer.Option("--url", help="Where the page is from.")] = "",
    json: JsonFlag = False,
) -> None:
    """Show which contacts a saved page yields, and where on it they are. Fetches nothing."""
    from sendonce.wiring.prospecting import contact_reader

    contacts = contact_reader().read(_bytes_of(file), url)
    if json:
        print_json(as_dict(contacts))
    else:
        _show(contacts)


def _bytes_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as exc:
        raise BadInput(f"{file} cannot be read: {exc.strerror}.") from exc


def _show(contacts: Contacts) -> None:
    emails = [
        (
            email.value,
            email.quality,
            email.source.value,
            email.role,
            _mark(email.freemail),
            _mark(email.primary),
        )
        for email in contacts.emails
    ]
    columns = ["e-mail", "quality", "source", "role", "freemail", "primary"]
    print_table(count_of(len(emails), "e-mail"), columns, emails)
    phones = [
        (phone.value, phone.extension, phone.quality, phone.source.value, _mark(phone.primary))
        for phone in contacts.phones
    ]
    print_table(count_of(len(phones), "phone"), ["phone", "ext.", "quality", "source", "primary"], phones)
    for name, numbers in (("ИНН", contacts.inn), ("ОГРН", contacts.ogrn)):
        if numbers:
            say(f"{name}: {', '.join(numbers)}")


def _mark(yes: bool) -> str:
    return "yes" if yes else ""
