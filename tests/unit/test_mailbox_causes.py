"""Whose fault a server names, in words that are much the same for the sender and for the recipient."""

from __future__ import annotations

import pytest

from sendonce.domain.engine.mailbox.causes import Bounce, diagnose


@pytest.mark.parametrize(
    "said",
    [
        "550 5.7.1 Sender IP address rejected, user not found in allow list",
        "550 Адрес отправителя отклонён: пользователь не найден",
        "550 Мы не принимаем почту от неизвестных отправителей, пользователь не найден",
        "550 Обратный адрес не существует",
        "550 Домен bakery.example не существует",
        "550 Domain bakery.example does not exist",
        "550 5.1.1 Unknown sender address",
        "550 The sender's mailbox does not exist",
        "550 Sender host unknown",
        "550 Return address not found",
        "550 5.2.0 mailbox unavailable: try later",
        "550 5.1.1 rejected, see https://www.spamhaus.org/query/ip/192.0.2.4",
    ],
)
def test_what_is_not_the_recipients_fault_is_soft(said: str) -> None:
    assert diagnose(said, "5.0.0", "anna@firma.example").bounce is Bounce.SOFT


@pytest.mark.parametrize(
    "said",
    [
        "550 5.7.1 <anna@firma.example>... User unknown",
        "550 Domain firma.example does not exist",
        "550 domain mail.firma.example not found",
        "550 Unknown recipient. See http://firma.example/spam-policy",
        "550 5.1.1 anna@firma.example Адресат не существует. Уважаемый отправитель, проверьте адрес",
        "550 5.1.1 <spam-abuse@firma.example> rejected",
    ],
)
def test_whoever_does_not_exist_is_hard(said: str) -> None:
    assert diagnose(said, "5.0.0", "anna@firma.example").bounce is Bounce.HARD
