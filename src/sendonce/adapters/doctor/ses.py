"""The SES account: may it send, may it send so much, as this sender, and will it tell what became of it?"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from sendonce.adapters.doctor.audience import active_subscribers
from sendonce.adapters.doctor.machine import StoreDoor, clock_check
from sendonce.adapters.doctor.ses_reader import Answer, SesReader
from sendonce.adapters.doctor.waiting import in_own_thread
from sendonce.domain.engine.checks import SANDBOXED, Check, count_of, listed, ok, stop, warning
from sendonce.errors import BadInput, Unavailable

T = TypeVar("T")

_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "NotAuthorized"})
# Without these people who do not want our letters get them, and doubt is never settled.
_NEEDED_EVENTS = ("SEND", "BOUNCE", "COMPLAINT")
# Amazon's own test mailbox takes letters from every account.
_SIMULATOR = "simulator.amazonses.com"
_USEFUL_EVENTS = ("DELIVERY", "REJECT", "DELIVERY_DELAY")


class SesAccountProbe:
    name = "ses.account"

    def __init__(self, reader: SesReader, door: StoreDoor, rate_limit: int) -> None:
        self._reader = reader
        self._door = door
        self._rate_limit = rate_limit

    async def examine(self) -> Sequence[Check]:
        try:
            account = await self._reader.account()
        except (Unavailable, BadInput) as exc:
            fix = "Check AWS_REGION, the AWS credentials and the way to the network."
            return [stop(self.name, str(exc), fix)]
        clock = await self._clock(account)
        if account.status != 200:
            return [_refused(account), *clock]
        return [
            ok(self.name, "SES answers and takes the credentials."),
            _production(account),
            _sending(account),
            await self._quota(account),
            self._rate(account),
            *clock,
        ]

    async def _clock(self, account: Answer) -> list[Check]:
        store = await self._door.get_or_none()
        if store is None or account.date is None:
            return []
        return [clock_check(await in_own_thread(store.ledger.now), account.date, "Amazon's")]

    async def _quota(self, account: Answer) -> Check:
        name = "ses.quota"
        limits = account.part("SendQuota")
        per_day, sent = _number(limits, "Max24HourSend"), _number(limits, "SentLast24Hours") or 0.0
        if per_day is None or per_day < 0:
            return ok(name, "SES sets this account no daily quota.")
        left, planned = max(0, int(per_day - sent)), await active_subscribers(self._door)
        more = "SES console: Account dashboard, Request a limit increase."
        have = f"SES takes {count_of(left, 'more letter')} of {int(per_day)} in these 24 hours"
        if not left:
            return stop(name, f"{have}.", f"Wait until tomorrow, or ask for more. {more}")
        if left < planned:
            days = 1 + -(-(planned - left) // max(int(per_day), 1))
            what = f"{have}, and there are {count_of(planned, 'active subscriber')}: it takes {days} days."
            return warning(name, what, f"Let it run for days, or ask for more. {more}")
        return ok(name, f"{have}, for {count_of(planned, 'active subscriber')}.")

    def _rate(self, account: Answer) -> Check:
        name = "ses.rate"
        theirs = _number(account.part("SendQuota"), "MaxSendRate")
        if theirs and self._rate_limit > theirs:
            return warning(
                name,
                f"RATE_LIMIT_PER_SEC is {self._rate_limit}, and SES takes {theirs:g} letters a second.",
                f"Workers keep to {theirs:g}; set RATE_LIMIT_PER_SEC={max(int(theirs), 1)} to say so.",
            )
        ours = f"we send {self._rate_limit}" if self._rate_limit else "we keep to that"
        return ok(name, f"SES takes {theirs or 0:g} letters a second, {ours}.")


def _refused(account: Answer) -> Check:
    name = SesAccountProbe.name
    what = f"SES refuses to tell about the account: {account.trouble}."
    if account.code in _DENIED:
        return warning(name, what, "Allow ses:GetAccount to this key, so that quota and pauses are seen.")
    fix = "Correct AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION."
    return stop(name, what, fix, refuses_all=400 <= account.status < 500 and account.status != 429)


def _production(account: Answer) -> Check:
    name = SANDBOXED
    if account.fields.get("ProductionAccessEnabled") is not False:
        return ok(name, "The account may write to anybody.")
    return stop(
        name,
        "The account is in the SES sandbox: it may write to verified addresses only.",
        "SES console: Account dashboard, Request production access.",
        refuses_all=True,
    )


def _sending(account: Answer) -> Check:
    name = "ses.sending"
    status = str(account.fields.get("EnforcementStatus", "HEALTHY"))[:40]
    if account.fields.get("SendingEnabled") is False or status == "SHUTDOWN":
        return stop(
            name,
            f"Sending is paused for this account (status {status}).",
            "SES console: Account dashboard, Reputation metrics tell why. Answer Amazon's case.",
            refuses_all=True,
        )
    if status != "HEALTHY":
        fix = "Answer Amazon's case and clean the list before you send more."
        return warning(name, f"Amazon has the account under review (status {status}).", fix)
    return ok(name, "Sending is on, and the account is healthy.")


class SesIdentityProbe:
    """An address, its domain, or a parent domain may be verified: SES takes any of them."""

    name = "ses.identity"

    def __init__(self, reader: SesReader, sender: str) -> None:
        self._reader = reader
        self._sender = sender

    async def examine(self) -> Sequence[Check]:
        answers = await _told(self._ask())
        if answers is None:
            return []
        denied = next((answer for _, answer in answers if answer.code in _DENIED), None)
        verified = [pair for pair in answers if pair[1].fields.get("VerifiedForSendingStatus") is True]
        if verified:
            return _identity_checks(*verified[-1])
        if denied is not None:
            what = f"SES does not tell whether {self._sender} is verified: {denied.trouble}."
            return [warning(self.name, what, "Allow ses:GetEmailIdentity to this key.")]
        return [self._unverified([name for name, answer in answers if answer.status == 200])]

    async def _ask(self) -> list[tuple[str, Answer]]:
        names = identities_of(self._sender)
        return list(zip(names, [await self._reader.identity(name) for name in names], strict=True))

    def _unverified(self, known: list[str]) -> Check:
        state = f"{known[0]} is known to SES and not verified yet" if known else "SES does not know it"
        return stop(
            self.name,
            f"SES may not send as {self._sender}: {state} in this region.",
            "SES console: Identities, Create identity, Domain; put its three CNAME records into your DNS.",
            refuses_all=True,
        )


def identities_of(sender: str) -> list[str]:
    domain = sender.rpartition("@")[2]
    labels = domain.split(".")
    return [sender, *(".".join(labels[start:]) for start in range(max(len(labels) - 1, 1)))]


async def may_write_to(reader: SesReader, recipients: Sequence[str]) -> bool:
    """Whether an account in the SES sandbox may write to all of these; False where SES does not tell."""
    answer = await _told(reader.identities())
    if answer is None or answer.status != 200 or answer.fields.get("NextToken"):
        return False
    verified = {
        str(identity.get("IdentityName")).lower()
        for identity in _objects(answer.fields.get("EmailIdentities"))
        if identity.get("VerificationStatus") == "SUCCESS"
    } | {_SIMULATOR}
    return all(not verified.isdisjoint(identities_of(recipient.lower())) for recipient in recipients)


async def dkim_names(reader: SesReader, sender: str) -> list[str]:
    """Where the sender's DKIM keys are in the DNS; none where SES does not tell."""
    for domain in identities_of(sender)[1:]:
        answer = await _told(reader.identity(domain))
        tokens = answer.part("DkimAttributes").get("Tokens") if answer else None
        if isinstance(tokens, list) and tokens:
            return [f"{token}._domainkey.{domain}" for token in tokens if isinstance(token, str)]
    return []


