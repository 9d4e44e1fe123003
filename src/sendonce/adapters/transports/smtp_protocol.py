"""One SMTP session as a state machine on an asyncio protocol, made for one round trip a letter.

Where the server offers PIPELINING, the envelope of the next letter rides behind the body of this one:
RFC 2920 §3.1 lets a body be the first "command" of a group, and DATA must be the last::

      client                                             server
      MAIL 1, RCPT 1, DATA  ───────────────────────────►
                            ◄───────────────────────────  250, 250, 354
      wire(1); BODY 1 "." + MAIL 2, RCPT 2, DATA  ─────►                      one write
                            ◄───────────────────────────  250 (dot 1), 250, 250, 354
      settle(1)
      wire(2); BODY 2 "." + MAIL 3, RCPT 3, DATA  ─────►
                            ◄───────────────────────────  250 (dot 2), 250, 550, 554
      settle(2); settle(3, Refused)
      RSET, MAIL 4, RCPT 4, DATA  ─────────────────────►  only now; RSET ends what letter 3 began

A body leaves only after the reply to the dot before it, so one body at most is on the wire.

What a lost connection proves about a letter::

      envelope sent ──────── wire() + write() ──────── reply to the dot
        body never left: Deferred    │  the kernel delivers what it was    │  the reply is the verdict
                                     │  given, whatever dies: InDoubt      │

Body and dot go to the kernel in one write(), so there is no time when a body is out and its dot is
known not to be.

A refused RCPT may still be followed by 354, when the server looked at DATA alone. RFC 2920 §3.1 says
to answer with a lone dot, and so we do: no recipient stands, so nothing is delivered, and the session
lives on. To hang up would cost a TLS handshake and a login for each dead address of a list. If the
server did accept the recipient (after it refused MAIL, say), the dot would deliver an empty letter:
then the session is dropped.

A letter refused at its dot should end its transaction (RFC 5321 §4.1.1.4). Some servers keep it open, with
its recipients, and answer 503 to the next MAIL. So RSET comes before that MAIL; where the MAIL was already
on its way, its letter is sent again behind a RSET, and from then on RSET goes along.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from ssl import SSLContext
from typing import cast

from sendonce.adapters.alarm import Alarm
from sendonce.adapters.transports.smtp_letter import body_lines, envelope_lines, local_refusal, speaks_ascii
from sendonce.adapters.transports.smtp_limits import Habits
from sendonce.adapters.transports.smtp_replies import (
    REST_AFTER_LOSS,
    Features,
    GarbledReply,
    Reply,
    ReplyReader,
    SessionFailed,
    Stage,
    acceptance,
    ends_session,
    rejection,
    tidy,
    trouble,
    untouched,
    usual_round,
)
from sendonce.domain.engine.outcomes import Deferred, InDoubt, Refused
from sendonce.domain.engine.parcels import Parcel
from sendonce.ports.engine import Feed

LEAVE_WITHIN = 2.0
GARBLED = "garbled"
CANCELLED = trouble("cancelled", "the work was stopped", 0.0)
GIVEN_BACK = trouble("given-back", "the letter may not leave any more", 0.0)

_RSET, _DATA = b"RSET\r\n", b"DATA\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds to wait for a reply to a command, to the final dot, and for work.

    A letter that waits behind a slow one outlives its claim and has to be given back, and with DATA
    open that costs the connection. So the next envelope is sent ahead only to a server that answers
    a letter within ``patience`` seconds.
    """

    command: float
    final_dot: float
    idle: float
    patience: float


