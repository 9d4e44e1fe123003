"""The wish to get no more letters, in Russian and English words, and in a few of other languages."""

from __future__ import annotations

import re

from sendonce.domain.engine.mailbox.mime import Mail
from sendonce.domain.engine.mailbox.own_words import own_words
from sendonce.domain.engine.mailbox.patterns import any_of
from sendonce.domain.engine.mailbox.replies import is_bulk, is_reply

_MOST_WORDS = 60
_MOST_WORDS_UNASKED = 25

_COMMAND = re.compile(
    r"(?:re:\s*)?(?:please )?(?:un-?subscribe(?: me)?(?: from [\w\s]{2,30})?|remove(?: me)?|stop|opt[- ]?out"
    r"|(?:отписаться|отписка|отпишите(?: меня)?)(?: от [\w\s]{2,30})?|стоп|abmelden|d[ée]sabonner"
    r"|dar de baja)[\s.!]*(?:please|пожалуйста)?[\s.!]*",
    re.IGNORECASE,
)
# What a letter's own link to unsubscribe by mail may have for a subject.
_MAILED_COMMAND = re.compile(r"unsubscribe(?::\s?\S{1,100}|\s[\w-]{0,50}\d[\w-]{0,50})", re.IGNORECASE)
_LINES_OF_A_COMMAND = 4
_OUR_ADDRESS = r"(?:мой|наш|этот|мои|наши)(?: \w+)? (?:адрес|ящик|e-?mail|имейл|контакт|данны)"
_LIST = "(?:вашей |своей |ваших |этой )?(?:баз|рассыл|спис|подпис)"
_WRITE = "(?:пишите|присылайте|шлите|отправляйте|беспокойте|направляйте|рассылайте)"
_WISH = any_of(
    r"\b(?:unsubscribe|un-subscribe) (?:me|us|my|this|from|please|immediately|now)\b",
    r"\b(?:please|kindly|pls),? unsubscribe\b",
    r"(?:want|wish|like) to (?:be )?(?:unsubscribed?|opt(?:ed)? out|removed)\b",
    r"\b(?:remove|delete|take|exclude|strike) (?:my|our|this) (?:\w+ )?(?:e-?mail|address|contact|name|data)",
    r"\b(?:delete|exclude|strike) (?:me|us)\b",
    r"\bremove (?:me|us)\b",
    r"\btake (?:me|us) off\b",
    r"\bopt (?:me |us )?out\b",
    r"\b(?:stop|quit|cease) (?:e-?mailing|sending|contacting|spamming|writing|messaging|mailing)\b",
    r"\bstop (?:these|this|your|the) (?:e-?mails?|mails?|messages?|letters?|spam)",
    r"\b(?:do ?n[o']t|don’t|never) (?:e-?mail|contact|write|send|message|mail)\b[^\n.]{0,30}"
    r"\b(?:me|us|again|any ?more|to this)",
    r"\bno (?:more|further) (?:e-?mails?|mails?|messages?|letters?)\b",
    "отпишите",
    "отписать(?:ся)? (?:от|меня|нас)",
    "хочу отписаться",
    rf"(?:удалить|убрать|исключить|отписать) (?:меня|нас|{_OUR_ADDRESS}|из {_LIST})",
    "прошу (?:вас )?(?:больше )?не (?:присылать|писать|беспокоить|отправлять|направлять)",
    rf"не {_WRITE}\s*(?:[.!,]|$)",
    "прошу (?:меня )?отписать",
    rf"(?:удалите|уберите|исключите|вычеркните) (?:меня|нас|{_OUR_ADDRESS}|адрес|из {_LIST})",
    rf"не {_WRITE}(?: \w+)?(?: \w+)? ?(?:больше|нам|мне|сюда|ничего|пис[еь]м|спам|рассылк|подобн|на этот)",
    rf"больше (?:мне |нам |сюда |ничего )*не (?:{_WRITE}|надо писать|нужно писать)",
    "не (?:надо|нужно) (?:мне |нам |больше |ничего |сюда )*(?:писать|присылать|слать|отправлять)",
    r"\b(?:i|we) (?:do ?n[o']t|don’t|no longer) (?:want|wish|care) to (?:receive|get|hear)",
    r"\bleave (?:me|us) alone\b",
    "(?:прекратите|отключите|остановите) (?:рассылку|слать|присылать|писать|отправлять|спам)",
    r"\bremove from (?:your|this|the) (?:\w+ )?(?:list|database)",
    r"\bcancel (?:my|our|this) subscription",
    r"aus (?:dem|ihrem|eurem) (?:e-?mail-?)?verteiler|keine (?:weiteren )?(?:e-?mails|mails|newsletter) mehr",
    r"d[ée]sinscri|d[ée]sabonne|(?:darme|dar) de baja",
    "хватит (?:слать|писать|спамить|присылать)",
    "не (?:хочу|желаю|хотим|желаем) (?:больше )?получать",
    "отказываюсь от (?:рассылки|получения)",
    "откажитесь от рассылки",
    "отзываю (?:сво[её] )?согласие",
)
_NOT_A_WISH = any_of(
    r"\b(?:do ?n[o']t|don’t|never) (?:stop|quit|cease|remove|delete)\b",
    r"\b(?:do ?n[o']t|don’t|never|not|no need to) (?:w[a-z]{2,3} to )?(?:be )?(?:unsubscribe|remove|opt out)",
    "не (?:отписывай|отпишите|удаляйте|убирайте|исключайте|хочу отписыва|надо отпис|нужно отпис|прекращайте)",
    r"(?:users?|customers?|clients?|subscribers?|people|they)\b[^\n.?]{0,40}(?:unsubscribe|opt out)",
    r"как (?:наши |ваши )?(?:клиенты|подписчики|пользователи)[^\n.?]{0,40}отпис",
    r"\bdo ?n[o']t (?:send|mail|e-?mail) (?:me|us) (?:the|an?|your|any)? ?"
    r"(?:invoice|price|contract|sample|file|attachment|presentation|brochure|link)",
    "(?:do ?n[o']t|don’t) contact (?:me|us) (?:by|on|at|via|before|until|till)",
    "не (?:присылайте|отправляйте|шлите) (?:мне |нам )?(?:сч[её]т|договор|прайс|образц|файл|презентац|архив)",
    r"не пишите (?:мне |нам )?(?:до|в|по|на)\b",
    "не пишите,? (?:а |лучше )?(?:по)?звоните",
    r"(?:to|чтобы) (?:unsubscribe|отписаться)[^\n.]{0,60}(?:click|follow|visit|нажм|перейд|ссылк)",
    r"(?:click|press|use|follow|visit|нажм|перейд)[^\n]{0,60}(?:unsubscribe|отпис)",
)


def is_command(mail: Mail) -> bool:
    """What mail programs send where a letter names an address to unsubscribe at, and what people write."""
    subject = mail.headers.get("subject").strip()
    return bool(_COMMAND.fullmatch(subject) or _MAILED_COMMAND.fullmatch(subject)) and not is_bulk(mail)


def wants_out(mail: Mail) -> bool:
    """Only a short letter counts, and never what it quotes: our own letter offers to unsubscribe, too."""
    if is_bulk(mail):
        return False
    words = own_words(mail)
    most = _MOST_WORDS if is_reply(mail) else _MOST_WORDS_UNASKED
    if len(words.split()) > most or _NOT_A_WISH.search(words):
        return False
    first_lines = [line for line in words.split("\n") if line][:_LINES_OF_A_COMMAND]
    return any(map(_COMMAND.fullmatch, first_lines)) or _WISH.search(words) is not None
