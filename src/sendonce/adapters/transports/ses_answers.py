"""What an answer of SES means for the letter: the table of its errors.

A modelled 4xx proves that the letter was not accepted. A 5xx, a 2xx that cannot be read, and anything
that SES would not say prove nothing: the letter is in doubt.

Some refusals are not the letter's but the sender's: they would meet every other letter too, so they hold the
sender. Of these, a pause and an internal error are a region's: another region may take the letters.
"""

from __future__ import annotations

import json
from typing import Any

from sendonce.adapters.aws.http1 import Response
from sendonce.domain.engine.outcomes import Accepted, Deferred, InDoubt, Outcome, Refused

RATE_REST = 1.0
QUOTA_REST = 600.0  # AWS: after "Daily message quota exceeded" wait for up to ten minutes
LIMIT_REST = 60.0
PAUSE_REST = 300.0
SIGNATURE_REST = 1.0
_REASON_LENGTH = 300

# code -> seconds for which the whole transport rests; the trouble is not this letter's.
_RESTS = {
    "TooManyRequestsException": RATE_REST,
    "ThrottlingException": RATE_REST,
    "Throttling": RATE_REST,
    "LimitExceededException": LIMIT_REST,
}

_PAUSED_FIX = "SES console: Account dashboard tells why sending is paused."

# code -> what to do: SES refuses the account, the identity or the configuration, whatever the letter.
_SENDER_FIXES = {
    "SendingPausedException": _PAUSED_FIX,
    "AccountSendingPausedException": _PAUSED_FIX,
    "ConfigurationSetSendingPausedException": "SES console: Configuration sets: its sending is switched off.",
    "AccountSuspendedException": "SES console: Account dashboard tells why the account is suspended.",
    "MailFromDomainNotVerifiedException": "SES console: Identities, Custom MAIL FROM: publish its records.",
    "NotFoundException": "Correct SES_CONFIGURATION_SET and AWS_REGION, or make the configuration set there.",
}

# SES says MessageRejected of a letter (a virus, say) and of a sender alike; only the words tell them apart.
_UNVERIFIED = "not verified"
_UNVERIFIED_FIX = (
    "SES console: verify the sender under Identities; an account in the SES sandbox writes to verified "
    "addresses only, so request production access."
)
_DISABLED = ("sending paused", "sending is disabled", "sending suspended", "account is paused")

_PERMANENT = frozenset(
    {
        "MessageRejected",
        "BadRequestException",
        "ValidationException",
        "ValidationError",
    }
)

# The common errors of AWS come as 403 from some front ends and as 400 from others.
CREDENTIAL_CODES = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "IncompleteSignatureException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "NotAuthorized",
        "OptInRequired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
# A web server without such a page, or without a POST to it, took no letter. SES itself gives a code.
_NOT_HERE = frozenset({404, 405})
_NOT_SES = "the endpoint knows no SendEmail: it is not SES. Correct or unset AWS_ENDPOINT_URL_SESV2."
_EXPIRED_CODES = frozenset({"RequestExpired", "RequestTimeTooSkewed"})


def outcome_of(response: Response) -> Outcome:
    """The outcome of one SendEmail call."""
    if response.status == 200:
        return _accepted(response)
    if not 400 <= response.status < 500:
        answered = f"SES answered {response.status} {error_of(response)[0]}".rstrip()
        return InDoubt(answered, outage=response.status >= 500)
    code, message = error_of(response)
    reason = f"{code}: {message}" if message else code
    return _of_signature(code, message, reason) or _of_code(response.status, code, reason)


def is_credential_fault(response: Response) -> bool:
    """Would other credentials have helped?"""
    return response.status == 403 or error_of(response)[0] in CREDENTIAL_CODES


def error_of(response: Response) -> tuple[str, str]:
    """The error code and message; empty where there are none.

    The code looks like ``Name``, ``Name:http://internal.amazon.com/…`` or ``namespace#Name``.
    Only the first line of the message is kept: after it, a signature error repeats our own headers,
    the session token among them.
    """
    fields = json_object(response.body) or {}
    code = response.headers.get("x-amzn-errortype") or fields.get("__type") or fields.get("code") or ""
    message = fields.get("message") or fields.get("Message") or ""
    code = str(code).partition(":")[0].rpartition("#")[2].strip()
    return _printable(code)[:100], _printable(str(message).strip().partition("\n")[0])[:_REASON_LENGTH]


def json_object(body: bytes) -> dict[str, Any] | None:
    """The body as a JSON object, or None where it is not one."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _accepted(response: Response) -> Outcome:
    message_id = (json_object(response.body) or {}).get("MessageId")
    if isinstance(message_id, str) and 0 < len(message_id) <= 255 and message_id.isprintable():
        return Accepted(message_id)
    return InDoubt("SES answered 200, but without a MessageId that can be read")


def _of_signature(code: str, message: str, reason: str) -> Outcome | None:
    """The signature fence: a request that came too late was not accepted, whoever sent it."""
    if code in _EXPIRED_CODES or message.startswith("Signature expired"):
        # Proven not accepted, and not the letter's fault: a slow clock must not use up its tries.
        return Deferred("signature_expired", reason, SIGNATURE_REST, throttle=True)
    if message.startswith("Signature not yet current"):
        fix = "The database's clock is ahead of AWS: set it right."
        return Deferred("clock_ahead", f"{reason} {fix}", PAUSE_REST, throttle=True)
    return None


def _of_code(status: int, code: str, reason: str) -> Outcome:
    rest = _RESTS.get(code, RATE_REST if status == 429 else None)
    if rest is not None:
        rest = QUOTA_REST if "daily message quota" in reason.lower() else rest
        return Deferred(code or "http_429", reason, rest, throttle=True)
    fix = _sender_fix(status, code, reason.lower())
    if fix is not None:
        words = f"{reason} {fix}".strip()
        return Deferred(code or "http_403", words, throttle=True, hold=True, outage=_is_pause(code, fix))
    if code in _PERMANENT:
        return Refused(code, reason)
    if code:  # a 4xx of AWS that this table does not know: not accepted, and the tries are counted
        return Deferred(code, reason)
    if status in _NOT_HERE:
        return Deferred(f"http_{status}", _NOT_SES, throttle=True, hold=True)
    return InDoubt(f"the answer was {status} without an error code: it is not from SES")


def _sender_fix(status: int, code: str, words: str) -> str | None:
    """What to do about a refusal that is the sender's; None where it is the letter's."""
    if code in _SENDER_FIXES:
        return _SENDER_FIXES[code]
    if code == "MessageRejected" and _UNVERIFIED in words:
        return _UNVERIFIED_FIX
    if code == "MessageRejected" and any(phrase in words for phrase in _DISABLED):
        return _PAUSED_FIX
    if status == 403 or code in CREDENTIAL_CODES:
        return "Check the AWS credentials and their permission ses:SendEmail."
    return None


def _is_pause(code: str, fix: str) -> bool:
    return fix == _PAUSED_FIX or "SendingPaused" in code


def _printable(text: str) -> str:
    return "".join([char if char.isprintable() else " " for char in text[: _REASON_LENGTH * 2]])
