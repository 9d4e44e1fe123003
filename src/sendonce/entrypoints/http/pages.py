"""The pages behind the unsubscribe link, in Russian and English. No script, no outside assets."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from sendonce.domain.people.suppressions import SuppressionReason
from sendonce.entrypoints.http.page_frame import framed
from sendonce.flows.people.unsubscribe import Recipient

_WORDS = {
    "en": {
        "question": "Unsubscribe?",
        "question_text": "No more letters from {sender} will be sent to {address}.",
        "unsubscribe": "Unsubscribe",
        "done": "You are unsubscribed",
        "done_text": "No more letters from {sender} will be sent to {address}. If this was a mistake, undo "
        "it here within an hour.",
        "undo": "Undo",
        "gone": "You are unsubscribed",
        "gone_text": "No more letters from {sender} will be sent to {address}. To get them again, write to "
        "the sender.",
        "undone": "You are subscribed again",
        "undone_text": "Letters from {sender} will be sent to {address} as before.",
        "late": "You are still unsubscribed",
        "late_text": "Only the letter that you unsubscribed with can undo it, and only for an hour. To get "
        "letters from {sender} to {address} again, write to the sender.",
        "held": "Letters stay switched off",
        "held_text": "Letters to {address} came back or were reported as spam. To get letters from {sender} "
        "again, write to the sender.",
        "test": "This was a test letter: the link was tried, and nothing was changed.",
        "bad_link": "This link does not work",
        "bad_link_text": "Open the link from the letter once more, or copy the whole of it. If that does not "
        "help, answer the letter and ask to be unsubscribed.",
        "no_letter": "This letter cannot be shown",
        "no_letter_text": "The link is not whole, or the letter is no longer kept.",
        "out_of_order": "This did not work",
        "out_of_order_text": "Something is out of order on our side. Please try again in a few minutes.",
    },
    "ru": {
        "question": "Отписаться?",
        "question_text": "Письма от {sender} больше не будут приходить на {address}.",
        "unsubscribe": "Отписаться",
        "done": "Вы отписаны",
        "done_text": "Письма от {sender} больше не будут приходить на {address}. Если это "
        "ошибка, её можно отменить здесь в течение часа.",
        "undo": "Отменить",
        "gone": "Вы отписаны",
        "gone_text": "Письма от {sender} больше не будут приходить на {address}. Чтобы получать "
        "их снова, напишите отправителю.",
        "undone": "Вы снова подписаны",
        "undone_text": "Письма от {sender} будут приходить на {address}, как прежде.",
        "late": "Вы по-прежнему отписаны",
        "late_text": "Отменить отписку можно только из того же письма и только в течение часа. Чтобы снова "
        "получать письма от {sender} на {address}, напишите отправителю.",
        "held": "Письма по-прежнему не отправляются",
        "held_text": "Письма на {address} возвращались или были отмечены как спам. Чтобы снова получать "
        "письма от {sender}, напишите отправителю.",
        "test": "Это было тестовое письмо: ссылка проверена, ничего не изменилось.",
        "bad_link": "Ссылка не работает",
        "bad_link_text": "Откройте ссылку из письма ещё раз или скопируйте её целиком. Если не поможет, "
        "ответьте на письмо и попросите вас отписать.",
        "no_letter": "Это письмо не показать",
        "no_letter_text": "Ссылка скопирована не целиком, или письма больше нет.",
        "out_of_order": "Не получилось",
        "out_of_order_text": "У нас что-то сломалось. Пожалуйста, попробуйте ещё раз через несколько минут.",
    },
}


@dataclass(frozen=True, slots=True)
class Visit:
    """Who looks at a page, by which link, in which language, and whose letters it is about."""

    language: str
    recipient: Recipient
    sender: str
    token: str


# Relative, so that they also work where a proxy serves us under a path.
_UNSUBSCRIBE = "unsubscribe"
_UNDO = "unsubscribe/undo"


def question(visit: Visit) -> str:
    return _page(visit.language, "question", visit, _button(visit, _UNSUBSCRIBE, "unsubscribe"))


def done(visit: Visit) -> str:
    if visit.recipient.undoable:
        return _page(visit.language, "done", visit, _button(visit, _UNDO, "undo"))
    return _page(visit.language, "gone", visit)


def undone(visit: Visit) -> str:
    """What became of an undo: it may come too late, and a bounce or a complaint outweighs it."""
    name = {None: "undone", SuppressionReason.BOUNCE: "held", SuppressionReason.COMPLAINT: "held"}
    return _page(visit.language, name.get(visit.recipient.held_back, "late"), visit)


def bad_link(language: str) -> str:
    return _page(language, "bad_link")


def no_letter(language: str) -> str:
    return _page(language, "no_letter")


def out_of_order(language: str) -> str:
    return _page(language, "out_of_order")


def shortened(address: str) -> str:
    """Enough to recognise one's own address by, too little to learn another's: ``i•••@example.com``."""
    local, at, domain = address.rpartition("@")
    return f"{local[:1]}•••@{domain}" if at else "•••"


def _button(visit: Visit, action: str, label: str) -> str:
    # The body is the one of RFC 8058, so that a person's click and a mail program's are one request. The
    # language goes along: a form may be sent without the header that chose it.
    return (
        f'<form method="post" action="{action}?token={escape(visit.token)}&amp;lang={visit.language}">'
        '<input type="hidden" name="List-Unsubscribe" value="One-Click">'
        f'<button type="submit">{escape(_WORDS[visit.language][label])}</button></form>'
    )


def _page(language: str, name: str, visit: Visit | None = None, button: str = "") -> str:
    words = _WORDS[language]
    title = heading = escape(words[name])
    text, note = words[f"{name}_text"], ""
    if visit is not None:
        address = f"<strong>{escape(shortened(visit.recipient.address))}</strong>"
        text = text.format(address=address, sender=f"<strong>{escape(visit.sender)}</strong>")
        note = f'<p role="note">{escape(words["test"])}</p>\n' if visit.recipient.is_test else ""
        title = f"{title} · {escape(visit.sender)}"
    return framed(language, title, heading, f"{note}<p>{text}</p>\n{button}")
