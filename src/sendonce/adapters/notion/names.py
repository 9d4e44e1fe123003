"""What the columns of «Письма» and «Ошибки» are called, and of what types they may be.

Each column has a name of ours (``is_test``), the names under which it is found in a table, and the types it
may have there. The first Russian and the first English name are those that setup gives to a new table.
Names are compared without regard to case and to spaces around them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sendonce.domain.mailouts.mailouts import MailoutStatus
from sendonce.errors import BadInput

CANCELLED = "cancelled"
"""The status of a page whose mailout was cancelled; such a mailout has ended as sent or failed."""

COUNTS = (
    "planned",
    "sent",
    "delivered",
    "bounced",
    "complained",
    "unsubscribed",
    "failed",
    "in_doubt",
)


@dataclass(frozen=True, slots=True)
class Wording:
    """The names of one thing: ``names[0]`` is the Russian one, ``names[1]`` the English one."""

    names: tuple[str, ...]

    def fits(self, name: str) -> bool:
        return folded(name) in {folded(known) for known in self.names}

    def in_language(self, language: str) -> str:
        return self.names[0] if language == "ru" or len(self.names) == 1 else self.names[1]


@dataclass(frozen=True, slots=True)
class Column:
    """``types[0]`` is the type that setup gives it. A column that is not required is not missed when reading;
    one for which there is a setting as well (``has_default``) is not missed at all."""

    wording: Wording
    types: tuple[str, ...]
    required: bool = False
    has_default: bool = False


@dataclass(frozen=True, slots=True)
class TableNames:
    title: Wording
    columns: Mapping[str, Column]
    statuses: Mapping[str, Wording]

    def status_named(self, name: str | None) -> MailoutStatus | None:
        """What a page's status means; None for a word of its author's, and for "cancelled"."""
        found = (status for status, wording in self.statuses.items() if name and wording.fits(name))
        status = next(found, None)
        return None if status in (None, CANCELLED) else MailoutStatus(status)

    def renamed(self, own: Mapping[str, str]) -> TableNames:
        """With a user's own names: ``{"is_test": "Проба", "status.ready": "В путь"}``. They come first."""
        columns, statuses = dict(self.columns), dict(self.statuses)
        for key, name in own.items():
            what, _, status = key.partition(".")
            if not name.strip() or what not in columns or (status and status not in statuses):
                known = ", ".join([*columns, *(f"status.{it}" for it in statuses)])
                raise BadInput(f"There is no column {key!r} to be called {name!r}. Known: {known}.")
            if status:
                statuses[status] = Wording((name.strip(),))
            else:
                columns[what] = replace(columns[what], wording=Wording((name.strip(),)))
        return replace(self, columns=columns, statuses=statuses)


def own_names(own: Mapping[str, str]) -> tuple[TableNames, TableNames]:
    """Both tables with a user's own names; those of «Ошибки» begin with ``errors.``, as ``errors.kind``."""
    of_errors = {key.removeprefix("errors."): name for key, name in own.items() if key.startswith("errors.")}
    of_letters = {key: name for key, name in own.items() if not key.startswith("errors.")}
    return LETTERS.renamed(of_letters), ERRORS.renamed(of_errors)


def folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


def _column(*names: str, types: tuple[str, ...], required: bool = False) -> Column:
    return Column(Wording(names), types, required)


_TEXT = ("rich_text",)
_NUMBER = ("number",)
_DATE = ("date",)

LETTERS = TableNames(
    title=Wording(("Письма", "Letters")),
    columns={
        "title": _column("Название", "Name", types=("title",), required=True),
        "subject": _column("Тема", "Subject", "Тема письма", types=_TEXT),
        "preheader": _column("Прехедер", "Preheader", types=_TEXT),
        "from_name": Column(Wording(("От кого", "From name")), _TEXT, has_default=True),
        "reply_to": Column(Wording(("Ответить на", "Reply to")), ("email", "rich_text"), has_default=True),
        "language": Column(Wording(("Язык", "Language")), ("rich_text", "select"), has_default=True),
        "send_at": Column(Wording(("Отправить в", "Send at")), _DATE, has_default=True),
        "status": _column("Статус", "Status", types=("select", "status"), required=True),
        "is_test": _column("Тест", "Test", "is_test", "Тестовое", types=("checkbox",), required=True),
        "sent_at": _column("Время отправки", "Sent at", "sent_at", types=_DATE),
        "reason": _column("Причина", "Reason", types=_TEXT),
        "warnings": _column("Предупреждения", "Warnings", types=_TEXT),
        "planned": _column("Запланировано", "Planned", types=_NUMBER),
        "sent": _column("Отправлено", "Sent", types=_NUMBER),
        "delivered": _column("Доставлено", "Delivered", types=_NUMBER),
        "bounced": _column("Вернулось", "Bounced", types=_NUMBER),
        "complained": _column("Жалобы", "Complained", types=_NUMBER),
        "unsubscribed": _column("Отписались", "Unsubscribed", types=_NUMBER),
        "failed": _column("Не отправлено", "Failed", types=_NUMBER),
        "in_doubt": _column("Под вопросом", "In doubt", types=_NUMBER),
    },
    statuses={
        MailoutStatus.DRAFT: Wording(("Черновик", "Draft")),
        MailoutStatus.READY: Wording(("Готово к отправке", "Ready to send", "Готово", "Ready", "Send")),
        MailoutStatus.SENDING: Wording(("Отправляется", "Sending")),
        MailoutStatus.SENT: Wording(("Отправлено", "Sent")),
        MailoutStatus.FAILED: Wording(("Ошибка", "Failed")),
        CANCELLED: Wording(("Отменено", "Cancelled", "Canceled")),
    },
)

ERRORS = TableNames(
    title=Wording(("Ошибки", "Errors")),
    columns={
        "title": _column("Ошибка", "Error", types=("title",), required=True),
        "letter": _column("Письмо", "Letter", types=("relation", "rich_text")),
        "email": _column("E-mail", "Email", "Адрес", types=("email", "rich_text")),
        "kind": _column("Вид", "Kind", types=("select", "rich_text")),
        "message": _column("Сообщение", "Message", types=_TEXT),
        "code": _column("Код", "Code", "Provider code", types=_TEXT),
        "time": _column("Время", "Time", types=_DATE),
        "key": _column("Ключ", "Key", types=_TEXT, required=True),
    },
    statuses={},
)
