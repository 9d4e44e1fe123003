"""The letter: built once as a recipient would get it, and read again with a stranger's eyes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from sendonce.adapters.doctor.letter_links import links_check
from sendonce.adapters.doctor.machine import StoreDoor
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import Check, count_of, listed, ok, stop, warning
from sendonce.domain.engine.letters import Letter, MessageSettings, unsubscribe_prefix
from sendonce.domain.engine.message import CompiledLetter, compile_letter
from sendonce.domain.engine.tokens import read_token
from sendonce.domain.mailouts.letter_faults import LetterPart, faults_of, lacking_words, needed_of, size_of
from sendonce.domain.mailouts.mailouts import Mailout, MailoutStatus
from sendonce.errors import BadInput, BadSetting, NotFound, RefusedByRule, Unavailable
from sendonce.ports.mailouts import LetterSource
from sendonce.ports.store import Store

_JOB = "01900000-0000-7000-8000-000000000000"
_SAMPLE = Letter("A letter of the doctor", "", "<p>Good day</p>", "Good day")
_SIZE_WARNS = 90_000
_READ_WITHIN = 7.0
_MEND = "Mend the letter where it was written; a file becomes a mailout anew."
_ONE_CLICK = "List-Unsubscribe=One-Click"


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is looked at: a mailout and its letter, or a sample where no mailout was named."""

    letter: Letter
    mailout: Mailout | None


class LetterProbe:
    """``sources`` are where letters that were not read yet lie, by the name that mailouts carry.

    ``find`` gives the mailout that a person named. ``leaves``: letters leave this machine, so a link to it
    leads nowhere.
    """

    name = "letter"

    def __init__(
        self,
        door: StoreDoor,
        message_settings: Callable[[], MessageSettings],
        sources: Callable[[Store], Mapping[str, LetterSource]],
        find: Callable[[Store, str], Mailout | None],
        mailout_id: str | None,
        *,
        leaves: bool,
    ) -> None:
        self._door = door
        self._message_settings = message_settings
        self._sources = sources
        self._find_mailout = find
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
        try:
            async with asyncio.timeout(_READ_WITHIN):
                subject = await in_own_thread(lambda: self._find(store))
        except (TimeoutError, Unavailable) as exc:
            what = f"The letter cannot be read from its page now: {str(exc) or 'no answer in time'}."
            return [warning("letter", what, "Try again: a mailout that is started waits for its page.")]
        except (BadInput, RefusedByRule) as exc:
            return [stop("letter", str(exc), _MEND)]
        except NotFound as exc:
            return [stop("mailout", str(exc), "'sendonce mailout list' shows what there is.")]
        return await in_own_thread(lambda: self._judge(store, settings, subject))

    def _find(self, store: Store) -> _Subject:
        if self._mailout_id is None:
            return _Subject(_SAMPLE, None)
        mailout = self._find_mailout(store, self._mailout_id)
        if mailout is None:
            raise NotFound(f"There is no mailout {self._mailout_id}.")
        if mailout.letter_id is not None:
            return _Subject(store.mailouts.letter(mailout.id), mailout)
        source = self._sources(store).get(mailout.source)
        if source is None or mailout.source_id is None:
            raise BadInput(f"Letters from {mailout.source!r} cannot be read here: set NOTION_TOKEN.")
        return _Subject(source.fetch(mailout.source_id).letter, mailout)

    def _judge(self, store: Store, settings: MessageSettings, subject: _Subject) -> list[Check]:
        letter, mailout = subject.letter, subject.mailout
        checks = [_status(mailout)] if mailout else []
        try:
            message = _built(compile_letter(letter, settings, self._mailout_id or "doctor"), settings)
        except BadInput as exc:
            return [*checks, stop("letter", str(exc), _MEND)]
        checks.append(unsubscribe_check(message, settings, leaves=self._leaves))
        if mailout is not None:
            checks += fault_checks(letter)
            checks.append(links_check(letter.html, settings.base_url, leaves=self._leaves))
            checks.append(variables_check(store, mailout, letter))
        return checks


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
            return stop("mailout", f"{name} is a draft.", f"Run 'sendonce mailout ready {mailout.id}'.")
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


def fault_checks(letter: Letter) -> list[Check]:
    """What the start of the mailout would refuse, in the same words; and a letter that comes close to it."""
    found = {fault.part: fault.words for fault in faults_of(letter)}
    checks = [stop(f"letter.{part}", words, _MEND) for part, words in found.items()]
    if LetterPart.SIZE not in found:
        what = f"The HTML of the letter has {size_of(letter) / 1000:.0f} KB."
        fix = "Make it shorter, and take what is pasted from an office program through plain text first."
        near = size_of(letter) > _SIZE_WARNS
        checks.append(warning("letter.size", what, fix) if near else ok("letter.size", what))
    if LetterPart.TEXT not in found:
        checks.append(_text_check(letter))
    return checks


def _text_check(letter: Letter) -> Check:
    words = letter.text.split()
    if words:
        return ok("letter.text", f"The plain text has {count_of(len(words), 'word')}.")
    what = "The letter has no plain text: watches, screen readers and spam filters see an empty letter."
    return warning("letter.text", what, "Write some words beside the images.")


def variables_check(store: Store, mailout: Mailout, letter: Letter) -> Check:
    """Only variables without a fallback of their own are looked up."""
    name = "letter.variables"
    needed = needed_of(letter)
    if not needed or mailout.audience is not None:
        return ok(name, "The letter needs no values of its readers, or has fallbacks for them.")
    counts = {variable: store.subscribers.count_lacking(mailout.tenant_id, variable) for variable in needed}
    lacking = lacking_words({variable: people for variable, people in counts.items() if people})
    if not lacking:
        return ok(name, f"Every active subscriber has {listed(needed)}.")
    return stop(name, " ".join(lacking), "Or import the missing values.")
