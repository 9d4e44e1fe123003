"""What a transport answers for one letter: a value, never an exception."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider took the letter. ``message_id`` is its own name for it."""

    message_id: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The provider will never take this letter to this recipient."""

    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """Proven not accepted; may be tried again.

    ``throttle`` means that the trouble is not this letter's (rate, quota, connection, pause of the
    account): no try is used up, and the whole transport rests for ``retry_after`` seconds.
    ``retry_after=None`` leaves the time to the retry policy.
    ``local`` limits a throttle to this letter and the connection that met it: the letter waits and uses up
    no try, and the transport goes on.
    ``hold`` means that the provider refuses the sender itself, its account or its configuration: every
    other letter would be refused too, so the sender is held with this reason until it may be tried again.
    A letter that meets a hold is throttled.
    ``outage`` means that the trouble is the provider's in this region: another region of it may be well.
    """

    code: str
    reason: str
    retry_after: float | None = None
    throttle: bool = False
    hold: bool = False
    local: bool = False
    outage: bool = False


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The letter may or may not have been taken. Never retried without evidence.

    ``outage`` as in ``Deferred``.
    """

    reason: str
    outage: bool = False


Outcome = Accepted | Refused | Deferred | InDoubt
