"""The wish to get no more letters, in Russian and English words, and in a few of other languages."""

from __future__ import annotations

import re

from sendonce.domain.engine.mailbox.mime import Mail
from sendonce.domain.engine.mailbox.own_words import own_words
from sendonce.domain.engine.mailbox.patterns import any_of
from sendonce.domain.engine.mailbox.replies import is_bulk, is_reply

_MOST_WORDS = 60
_MOST_WORDS_UNASKED = 25
_FIRST_WORDS = re.compile(rf"(?:\s*\S+){{0,{_MOST_WORDS}}}")

# Our letters say: reply «не пишите» or “no more”. People copy it with its marks.
_QUOTES = re.compile(r"[«»“”„\"]|(?<!\w)'|'(?!\w)")
_PLEASE = re.compile(r",? ?\b(?:пожалуйста|плиз|пжлст|пжл)\b,? ?", re.IGNORECASE)
_COMMAND = re.compile(
    r"(?:re:\s*)?(?:please |kindly )?(?:un-?subscribe(?: me)?(?: from [\w\s]{2,30})?"
    r"|remove(?: me)?|stop(?: it)?|no more|(?:do not|don.t) write(?: me| us)?"
    r"|opt[- ]?out|(?:отписать(?:ся)?|отписка|отпишите(?: меня)?)(?: от [\w\s]{2,30})?"
    r"|стоп(?:,? рассылк\w)?|удалить"
    r"|(?:отказ(?:аться)? от|отмен(?:ить|а|ите)|снимите с|прекратите) (?:вашей )?(?:рассылк|подписк)\w{1,3}"
    r"|abmelden|d[ée]sabonner|dar de baja)[\s.!]*(?:please|пожалуйста)?[\s.!]*",
    re.IGNORECASE,
)
# What a letter's own link to unsubscribe by mail may have for a subject.
_MAILED_COMMAND = re.compile(r"unsubscribe(?::\s?\S{1,100}|\s[\w-]{0,50}\d[\w-]{0,50})", re.IGNORECASE)
_LINES_OF_A_COMMAND = 4
_OUR_ADDRESS = (
    r"(?:мой|наш|этот|мои|наши|мою|нашу|эту)(?: \w+)? "
    r"(?:адрес|ящик|e-?mail|имейл|почт|контакт|данны|компани|организаци|фирм|предприяти)"
)
_LIST = "(?:вашей |своей |ваших |этой )?(?:баз|рассыл|спис|подпис)"
_WRITE = "(?:пишите|присылайте|шлите|отправляйте|беспокойте|направляйте|рассылайте)"
_TO_WRITE = "(?:писать|присылать|слать|отправлять|беспокоить|направлять|рассылать|спамить)"
_TO_US = "(?:мне |нам |нас |меня |сюда |больше |более |впредь |ничего |вас )*"
# What is sent: letters. Whoever says "stop sending pumps without a box" buys pumps.
_LETTERS = (
    r"(?: мне| нам| сюда| больше| пожалуйста)*(?:\s*(?:[.!,;\n]|$)|[^\n.!?]{0,30}"
    r"(?:пис[еь]м|реклам|спам|рассыл|предложени|сообщени|информаци|подобн|ваш[иу]|такое|такие|это\b|эти\b|ничего|уведомлен))"
)
_TO_WRITE_US = f"(?:писать|беспокоить|{_TO_WRITE}{_LETTERS})"
_MAILS = (
    r"(?: (?:me|us|to me|to us))?(?:\s*(?:[.!,;\n]|$)|[^\n.!?]{0,30}"
    r"(?:mail|message|letter|spam|newsletter|offer|stuff|things|crap|junk|anything"
    r"|\bthese\b|\bthis\b|any ?more|again))"
)
# "Отпишите, как отгрузите" asks for an answer.
_TAKE_OFF = r"отпишите\b(?! (?:мне|нам|о|об|по|на)\b)(?!,? (?:как|когда|что|если|сколько|куда|почему|ли)\b)"
_NO_LIST = (
    r"(?! from (?:the |your |our |this )?(?:\w+ )?"
    r"(?:trial|waiting|waitlist|cc|copy|order|quote|plan|demo|call)\b)"
)
_WISH = any_of(
    r"\b(?:unsubscribe|un-subscribe) (?:me|us|my|this|from|please|immediately|now)\b",
    r"\b(?:please|kindly|pls),? unsubscribe\b",
    rf"(?:want|wish|like) to (?:be )?(?:unsubscribed?|removed)\b{_NO_LIST}",
    r"\b(?:remove|delete|take|exclude|strike) (?:all )?(?:my|our|this) (?:\w+ )?"
    r"(?:e-?mail|address|contact|name|data)",
    r"\b(?:delete|exclude|strike) (?:me|us)\b",
    rf"\bremove (?:me|us)\b{_NO_LIST}",
    r"\btake (?:me|us) off\b",
    r"\bopt(?:ed)? (?:me |us )?out\b(?! of\b)",
    r"\bopt(?:ed)? (?:me |us )?out of (?:\w+ ){0,2}"
    r"(?:mail|e-?mail|list|newsletter|communication|marketing|message)",
    r"\b(?:stop|quit|cease) (?:e-?mailing|contacting|spamming|writing|messaging|mailing)\b",
    rf"\b(?:stop|quit|cease) sending\b{_MAILS}",
    r"\bstop (?:these|this|your|the) (?:e-?mails?|mails?|messages?|letters?|spam)",
    r"\b(?:do ?n[o']t|don’t|never) (?:e-?mail|contact|write|send|message|mail)\b[^\n.]{0,30}"
    r"\b(?:me|us|again|any ?more|to this)",
    r"\bno (?:more|further) (?:e-?mails?|mails?|messages?|letters?)\b",
    _TAKE_OFF,
    r"как (?:мне |нам |от вас )?отписаться",
    r"(?:^|[.,!;\n-] ?)(?:unsubscribe|stop it|stop this)[.! ]*(?:\n|$)",
    r"\bif you(?: could| would)? stop(?:ped)? (?:e-?mailing|contacting|writing|mailing)",
    rf"\brefrain from (?:e-?mailing|contacting|writing|sending{_MAILS})",
    "отписать(?:ся)? (?:от|меня|нас)",
    "хочу отписаться",
    rf"(?:удалить|убрать|исключить|отписать) (?:меня|нас|{_OUR_ADDRESS}|адрес|из {_LIST})",
    rf"(?:прошу|просим|требую|требуем) {_TO_US}(?:прекратить|остановить|отключить) {_TO_US}(?:рассылк|спам)",
    rf"(?:прошу|просим|просьба|требую|требуем) {_TO_US}не {_TO_US}{_TO_WRITE_US}",
    rf"(?:запрещаю|запрещаем) (?:вам )?{_TO_US}{_TO_WRITE_US}",
    "(?:^|[.!,] ?)(?:отвяжитесь|отстаньте|отвалите)",
    rf"не {_WRITE}\s*(?:[.!,]|$)",
    "прошу (?:меня )?отписать",
    rf"(?:удалите|уберите|исключите|вычеркните) (?:меня|нас|{_OUR_ADDRESS}|адрес|из {_LIST})",
    r"не (?:пишите|беспокойте)(?: \w+)?(?: \w+)? ?(?:больше|нам|мне|сюда|ничего|нас|меня|на этот)",
    rf"не {_WRITE}{_LETTERS}",
    rf"не {_WRITE}[^\n.!?]{{0,20}} (?:больше|сюда)\b",
    rf"больше (?:мне |нам |сюда |ничего )*не (?:{_WRITE}|(?:надо|нужно) (?:писать|писем|рассыл))",
    "не (?:надо|нужно) (?:мне |нам |больше |ничего |сюда )*(?:писать|присылать|слать|отправлять)",
    r"\b(?:i|we) (?:do ?n[o']t|don’t|no longer) (?:want|wish|care) to (?:receive|get|hear)",
    r"\bleave (?:me|us) alone\b",
    rf"(?:прекратите|перестаньте|отключите|остановите) {_TO_US}(?:рассылку|писать|спам|беспокоить)",
    rf"(?:прекратите|перестаньте) {_TO_US}{_TO_WRITE_US}",
    r"\bremove from (?:your|this|the) (?:\w+ )?(?:list|database)",
    r"\bcancel (?:my|our|this) subscription",
    r"\b(?:stop|cease) (?:all |any |further )?(?:communications?|contact|marketing)\b",
    r"\blose (?:my|our|this) (?:e-?mail|address|contact)",
    r"\b(?:i|we) object to\b[^\n.]{0,60}(?:direct )?marketing",
    r"\bstreichen sie (?:uns|mich)\b",
    r"aus (?:dem|ihrem|eurem) (?:e-?mail-?)?verteiler|keine (?:weiteren )?(?:e-?mails|mails|newsletter) mehr",
    r"d[ée]sinscri|d[ée]sabonne|(?:darme|dar) de baja",
    "хватит (?:слать|писать|спамить|присылать)",
    rf"не (?:хочу|желаю|хотим|желаем) (?:больше )?получать(?: больше)?{_LETTERS}",
    "отказываюсь от (?:рассылки|получения)",
    "откажитесь от рассылки",
    "отзываю (?:сво[её] )?согласие",
    rf"(?:снимите|снять) (?:меня |нас )?с {_LIST}",
    r"это спам[.!, ]+(?:прекратите|перестаньте|хватит|не пишите)",
)
# Nothing else in the letter makes these mean something else.
_PLAIN_WISH = any_of(
    r"\bunsubscribe (?:me|us)\b",
    r"\b(?:remove|take|delete) (?:me|us|(?:my|our) [\w-]{1,20}) (?:from|off) "
    r"(?:your|this|the) (?:mailing |e-?mail |contact )?(?:list|database)\b",
    r"\bstop (?:e-?mailing|spamming) (?:me|us)\b",
    r"отпишите (?:меня|нас|наш|мой)\b",
    rf"(?:удалите|уберите|исключите|вычеркните) (?:меня |нас |{_OUR_ADDRESS}\w* )?из {_LIST}",
    r"не пишите (?:нам|мне) больше\s*(?:[.!\n]|$)",
)
_NOT_A_WISH = any_of(
    r"\b(?:do ?n[o']t|don’t|never) (?:stop|quit|cease|remove|delete)\b",
    r"\b(?:do ?n[o']t|don’t|never|not|no need to) (?:w[a-z]{2,3} to )?(?:be )?(?:unsubscribe|remove|opt out)",
    "не (?:отписывай|отпишите|удаляйте|убирайте|исключайте|хочу отписыва|надо отпис|нужно отпис|прекращайте)",
    r"(?:users?|customers?|clients?|subscribers?|people|they)\b[^\n.?]{0,40}(?:unsubscribe|opt out)",
    r"\b(?:we|i)(?: will| have| had|'ll|'ve)? unsubscribed? from (?:our|my|another|the other)\b",
    r"как (?:наши |ваши )?(?:клиенты|подписчики|пользователи)[^\n.?]{0,40}отпис",
    r"(?:to|чтобы) (?:unsubscribe|отписаться)[^\n.]{0,60}(?:click|follow|visit|нажм|перейд|ссылк)",
    r"(?:click|press|use|follow|visit|нажм|перейд)[^\n]{0,60}(?:unsubscribe|отпис)",
    r"(?:reply|answer|ответьте|напишите)(?: with| словом)? ?[\"«“']?"
    r"(?:remove|stop|unsubscribe|no more|стоп|отпис|отпиш|не пишите)",
)
# Something is not to be sent, or not to this person, or not now; or the writer goes on to buy.
_ANOTHER_WISH = any_of(
    r"\bdo ?n[o']t (?:send|mail|e-?mail) (?:me|us) (?:the|an?|your|any)? ?"
    r"(?:invoice|price|contract|sample|file|attachment|presentation|brochure|link)",
    "(?:do ?n[o']t|don’t) contact (?:me|us) (?:by|on|at|via|before|until|till)",
    r"(?:do ?n[o']t|don’t) (?:send|write|e-?mail)\b[^\n.!?]{0,30}, ?(?:but |please |instead )?"
    r"(?:send|write|e-?mail|contact|forward|use|call)\b",
    "не (?:присылайте|присылать|отправляйте|отправлять|шлите|слать) (?:мне |нам )?"
    "(?:сч[её]т|договор|прайс|образц|файл|презентац|архив)",
    r"не (?:надо |нужно )?(?:пишите|писать) (?:мне |нам )?(?:до|в|по|на)\b(?! этот| наш| мой)",
    r"не пишите[^\n.!?]{0,40}, ?(?:а |лучше )?(?:пишите|(?:по)?звоните|обращайтесь|обратитесь)",
    "не пишите (?:а |лучше )?(?:по)?звоните",
    "(?:удалите|уберите|исключите) (?:меня|нас) из (?:копии|сметы|договора|заказа|сч[её]та|очереди)",
    r"no (?:more|further) (?:e-?mails?|messages?|letters?) (?:are |is )?(?:needed|necessary|required)",
    r"(?<!не )\b(?:выставляйте|выставьте|жд(?:[её]м|у)|пришлите|присылайте|вышлите) "
    r"(?:нам |мне |сразу |ваш |ваше )?(?:сч[её]т|кп\b|прайс|цен|договор|коммерческ|нов)",
    r"(?<!не )\bвс[её] устраивает",
    r"\b(?:we|i)(?: will|'ll)? (?:accept|agree to|approve) your (?:offer|quote|terms|price|proposal)",
    r"(?:(?:^|[.!?,\n] ?)(?:please |and )?send|\b(?:we|i) need) (?:me |us )?(?:the |a |your )?"
    r"(?:price|quote|contract|invoice)",
    r"(?:^|[.!?\n] ?)(?:we(?:'re| are)? |i(?:'m| am)? )?(?:still |very )?interested in (?:the|your)",
    r"\bon the paid\b",
)


