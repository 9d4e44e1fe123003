"""The pages of signing up, in Russian and English."""

from __future__ import annotations

from html import escape

from sendonce.domain.people.sign_ups import Confirmation
from sendonce.entrypoints.http.page_frame import framed

_WORDS = {
    "en": {
        "mailbox": "Look into your mailbox",
        "mailbox_text": "If the address can get letters, one is on its way to it. Open it and confirm.",
        "question": "Confirm?",
        "question_text": "Letters from {sender} will be sent to you.",
        "button": "Yes, send me the letters",
        "confirmed": "You are subscribed",
        "confirmed_text": "Letters from {sender} will be sent to you. Each has a link to unsubscribe.",
        "late": "This link is too old",
        "late_text": "To get letters from {sender}, sign up once more.",
        "held": "Letters stay switched off",
        "held_text": "Letters to you came back or were reported as spam. To get letters from {sender} again, "
        "write to the sender.",
        "bad_link": "This link does not work",
        "bad_link_text": "Open the link from the letter once more, or copy the whole of it.",
        "out_of_order": "This did not work",
        "out_of_order_text": "Something is out of order on our side. Please try again in a few minutes.",
    },
    "ru": {
        "mailbox": "Загляните в почту",
        "mailbox_text": "Если на этот адрес можно писать, письмо уже в пути. Подтвердите в нём подписку.",
        "question": "Подтвердить?",
        "question_text": "Вам будут приходить письма от {sender}.",
        "button": "Да, присылайте письма",
        "confirmed": "Вы подписаны",
        "confirmed_text": "Вам будут приходить письма от {sender}. В каждом есть ссылка для отписки.",
        "late": "Ссылка устарела",
        "late_text": "Чтобы получать письма от {sender}, подпишитесь ещё раз.",
        "held": "Письма по-прежнему не отправляются",
        "held_text": "Письма к вам возвращались или были отмечены как спам. Чтобы снова получать письма от "
        "{sender}, напишите отправителю.",
        "bad_link": "Ссылка не работает",
        "bad_link_text": "Откройте ссылку из письма ещё раз или скопируйте её целиком.",
        "out_of_order": "Не получилось",
        "out_of_order_text": "У нас что-то сломалось. Пожалуйста, попробуйте ещё раз через несколько минут.",
    },
}


def look_into_your_mailbox(language: str) -> str:
    return _page(language, "mailbox")


def question(language: str, sender: str, token: str) -> str:
    # Relative, so that it also works where a proxy serves us under a path.
    button = (
        f'<form method="post" action="confirm?token={escape(token)}&amp;lang={language}">'
        f'<button type="submit">{escape(_WORDS[language]["button"])}</button></form>'
    )
    return _page(language, "question", sender, button)


def answered(language: str, sender: str, confirmation: Confirmation) -> str:
    return _page(language, str(confirmation), sender)


def bad_link(language: str) -> str:
    return _page(language, "bad_link")


def out_of_order(language: str) -> str:
    return _page(language, "out_of_order")


def _page(language: str, name: str, sender: str = "", button: str = "") -> str:
    words = _WORDS[language]
    heading = escape(words[name])
    text = words[f"{name}_text"].format(sender=f"<strong>{escape(sender)}</strong>")
    title = f"{heading} · {escape(sender)}" if sender else heading
    return framed(language, title, heading, f"<p>{text}</p>\n{button}")
