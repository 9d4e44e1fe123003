"""What the law wants a first letter to a stranger to say besides its offer, in Russian and English."""

from __future__ import annotations

from sendonce.domain.people.legal_gate import Footing, must_disclose

_SOURCE = {
    "ru": "Ваш адрес опубликован на странице {source}: оттуда мы его и взяли. Мы храним его, чтобы сделать "
    "вашей компании это предложение; это наш законный интерес (GDPR, ст. 6(1)(f)). Вы можете узнать, что мы "
    "о вас храним, исправить это или удалить: ответьте на это письмо.",
    "en": "Your address is published at {source}, and we took it from there. We keep it to make your company "
    "this offer; that is our legitimate interest (GDPR, Art. 6(1)(f)). You may ask what we keep about you, "
    "and have it corrected or erased: reply to this letter.",
}
_OBJECT = {
    "ru": "ПРАВО НА ВОЗРАЖЕНИЕ: вы можете в любой момент возразить против таких писем. Ответьте «не пишите» "
    "или нажмите «Отписаться» ниже, и мы больше не напишем.",
    "en": "RIGHT TO OBJECT: you may object to such letters at any time. Reply “no more” or follow "
    "“Unsubscribe” below, and we will not write again.",
}
_OPT_OUT = {
    "ru": "Если такие письма вам не нужны, ответьте «не пишите» или нажмите «Отписаться» ниже: больше мы не "
    "напишем.",
    "en": "If you do not want such letters, reply “no more” or follow “Unsubscribe” below: we will not write "
    "again.",
}


def opt_out_line(language: str) -> str:
    return _OPT_OUT[language]


def notices(direction: Footing, language: str, source: str) -> tuple[str, ...]:
    """The paragraphs below a letter's signature. The right to object stands apart from all else."""
    if not must_disclose(direction):
        return (opt_out_line(language),)
    return (_SOURCE[language].format(source=source), _OBJECT[language])
