"""The pages behind the unsubscribe link, in Russian and English. No script, no outside assets."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape

from sendonce.flows.unsubscribe import Recipient

_STYLE = """
:root{color-scheme:light dark}
body{margin:0;font:18px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff}
main{max-width:32em;margin:12vh auto;padding:0 1.25em}
h1{font-size:1.5em;line-height:1.25;margin:0 0 .5em}
button{font:inherit;padding:.6em 1.2em;border:0;border-radius:.4em;cursor:pointer;
color:#fff;background:#1d4f91}
button:focus-visible{outline:3px solid #1d4f91;outline-offset:3px}
@media(prefers-color-scheme:dark){body{color:#f0f0f0;background:#161616}
button{color:#10233c;background:#9cc4ff}button:focus-visible{outline-color:#9cc4ff}}
"""

CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_WORDS = {
    "en": {
        "question": "Unsubscribe?",
        "question_text": "No more letters will be sent to {address}.",
        "unsubscribe": "Unsubscribe",
        "done": "You are unsubscribed",
        "done_text": "No more letters will be sent to {address}. If this was a mistake, undo it here.",
        "undo": "Undo",
        "undone": "You are subscribed again",
        "undone_text": "Letters will be sent to {address} as before.",
        "held": "Letters stay switched off",
        "held_text": "Letters to {address} came back or were reported as spam. Write to the sender to "
        "get them again.",
        "bad_link": "This link does not work",
        "bad_link_text": "Open the link from the letter once more, or copy the whole of it. If that does not "
        "help, answer the letter and ask to be unsubscribed.",
        "out_of_order": "This did not work",
        "out_of_order_text": "Something is out of order on our side. Please try again in a few minutes.",
    },
    "ru": {
        "question": "Отписаться?",
        "question_text": "Письма на {address} больше не будут приходить.",
        "unsubscribe": "Отписаться",
        "done": "Вы отписаны",
        "done_text": "Письма на {address} больше не будут приходить. Если это ошибка, её можно отменить.",
        "undo": "Отменить",
        "undone": "Вы снова подписаны",
        "undone_text": "Письма на {address} будут приходить, как прежде.",
        "held": "Письма по-прежнему не отправляются",
        "held_text": "Письма на {address} возвращались или были отмечены как спам. Чтобы получать их снова, "
        "напишите отправителю.",
        "bad_link": "Ссылка не работает",
        "bad_link_text": "Откройте ссылку из письма ещё раз или скопируйте её целиком. Если не поможет, "
        "ответьте на письмо и попросите вас отписать.",
        "out_of_order": "Не получилось",
        "out_of_order_text": "У нас что-то сломалось. Пожалуйста, попробуйте ещё раз через несколько минут.",
    },
}

# Relative, so that they also work where a proxy serves us under a path.
_UNSUBSCRIBE = "unsubscribe"
_UNDO = "unsubscribe/undo"


def question(language: str, recipient: Recipient, token: str) -> str:
    button = _button(_UNSUBSCRIBE, token, _WORDS[language]["unsubscribe"])
    return _page(language, "question", recipient, button)


def done(language: str, recipient: Recipient, token: str) -> str:
    button = _button(_UNDO, token, _WORDS[language]["undo"])
    return _page(language, "done", recipient, button)


def undone(language: str, recipient: Recipient, _token: str) -> str:
    """What became of an undo: a bounce or a complaint outweighs it."""
    return _page(language, "held" if recipient.suppressed else "undone", recipient)


def bad_link(language: str) -> str:
    return _page(language, "bad_link")


def out_of_order(language: str) -> str:
    return _page(language, "out_of_order")


def choose_language(accepted: str) -> str:
    """Russian or English, whichever an Accept-Language header (RFC 9110 §12.5.4) likes better."""
    best, best_weight = "en", 0.0
    for item in accepted[:1000].split(",")[:50]:
        name, _, parameter = item.strip().partition(";")
        language = name.strip().lower().partition("-")[0]
        weight = _weight(parameter)
        if language in _WORDS and weight > best_weight:
            best, best_weight = language, weight
    return best


def _weight(parameter: str) -> float:
    name, _, digits = parameter.strip().partition("=")
    if name.strip().lower() != "q":
        return 1.0
    try:
        return float(digits)
    except ValueError:
        return 0.0


def shortened(address: str) -> str:
    """Enough to recognise one's own address by, too little to learn another's: ``i•••@example.com``."""
    local, at, domain = address.rpartition("@")
    return f"{local[:1]}•••@{domain}" if at else "•••"


def _button(action: str, token: str, label: str) -> str:
    # The body is the one of RFC 8058, so that a person's click and a mail program's are one request.
    return (
        f'<form method="post" action="{action}?token={escape(token)}">'
        '<input type="hidden" name="List-Unsubscribe" value="One-Click">'
        f'<button type="submit">{escape(label)}</button></form>'
    )


def _page(language: str, name: str, recipient: Recipient | None = None, button: str = "") -> str:
    words = _WORDS[language]
    title = escape(words[name])
    address = f"<strong>{escape(shortened(recipient.address))}</strong>" if recipient else ""
    text = words[f"{name}_text"].format(address=address)
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex, nofollow">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n<h1>{title}</h1>\n<p>{text}</p>\n{button}\n</main>\n</body>\n</html>\n"
    )