def is_command(mail: Mail) -> bool:
    """What mail programs send where a letter names an address to unsubscribe at, and what people write."""
    subject = mail.headers.get("subject").strip()
    return bool(_COMMAND.fullmatch(subject) or _MAILED_COMMAND.fullmatch(subject)) and not is_bulk(mail)


def wants_out(mail: Mail) -> bool:
    """Only how an answer begins counts, and never what it quotes: our own letter offers to unsubscribe, too.

    Of letters that answer none, only short ones: every newsletter tells how to leave it.
    """
    if is_bulk(mail):
        return False
    words = _PLEASE.sub(" ", _QUOTES.sub("", own_words(mail)))
    if is_reply(mail):
        words = _beginning(words)
    elif len(words.split()) > _MOST_WORDS_UNASKED:
        return False
    if _NOT_A_WISH.search(words):
        return False
    if _PLAIN_WISH.search(words):
        return True
    return _ANOTHER_WISH.search(words) is None and (
        _gives_a_command(words) or _WISH.search(words) is not None
    )


def _gives_a_command(words: str) -> bool:
    first_lines = [line for line in words.split("\n") if line][:_LINES_OF_A_COMMAND]
    return any(map(_COMMAND.fullmatch, first_lines))


def _beginning(words: str) -> str:
    """The first words, in their lines; a long signature may follow them."""
    begins = _FIRST_WORDS.match(words)
    return begins[0] if begins else ""
