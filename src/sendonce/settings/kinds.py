"""How a setting is declared, and the kinds of values it can have: how each is read, checked and shown.

Pure functions over text. A parser raises ValueError for a value it does not take, and ``Unfit`` where it
can say more than the kind's general ``must``. Messages of other ValueErrors are never shown: Python puts
the value into them, and the value may hold a password.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import unquote, urlsplit

from sendonce.domain.engine.hosts import is_loopback
from sendonce.domain.prospecting.nights import SHORTEST, read_hours

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

MASK = "••••"

# Half surrogates are what Python makes of bytes in the environment that are not UTF-8.
_UNFIT_FOR_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?|[0-9A-Fa-f:.]+")
_TOPIC_ARN = re.compile(r"arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}")
_AFTER_SCHEME = re.compile(
    r"([^@/?#]*@)?(\[[0-9A-Fa-f:.]+\]|[^@/?#:\[\]]*)(:[0-9]{1,5})?(/[^@#?]*)?(\?[^#]*)?"
)
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}")
_BUCKET = re.compile(r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](?:/[A-Za-z0-9!_.*'()/-]*)?")
_TRUE, _FALSE = {"true", "1", "yes", "on"}, {"false", "0", "no", "off"}
# The greedy password takes an unescaped "@" with it: people paste passwords as they are.
_USERINFO = re.compile(r"(//)([^:@/]*):(.+)@")
_USERINFO_WITHOUT_SCHEME = re.compile(r"(^)([^:@/]*):(.+)@")
_QUERY_PASSWORD = re.compile(r"([?&][^=&]*password=)[^&]*", re.IGNORECASE)
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")


class Unfit(ValueError):
    """Its message says what is wrong, without the value."""


def mask_password(address: str) -> str:
    """The same address with its password hidden, also where the address is malformed."""
    masked, hidden = _USERINFO.subn(rf"\1\2:{MASK}@", address)
    if not hidden:
        masked = _USERINFO_WITHOUT_SCHEME.sub(rf"\1\2:{MASK}@", address)
    return _QUERY_PASSWORD.sub(rf"\1{MASK}", masked)


@dataclass(frozen=True, slots=True)
class Kind(Generic[T_co]):
    """``must`` completes the sentence "it must be …"; ``shown`` hides what nobody should read."""

    parse: Callable[[str], T_co]
    must: str
    shown: Callable[[str], str] = str


def passwords_in(address: str) -> list[str]:
    """The passwords of a URL, as written and percent-decoded: either may turn up in a log.

    libpq also takes them from the query: ``?password=`` and, of a client's key, ``sslpassword=``.
    """
    parts = urlsplit(address)
    pairs = (pair.partition("=") for pair in parts.query.split("&"))
    written = {
        parts.password or "",
        *(value for name, _, value in pairs if name.lower().endswith("password")),
    }
    return sorted((written | set(map(unquote, written))) - {""})


def display(value: object) -> str:
    """A parsed value as one would write it in ``.env``."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    if isinstance(value, float):
        return f"{value:.15g}"
    return str(value)


def _line(value: str) -> str:
    if _UNFIT_FOR_A_LINE.search(value):
        raise Unfit("it must be one line without control characters")
    return value


def _secret(value: str) -> str:
    # `export X="$(cat file)"` drops the last newline, secret managers and editors keep it.
    return _line(value.rstrip("\r\n"))


def _json_object(value: str) -> str:
    if not isinstance(json.loads(value), dict):
        raise ValueError
    return value


def _email(value: str) -> str:
    local, _, domain = value.partition("@")
    if not local or not domain or "@" in domain or any(c.isspace() or c in "<>,;" for c in value):
        raise ValueError
    return _line(value)


def _mailbox(value: str) -> str:
    """``news@example.com``, or ``The Bakery <news@example.com>`` with the name in quotes or without."""
    name, address = split_mailbox(_line(value))
    if any(c in name for c in '<>"@'):
        raise ValueError
    return f"{name} <{_email(address)}>" if name else _email(address)


def split_mailbox(value: str) -> tuple[str, str]:
    """The name, which may be empty, and the address."""
    if not value.endswith(">"):
        return "", value
    name, _, address = value[:-1].rpartition("<")
    return " ".join(name.strip().strip('"').split()), address.strip()


