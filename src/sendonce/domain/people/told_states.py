"""What a column of a list says of people: may they be written to?

Newsletter tools export the people who left beside those who stayed, and tell them apart by a column: a word
(``status: unsubscribed``), a flag (``email_disabled: true``) or a moment (``UNSUB_TIME``). A column is known
by its title, and each of its values is read once. What cannot be read is never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from sendonce.domain.people.suppressions import SuppressionReason


class Told(StrEnum):
    """What a list says of a person. The later one wins where two columns disagree."""

    ACTIVE = "active"
    UNCONFIRMED = "unconfirmed"  # never said yes: left out, and not suppressed
    BOUNCED = "bounced"
    UNSUBSCRIBED = "unsubscribed"
    COMPLAINED = "complained"


_GRAVITY = {told: number for number, told in enumerate(Told)}

REASONS = {
    Told.BOUNCED: SuppressionReason.BOUNCE,
    Told.UNSUBSCRIBED: SuppressionReason.UNSUBSCRIBED,
    Told.COMPLAINED: SuppressionReason.COMPLAINT,
}
"""The states that suppress, with the reason that stands in the suppression list."""


def gravest(told: Iterable[Told]) -> Told:
    return max(told, key=_GRAVITY.__getitem__, default=Told.ACTIVE)


class ColumnKind(Enum):
    """How the values of a column are to be read."""

    STATE = "a word for the state"
    OPTED_IN = "a flag, or the moment of joining"
    CONFIRMED = "a flag: whether they confirmed"
    OPTED_OUT = "a flag, or a moment or reason of leaving"
    BOUNCED = "a flag, or a moment or reason of a bounce"
    COMPLAINED = "a flag, or a moment of a complaint"
    LEFT = "a moment of leaving that everybody in the export has"
    LEFT_BOUNCED = "a moment of cleaning that everybody in the export has"
    # The title alone does not tell: the values must.
    MAYBE_STATE = "a state if one of the values denies, such as Buttondown's type"
    MAYBE_OPTED_IN = "a flag if all values are flags, such as newsletter: yes"
    MAYBE_REGION = "a state of a person, or of a country"


def folded(title: str) -> str:
    """Letters and digits only, so that «E-Mail», «e_mail» and « e mail » are one."""
    return re.sub(r"[\W_]+", "", title.casefold().replace("ё", "е"))


_STATES = frozenset(
    ("emailavailability", "availability", "доступность", "доступностьemail", "состояние", "subscription")
)
_OPTED_IN = frozenset(
    (
        *("subscribed", "issubscribed", "subscribedtoemails", "subscribedtoemail", "emailsubscribed"),
        *("active", "isactive", "enabled", "isenabled", "emailenabled", "optin", "optedin", "isoptedin"),
        *("emailoptin", "emailoptedin", "acceptsmarketing", "acceptsemailmarketing", "acceptsemails"),
        *("emailmarketingconsent", "marketingoptin", "receiveemails", "receivesemails"),
        *("подписан", "подписана", "активен", "активна", "активный", "согласиенарассылку"),
    )
)
_CONFIRMED = frozenset(("confirmed", "isconfirmed", "emailconfirmed", "подтвержден", "подтверждена"))
_MAYBE = {
    "type": ColumnKind.MAYBE_STATE,
    "subscribertype": ColumnKind.MAYBE_STATE,
    "тип": ColumnKind.MAYBE_STATE,
    "state": ColumnKind.MAYBE_REGION,
    **dict.fromkeys(
        (
            "subscriber",
            "newsletter",
            "marketing",
            "consent",
            "permission",
            "gdpr",
            "mailing",
            "рассылка",
            "согласие",
        ),
        ColumnKind.MAYBE_OPTED_IN,
    ),
}
# Links to leave by, other channels, and what only sounds alike: Substack's active_subscription is who pays.
_NO_STATE = re.compile(
    "url|link|token|href|ссылк|sms|whatsapp|viber|push|phone|телефон|soft"
    "|activesubscription|subscriptionplan|subscriptiontier|subscriptionsource|subscribersince|subscriberid"
    "|doubleoptin|estate$|^(subscriber|contact|user)(name|e?mail|emailaddress|address)$|(?<!black)(?<!block)lists?$"
    "|(marital|civil|family|payment|order|shipping|delivery|employment|invoice|семейн|оплат|заказ).*(stat|стат)"
    "|(count|rate|score|rating|number)$"
)
# When somebody joined or when the state changed says nothing against anybody.
_MOMENT_OF_JOINING = re.compile(
    "(subscri|optin|optedin|confirm|signup|joined|подпис|status|state|статус).*(at|edon|date|times?|ip|дата|время)$"
    "|^(date|дата|time|время).*(subscri|optin|confirm|подпис|status|статус)"
)
_LEAVING = re.compile(
    "unsub|optout|optedout|optsout|blacklist|blocklist|suppress|donot(e?mail|contact)|отпис|черныйспис|стопспис"
    "|^(is|was|email|user)?(disabled|blocked|banned|removed|deleted|archived|отключен|удален)(at|on|date|time)?$"
    "|^(date|дата)?(removal|deletion|удаления|отключения)(date|reason)?$|^дата(отписки|удаления)$"
)
_KIND_OF_LEAVING = re.compile("(status|state|type|code|статус|тип)$")
_BOUNCING = re.compile("bounce|undeliver|^cleaned|^cleancampaign|недостав|возврат")
_COMPLAINING = re.compile("complain|spamreport|reportedspam|markedasspam|^spam$|^(is)?abuse|жалоб|^спам$")
_STATE_LIKE = re.compile("status|статус|состояни|subscri|подпис|optin|optedin|state$")


def kind_of(title: str) -> ColumnKind | None:
    """How a column of this title is read; None where it tells no state."""
    name = folded(title)
    if not name or _NO_STATE.search(name):
        return None
    if name in ("unsubtime", "cleantime"):  # Mailchimp's exports of who unsubscribed and who was cleaned
        return ColumnKind.LEFT if name == "unsubtime" else ColumnKind.LEFT_BOUNCED
    if _LEAVING.search(name):
        return ColumnKind.STATE if _KIND_OF_LEAVING.search(name) else ColumnKind.OPTED_OUT
    if _BOUNCING.search(name):
        return ColumnKind.BOUNCED
    if _COMPLAINING.search(name):
        return ColumnKind.COMPLAINED
    if name in _CONFIRMED:
        return ColumnKind.CONFIRMED
    if name in _OPTED_IN or name.endswith(("optin", "optedin")):
        return ColumnKind.OPTED_IN
    if name in _MAYBE:
        return _MAYBE[name]
    if _MOMENT_OF_JOINING.search(name):
        return None
    return ColumnKind.STATE if name in _STATES or _STATE_LIKE.search(name) else None


_REASON_OF_LEAVING = re.compile("reason|comment|cause|campaign|причин|коммент")


def kinds_of(titles: Mapping[int, str]) -> dict[int, ColumnKind]:
    """The columns that tell a state, by their place.

    Where reasons of leaving are all that a file tells, it is a list of people who left: then a line without a
    reason cannot be told from any other.
    """
    kinds = {place: kind for place, title in titles.items() if (kind := kind_of(title))}
    reasons = [place for place in kinds if _REASON_OF_LEAVING.search(folded(titles[place]))]
    if kinds and len(reasons) == len(kinds):
        alone = {ColumnKind.OPTED_OUT: ColumnKind.LEFT, ColumnKind.BOUNCED: ColumnKind.LEFT_BOUNCED}
        kinds[reasons[0]] = alone.get(kinds[reasons[0]], kinds[reasons[0]])
    return kinds


_WORDS: dict[str, Told] = {
    **dict.fromkeys(
        (
            *(
                "active",
                "subscribed",
                "subscriber",
                "enabled",
                "confirmed",
                "optin",
                "optedin",
                "singleoptin",
            ),
            *("doubleoptin", "regular", "premium", "gifted", "trialed", "trialing", "pastdue", "churning"),
            *("free", "paid", "comped", "valid", "verified", "available", "reachable", "new", "normal", "ok"),
            # UniSender: what may pass, and what the receiver put aside.
            *("tempunreachable", "mailboxfull", "spamrejected", "spamfolder", "soft", "softbounce"),
            *("softbounced", "transient", "подписан", "подписана", "подписался", "подписалась", "активен"),
            *("активна", "активный", "активная", "действующий", "новый", "доступен", "доступна"),
        ),
        Told.ACTIVE,
    ),
    **dict.fromkeys(
        (
            *("unconfirmed", "notconfirmed", "unactivated", "pending", "waiting", "awaiting", "invited"),
            *("activationrequested", "confirmationpending", "неподтвержден", "неподтвержденный", "ожидает"),
            *("неподтверждён", "приглашен", "ожидаетподтверждения"),
        ),
        Told.UNCONFIRMED,
    ),
    **dict.fromkeys(
        (
            *("cleaned", "undeliverable", "invalid", "unreachable", "nonexistent", "notexist", "notexists"),
            *(
                "hard",
                "permanent",
                "недоступен",
                "недоступна",
                "несуществует",
                "невалидный",
                "недействителен",
            ),
            *("ошибка", "error", "failed"),
        ),
        Told.BOUNCED,
    ),
    **dict.fromkeys(
        (
            *("disabled", "inactive", "blocked", "removed", "deleted", "archived", "banned", "suppressed"),
            *("cancelled", "canceled", "left", "optout", "optedout", "notsubscribed", "nonsubscribed"),
            *("donotemail", "donotcontact", "отключен", "отключена", "отключён", "заблокирован", "удален"),
            *("неактивен", "неактивна", "неактивный", "неактивная", "заблокирована", "неподписан"),
        ),
        Told.UNSUBSCRIBED,
    ),
    **dict.fromkeys(("junk", "спам", "пожаловался", "пожаловалась"), Told.COMPLAINED),
}
# Words that begin so go on in many ways: «Отписался от всех рассылок», "unsubscribed by admin".
_BEGINNINGS = (
    (re.compile("unsub|optout|optedout|blocklist|blacklist|отпис|черныйспис"), Told.UNSUBSCRIBED),
    (re.compile("bounc|hardbounc"), Told.BOUNCED),
    (re.compile("complain|spam|abuse|жалоб"), Told.COMPLAINED),
)
_YES = frozenset(("1", "true", "t", "yes", "y", "on", "x", "да", "истина", "+", "✓", "✔", "wahr", "ja"))
_NO = frozenset(
    (
        *(
            "",
            "0",
            "false",
            "f",
            "no",
            "n",
            "off",
            "нет",
            "ложь",
            "-",
            "—",
            "null",
            "none",
            "nan",
            "n/a",
            "never",
        ),
        *("falsch", "nein", "faux", "non", "falso", "não"),
    )
)
_NEVER = re.compile(r"0{4}-00-00.*")
_SMALL_NUMBER = re.compile(r"\d{1,3}")
_YEAR = re.compile(r"(?<!\d)(19|20)\d\d(?!\d)")
_GRANTED_BY = {ColumnKind.OPTED_IN: Told.UNSUBSCRIBED, ColumnKind.CONFIRMED: Told.UNCONFIRMED}
_DENIED_BY = {
    ColumnKind.OPTED_OUT: Told.UNSUBSCRIBED,
    ColumnKind.LEFT: Told.UNSUBSCRIBED,
    ColumnKind.BOUNCED: Told.BOUNCED,
    ColumnKind.LEFT_BOUNCED: Told.BOUNCED,
    ColumnKind.COMPLAINED: Told.COMPLAINED,
}


def read_word(value: str) -> Told | None:
    """A word for a state, in English or Russian; None for any other."""
    word = folded(value)
    known = _WORDS.get(word)
    if known is not None:
        return known
    return next((told for beginning, told in _BEGINNINGS if beginning.match(word)), None)


def read_value(kind: ColumnKind, value: str) -> Told | None:
    """What one value of a column says; None where nobody can tell."""
    plain = value.strip().casefold()
    if kind in _GRANTED_BY:
        return _read_yes(plain, _GRANTED_BY[kind])
    denied = _DENIED_BY.get(kind)
    if denied is None:
        return read_word(plain)
    if plain in _NO or _NEVER.fullmatch(plain):
        return None if kind in (ColumnKind.LEFT, ColumnKind.LEFT_BOUNCED) else Told.ACTIVE
    if plain in _YES:
        return denied
    if denied != Told.UNSUBSCRIBED and _SMALL_NUMBER.fullmatch(plain):
        return None  # a count: three bounces of which kind?
    # Any other text is a moment, a reason or a letter: whoever has one has left.
    return read_word(plain) or denied


def _read_yes(plain: str, otherwise: Told) -> Told | None:
    if plain in _YES:
        return Told.ACTIVE
    if plain and plain in _NO:
        return otherwise
    known = read_word(plain)
    if known is None and _YEAR.search(plain):
        return Told.ACTIVE  # the moment of joining
    return known


def settled_kind(kind: ColumnKind, values: Collection[str], *, beside_places: bool) -> ColumnKind | None:
    """What a column is after a look at its values. ``beside_places``: the file has towns or countries too."""
    given = [value for value in values if value.strip()]
    words = [read_word(value) for value in given]
    if kind == ColumnKind.MAYBE_OPTED_IN:
        flags = all(value.strip().casefold() in _YES | _NO for value in given)
        return ColumnKind.OPTED_IN if given and flags else None
    if kind == ColumnKind.MAYBE_STATE:
        return ColumnKind.STATE if any(word not in (None, Told.ACTIVE) for word in words) else None
    if kind == ColumnKind.MAYBE_REGION:
        codes = all(re.fullmatch("[A-Z]{2,3}", value.strip()) for value in given)
        region = not any(words) and (beside_places or codes)
        return None if region else ColumnKind.STATE
    return kind


_PLACES = frozenset(
    (
        "city",
        "town",
        "zip",
        "zipcode",
        "postcode",
        "postalcode",
        "country",
        "street",
        "address",
        "город",
        "страна",
    )
)


def names_places(titles: Iterable[str]) -> bool:
    return any(folded(title) in _PLACES for title in titles)


# Mailchimp's export has a file of people who never signed up, such as buyers: nonsubscribed_….csv.
_NAME_OF_PEOPLE_TO_SPARE = re.compile(
    "unsub|opt-?_?out|cleaned|bounce|blacklist|blocklist|suppress|complain|отпис|чёрный|черный"
    "|no[nt][-_ ]?subscri|unconfirm|not[-_ ]?confirm|неподтвержд",
    re.IGNORECASE,
)


def names_people_to_spare(file_name: str) -> bool:
    """Whether a file is named like people who left or never joined: unsubscribed_members.csv."""
    return _NAME_OF_PEOPLE_TO_SPARE.search(file_name) is not None


@dataclass(frozen=True, slots=True)
class StateRules:
    """What the importing person says about the states in a file.

    ``values`` is what a value means, in lower case. ``everybody`` is what the file as a whole says.
    """

    columns: tuple[str, ...] = ()
    values: Mapping[str, Told] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    everybody: Told | None = None

    def read(self, kind: ColumnKind, value: str) -> Told | None:
        chosen = self.values.get(value.strip().casefold())
        return chosen if chosen is not None else read_value(kind, value)
