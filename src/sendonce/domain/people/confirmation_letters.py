"""The letter that asks whoever signed up whether it was them, in Russian and English."""

from __future__ import annotations

from html import escape

from sendonce.domain.engine.letters import Letter

LINK = "confirm_url"
"""The variable that the link is put in for."""

_WORDS = {
    "en": {
        "subject": "Please confirm: letters from {sender}",
        "asked": "Somebody asked for letters from {sender} to this address.",
        "agreed": "They agreed to this: “{wording}”",
        "confirm": "Yes, send me the letters",
        "usual": "I want to get letters from {sender} by e-mail.",
        "else": "If it was not you, do nothing: you will not be written to again.",
    },
    "ru": {
        "subject": "Подтвердите подписку на письма от {sender}",
        "asked": "Кто-то попросил присылать на этот адрес письма от {sender}.",
        "agreed": "При этом было дано согласие: «{wording}»",
        "confirm": "Да, присылайте письма",
        "usual": "Я хочу получать письма от {sender} по электронной почте.",
        "else": "Если это были не вы, ничего не делайте: больше вам писать не будут.",
    },
}


def usual_wording(language: str, sender: str) -> str:
    """What people agree to where the form's own words are not set."""
    return _WORDS[language]["usual"].format(sender=_plain(sender))


def confirmation_letter(language: str, sender: str, wording: str) -> Letter:
    """``sender`` is whom the reader knows the letters by, ``wording`` what was agreed to on the form."""
    names = {"sender": _plain(sender), "wording": _plain(wording)}
    words = {name: text.format(**names) for name, text in _WORDS[language].items()}
    link = f"{{{{ {LINK} }}}}"
    text = "\n\n".join([words["asked"], words["agreed"], f"{words['confirm']}: {link}", words["else"]])
    marked = {name: escape(text) for name, text in words.items()}
    button = (
        f'<p><a href="{link}" style="display:inline-block;padding:12px 20px;border-radius:6px;color:#ffffff;'
        f'background:#1d4f91;text-decoration:none">{marked["confirm"]}</a></p>'
    )
    html = (
        f'<div lang="{language}" style="max-width:560px;margin:0 auto;padding:24px;font:16px/24px Arial,'
        f'sans-serif"><p>{marked["asked"]}</p><p>{marked["agreed"]}</p>{button}<p>{marked["else"]}</p></div>'
    )
    return Letter(words["subject"], words["asked"], html, text)


def _plain(text: str) -> str:
    """Braces would be read as a variable."""
    return " ".join(text.replace("{", "(").replace("}", ")").split())
