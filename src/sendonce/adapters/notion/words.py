"""What we say in a table of Notion, in the table's language: Russian or English.

The program speaks English, and so does what it keeps. Sentences of ours are known by their English pattern
and said in Russian where the table is Russian. What a mail provider said is quoted as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Template
from zoneinfo import ZoneInfo

from sendonce.domain.engine.moments import shown_moment
from sendonce.domain.mailouts.progress import Cause, Progress, Standstill

_LONGEST = 2000


def both(russian: str, english: str) -> Mapping[str, str]:
    return {"ru": russian, "en": english}


KINDS = {
    "failed": both("Не отправлено", "Failed"),
    "dead": both("Попытки исчерпаны", "Out of tries"),
    "in_doubt": both("Под вопросом", "In doubt"),
    "bounced": both("Вернулось", "Bounced"),
    "complained": both("Жалоба", "Complaint"),
    "rejected": both("Отклонено", "Rejected"),
}
"""What became of one letter, by the names of ``RecipientOutcome.outcome``."""

NO_WORDS = both("Почтовый сервис не назвал причины.", "The mail provider gave no reason.")
IN_DOUBT = both(
    "Неизвестно, принял ли почтовый сервис письмо ($reason). Второй раз оно не уйдёт, пока это не выяснится.",
    "It is unknown whether the mail provider took the letter ($reason). It is not sent again until that is "
    "settled.",
)
CANCELLED = both(
    "Рассылка отменена: что не ушло, уже не уйдёт. Чтобы отправить письмо, сделайте копию страницы.",
    "The mailout was cancelled: what was not sent by then is not sent any more. To send the letter, "
    "duplicate the page.",
)
MORE_TITLE = both("Ещё $count", "$count more")
MORE = both("Ещё ошибок: $count. Все они в CSV: $csv", "$count more errors. All of them are in the CSV: $csv")

_CAUSES = {
    Cause.HALTED: both("Отправка остановлена: $detail", "Sending is halted: $detail"),
    Cause.CANCELLED: both("Рассылка отменяется.", "The mailout is being cancelled."),
    Cause.PAUSED: both("Приостановлено. $detail", "Paused. $detail"),
    Cause.SCHEDULED: both("Отправка назначена на $time.", "It will be sent at $time."),
    Cause.NO_WORKER: both("Ни один обработчик не работает.", "No worker is at work."),
    Cause.QUOTA: both(
        "Дневной лимит почтового сервиса исчерпан: $detail", "The daily quota is used up: $detail"
    ),
    Cause.SENDING_PAUSED: both(
        "Почтовый сервис остановил отправку: $detail", "The mail provider has paused sending: $detail"
    ),
    Cause.THROTTLED: both("Почтовый сервис просит подождать: $detail", "The provider asks to wait: $detail"),
    Cause.CLOCK: both("Часы обработчика идут неверно.", "The clock of the worker is wrong."),
    Cause.RETRY: both("Письма ждут новой попытки: $detail", "Letters wait for another try: $detail"),
}
_NEXT_TRY = both("Следующая попытка: $time.", "Next try: $time.")
_PACE = both(
    "Писем в секунду: $rate, закончится около $time. Обработчиков за работой: $workers.",
    "$rate letters per second, done at about $time. Workers at work: $workers.",
)
# Over in a moment: telling would only flicker.
PASSING = frozenset({Cause.FETCHING, Cause.PLANNING, Cause.THROTTLED})


def standstill_words(it: Standstill, language: str, zone: ZoneInfo) -> str:
    """Why nothing moves, what to do about it, and when it is tried again."""
    time = shown_moment(it.next_try_at, zone) if it.next_try_at else ""
    detail = _bare(it, language)
    said = fill(_CAUSES.get(it.cause, both("$detail", "$detail")), language, detail=detail, time=time)
    parts = [said.strip()]
    if it.fix:
        parts.append(translated(it.fix, language))
    if time and it.cause is not Cause.SCHEDULED:
        parts.append(fill(_NEXT_TRY, language, time=time))
    return " ".join(part if part[-1:] in ".!?…" else f"{part}." for part in parts if part)


def pace_words(progress: Progress, language: str, zone: ZoneInfo) -> str:
    """How fast letters leave, until when, and by how many workers; nothing where none leaves."""
    if not progress.rate or progress.estimated_end is None:
        return ""
    time = shown_moment(progress.estimated_end, zone)
    return fill(_PACE, language, rate=f"{progress.rate:g}", time=time, workers=progress.workers)


def _bare(it: Standstill, language: str) -> str:
    """The detail without what the cause says already."""
    openings = ("It is paused: ", "It is paused.")
    detail = next((it.detail.removeprefix(o) for o in openings if it.detail.startswith(o)), it.detail)
    return translated(detail, language)


def fill(words: Mapping[str, str], language: str, **values: object) -> str:
    return Template(words[language]).safe_substitute({name: str(value) for name, value in values.items()})


def translated(text: str, language: str) -> str:
    """Our own sentences in the table's language; whatever else is in the text stays as it is."""
    return text if language == "en" else "\n".join(_in_russian(it, _OWN) for it in text.split("\n"))