class SmtpSession(asyncio.Protocol):
    """A connection to one server: first the handshake by ``exchange``, then letters by ``carry``.

    Letters move in the callbacks of the protocol; a coroutine wakes only when the feed has nothing ready.
    """

    def __init__(self, feed: Feed, limits: Limits, habits: Habits) -> None:
        self.features = Features()
        self.untold: Deferred | None = None  # why it ended, where no letter was settled with it
        self.unwelcome = False  # it was closed before it took a letter, while other sessions were open
        self.when_over: Callable[[], None] = _nothing
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._feed = feed
        self._limits = limits
        self._habits = habits
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = ReplyReader()
        self._expected: deque[Callable[[Reply], None]] = deque()
        self._held: deque[tuple[bytes, Callable[[Reply], None]]] = deque()
        self._turn: asyncio.Future[None] | None = None
        self._current: Parcel | None = None
        self._ahead: Parcel | None = None
        self._again: Parcel | None = None  # its MAIL fell into the transaction of a refused letter
        self._on_wire = False
        self._unproven = False  # reused after a rest, and no reply has shown yet that it is alive
        self._needs_reset = False
        self._behind_refusal = False
        self._over = False
        self._letters = 0
        self._accepted = 0
        self._written_at = 0.0
        self._alarm = Alarm(self._on_alarm)
        self._asking: asyncio.Task[None] | None = None  # kept, or the loop might lose it
        self._envelope_replies = (self._on_mail, self._on_rcpt, self._on_data)
        # The greeting may be here before anybody waits for it.
        self._answer: asyncio.Future[Reply] = self._loop.create_future()
        self._expected.append(self._answer.set_result)

    # -- the lane's side ------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        return not self._over and self._letters < self._habits.letters

    @property
    def address_literal(self) -> str:
        """Our end of the connection, as a client without a name of its own calls itself (RFC 5321 §4.1.3)."""
        address = cast(asyncio.Transport, self._transport).get_extra_info("sockname")[0]
        return f"[IPv6:{address}]" if ":" in address else f"[{address}]"

    async def greeted_within(self, seconds: float) -> bool:
        await asyncio.wait({self._answer}, timeout=seconds)
        return self._answer.done()

    async def greeting(self) -> Reply:
        self._alarm.set(self._limits.command)
        return await self._answer

    async def exchange(self, command: bytes) -> Reply:
        """Send a command line of the handshake, give its reply."""
        if self._over:
            raise SessionFailed(trouble("lost", "the server closed the connection", REST_AFTER_LOSS))
        self._answer = self._loop.create_future()
        self._expected.append(self._answer.set_result)
        self._write(command + b"\r\n")
        self._alarm.set(self._limits.command)
        return await self._answer

    async def start_tls(self, context: SSLContext, host: str, timeout: float) -> None:
        """Go on inside TLS. What the server said in the clear beyond its 220 is an injection."""
        if self._over or not self._reader.drained:
            raise SessionFailed(trouble("tls", "the server spoke between STARTTLS and TLS", REST_AFTER_LOSS))
        self._alarm.stop()
        plain = cast(asyncio.Transport, self._transport)
        secure = await self._loop.start_tls(
            plain, self, context, server_hostname=host, ssl_handshake_timeout=timeout
        )
        self._transport = cast(asyncio.Transport, secure)

    async def carry(self, parcel: Parcel) -> None:
        """Send the parcel, and behind it whatever the feed has ready, until it has nothing.

        Everything taken is settled on return.
        """
        self._turn = self._loop.create_future()
        self._unproven = self._letters > 0
        if self._fits(parcel):
            self._open(parcel)
        else:
            self._go_on()
        try:
            await self._turn
        except asyncio.CancelledError:
            self.drop(CANCELLED, "cancelled before the server replied to the letter")
            raise

    def drop(self, deferral: Deferred, doubt: str) -> None:
        """Hang up, and settle what is in hand by how far it got."""
        if self._over:
            return
        self._end()
        current, on_wire, unharmed = self._current, self._on_wire, (self._ahead, self._again)
        self._current = self._ahead = self._again = None
        self._on_wire = False
        self._hang_up()
        if current is not None and on_wire:
            self._feed.settle(current, InDoubt(doubt))
        elif current is not None:
            self._feed.settle(current, deferral)
        for parcel in filter(None, unharmed):
            self._feed.settle(parcel, untouched(deferral))
        self._wake(deferral)

    def _end(self) -> None:
        self._over = True
        self.when_over()

    def leave(self) -> None:
        """Say QUIT; the answer, or two seconds, close the connection."""
        if self._over:
            return
        self._end()
        self._write(b"QUIT\r\n")
        self._expected.append(self._on_quit)
        self._alarm.set(LEAVE_WITHIN)

    # -- the event loop's side ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        reader, expected = self._reader, self._expected
        try:
            if self._ahead is not None and len(expected) == 4 and reader.drained:
                usual = usual_round(data)
                if usual is not None:
                    self._on_usual_round(usual[1])
                    return
            reader.feed(data)
            while (reply := reader.next()) is not None:
                if not expected:
                    self._lose(f"the server spoke out of turn: {reply.code} {tidy(reply.text, 80)}")
                    return
                expected.popleft()(reply)
        except GarbledReply as exc:
            self._lose(str(exc), GARBLED)
        except Exception as exc:  # noqa: BLE001 - the feed's errors belong to the lane, not to the event loop
            self._crash(exc)

    def _on_usual_round(self, words: bytes) -> None:
        """What the handlers of dot, MAIL, RCPT and DATA do with good replies, 3 µs quicker."""
        self._expected.clear()
        self._unproven = False
        self._accept(words)
        self._send_body(cast(Parcel, self._current))

    def connection_lost(self, exc: Exception | None) -> None:
        self._alarm.stop()
        self._lose("the connection was closed" if exc is None else f"the connection broke: {exc}")
        if not self.closed.done():
            self.closed.set_result(None)

    def _on_alarm(self) -> None:
        if self._over:
            self._hang_up()
        elif not self._expected and self._current is None:
            self.leave()  # nothing to do for a while: free the server's slot
        else:
            self._lose("no reply within the time limit")

    # -- a transaction --------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Between two transactions: the next parcel that is ready, or back to the lane."""
        parcel = self._take_ready()
        if parcel is not None:
            self._open(parcel)
        else:
            self._alarm.set(self._limits.idle)
            self._wake(None)

    def _take_ready(self) -> Parcel | None:
        if self._again is not None:
            again, self._again = self._again, None
            return again
        if self._letters >= self._habits.letters:
            return None
        while (parcel := self._feed.take_nowait()) is not None:
            if self._fits(parcel):
                return parcel
        return None

    def _fits(self, parcel: Parcel) -> bool:
        """False when this server cannot take the parcel at all: it is settled here."""
        refusal = local_refusal(parcel, self.features)
        if refusal is not None:
            self._feed.settle(parcel, refusal)
        return refusal is None

    def _open(self, parcel: Parcel) -> None:
        self._current = parcel
        self._write(self._envelope(parcel))
        self._alarm.set(self._limits.command)

    def _envelope(self, parcel: Parcel) -> bytes:
        """The commands to send now; a server without PIPELINING gets the others one by one."""
        self._letters += 1
        mail, rcpt = envelope_lines(parcel)
        reset = self._needs_reset
        self._needs_reset = False
        if self.features.pipelining:
            if reset:
                self._expected.append(self._on_reset)
            self._expected.extend(self._envelope_replies)
            return _RSET + mail + rcpt + _DATA if reset else mail + rcpt + _DATA
        self._held.extend(zip((mail, rcpt, _DATA), self._envelope_replies, strict=True))
        if reset:
            self._held.appendleft((_RSET, self._on_reset))
        return self._next_held()

    def _next_held(self) -> bytes:
        command, handler = self._held.popleft()
        self._expected.append(handler)
        return command

    def _step(self) -> None:
        """The command before was taken well: send the next one that was held back, if any."""
        self._unproven = False
        if self._held:
            self._write(self._next_held())
            self._alarm.set(self._limits.command)

    def _on_reset(self, reply: Reply) -> None:
        if reply.positive:
            self._step()
        else:
            self.drop(self._of_connection(trouble(str(reply.code), tidy(reply.text), REST_AFTER_LOSS)), "")

    def _on_mail(self, reply: Reply) -> None:
        behind_refusal, self._behind_refusal = self._behind_refusal, False
        if reply.positive:
            self._step()
        elif behind_refusal and reply.out_of_order:
            self._habits.keeps_transaction = True
            self._again, self._current = self._current, None
            self._needs_reset = True
        else:
            self._reject(reply, Stage.MAIL)

    def _on_rcpt(self, reply: Reply) -> None:
        if self._current is None:
            if reply.positive:
                self._lose("the server accepted a recipient after it had refused the sender")
        elif reply.positive:
            self._step()
        else:
            self._reject(reply, Stage.RCPT)

    def _on_data(self, reply: Reply) -> None:
        if self._current is None:
            if reply.code == 354 and self._again is not None:
                self._lose("the server went on with a letter that it had refused")
            elif reply.code == 354:
                self._expected.append(self._on_lone_dot)
                self._write(b".\r\n")
                self._alarm.set(self._limits.final_dot)
            else:
                self._go_on()
        elif reply.code == 354:
            self._send_body(self._current)
        else:
            self._reject(reply, Stage.DATA)

    def _on_lone_dot(self, _reply: Reply) -> None:
        """The letter was settled when its recipient was refused; whatever this says, nothing was sent."""
        self._go_on()

    def _send_body(self, parcel: Parcel) -> None:
        if not self._reader.drained or self._transport is None or self._transport.is_closing():
            self._lose("the server replied before it was asked, or is gone")
            return
        if self._feed.is_stale(parcel):
            self._alarm.set(self._limits.command)
            self._asking = self._loop.create_task(self._send_reaffirmed(parcel))
        else:
            self._send_wired(parcel)

    async def _send_reaffirmed(self, parcel: Parcel) -> None:
        """The server was slow: ask whether the letter may still leave, while it waits for the body."""
        try:
            await self._feed.reaffirm(parcel)
            if self._current is parcel and not self._over:
                self._send_wired(parcel)
        except Exception as exc:  # noqa: BLE001 - as in data_received
            self._crash(exc)

    def _send_wired(self, parcel: Parcel) -> None:
        if not self._feed.wire(parcel):
            # DATA is open, and the only end of it that delivers nothing is to hang up.
            self._current = None
            self.drop(GIVEN_BACK, "")
            return
        self._on_wire = True
        self._expected.append(self._on_dot)
        following = b""
        if self.features.pipelining and self._habits.quick:
            self._ahead = self._take_ready()
            if self._ahead is not None:
                self._needs_reset = self._habits.keeps_transaction
                following = self._envelope(self._ahead)
        self._write(b"".join((*body_lines(parcel), following)))
        self._alarm.set(self._limits.final_dot)

    def _on_dot(self, reply: Reply) -> None:
        if reply.positive:
            self._accept(reply.text)
        elif not reply.negative:
            self._lose(f"the server answered a letter with {reply.code}")
            return
        elif self._refuse(self._take_off_wire(), reply, Stage.DOT):
            return
        else:
            self._behind_refusal = self._current is not None and not self._habits.keeps_transaction
            self._needs_reset = self._current is None
        if self._current is None:
            self._go_on()
        else:
            self._alarm.set(self._limits.command)

    def _accept(self, words: bytes) -> None:
        self._accepted += 1
        self._habits.accepted += 1
        self._feed.settle(self._take_off_wire(), acceptance(words))

    def _take_off_wire(self) -> Parcel:
        """The letter that was answered; the one behind it is next."""
        parcel = cast(Parcel, self._current)
        self._habits.quick = self._loop.time() - self._written_at < self._limits.patience
        self._current, self._ahead = self._ahead, None
        self._on_wire = False
        return parcel

    def _on_quit(self, _reply: Reply) -> None:
        if self._transport is not None:
            self._transport.close()
            self._alarm.set(LEAVE_WITHIN)  # a TLS peer may keep its half open

    def _reject(self, reply: Reply, stage: Stage) -> None:
        """The envelope was refused. Replies to what was pipelined behind it are still to come."""
        if not reply.negative:
            self._lose(f"the server answered a command with {reply.code}")
            return
        parcel, self._current = cast(Parcel, self._current), None
        if stage is Stage.MAIL and not speaks_ascii(parcel):
            stage = Stage.RCPT  # this MAIL had a parameter of its own
        self._held.clear()
        if self._refuse(parcel, reply, stage):
            return
        self._unproven = False
        self._needs_reset = True
        if not self._expected:
            self._go_on()
        else:
            self._alarm.set(self._limits.command)

    def _refuse(self, parcel: Parcel, reply: Reply, stage: Stage) -> bool:
        """Settle a letter that was turned down; whether that ends the session."""
        outcome: Refused | Deferred = rejection(reply, stage)
        over = ends_session(outcome)
        if isinstance(outcome, Deferred) and outcome.throttle and not outcome.hold:
            if stage is not Stage.MAIL:
                outcome = self._habits.weigh(parcel.job_id, outcome)
            elif over:
                outcome = self._of_connection(outcome)
        self._feed.settle(parcel, outcome)
        if over:
            self.drop(untouched(cast(Deferred, outcome)), "")
        return over

    def _of_connection(self, cause: Deferred) -> Deferred:
        """The server closes this connection. Where it took letters here, or others are open, that is all;
        how many letters it took first may be its limit."""
        if self._accepted and not self._unproven:
            self._habits.cut_off(self._letters - 1, self._loop.time())
        self.unwelcome = not self._accepted and self._habits.open > 1
        return untouched(cause) if self._accepted or self.unwelcome else cause

    # -- the end --------------------------------------------------------------------------------

    def _lose(self, what: str, code: str = "lost") -> None:
        """The connection can be trusted no more: what is on the wire is in doubt, the rest never left."""
        if self._over:
            return
        reason = tidy(what.encode("ascii", "replace"))
        try:
            self.drop(
                self._loss(trouble(code, reason, REST_AFTER_LOSS)), f"{reason}, after the letter had left"
            )
        except Exception as exc:  # noqa: BLE001 - as in data_received
            self._crash(exc)

    def _loss(self, cause: Deferred) -> Deferred:
        if self._on_wire:
            self.untold = cause if self._habits.again() else None
        elif self._current is not None and self._unproven:
            return untouched(cause)  # the connection had died while it was idle
        elif self._current is not None:
            return self._loss_of(self._current.job_id, cause)
        return cause

    def _loss_of(self, job_id: str, cause: Deferred) -> Deferred:
        """A letter whose MAIL got no answer where others were taken was cut off with its connection: once."""
        cut_off = self._accepted and self._expected and self._expected[0] in (self._on_reset, self._on_mail)
        if cut_off and not self._habits.remember(job_id):
            self._habits.cut_off(self._letters - 1, self._loop.time())
            return untouched(cause)
        return self._habits.weigh(job_id, cause)

    def _crash(self, exc: Exception) -> None:
        """The feed failed. The journal has what is on the wire; the lane raises."""
        self._end()
        self._current = self._ahead = self._again = None
        self._hang_up()
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(exc)

    def _hang_up(self) -> None:
        self._expected.clear()
        self._held.clear()
        if self._transport is not None:
            self._transport.abort()

    def _wake(self, failure: Deferred | None) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_result(None)
        if failure is not None and not self._answer.done():
            self._answer.set_exception(SessionFailed(failure))
            self._answer.exception()  # nobody may be waiting any more, and that is fine

    def _write(self, data: bytes) -> None:
        self._written_at = self._loop.time()
        cast(asyncio.Transport, self._transport).write(data)


def _nothing() -> None:
    """Nobody waits for the end of this session."""
