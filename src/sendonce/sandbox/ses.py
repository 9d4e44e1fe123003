"""The SES v2 operations: SendEmail and what a sender asks before it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from sendonce.sandbox.acceptance import Acceptance, AcceptanceLog, acceptance_of
from sendonce.sandbox.events import is_simulator
from sendonce.sandbox.faults import Dice, Fault
from sendonce.sandbox.http_server import Ending, Reply, Request, json_reply
from sendonce.sandbox.letters import Letter, read_letter
from sendonce.sandbox.limits import SendingLimits
from sendonce.sandbox.refusals import ServiceRefusal, rejected
from sendonce.sandbox.settings import SandboxSettings
from sendonce.sandbox.signature import check_signature
from sendonce.sandbox.suppression_list import SuppressionList

_SEND = "/v2/email/outbound-emails"
_ACCOUNT = "/v2/email/account"
_IDENTITIES = "/v2/email/identities/"
_SUPPRESSIONS = "/v2/email/suppression/addresses"
_CONFIGURATION_SETS = "/v2/email/configuration-sets/"
_EVENT_TYPES = ("SEND", "REJECT", "BOUNCE", "COMPLAINT", "DELIVERY", "DELIVERY_DELAY")
_LOST_REPLIES = {
    Fault.RESET_AFTER: Ending.RESET,
    Fault.RESET_BEFORE: Ending.RESET,
    Fault.HANG_AFTER: Ending.CLOSE,
    Fault.HANG_BEFORE: Ending.CLOSE,
    Fault.TRUNCATE: Ending.CUT,
    Fault.GARBAGE: Ending.GARBAGE,
}


class Tally:
    """Counts for the curious. The log alone decides what was accepted."""

    def __init__(self) -> None:
        self.accepted = 0
        self.recipients = 0
        self.duplicates = 0
        self.refused: Counter[str] = Counter()
        self._seen: set[int] = set()

    def count(self, acceptance: Acceptance) -> None:
        self.accepted += 1
        self.recipients += len(acceptance.recipients)
        for key in acceptance.identity_keys():
            mark = hash(key)
            self.duplicates += mark in self._seen
            self._seen.add(mark)


class Ses:
    """``mark`` begins the ids of its letters: those of one region are like no other's."""

    def __init__(
        self,
        settings: SandboxSettings,
        log: AcceptanceLog,
        dice: Dice,
        now: Callable[[], float],
        mark: str = "0100",
    ) -> None:
        self._settings = settings
        self._log = log
        self._dice = dice
        self._now = now
        self._mark = mark
        self.limits = SendingLimits(settings.max_rate, settings.daily_quota)
        self.tally = Tally()
        self.suppressions = SuppressionList(now)
        self._numbered = 0

    def remember(self, acceptance: Acceptance) -> None:
        """Count a letter of an earlier run."""
        self.tally.count(acceptance)
        if acceptance.by_smtp:
            return
        self._numbered += 1
        self.limits.remember(_counted_today(acceptance.recipients), acceptance.t)

    async def answer(self, request: Request) -> Reply:
        is_send = request.path == _SEND and request.method == "POST"
        try:
            return await self._send_email(request) if is_send else self._look_up(request)
        except ServiceRefusal as refusal:
            if is_send:
                self.tally.refused[refusal.code] += 1
            return refusal.as_json()

    async def _send_email(self, request: Request) -> Reply:
        fault, way = self._dice.fault(), self._dice.latency() / 2
        await _travel(way)
        check_signature(request, "ses", self._settings, self._now())
        self._fail_before(fault)
        if fault in (Fault.RESET_BEFORE, Fault.HANG_BEFORE):
            return await self._lose(fault, Reply())
        letter = read_letter(request.body, self._settings.max_message_bytes)
        self._check(letter)
        acceptance = self._accept(letter)
        await self._log.append(acceptance, letter.content)
        await _travel(way)
        reply = json_reply({"MessageId": acceptance.message_id})
        if fault is Fault.ERROR_AFTER:
            return self._internal_error().as_json()
        return await self._lose(fault, reply) if fault in _LOST_REPLIES else reply

    def _fail_before(self, fault: Fault | None) -> None:
        if fault is Fault.REFUSE:
            raise rejected("The sandbox was asked to refuse this letter.")
        if fault is Fault.THROTTLE:
            raise ServiceRefusal(429, "TooManyRequestsException", "Maximum sending rate exceeded.")
        if fault is Fault.PAUSED or not self._settings.sending_enabled:
            raise ServiceRefusal(400, "SendingPausedException", "Email sending is disabled for this account.")
        if fault is Fault.ERROR_BEFORE:
            raise self._internal_error()

    def _internal_error(self) -> ServiceRefusal:
        return ServiceRefusal(self._dice.plan.error_status, "InternalFailure", "Something went wrong.")

    async def _lose(self, fault: Fault, reply: Reply) -> Reply:
        if fault in (Fault.HANG_BEFORE, Fault.HANG_AFTER):
            await asyncio.sleep(self._dice.plan.hang_seconds)
        return Reply(reply.status, reply.body, ending=_LOST_REPLIES[fault])

    def _check(self, letter: Letter) -> None:
        name = letter.configuration_set
        if name is not None and name not in self._settings.configuration_sets:
            raise _no_configuration_set(name)
        needed = list(letter.senders())
        if not self._settings.production_access:
            needed += [address for address in letter.recipients if not is_simulator(address)]
        unknown = [address for address in needed if not self._settings.is_verified(address)]
        if unknown:
            raise rejected(
                "Email address is not verified. The following identities failed the check in region "
                f"{self._settings.region.upper()}: {', '.join(unknown)}"
            )

    def _accept(self, letter: Letter) -> Acceptance:
        moment = time.time()
        self.limits.admit(len(letter.recipients), _counted_today(letter.recipients), moment)
        self._numbered += 1
        number = self._numbered
        message_id = f"{self._mark}{int(moment * 1000):012x}-{number:08x}-4a5e-4b0c-8d1f-{number:012x}-000000"
        return acceptance_of(letter, message_id, moment)

    def _look_up(self, request: Request) -> Reply:
        check_signature(request, "ses", self._settings, self._now())
        path = request.path
        if request.method == "GET" and path == _ACCOUNT:
            return json_reply(self._account())
        if request.method == "GET" and path == _IDENTITIES.rstrip("/"):
            return json_reply(self._all_identities())
        if request.method == "GET" and path.startswith(_IDENTITIES):
            return json_reply(self._identity(unquote(path.removeprefix(_IDENTITIES))))
        if path.startswith(_SUPPRESSIONS):
            return self.suppressions.answer(request)
        if request.method == "GET" and path.startswith(_CONFIGURATION_SETS):
            name, _, part = path.removeprefix(_CONFIGURATION_SETS).partition("/")
            return json_reply(self._configuration_set(unquote(name), part))
        raise ServiceRefusal(
            404, "UnknownOperationException", f"This world's SES cannot {request.method} {path}."
        )

    def _account(self) -> dict[str, Any]:
        return {
            "DedicatedIpAutoWarmupEnabled": False,
            "EnforcementStatus": "HEALTHY",
            "ProductionAccessEnabled": self._settings.production_access,
            "SendingEnabled": self._settings.sending_enabled,
            "SendQuota": {
                "Max24HourSend": self._settings.daily_quota,
                "MaxSendRate": self._settings.max_rate,
                "SentLast24Hours": float(self.limits.sent_last_day(time.time())),
            },
            "SuppressionAttributes": {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]},
        }

    def _all_identities(self) -> dict[str, Any]:
        """This world has few: they are on one page."""
        identities = [
            {
                "IdentityName": name,
                "IdentityType": _identity_type(name),
                "SendingEnabled": True,
                "VerificationStatus": "SUCCESS",
            }
            for name in self._settings.identities
        ]
        return {"EmailIdentities": identities}

    def _identity(self, identity: str) -> dict[str, Any]:
        if identity.lower() not in {name.lower() for name in self._settings.identities}:
            raise ServiceRefusal(404, "NotFoundException", f"Email identity {identity} does not exist.")
        return {
            "IdentityType": _identity_type(identity),
            "FeedbackForwardingStatus": False,
            "VerifiedForSendingStatus": True,
            "VerificationStatus": "SUCCESS",
            "DkimAttributes": {"SigningEnabled": True, "Status": "SUCCESS", "Tokens": []},
            "MailFromAttributes": {"BehaviorOnMxFailure": "USE_DEFAULT_VALUE"},
            "Policies": {},
            "Tags": [],
        }

    def _configuration_set(self, name: str, part: str) -> dict[str, Any]:
        if name not in self._settings.configuration_sets:
            raise _no_configuration_set(name)
        if part == "event-destinations":
            destination = {
                "Name": "sandbox",
                "Enabled": True,
                "MatchingEventTypes": list(_EVENT_TYPES),
                "SnsDestination": {"TopicArn": self._settings.topic_arn},
            }
            return {"EventDestinations": [destination]}
        return {
            "ConfigurationSetName": name,
            "DeliveryOptions": {"TlsPolicy": "OPTIONAL"},
            "ReputationOptions": {"ReputationMetricsEnabled": False},
            "SendingOptions": {"SendingEnabled": True},
            "SuppressionOptions": {"SuppressedReasons": ["BOUNCE", "COMPLAINT"]},
            "Tags": [],
        }


def _identity_type(name: str) -> str:
    return "EMAIL_ADDRESS" if "@" in name else "DOMAIN"


def _no_configuration_set(name: str) -> ServiceRefusal:
    return ServiceRefusal(404, "NotFoundException", f"Configuration set <{name}> does not exist.")


def _counted_today(recipients: tuple[str, ...]) -> int:
    return sum(not is_simulator(recipient) for recipient in recipients)


async def _travel(seconds: float) -> None:
    if seconds:
        await asyncio.sleep(seconds)
