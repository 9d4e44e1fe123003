"""Who asks for no more letters, and who asks for something else in much the same words."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.mailbox.classify import MailKind
from sendonce.domain.people.legal_notices import opt_out_line
from sendonce.flows.engine.classify_mail import classify_mail

WANT_OUT = (
    "Прошу не присылать мне больше рекламу",
    "Просим не направлять нам коммерческие предложения.",
    "Просьба не беспокоить",
    "Не присылайте нам письма",
    "Не пишите на этот адрес больше",
    "Не пишите на этот адрес",
    "Больше не пишите мне",
    "Перестаньте мне писать!",
    "Перестаньте присылать мне это",
    "Отстаньте от меня",
    "Не хотим получать вашу рассылку",
    "Не хочу получать от вас письма",
    "Не желаем больше получать.",
    "Stop sending me emails",
    "Stop sending this",
    "Please stop sending us these offers",
    "Stop emailing me",
    "I don't want to receive your emails",
    "Remove us from your mailing list",
    "Please remove me from your list",
    "Remove me from the database",
    "No more emails please",
    "Delete my data",
    "Прекратите рассылку",
    "Прекратите спам",
    "Прекратите присылать нам письма",
    "Удалите нас из базы, нам не интересно",
    "Не беспокойте нас",
    "Не отправляйте сюда ничего",
    "Не шлите мне спам",
    "Не надо присылать нам рекламу",
    "We are not interested in your offer. Please remove us.",
    "Not interested in your services, unsubscribe me.",
    "Не интересуют ваши цены, не пишите нам",
    "Исключите нас из списка рассылки, договор с вами не нужен",
    "Никогда больше не пишите мне. Цены ваши не нужны",
    "We do not need your quote. Stop emailing us.",
    "We don't need a quote, remove us from your list",
    "Не присылайте нам больше ваши прайсы",
    "Не присылайте прайс и вообще не пишите нам больше",
    "Больше не присылайте прайс, удалите нас из базы",
    "Please don't send us your price lists, unsubscribe us",
    "Мы не ждём КП от вас. Отпишите нас.",
)
WANT_SOMETHING_ELSE = (
    "Не отправляйте нам насосы без упаковки",
    "Просим не отправлять насосы до пятницы",
    "Просим не писать до понедельника",
    "Прошу не присылать договор почтой",
    "Не пишите мне в выходные",
    "Прекратите слать насосы в Казань, шлите в Москву",
    "Stop sending pumps to Kazan, we moved",
    "Не пишите мне, пишите на info@firma.example",
    "Please remove us from the waiting list and start the work",
    "Запрещаю отправлять насосы без предоплаты",
    "Нам интересно, пришлите КП",
    "Не шлите пока счёт, согласуем завтра",
)


def kind_of_answer(words: str) -> MailKind:
    head = "From: anna@firma.example\nSubject: Re: Pumps\nIn-Reply-To: <a@bakery.example>\n"
    return classify_mail(f"{head}Content-Type: text/plain; charset=utf-8\n\n{words}\n".encode()).kind


@pytest.mark.parametrize("words", WANT_OUT)
def test_whoever_wants_out_is_heard(words: str) -> None:
    assert kind_of_answer(words) is MailKind.OPT_OUT


@pytest.mark.parametrize("words", WANT_SOMETHING_ELSE)
def test_whoever_wants_something_else_is_answered(words: str) -> None:
    assert kind_of_answer(words) is MailKind.REPLY


def test_a_long_signature_hides_no_wish() -> None:
    assert kind_of_answer("Please remove us.\n" + "Our opening hours and more. " * 40) is MailKind.OPT_OUT


def test_a_wish_deep_in_a_long_letter_is_for_people_to_read() -> None:
    assert kind_of_answer("Our plans for the year. " * 40 + "Please remove us.") is MailKind.REPLY


@pytest.mark.parametrize(("language", "words"), [("ru", "не пишите"), ("en", "no more")])
def test_what_our_letters_tell_people_to_reply_is_understood(language: str, words: str) -> None:
    """Also as it stands there, in its marks. Our own line below an answer is nobody's wish."""
    line = opt_out_line(language)
    marked = {"ru": f"«{words}»", "en": f"“{words}”"}[language]
    assert marked in line
    for reply in (words, words.upper() + "!", marked, f'"{words}"'):
        assert kind_of_answer(reply) is MailKind.OPT_OUT, reply
    assert kind_of_answer(f"Хорошо, созвонимся.\n\n{line}") is MailKind.REPLY
