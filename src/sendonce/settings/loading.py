"""Reading the environment: the process's own, and the file ``.env``. Nobody else does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sendonce.domain.engine.hosts import is_loopback, is_loopback_url
from sendonce.domain.engine.sender_identities import may_hold_a_secret
from sendonce.errors import BadSetting
from sendonce.settings.kinds import Declaration, Unfit, display
from sendonce.settings.table import DECLARED, Settings

if TYPE_CHECKING:
    from dotenv.parser import Original


class _Found(NamedTuple):
    declared: Declaration
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class _Given:
    """What the two sources say."""

    process: Mapping[str, str]
    dotenv: Mapping[str, str]

    def find(self, name: str) -> _Found:
        """What is given for a variable, or for its fallback. An empty one in the process hides .env."""
        declared = DECLARED[name]
        if name in self.process:
            text, source = self.process[name], "environment"
        else:
            text, source = self.dotenv.get(name, ""), ".env"
        if text.strip():
            return _Found(declared, text, source)
        return self.find(declared.fallback) if declared.fallback else _Found(declared, "", "default")

    def sender_secrets(self) -> dict[str, str]:
        both = {**self.dotenv, **self.process}
        return {name: text for name, text in both.items() if may_hold_a_secret(name) and text}


def load_settings(environ: Mapping[str, str] | None = None, dotenv: Path | None = Path(".env")) -> Settings:
    """The settings in force, or BadSetting with everything that is wrong, one problem a line."""
    given = _Given(os.environ if environ is None else environ, _read_dotenv(dotenv))
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    problems: list[str] = []
    for name, declared in DECLARED.items():
        found = given.find(name)
        sources[name] = found.source
        try:
            values[name] = _parse(found) if found.text else declared.default
        except BadSetting as problem:
            values[name] = declared.default
            problems.append(str(problem))
    problems += _contradictions(values, given)
    if problems:
        raise BadSetting("\n".join(dict.fromkeys(problems)))  # a fallback's problem comes up twice
    _work_out_defaults(values, given)
    return Settings(
        **{name.lower(): value for name, value in values.items()},
        sources=sources,
        sender_secrets=given.sender_secrets(),
        unknown_in_dotenv=tuple(
            sorted(it for it in given.dotenv.keys() - DECLARED.keys() if not may_hold_a_secret(it))
        ),
    )


def _read_dotenv(path: Path | None) -> dict[str, str]:
    """The variables of the file; none if there is no file. ``$`` is an ordinary character in it."""
    if path is None:
        return {}
    if path.is_dir():
        raise BadSetting(f"{path} is a folder. Make it a file with lines like NAME=value.")
    if not path.is_file():
        return {}
    from dotenv.parser import parse_stream

    try:
        with path.open(encoding="utf-8") as stream:
            found = list(parse_stream(stream))
    except (OSError, UnicodeDecodeError) as exc:
        problem = f"{path} cannot be read ({type(exc).__name__}). Make it a readable UTF-8 file."
        raise BadSetting(problem) from exc
    # The line itself is not shown: it may be half of a secret.
    unread = [
        f"Line {_line(it.original)} of {path} must be like NAME=value. Mend it, or put # before it."
        for it in found
        if it.error or (it.key is not None and it.value is None)
    ]
    if unread:
        raise BadSetting("\n".join(unread))
    return {it.key: it.value or "" for it in found if it.key is not None}


def _line(original: Original) -> int:
    """The parser counts from the empty lines before."""
    text = original.string
    return original.line + text[: len(text) - len(text.lstrip())].count("\n")


def _parse(found: _Found) -> Any:
    it = found.declared
    try:
        return it.kind.parse(found.text if it.secret else found.text.strip())
    except ValueError as exc:
        why = str(exc) if isinstance(exc, Unfit) else f"it must be {it.kind.must}"
        shown = "not usable" if it.secret else repr(it.kind.shown(found.text)[:80])
        example = it.example or display(it.default)
        fix = f" Set it, e.g., {it.name}={example}." if example else ""
        # The cause is left out on purpose: its message holds the value.
        raise BadSetting(f"{it.name} is {shown}: {why}.{fix}") from None


def _contradictions(values: Mapping[str, Any], given: _Given) -> list[str]:
    """Settings that are fine one by one, but not together."""
    found = []
    if values["SUPABASE_URL"] and not given.find("DATABASE_URL").text:
        found.append(
            "SUPABASE_URL is set and DATABASE_URL is not: Supabase is reached as PostgreSQL. Set DATABASE_URL"
            " to its connection string (Supabase: Connect, Transaction pooler), e.g., DATABASE_URL="
            "postgresql://postgres.abcdefgh:password@aws-0-eu-central-1.pooler.supabase.com:6543/postgres."
        )
    if not values["TRANSPORT"] and values["SES_FROM_EMAIL"] and values["SMTP_HOST"]:
        found.append(
            "SES_FROM_EMAIL and SMTP_HOST are both set and TRANSPORT is not: say which way letters leave."
            " Set TRANSPORT=ses or TRANSPORT=smtp."
        )
    if bool(values["AWS_ACCESS_KEY_ID"]) != bool(values["AWS_SECRET_ACCESS_KEY"]):
        found.append(
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together and one of them is not set."
            " Set both, or neither to use a profile or a role."
        )
    return found + _half_a_rehearsal(values)


def _half_a_rehearsal(values: Mapping[str, Any]) -> list[str]:
    """Companies of a stand-in are made up: no real letter may leave for them, nor a real search be paid."""
    if not values["WEB_STAND_IN"]:
        return []
    real = [
        endpoint
        for given, endpoint, is_here in (
            ("SES_FROM_EMAIL", "AWS_ENDPOINT_URL_SESV2", is_loopback_url),
            ("SMTP_HOST", "SMTP_HOST", is_loopback),
            ("YANDEX_CLOUD_FOLDER_ID", "YANDEX_SEARCH_URL", is_loopback_url),
        )
        if values[given] and not is_here(values[endpoint])
    ]
    return [
        f"WEB_STAND_IN plays the web, and {name} is not on this machine. Set it to the sandbox's, e.g., "
        f"{name}={DECLARED[name].example or 'http://127.0.0.1:4580'}, or leave WEB_STAND_IN empty."
        for name in real
    ]


def _work_out_defaults(values: dict[str, Any], given: _Given) -> None:
    """The defaults that depend on other settings, or on where we are."""
    if not values["TRANSPORT"]:
        values["TRANSPORT"] = (
            "ses" if values["SES_FROM_EMAIL"] else "smtp" if values["SMTP_HOST"] else "maildir"
        )
    if not values["APP_BASE_URL"]:
        values["APP_BASE_URL"] = f"http://127.0.0.1:{values['PORT']}"
    if not values["SMTP_SECURITY"]:
        values["SMTP_SECURITY"] = usual_security(values["SMTP_HOST"], values["SMTP_PORT"])
    if not values["IMAP_SECURITY"]:
        values["IMAP_SECURITY"] = usual_security(values["IMAP_HOST"], values["IMAP_PORT"])
    if not given.find("STATE_DIR").text:
        # The XDG specification: a relative path in the variable is to be ignored.
        xdg = Path(given.process.get("XDG_STATE_HOME", ""))
        home = Path(given.process.get("HOME") or Path.home())
        values["STATE_DIR"] = (xdg if xdg.is_absolute() else home / ".local" / "state") / "sendonce"


def usual_security(host: str, port: int) -> str:
    """How a connection to such a mail server is protected."""
    if port in (465, 993):
        return "tls"
    return "plain" if is_loopback(host) else "starttls"