def _host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError
    return value


def _name_server(value: str) -> str:
    address, _, port = value.rpartition(":")
    if not re.fullmatch(r"[0-9]{1,5}", port) or not 0 < int(port) <= 65535:
        raise ValueError
    return f"{ip_address(address.strip('[]'))}:{port}"


def _url(value: str) -> str:
    parts = urlsplit(_line(value))
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in value:
        raise ValueError
    if parts.username is not None or parts.query or parts.fragment or parts.port == 0:
        raise Unfit("it must not carry a user name, a password, a query or a fragment")
    return value.rstrip("/")


def _loopback_url(value: str) -> str:
    if not is_loopback(urlsplit(_url(value)).hostname or ""):
        raise Unfit("it must be on this machine: the whole web would be asked of it")
    return _url(value)


def _database_url(value: str) -> str:
    scheme, _, rest = _line(value).partition("://")
    if scheme in ("sqlite", "sqlite+pysqlite"):
        return f"sqlite://{_sqlite_file(rest)}"
    if scheme not in ("postgres", "postgresql", "postgresql+psycopg"):
        raise ValueError
    if not _AFTER_SCHEME.fullmatch(rest):
        raise Unfit("a password in it must be percent-encoded (@ is %40, # is %23, / is %2F)")
    return f"postgresql+psycopg://{rest}"


def _identifier(value: str) -> str:
    if not _IDENTIFIER.fullmatch(value):
        raise ValueError
    return value


def _sqlite_file(rest: str) -> str:
    file = rest.partition("?")[0]
    if not file.startswith("/") or file.endswith("/"):
        raise ValueError
    if file == "/:memory:":
        raise Unfit("the ledger must outlive the process, so it must be a file")
    return rest


def _week_days(value: str) -> str:
    found = re.fullmatch(r"([1-7])(?:-([1-7]))?", value.replace(" ", ""))
    if found is None or (found[2] and found[2] < found[1]):
        raise ValueError
    return found[0]


def _hours(value: str) -> str:
    """``09:00-18:00``; an hour alone is a full one."""
    found = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{2}))? ?[-–] ?([0-9]{1,2})(?::([0-9]{2}))?", value)
    if not found:
        raise ValueError
    opens, closes = (int(found[1]), int(found[2] or 0)), (int(found[3]), int(found[4] or 0))
    if not (0, 0) <= opens < closes <= (23, 59) or max(opens[1], closes[1]) > 59:
        raise Unfit("it must end later than it begins, and by 23:59")
    return f"{opens[0]:02}:{opens[1]:02}-{closes[0]:02}:{closes[1]:02}"


def _time_zone(value: str) -> str:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(value).key
    except (ZoneInfoNotFoundError, OSError) as exc:
        raise ValueError from exc


def _path(value: str) -> Path:
    try:
        return Path(_line(value)).expanduser()
    except RuntimeError as exc:
        raise Unfit("its ~user is not known on this machine") from exc


def _topic_arn(value: str) -> str:
    if not _TOPIC_ARN.fullmatch(value):
        raise ValueError
    return value


def _region(value: str) -> str:
    if not _REGION.fullmatch(value):
        raise ValueError
    return value


def _archive(value: str) -> str:
    if not value.startswith("s3://"):
        return str(_path(value))
    if not _BUCKET.fullmatch(value):
        raise ValueError
    return value


def _flag(value: str) -> bool:
    if value.lower() not in _TRUE | _FALSE:
        raise ValueError
    return value.lower() in _TRUE


def whole(at_least: int, at_most: int | None = None) -> Kind[int]:
    def parse(value: str) -> int:
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", value):
            raise ValueError
        number = int(value)
        if number < at_least or (at_most is not None and number > at_most):
            raise ValueError
        return number

    limits = f"of at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    return Kind(parse, f"a whole number {limits}")


def seconds(*, zero: bool) -> Kind[float]:
    def parse(value: str) -> float:
        number = float(value)
        if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
            raise ValueError
        return number

    return Kind(parse, "a number of seconds, 0 or more" if zero else "a number of seconds above 0")