def _identity_checks(name: str, identity: Answer) -> list[Check]:
    dkim, mail_from = identity.part("DkimAttributes"), identity.part("MailFromAttributes")
    checks = [ok("ses.identity", f"{name} is verified.")]
    status = str(dkim.get("Status", "NOT_STARTED"))[:40]
    if status == "SUCCESS" and dkim.get("SigningEnabled") is not False:
        checks.append(ok("ses.dkim", f"SES signs letters as {name}."))
    else:
        what = f"SES does not sign letters as {name} (DKIM {status}): Gmail and Yahoo ask for it."
        fix = "SES console: Identities, the domain, DKIM: publish its records and enable signing."
        checks.append(warning("ses.dkim", what, fix))
    domain, state = mail_from.get("MailFromDomain"), mail_from.get("MailFromDomainStatus")
    if domain and state != "SUCCESS":
        what = f"The MAIL FROM domain {str(domain)[:255]} is {str(state)[:40]}."
        fix = "Publish the MX and TXT records that SES console shows under Custom MAIL FROM domain."
        checks.append(warning("ses.mail-from", what, fix))
    return checks


class SesEventsProbe:
    """``topics`` are those whose events are believed."""

    name = "ses.events"

    def __init__(self, reader: SesReader, configuration_set: str, topics: Sequence[str]) -> None:
        self._reader = reader
        self._set = configuration_set
        self._topics = topics

    async def examine(self) -> Sequence[Check]:
        answers = await _told(self._ask())
        if answers is None:
            return []
        itself, destinations = answers
        if itself.code in _DENIED or destinations.code in _DENIED:
            fix = "Allow ses:GetConfigurationSet and ses:GetConfigurationSetEventDestinations to this key."
            return [warning(self.name, f"SES does not tell about {self._set}: {itself.trouble}.", fix)]
        if itself.status != 200:
            fix = "Correct SES_CONFIGURATION_SET, or make the set in this region."
            what = (
                f"The configuration set {self._set}: {itself.trouble}. SES rejects all letters that name it."
            )
            return [stop(self.name, what, fix, refuses_all=itself.status == 404)]
        if itself.part("SendingOptions").get("SendingEnabled") is False:
            what = f"Sending is paused for the configuration set {self._set}."
            return [
                stop(self.name, what, "SES console: Configuration sets, enable sending.", refuses_all=True)
            ]
        return [self._judge(destinations)]

    async def _ask(self) -> tuple[Answer, Answer]:
        itself = await self._reader.configuration_set(self._set)
        return itself, await self._reader.event_destinations(self._set)

    def _judge(self, answer: Answer) -> Check:
        told = _events_by_topic(answer)
        believed = {event for topic, events in told.items() if topic in self._topics for event in events}
        fix = (
            f"SES console: Configuration sets, {self._set}, Event destinations: an SNS topic that "
            "SNS_ALLOWED_TOPIC_ARNS names, with the events "
            f"{', '.join(_NEEDED_EVENTS + _USEFUL_EVENTS)}."
        )
        if not told:
            return stop(self.name, f"{self._set} publishes no events to SNS.", fix)
        if not believed:
            what = f"{self._set} publishes to {listed(told)}, and SNS_ALLOWED_TOPIC_ARNS names another topic."
            return stop(self.name, what, fix)
        lacking = [event for event in _NEEDED_EVENTS if event not in believed]
        if lacking:
            return stop(self.name, f"{self._set} does not publish {listed(lacking)}.", fix)
        unheard = [event for event in _USEFUL_EVENTS if event not in believed]
        if unheard:
            return warning(self.name, f"{self._set} does not publish {listed(unheard)}.", fix)
        return ok(self.name, f"{self._set} publishes all events to {listed(told)}.")


def _events_by_topic(answer: Answer) -> dict[str, set[str]]:
    """What the enabled destinations bring, by topic."""
    told: dict[str, set[str]] = {}
    for destination in _objects(answer.fields.get("EventDestinations")):
        sns = destination.get("SnsDestination")
        topic = sns.get("TopicArn") if isinstance(sns, dict) else None
        events = destination.get("MatchingEventTypes")
        if isinstance(topic, str) and destination.get("Enabled") is not False and isinstance(events, list):
            told.setdefault(topic[:300], set()).update(str(event) for event in events)
    return told


async def _told(asking: Awaitable[T]) -> T | None:
    """The answers, or None where SES does not answer at all: the account's probe tells why."""
    try:
        return await asking
    except (Unavailable, BadInput):
        return None


def _objects(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _number(fields: dict[str, Any], name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
