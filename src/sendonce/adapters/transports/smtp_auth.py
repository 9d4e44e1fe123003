"""SMTP authentication (RFC 4954): PLAIN, LOGIN, and XOAUTH2 for an OAuth access token.

The caller sees to it that no credential travels in the clear; this module sees to it that none
ends up in a reason: servers like to quote the line that they did not understand.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from sendonce.adapters.transports.smtp_replies import Reply, SessionFailed, denial, hold

Exchange = Callable[[bytes], Awaitable[Reply]]

# A command line has at most 512 octets with its CRLF (RFC 5321 §4.5.3.1.4). A longer initial response,
# an OAuth token as a rule, waits for the server's prompt.
_MAX_COMMAND = 510
# LOGIN asks twice; one more allows for XOAUTH2's error prompt. Nobody needs more.
_MAX_PROMPTS = 4


@dataclass(frozen=True, slots=True)
class Credentials:
    username: str
    password: str | None = field(default=None, repr=False)
    oauth_token: str | None = field(default=None, repr=False)


async def authenticate(exchange: Exchange, offered: frozenset[str], credentials: Credentials) -> None:
    """Log in with the best mechanism that the server offers, or raise SessionFailed."""
    mechanism = _choose(offered, credentials)
    responses = _responses(mechanism, credentials)
    secrets = tuple(responses)
    command = b"AUTH " + mechanism.encode()
    if mechanism != "LOGIN" and len(command) + 1 + len(responses[0]) <= _MAX_COMMAND:
        command += b" " + responses.pop(0)
    reply = await exchange(command)
    for _ in range(_MAX_PROMPTS):
        if reply.code != 334:
            break
        # XOAUTH2 tells its error in a prompt and wants an empty line before it gives the verdict.
        last_word = b"" if mechanism == "XOAUTH2" else b"*"
        reply = await exchange(responses.pop(0) if responses else last_word)
    if reply.code != 235:
        raise SessionFailed(denial(_without(secrets, reply), f"AUTH {mechanism} failed"))


def _choose(offered: frozenset[str], credentials: Credentials) -> str:
    usable = ("XOAUTH2",) if credentials.oauth_token is not None else ("PLAIN", "LOGIN")
    for mechanism in usable:
        if mechanism in offered:
            return mechanism
    names = " ".join(sorted(offered))[:200] or "no AUTH at all"
    reason = f"the server offers {names}; these credentials need {' or '.join(usable)}"
    raise SessionFailed(hold("auth", reason))


def _responses(mechanism: str, credentials: Credentials) -> list[bytes]:
    user, password = credentials.username, credentials.password or ""
    if mechanism == "LOGIN":
        return [b64encode(user.encode()), b64encode(password.encode())]
    if mechanism == "PLAIN":
        return [b64encode(f"\0{user}\0{password}".encode())]
    return [b64encode(f"user={user}\1auth=Bearer {credentials.oauth_token}\1\1".encode())]


def _without(secrets: tuple[bytes, ...], reply: Reply) -> Reply:
    text = reply.text
    for secret in filter(None, secrets):
        text = text.replace(secret, b"...")
    return Reply(reply.code, text)