def number(at_least: float, at_most: float = math.inf) -> Kind[float]:
    def parse(value: str) -> float:
        found = float(value)
        if not math.isfinite(found) or not at_least <= found <= at_most:
            raise ValueError
        return found

    limits = f"from {at_least:g} to {at_most:g}" if math.isfinite(at_most) else f"of at least {at_least:g}"
    return Kind(parse, f"a number {limits}")


def choice(*names: str, **aliases: str) -> Kind[str]:
    """One of ``names`` in any case; ``aliases`` are other words for them."""

    def parse(value: str) -> str:
        name = aliases.get(value.lower(), value.lower())
        if name not in names:
            raise ValueError
        return name

    return Kind(parse, "one of " + ", ".join(names))


def several(kind: Kind[T]) -> Kind[tuple[T, ...]]:
    """A comma-separated list, each item of ``kind``."""

    def parse(value: str) -> tuple[T, ...]:
        return tuple(kind.parse(item.strip()) for item in value.split(",") if item.strip())

    return Kind(parse, f"a comma-separated list, each item {kind.must}")


text = Kind(_line, "one line of text")
secret_text = Kind(_secret, "one line of text")
json_object = Kind(_json_object, "a JSON object")
email = Kind(_email, "a bare e-mail address, without a name")
mailbox = Kind(_mailbox, "an e-mail address, or a name and an address as in The Bakery <news@example.com>")
host = Kind(_host, "a host name or an IP address")
name_server = Kind(_name_server, "an IP address and a port")
url = Kind(_url, "an http:// or https:// address with a host", mask_password)
loopback_url = Kind(_loopback_url, "an http:// address on this machine, such as 127.0.0.1", mask_password)
path = Kind(_path, "a path")
database_url = Kind(
    _database_url,
    "sqlite:///file.db, sqlite:////absolute/file.db or postgresql://user:password@host:5432/name",
    mask_password,
)
database_schema = Kind(_identifier, "a plain name: lower-case letters, digits and underscores")
time_zone = Kind(_time_zone, "a name from the tz database")
topic_arn = Kind(_topic_arn, "an SNS topic ARN")
region = Kind(_region, "the name of an AWS region")
archive = Kind(_archive, "a directory, or s3://bucket/prefix")
week_days = Kind(_week_days, "days of a week, such as 1-5 for Monday to Friday")
hours = Kind(_hours, "hours of a day, such as 09:00-18:00")
night = Kind(read_hours, f"hours such as 00:00-07:59, {SHORTEST} minutes or more")
flag = Kind(_flag, "true or false")
presence = Kind(lambda _: True, "any text")
port = whole(0, 65535)


@dataclass(frozen=True, slots=True)
class Declaration:
    """What is known of a setting before anybody sets it.

    ``otherwise`` puts a default that depends on other settings into words; ``fallback`` names the
    variable whose value holds where this one is not set.
    """

    name: str
    group: str
    kind: Kind[Any]
    default: Any
    help: str
    example: str = ""
    otherwise: str = ""
    fallback: str = ""
    secret: bool = False

    def show(self, value: object) -> str:
        if self.secret:
            return MASK if value else ""
        return self.kind.shown(display(value))


@dataclass(frozen=True, slots=True)
class SettingView:
    """A setting in force, fit to be shown: secrets are masked, an unset one is empty."""

    name: str
    value_shown: str
    source: str  # "environment", ".env" or "default"
    secret: bool
    group: str
    help: str


def setting(group: str, kind: Kind[T], default: T, help: str, example: str = "", **more: str) -> T:
    """Declare a setting; ``more`` may give ``otherwise`` and ``fallback``."""
    details = {"group": group, "kind": kind, "help": help, "example": example, **more}
    declared: T = field(default=default, metadata=details)
    return declared


def secret(group: str, help: str, kind: Kind[str] = secret_text, **more: str) -> str:
    """Declare a setting whose value nobody gets to see; ``more`` may give ``fallback``."""
    details = {"group": group, "kind": kind, "help": help, "secret": True, **more}
    declared: str = field(default="", metadata=details)
    return declared


def secret_list(group: str, help: str) -> tuple[str, ...]:
    """Declare a list of such values."""
    details = {"group": group, "kind": several(secret_text), "help": help, "secret": True}
    declared: tuple[str, ...] = field(default=(), metadata=details)
    return declared