def translated_warning(text: str, language: str) -> str:
    """The same for what is said about a page. Nobody but us says that, so short pieces are known, too."""
    return text if language == "en" else _in_russian(text, _OF_PAGES)


_Patterns = Sequence[tuple[re.Pattern[str], str]]


def _in_russian(text: str, patterns: _Patterns) -> str:
    for pattern, russian in patterns:
        if found := pattern.fullmatch(text[:_LONGEST]):
            values = {name: _in_russian(value, patterns) for name, value in found.groupdict().items()}
            return Template(russian).safe_substitute(values)
    return text


def _pattern(english: str) -> re.Pattern[str]:
    pieces = re.split(r"\$([a-z]+)", english)
    escaped = [f"(?P<{it}>.+?)" if number % 2 else re.escape(it) for number, it in enumerate(pieces)]
    return re.compile("".join(escaped), re.DOTALL)


SENTENCES: Sequence[tuple[str, str]] = (
    (
        "Sent as a test to $count addresses: the page is marked as a test.",
        "Отправлено как тест, адресов: $count. Статус снова «Черновик»: чтобы отправить всем, снимите "
        "«Тест» и поставьте «Готово к отправке».",
    ),
    (
        "The page is marked as a test, and TEST_EMAILS is not set: say who gets it.",
        "На странице отмечен «Тест», а TEST_EMAILS не задан: укажите, кому слать тестовые письма.",
    ),
    (
        "It was sent already, and a page is sent once. To send it again, duplicate the page.",
        "Письмо уже отправлено, а страница отправляется один раз. Чтобы отправить снова, сделайте её копию.",
    ),
    (
        "It has ended without success. To send it, duplicate the page.",
        "Рассылка закончилась без успеха. Чтобы отправить письмо, сделайте копию страницы.",
    ),
    (
        "The test mark was changed while the page was ready: nothing is sent. Set the status to ready again.",
        "«Тест» изменили, когда страница уже была готова: ничего не отправлено. Поставьте «Готово к "
        "отправке» ещё раз.",
    ),
    (
        "The page's status is «$status»: set it to ready, then send it again.",
        "Статус страницы — «$status»: поставьте «Готово к отправке» и отправьте снова.",
    ),
    (
        "There is no active subscriber to write to: 'sendonce subscribers import' adds some.",
        "Некому писать: нет ни одного активного подписчика. Их добавляет 'sendonce subscribers import'.",
    ),
    (
        "The page has no title and no subject: write one.",
        "У страницы нет ни названия, ни темы: напишите тему.",
    ),
    ("The page is in Notion's trash: restore it first.", "Страница в корзине Notion: сначала верните её."),
    (
        "The page is not in the table of letters (NOTION_LETTERS_ID): move it there.",
        "Страница не в таблице писем (NOTION_LETTERS_ID): перенесите её туда.",
    ),
    (
        "The letter has neither a word nor an image: write something below its subject.",
        "В письме нет ни слова, ни картинки: напишите что-нибудь на странице.",
    ),
    (
        "The subject has $count characters, and readers see the first 70 or so: make it shorter than $most.",
        "В теме $count знаков, а читатели видят первые 70 или около того: сделайте её короче $most.",
    ),
    (
        "The letter's HTML has $size KB, and Gmail hides what comes after 102 KB, the way out included: "
        "shorten it.",
        "HTML письма — $size КБ, а Gmail прячет всё после 102 КБ, вместе со ссылкой для отписки: сократите.",
    ),
    (
        "{{ $name }} has no value for $people active subscribers: give it a default, as in "
        '{{ $again | default: "…" }}.',
        "У {{ $name }} нет значения для стольких активных подписчиков: $people. Задайте запасное: "
        '{{ $name | default: "…" }}.',
    ),
    (
        "{{ email }} is not filled in: a letter may be forwarded, so the reader's address is not put into "
        "it. If you need it, import it a second time as a column of another name, and write that name.",
        "{{ email }} не подставляется: письмо могут переслать, поэтому адреса читателя в нём нет. Если он "
        "нужен, импортируйте его второй раз столбцом с другим именем и пишите это имя.",
    ),
    (
        "$where: $what is not a variable. Write {{ name }} or $rest",
        '$where: $what — не переменная. Пишите {{ name }} или {{ name | default: "друзья" }}.',
    ),
    (
        "Notion has nothing there, or it is not shared with the integration ($what). Open the page in "
        "Notion, ••• → Connections, and add the integration.",
        "В Notion там ничего нет, или страница не открыта для интеграции ($what). Откройте страницу в "
        "Notion, ••• → Connections, и добавьте интеграцию.",
    ),
    (
        "The status column $name in Notion has no option $option. Add it in Notion: Edit property, Options.",
        "В столбце статуса $name нет варианта $option. Добавьте его в Notion: Edit property, Options.",
    ),
    (
        "The time to send at, $time UTC, has passed: set another, or none, then send it again.",
        "Время отправки, $time UTC, уже прошло: поставьте другое или уберите его и отправьте снова.",
    ),
    (
        "The time to send at has no hour: $day. Add one in Notion: Include time.",
        "В поле «Отправить в» нет часа: $day. Добавьте его в Notion: Include time.",
    ),
    ("The provider refuses the sender: $reason", "Почтовый сервис отказывает отправителю: $reason"),
    ("The sender cannot send from here: $reason", "Отправить от имени этого отправителя нельзя: $reason"),
    ("A person holds the sender: $reason", "Отправитель остановлен вручную: $reason"),
    ("Its sender $name was removed, and its letters wait.", "Отправитель $name удалён, письма ждут."),
    (
        "The sender cannot send from here, so nothing was started. $reasons",
        "Отправить от имени этого отправителя нельзя, поэтому ничего не начато. $reasons",
    ),
    (
        "The sender $name was removed: add it again, or choose another one.",
        "Отправитель $name удалён: добавьте его снова или выберите другого.",
    ),
    (
        "$name is not set, and a sender's secret is to be found there. Set it.",
        "Переменная $name не задана, а в ней должен быть пароль отправителя. Задайте её.",
    ),
    (
        "The provider would refuse every letter, so nothing was started. $reasons",
        "Почтовый сервис отклонил бы каждое письмо, поэтому ничего не начато. $reasons",
    ),
    (
        "The account is in the SES sandbox: it may write to verified addresses only. SES console: Account "
        "dashboard, Request production access.",
        "Аккаунт в песочнице SES: писать можно только на подтверждённые адреса. Консоль SES: Account "
        "dashboard, Request production access.",
    ),
    (
        "Sending is paused for this account (status $status). SES console: Account dashboard, Reputation "
        "metrics tell why. Answer Amazon's case.",
        "Отправка с этого аккаунта приостановлена (статус $status). Причина — в консоли SES: Account "
        "dashboard, Reputation metrics. Ответьте на обращение Amazon.",
    ),
    (
        "SES may not send as $sender: $state in this region. SES console: Identities, Create identity, "
        "Domain; put its three CNAME records into your DNS.",
        "SES не может писать от имени $sender: адрес в этом регионе не подтверждён. Консоль SES: Identities, "
        "Create identity, Domain; внесите три записи CNAME в DNS.",
    ),
    (
        "The configuration set $name: $trouble. SES rejects all letters that name it. Correct "
        "SES_CONFIGURATION_SET, or make the set in this region.",
        "Набор настроек $name: $trouble. SES отклоняет все письма с ним. Исправьте SES_CONFIGURATION_SET "
        "или создайте набор в этом регионе.",
    ),
    ("the database was restored or copied", "база данных восстановлена из копии"),
    ("To go on: sendonce mailout resume $id", "Чтобы продолжить: sendonce mailout resume $id"),
    ("Run 'sendonce doctor': it says what to do.", "Запустите 'sendonce doctor': он скажет, что делать."),
    (
        "Mend the cause. To go on at once then: sendonce sender release $key",
        "Устраните причину. Чтобы продолжить сразу: sendonce sender release $key",
    ),
    (
        "See what your mail provider says about the account. Sending goes on by itself.",
        "Посмотрите, что почтовый сервис пишет об аккаунте. Отправка продолжится сама.",
    ),
    ("Set the clock of the worker's machine right.", "Поставьте часы на машине обработчика."),
    ("Start one: sendonce worker", "Запустите его: sendonce worker"),
    ("$count letters wait for another try: $why", "писем: $count. $why"),
    ("1 letter waits for another try: $why", "писем: 1. $why"),
    (
        "$name is not set, and letters that leave this machine need it: $why",
        "$name не задан, а без него писать нельзя: $why",
    ),
)
WARNINGS: Sequence[tuple[str, str]] = (
    ("Block $number ($kind), near “$near”: $what", "Блок $number ($kind), возле «$near»: $what"),
    ("Block $number ($kind): $what", "Блок $number ($kind): $what"),
    ("skipped (“$name”): $why.", "пропущен («$name»): $why."),
    ("skipped: $why.", "пропущен: $why."),
    (
        "a page of its own; link to it if it is public",
        "это отдельная страница; если она открыта, дайте ссылку",
    ),
    ("a database", "это база данных"),
    (
        "a link inside Notion; link to the page if it is public",
        "это ссылка внутри Notion; если страница открыта, дайте обычную ссылку",
    ),
    ("navigation of Notion", "это навигация Notion"),
    ("a button of Notion", "это кнопка Notion"),
    ("tabs, which need clicks", "это вкладки, а в письме их не переключить"),
    ("notes of a meeting", "это заметки встречи"),
    (
        "Notion does not tell what is in it; for a button, write a bold link alone in a paragraph",
        "Notion не говорит, что внутри; вместо кнопки сделайте абзац из одной жирной ссылки",
    ),
    ("a row outside of a table", "это строка вне таблицы"),
    ("a letter cannot hold it", "в письме такого быть не может"),
    ("its original could not be read", "его оригинал не прочитать"),
    ("$address is no address of an image", "$address — не адрес картинки"),
    ("$address is no address on the web", "$address — не адрес в интернете"),
    ("shown as a link: a letter cannot play it.", "показан ссылкой: в письме его не проиграть."),
    ("nested more than $most deep; shown flatter.", "вложен глубже $most уровней; показан площе."),
    (
        "the link to $address was left out: it leads nowhere outside Notion.",
        "ссылка на $address убрана: вне Notion она никуда не ведёт.",
    ),
    (
        "A synced block contains itself: the inner copy is left out.",
        "Синхронизированный блок содержит сам себя: внутренняя копия пропущена.",
    ),
    (
        "A synced block is left out: share the page of its original with the integration.",
        "Синхронизированный блок пропущен: откройте интеграции страницу с его оригиналом.",
    ),
    ("The image $name is left out: $why.", "Картинка $name пропущена: $why."),
    (
        "The image $name is WebP, which Outlook for Windows does not show: use PNG or JPEG.",
        "Картинка $name — WebP, Outlook для Windows его не показывает: возьмите PNG или JPEG.",
    ),
    (
        "The image $name is $size MB: readers on phones will wait for it.",
        "Картинка $name весит $size МБ: на телефоне её придётся ждать.",
    ),
    (
        "it is not a PNG, JPEG, GIF or WebP image. Put one of these instead",
        "это не PNG, JPEG, GIF и не WebP. Поставьте один из них",
    ),
    ("$size pixels are too many", "$size точек — слишком много"),
    ("it takes too long to come", "её слишком долго ждать"),
    ("$host is not on the public internet", "$host не в открытом интернете"),
    ("$host answered $status", "$host ответил $status"),
    ("$host cannot be reached", "$host недоступен"),
    ("$host has no good certificate", "у $host нет годного сертификата"),
    ("$host did not send it ($what)", "$host её не прислал ($what)"),
    ("there is no host $host", "нет такого сервера: $host"),
    ("it is larger than $size KB", "она больше $size КБ"),
    ("it came only in part", "она пришла не целиком"),
    ("its address does not begin with https://", "её адрес не начинается с https://"),
    (
        "its address does not begin with https://, or names a port",
        "её адрес не начинается с https:// или называет порт",
    ),
)
_OWN: _Patterns = tuple((_pattern(english), russian) for english, russian in SENTENCES)
_OF_PAGES: _Patterns = tuple((_pattern(english), russian) for english, russian in WARNINGS)
