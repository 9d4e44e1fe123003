"""The durable log of acceptances: the only judge of what this world took.

A line is on the disk before its sender is answered. Lines that wait are written together and made
durable by one fdatasync, so that a hundred letters cost one flush.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from sendonce.errors import RefusedByRule
from sendonce.sandbox.letters import Letter, read_headers, readable

_BY_SMTP = "smtp-"


@dataclass(slots=True)
class Acceptance:
    """One letter that was taken. ``headers`` are not in the log, so an earlier run's have none."""

    t: float
    message_id: str
    recipients: tuple[str, ...]
    sender: str
    tags: dict[str, str]
    configuration_set: str | None
    message_id_header: str | None
    subject: str | None
    size: int
    headers: list[tuple[str, str]] = field(default_factory=list)

    @property
    def by_smtp(self) -> bool:
        """Taken by the mailbox and not by SES, whose limits it does not use up."""
        return self.message_id.startswith(_BY_SMTP)

    @property
    def job(self) -> str | None:
        return self.tags.get("job")

    @property
    def attempt(self) -> int | str | None:
        attempt = self.tags.get("attempt")
        return int(attempt) if attempt is not None and attempt.isdecimal() else attempt

    def identity_keys(self) -> Iterator[str]:
        """What may be accepted only once: a recipient of a job (or, without one, of a Message-ID)."""
        letter = self.job or self.message_id_header
        if letter:
            for recipient in self.recipients:
                yield f"{letter}\0{recipient}"

    def line(self) -> bytes:
        return json.dumps(self.record(), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def record(self) -> dict[str, object]:
        return {
            "t": self.t,
            "message_id": self.message_id,
            "to": list(self.recipients),
            "from": self.sender,
            "job": self.job,
            "attempt": self.attempt,
            "tags": self.tags,
            "configuration_set": self.configuration_set,
            "message_id_header": self.message_id_header,
            "subject": self.subject,
            "size": self.size,
        }


def acceptance_of(letter: Letter, message_id: str, moment: float) -> Acceptance:
    subject = letter.header("Subject")
    return Acceptance(
        t=round(moment, 6),
        message_id=message_id,
        recipients=letter.recipients,
        sender=letter.sender,
        tags=letter.tags,
        configuration_set=letter.configuration_set,
        message_id_header=letter.header("Message-ID"),
        subject=None if subject is None else readable(subject),
        size=len(letter.content),
        headers=letter.headers,
    )


def acceptance_by_smtp(raw: bytes, sender: str, recipient: str, moment: float) -> Acceptance:
    """Tags do not go over SMTP; our own header names the job."""
    letter = Letter(sender, (recipient,), read_headers(raw), {}, None, raw)
    if job := letter.header("X-Sendonce-Job"):
        letter.tags["job"] = job
    return acceptance_of(letter, f"{_BY_SMTP}{uuid4().hex}", moment)


def read_line(line: bytes) -> Acceptance:
    row = json.loads(line)
    return Acceptance(
        t=row["t"],
        message_id=row["message_id"],
        recipients=tuple(row["to"]),
        sender=row["from"],
        tags=row["tags"],
        configuration_set=row["configuration_set"],
        message_id_header=row["message_id_header"],
        subject=row["subject"],
        size=row["size"],
    )


def _open_alone(path: Path) -> int:
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as exc:
        os.close(fd)
        raise RefusedByRule(
            f"Another sandbox writes {path}. Stop it, or start this one in another directory."
        ) from exc
    return fd


class AcceptanceLog:
    """``on_durable`` is called with each group right after its flush, before anybody is answered."""

    def __init__(
        self, directory: Path, keep_messages: int, on_durable: Callable[[list[Acceptance]], None]
    ) -> None:
        self.path = directory / "accepted.jsonl"
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._messages = directory / "messages"
        self._messages_left = keep_messages
        if keep_messages:
            self._messages.mkdir(exist_ok=True)
        self._on_durable = on_durable
        self._fd = _open_alone(self.path)
        self._durable_size = self._drop_torn_line()
        self._group: list[tuple[Acceptance, bytes]] = []
        self._group_done: asyncio.Future[None] | None = None
        self._flusher: asyncio.Task[None] | None = None

    def _drop_torn_line(self) -> int:
        """A crash in mid-write leaves a line without its end; its sender was never answered."""
        end = os.fstat(self._fd).st_size
        whole = 0
        while end > 0 and not whole:
            start = max(0, end - 65_536)
            newline = os.pread(self._fd, end - start, start).rfind(b"\n")
            whole = start + newline + 1 if newline >= 0 else 0
            end = start
        os.ftruncate(self._fd, whole)
        return whole

    def read(self) -> Iterator[Acceptance]:
        """All that is durable at this moment."""
        left = self._durable_size
        with self.path.open("rb") as lines:
            while left > 0:
                line = lines.readline()
                left -= len(line)
                yield read_line(line)

    async def append(self, acceptance: Acceptance, content: bytes) -> None:
        """Return when the acceptance is durable."""
        if self._group_done is None:
            self._group_done = asyncio.get_running_loop().create_future()
        self._group.append((acceptance, content if self._messages_left > 0 else b""))
        self._messages_left -= 1
        done = self._group_done
        if self._flusher is None:
            self._flusher = asyncio.create_task(self._flush_groups())
        await asyncio.shield(done)

    async def _flush_groups(self) -> None:
        while self._group:
            group, done = self._group, self._group_done
            assert done is not None
            self._group, self._group_done = [], None
            try:
                self._durable_size += await asyncio.to_thread(self._write, group)
            except OSError as exc:
                self._give_up(done, exc)
                return
            self._on_durable([acceptance for acceptance, _content in group])
            done.set_result(None)
        self._flusher = None

    def _write(self, group: list[tuple[Acceptance, bytes]]) -> int:
        for acceptance, content in group:
            if content:
                (self._messages / f"{acceptance.message_id}.eml").write_bytes(content)
        lines = b"".join(acceptance.line() for acceptance, _content in group)
        written = 0
        while written < len(lines):
            written += os.write(self._fd, lines[written:])
        os.fdatasync(self._fd)
        return written

    def _give_up(self, done: asyncio.Future[None], exc: OSError) -> None:
        """A log that cannot be written ends the world: whoever waits is not answered."""
        done.cancel()
        if not self.failure.done():
            self.failure.set_exception(exc)

    async def close(self) -> None:
        if self._flusher is not None:
            await asyncio.gather(self._flusher, return_exceptions=True)
        self.failure.cancel()
        os.close(self._fd)
