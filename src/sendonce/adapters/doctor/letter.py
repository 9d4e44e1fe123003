"""The letter: built once as a recipient would get it, and read again with a stranger's eyes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from sendonce.adapters.doctor.audience import Audience, Sample
from sendonce.adapters.doctor.letter_links import links_check
from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.checks import Check, count_of, ok, stop, warning
from sendonce.domain.letters import Letter, MessageSettings, unsubscribe_prefix
from sendonce.domain.mailouts import Mailout, MailoutStatus
from sendonce.domain.message import CompiledLetter, compile_letter
from sendonce.domain.rendering import GMAIL_CUTS_AT
from sendonce.domain.tokens import read_token
from sendonce.errors import BadInput, BadSetting
from sendonce.ports import Store

_JOB = "01900000-0000-7000-8000-000000000000"
_SAMPLE = Letter("A letter of the doctor", "", "<p>Good day</p>", "Good day")
_SIZE_WARNS = 90_000
_ONE_CLICK = "List-Unsubscribe=One-Click"


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is looked at: a mailout and its letter, or a sample where no mailout was named."""

    letter: Letter
    mailout: Mailout | None


class LetterProbe:
    """``leaves``: letters leave this machine, so a link to it leads nowhere."""

    name = "letter"

    def __init__(
        self,
        door: StoreDoor,
        audience: Audience,
        message_settings: Callable[[], MessageSettings],
        mailout_id: str | None,
        *,
        leaves: bool,
    ) -> None:
        self._door = door
        self._audience = audience
        self._message_settings = message_settings
        self._mailout_id = mailout_id
        self._leaves = leaves

    async def examine(self) -> Sequence[Check]:
        try:
            settings = self._message_settings()
        except BadSetting:
            return []  # the probe of the settings tells which
        store = await self._door.get_or_none()
        if store is None:
            return []
        subject = await in_own_thread(lambda: self._find(store))
        if subject is None:
            what = f"There is no mailout {self._mailout_id}."
            return [stop("mailout", what, "'sendonce mailout list' shows what there is.")]
        checks = [_status(subject.mailout)] if subject.mailout else []
        try:
            compiled = compile_letter(subject.letter, settings, self._mailout_id or "doctor")
            message = _built(compiled, settings)
        except BadInput as exc:
            return [*checks, stop("letter", str(exc), "Correct the letter and create the mailout anew.")]
        checks.append(unsubscribe_check(message, settings, leaves=self._leaves))
        if subject.mailout is not None:
            checks += [size_check(message), text_check(message)]
            checks.append(links_check(subject.letter.html, settings.base_url, leaves=self._leaves))
            checks += await self._variables(compiled)
        return checks

    def _find(self, store: Store) -> _Subject | None:
        if self._mailout_id is None:
            return _Subject(_SAMPLE, None)
        mailout = store.mailouts.get(self._mailout_id)
        return _Subject(store.mailouts.letter(mailout.id), mailout) if mailout else None

    async def _variables(self, compiled: CompiledLetter) -> list[Check]:
        sample = await self._audience.sample()
        if sample is None or not sample.people:
            return []
        return [await in_own_thread(lambda: variables_check(compiled, sample))]


def _status(mailout: Mailout) -> Check:
    name = f"Mailout {mailout.id} «{mailout.name}»"
    match mailout.status:
        case MailoutStatus.READY:
            return ok("mailout", f"{name} is ready.")
        case MailoutStatus.SENDING:
            return warning(
                "mailout", f"{name} is being sent already.", "'sendonce mailout status' shows how far."
            )
        case MailoutStatus.DRAFT:
            return stop("mailout", f"{name} is a draft.", "Create it anew without --draft.")
        case _:
            fix = "A mailout goes out once. Create another to send the letter again."
            return stop("mailout", f"{name} is {mailout.status}.", fix)


def _built(compiled: CompiledLetter, settings: MessageSettings) -> EmailMessage:
    fields = dict.fromkeys(compiled.missing({}), "…")
    content = compiled.build(_JOB, settings.from_address, fields, datetime.now(UTC))
    message = message_from_bytes(content, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def unsubscribe_check(message: EmailMessage, settings: MessageSettings, *, leaves: bool) -> Check:
    """RFC 8058 §3.1: one https link, and the header that says that one click is enough."""
    name = "letter.unsubscribe"
    link = str(message.get("List-Unsubscribe", "")).strip().removeprefix("<").removesuffix(">")
    prefix = unsubscribe_prefix(settings.base_url)
    token = link.removeprefix(prefix)
    signed = link.startswith(prefix) and read_token(token, settings.unsubscribe_secret) == _JOB
    if not signed or message.get("List-Unsubscribe-Post") != _ONE_CLICK:
        what = f"A letter has no List-Unsubscribe that works: {link[:120]!r}."
        return stop(
            name, what, "Set APP_BASE_URL and UNSUBSCRIBE_SECRET; nothing on the way may edit headers."
        )
    if link.startswith("https://"):
        return ok(name, "A letter carries a signed one-click List-Unsubscribe.")
    what = f"List-Unsubscribe begins with {settings.base_url}, and one-click unsubscription must be https."
    fix = "Set APP_BASE_URL to an https:// address."
    return stop(name, what, fix) if leaves else warning(name, what, fix)


def size_check(message: EmailMessage) -> Check:
    name = "letter.size"
    size = len(_part(message, "html").encode())
    what = f"The HTML of the letter has {size / 1000:.0f} KB."
    fix = "Make it shorter, and take what is pasted from an office program through plain text first."
    if size > GMAIL_CUTS_AT:
        more = f" Gmail cuts letters at {GMAIL_CUTS_AT // 1000} KB, and the unsubscribe link falls off."
        return stop(name, what + more, fix)
    return warning(name, what, fix) if size > _SIZE_WARNS else ok(name, what)


def text_check(message: EmailMessage) -> Check:
    """The footer is in every text part, so a letter that says nothing is short and not empty."""
    name = "letter.text"
    words = _part(message, "plain").partition("———")[0].split()
    if words:
        return ok(name, f"The plain text has {count_of(len(words), 'word')}.")
    what = "The letter has no plain text: watches, screen readers and spam filters see an empty letter."
    return warning(name, what, "Write some words beside the pictures.")


def _part(message: EmailMessage, kind: str) -> str:
    part = message.get_body((kind,))
    content = part.get_content() if part is not None else ""
    assert isinstance(content, str)
    return content


def variables_check(compiled: CompiledLetter, sample: Sample) -> Check:
    name = "letter.variables"
    lacking: Counter[str] = Counter()
    for person in sample.people:
        fields = {**person.attributes, **({"name": person.name} if person.name else {})}
        lacking.update(compiled.missing(fields))
    if not lacking:
        return ok(name, f"Every variable of the letter has a value {sample.of_whom}.")
    shown = ", ".join(f"{variable} for {number}" for variable, number in lacking.most_common(5))
    first = lacking.most_common(1)[0][0]
    return stop(
        name,
        f"Variables without a value {sample.of_whom}: {shown}.",
        f'Give it a fallback in the letter, {{{{ {first} | default: "…" }}}}, or import the missing values.',
    )
